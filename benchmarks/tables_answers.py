"""Tables of what is made of a finished run: labels to look at."""

from collections import defaultdict
from statistics import mean
from typing import Any

from tables_common import DATA, Rows, percent, record, table

SEARCHED = {"digits": "digits", "MNIST": "mnist", "Fashion-MNIST": "fashion"}
MEASURED = ("costs", "gets back")
PARTS = ("review list", "p-score", "probability inside the set", "neighbours")


@table
def review_list() -> Rows:
    """Wrong labels in all and among the first tenth, by the list and by each of its parts alone."""
    names = ["in the first tenth of the list", *(f"by the {part} alone" for part in PARTS[1:])]
    rows = [["data", "images", "wrong labels, %", *names, "times as many as in all"]]
    for run in record("review-list")["runs"]:
        head = [run["wrong_at_the_head"][part] for part in PARTS]
        found = [f"**{percent(head[0], 1)}**", *(percent(share, 1) for share in head[1:])]
        lift = f"{head[0] / run['wrong']:.1f}"
        rows.append([run["data"], f"{run['images']:,}", percent(run["wrong"], 1), *found, lift])
    return rows


@table
def votes() -> Rows:
    """Whose labels of the voted images are right how often, and what the network learned."""
    names = ["majority", "Dawid and Skene", "`resolve`", "held out", "without weights"]
    rows = [["data", "seed", "voted images", *names]]
    runs = record("votes")["runs"]
    plain = {(r["data"], r["seed"]): r for r in runs if r["vote_strength"] == 0}
    for run in runs:
        if run["vote_strength"] == 0:
            continue
        labels = [percent(run[key]) for key in ("majority", "dawid_skene")]
        learned = [run["held_out"], plain[run["data"], run["seed"]]["held_out"]]
        found = [*labels, f"**{percent(run['resolved'])}**", *map(percent, learned)]
        rows.append(
            [DATA.get(run["data"], run["data"]), str(run["seed"]), f"{run['voted']:,}", *found]
        )
    return rows


@table
def noise() -> Rows:
    """What sets that miss the truth cost, and what is got back by doubting some of them."""
    runs = record("noise")["runs"]
    names = {
        "digits, ten seeds": "digits",
        "digits, twenty later seeds": "digits, later seeds",
        "digits, forty more seeds": "digits, forty more seeds",
        "digits, sets for 20 %, the same forty": "digits, sets for a fifth",
        "CIFAR-10": "cifar10",
        "CIFAR-10, doubted to the end": "cifar10, an earlier form: doubted to the end",
        "MNIST": "mnist",
        "Fashion-MNIST": "fashion",
    }
    head = ["data", "no noise", "trust 0.8", "noise", "trust 0.8", "got back", "AUC", "lowest AUC"]
    return [head, *([name, *noise_row(runs[key])] for name, key in names.items())]


@table
def noise_search() -> Rows:
    """The forms of doubt among which the shipped one was chosen."""
    return compare_forms(record("noise")["search"])


@table
def noise_later() -> Rows:
    """The forms that were tried after it, and what whoever knew the wrong sets would get back."""
    return compare_forms(record("noise")["later"])


@table
def noise_more() -> Rows:
    """Forms on forty seeds of digits; some where sets miss the truth only, one where none does."""
    found = record("noise")["more"]
    accuracy = defaultdict[tuple[str, float], list[float]](list)
    for run in found["runs"]:
        accuracy[run["form"], run["noise"]].append(run["accuracy"])
    clean, noisy = (mean(accuracy["all sets believed", noise]) for noise in (0.0, 0.1))
    rows = [["a doubted set is", "costs", "gets back"]]
    for form in found["forms"].values():
        calm, saved = (accuracy[form, noise] for noise in (0.0, 0.1))
        back = f"{100 * (mean(saved) - noisy) / (clean - noisy):.0f} %" if saved else ""
        rows.append([form, f"{100 * (clean - mean(calm)):.2f}" if calm else "", back])
    return rows


def compare_forms(found: dict[str, Any]) -> Rows:
    """What each form costs without noise, and gets back with it."""
    rows = [["a doubted set is", *(f"{n}: {what}" for n in SEARCHED for what in MEASURED)]]
    for form in found["forms"].values():
        cells = []
        for key in SEARCHED.values():
            runs = [run for run in found["runs"] if run["data"] == key]
            mine = [run for run in runs if run["form"] == form]
            seeds = {run["seed"] for run in mine}
            beside = [run for run in runs if run["trust"] == 1 and run["seed"] in seeds]
            cells += describe_form(noise_row(beside + mine)) if mine else ["", ""]
        rows.append([form, *cells])
    return rows


def describe_form(row: list[str]) -> list[str]:
    """What it costs where no set is wrong, in points, and the share of the loss it gets back."""
    clean, calm, _, _, back, *_ = row
    return [f"{float(clean) - float(calm):.2f}", back]


def noise_row(runs: list[dict[str, Any]]) -> list[str]:
    """Means over seeds, the share of the loss got back, the mean and the lowest area."""
    four = [(noise, trust) for noise in (0.0, 0.1) for trust in (1.0, 0.8)]
    clean, calm, noisy, saved = (
        mean(r["accuracy"] for r in runs if (r["noise"], r["trust"]) == each) for each in four
    )
    areas = [r["auc"] for r in runs if (r["noise"], r["trust"]) == four[-1]]
    back = f"{100 * (saved - noisy) / (clean - noisy):.0f} %"
    of_areas = (f"{made(areas):.2f}" for made in (mean, min))
    return [*map(percent, (clean, calm, noisy, saved)), back, *of_areas]
