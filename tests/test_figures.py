"""Every measured figure in README.md and docs/ is what a record of benchmarks/results/ holds."""

import json
import re
from pathlib import Path

import pytest
from tables_common import TABLES, against_paper
from tables_speed import timed

import tables

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [str(path.relative_to(ROOT)) for path in tables.pages()]
UNITS = r"%|s|ms|seconds|times|points|GB|GiB|GPU-hours|microseconds|TFLOP/s"
FIGURE = re.compile(
    rf"(?<![\w.,])\d[\d,]*\.\d+(?: (?:{UNITS})(?![\w]))?|\d[\d,]* (?:{UNITS})(?![\w])"
)


def read(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def of_long_run(*keys):
    found = read("cifar10-260-epochs")
    for key in keys:
        found = found[key]
    return found


def accuracy(recipe, seed):
    """In percent, of a run of 60 epochs on CIFAR-10, 10 %, q = 0.5."""
    (run,) = (
        run
        for run in read("ledger")
        if (run["recipe"], run["seed"], run["epochs"]) == (recipe, seed, 60)
        and (run["labeled"], run["ambiguity"]) == (0.1, 0.5)
    )
    return 100 * run["accuracy_last"]


def lead(recipe, other, seed=1):
    return accuracy(recipe, seed) - accuracy(other, seed)


def at_epoch(row, epoch):
    (run,) = (run for run in read("cifar10-methods-60-epochs")["rows"] if run["row"] == row)
    return 100 * dict(run["curve"])[epoch]


def published(row):
    return against_paper()[row, "cifar10", 0.1, 0.5]["paper_mean"]


def demo_seconds():
    """Of training, in all three systems of seed 1."""
    (first,) = (seed for seed in read("digits-demo")["seeds"] if seed["seed"] == 1)
    return sum(system["seconds"] for system in first["systems"].values())


def random_tenth_costs():
    """What it costs digits that one right set of ten is left out, in points."""
    (cost,) = (
        cost for name, cost, _ in TABLES["noise-more"]() if name.startswith("one of a tenth")
    )
    return cost


# What the text says of measurements, outside of the tables, with the record that says so.
MEASURED = {
    "README.md": {"6.07 ms": lambda: f"{timed('concont')['step_ms']:.2f} ms"},
    "docs/recipe.md": {"95.09": lambda: TABLES["bounds-60-epochs"]()[-1][1]},
    "docs/speed.md": {"6.07 ms": lambda: f"{timed('concont')['step_ms']:.2f} ms"},
    "docs/deploy.md": {
        "219 MB": lambda: f"{read('deploy-cpu')['install']['megabytes']} MB",
        "0.15": lambda: f"{read('deploy-cpu')['export']['bytes_float'] / 1e6:.2f}",
        "0.05": lambda: f"{read('deploy-cpu')['export']['bytes_int8'] / 1e6:.2f}",
        "90.00 %": lambda: f"{100 * read('deploy-cpu')['export']['accuracy_int8']:.2f} %",
        "302 images": lambda: f"{read('deploy-cpu')['serving']['one']['images_per_s']} images",
        "2,122": lambda: f"{read('deploy-cpu')['serving']['forms']['images_per_s']:,}",
        "47,200": lambda: f"{read('deploy-cpu')['serving']['model_alone_images_per_s']:,}",
    },
    "docs/results.md": {
        "53 s": lambda: f"{demo_seconds():.0f} s",
        "4.8 points": lambda: f"{lead('cifar10', 'cifar10+vanilla', 2):.1f} points",
        "14 points": lambda: f"{lead('cifar10+dpll-controller', 'cifar10+dpll-star'):.0f} points",
        "14.5": lambda: f"{published('DPLL+Controller*') - published('DPLL*'):.1f}",
        "21.68 %": lambda: f"{at_epoch('DPLL*', 20):.2f} %",
        "3.30 points": lambda: f"{random_tenth_costs()} points",
    },
}
# Settings, tolerances, versions and what is read off a picture: figures that nobody measured.
OTHER = {
    "README.md": ["3.11"],
    "docs/classic.md": ["0.5 GiB", "3.3", "4.3"],
    "docs/data.md": ["0.5", "1 GiB"],
    "docs/networks.md": ["8 times"],
    "docs/report.md": ["127.0", "2 seconds"],
    "docs/resolve.md": ["95 %", "80 %", "0.8 %"],
    "docs/deviations.md": ["0.07", "0.5"],
    "docs/recipe.md": [
        *("0.03", "0.1", "0.3", "0.5", "0.7", "0.97", "0.99", "0.999"),
        *("10 %", "20 %"),
    ],
    "docs/reproduce.md": ["0.5", "10 %", "40 %", "3.6 GPU-hours", "13.5"],  # by `--dry-run`
    "docs/results.md": [
        "0.1",
        "0.3",
        "0.5",
        "0.7",
        "0.8",
        "0.999",
        "1.5 times",
        "10 %",
        "2.11",
        "40 %",
        "1.55",
        "80 %",
    ],
    "docs/speed.md": ["0.01", "2.4 times"],
    "docs/votes.md": ["0.8", "95 %"],
    "docs/views.md": [
        *("0.05", "0.1", "0.2", "0.2989", "0.299", "0.3", "0.4", "0.5", "0.95", "1.0", "1.9"),
        *("20 %", "80 %", "98 %"),
    ],
}


def text_of(page):
    """A page without its marked tables, code and links' targets."""
    text = tables.MARKED.sub("", (ROOT / page).read_text("utf-8"))
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", " ", " ".join(text.split()))


@pytest.mark.parametrize("page", PAGES)
def test_every_table_of_measurements_is_as_recorded(page):
    text = (ROOT / page).read_text("utf-8")
    assert tables.fill(text) == text, "run `python benchmarks/tables.py`"


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_in_the_text_is_as_recorded(page):
    text = text_of(page)
    for figure, recorded in MEASURED.get(page, {}).items():
        assert figure in text, f"{figure} is not on {page} any more"
        assert recorded() == figure
    for figure in OTHER.get(page, []):
        assert figure in text, f"{figure} is not on {page} any more"
    known = {*MEASURED.get(page, {}), *OTHER.get(page, [])}
    assert set(FIGURE.findall(text)) <= known, f"whence? {set(FIGURE.findall(text)) - known}"


def test_the_pages_of_results_hold_every_table():
    named = {page: tables.MARKED.findall((ROOT / page).read_text("utf-8")) for page in PAGES}
    on = {page: [name for _, name, _ in found] for page, found in named.items() if found}
    assert set(on) == {"README.md", "docs/recipe.md", "docs/results.md"}
    assert sorted(on["docs/results.md"] + on["docs/recipe.md"]) == sorted(TABLES)


def test_a_wrong_figure_is_put_right():
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    wrong = page.replace("| SSPL | 51.97 ± 0.71 |", "| SSPL | 53.97 ± 0.71 |")
    assert wrong != page
    assert tables.fill(wrong) == page


def test_every_record_is_named_on_the_page_of_results():
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    older = {"cifar10-ten-epochs.json", "cifar10-eighty-epochs.json"}  # of a recipe before today's
    there = {path.name for path in RESULTS.glob("*.json")}
    assert set(re.findall(r"benchmarks/results/([\w-]+\.json)", page)) == there - older
