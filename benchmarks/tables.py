"""Writes the tables of measurements in README.md and docs/ from the records, in place.

python benchmarks/tables.py

A table stands between `<!-- table NAME -->` and `<!-- end -->`; NAME is a function below, which
reads benchmarks/results/. tests/test_figures.py asks that every page is what this would write.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from concont.paper.comparison import compare
from concont.paper.plan import cells_of

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MARKED = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
DATA = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "svhn": "SVHN"}

Rows = list[list[str]]  # the header first
TABLES: dict[str, Callable[[], Rows]] = {}


def table(make: Callable[[], Rows]) -> Callable[[], Rows]:
    """Let pages hold it under the function's name, with hyphens."""
    TABLES[make.__name__.replace("_", "-")] = make
    return make


def record(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f}"


def spread(values: list[float], digits: int = 2) -> str:
    """Mean and standard deviation in percent; the mean alone where all are equal."""
    text = percent(mean(values), digits)
    return f"{text} ± {percent(stdev(values), digits)}" if len(set(values)) > 1 else text


def published(row: dict[str, Any]) -> str:
    if row["paper_mean"] is None:
        return ""
    return f"{row['paper_mean']:.2f} ± {row['paper_std']:.2f}"


def found(row: dict[str, Any]) -> str:
    """Ours, where a cell of the paper was run."""
    if row["ours_mean"] is None:
        return ""
    std = row["ours_std"]
    return f"{row['ours_mean']:.2f}" + (f" ± {std:.2f}" if std is not None else "")


def against_paper(epochs: int | None = None) -> dict[tuple[str, str, float | None, float], Any]:
    """The cells of all tables by row, data, share and q; of runs of one length where asked."""
    runs = [r for r in record("ledger") if epochs is None or r["epochs"] == epochs]
    rows = compare(cells_of("all"), runs)
    keys = ("method", "data", "labeled", "q")
    return {tuple(row[key] for key in keys): row for row in rows if "table" in row["table"]}


@table
def ours_and_the_papers() -> Rows:
    names = ["ConCont", "ConCont (partial only)", "DPLL+Controller*", "DPLL", "PiCO"]
    cells = against_paper()
    rows = [["CIFAR-10, 10 %, q = 0.5", "ours", "epochs", "seeds", "the paper's, 800 epochs"]]
    for name in [*names, "SSPL", "PARM"]:
        cell = cells[name, "cifar10", 0.1, 0.5]
        length = "none" if cell["epochs"] is None else str(cell["epochs"])
        seeds = str(len(cell["seeds"]))
        rows.append([name, found(cell), length, seeds, published(cell)])
    bound = cells["Fully Supervised", "cifar10", None, None]
    rows.append(
        ["all true labels: a bound", found(bound), str(bound["epochs"]), "1", published(bound)]
    )
    return rows


@table
def digits_demo() -> Rows:
    seeds = record("digits-demo")["seeds"]
    rows = [
        ["system", "unlabelled images", "steps", "batch", *(f"seed {s['seed']}" for s in seeds)]
    ]
    for name in seeds[0]["systems"]:
        runs = [seed["systems"][name] for seed in seeds]
        (size,) = {(str(run["steps"]), str(run["batch_size"])) for run in runs}
        used = "yes" if name == "ConCont" else "no"
        rows.append([name, used, *size, *(percent(run["accuracy_last"]) for run in runs)])
    return rows


@table
def digits_holdouts() -> Rows:
    seeds = record("digits-recipe")["seeds"]
    rows = [["system", *(f"hold-out {s['seed']}" for s in seeds)]]
    for name in seeds[0]["systems"]:
        rows.append([name, *(percent(s["systems"][name]["accuracy_last"]) for s in seeds)])
    return rows


@table
def concont_260_epochs() -> Rows:
    whole = record("cifar10-260-epochs")
    summary, run, parts = whole["summary"], whole["run"], whole["summary"]["seconds_by"]
    return [
        ["what", "measured"],
        ["test accuracy at the last epoch", f"{percent(summary['accuracy_last'])} %"],
        ["the paper's, after 800 epochs", f"{percent(whole['paper']['accuracy'])} %"],
        ["training", f"{summary['seconds']:.0f} s"],
        ["of these, the first step (compiling)", f"{parts['first_step']:.1f} s"],
        ["steps", f"{parts['steps']:.1f} s"],
        ["evaluation", f"{parts['evaluation']:.1f} s"],
        ["the rest", f"{parts['other']:.1f} s"],
        ["the paper's accuracy first passed", f"{run['passed_at_s']:.0f} s into training"],
        [
            "the whole command, Python's start and loading included",
            f"at most {run['command_s_at_most']} s",
        ],
    ]


@table
def components_60_epochs() -> Rows:
    cells, places = against_paper(60), (("cifar10", 0.1, 0.5), ("cifar100", 0.2, 0.1))
    header = ["row"]
    for data, share, q in places:
        header += [f"{DATA[data]}, {share:.0%}, q = {q}".replace("%", " %"), "paper, 800 epochs"]
    rows = [header]
    names = ["ConCont", "w/o L_part", "w/o L_reg", "w/o L_reg'", "w/o L_reg and L_reg'", "Vanilla"]
    for name in names:
        line = [name]
        for place in places:
            cell = cells[(name, *place)]
            seeds = ", ".join(map(str, cell["seeds"] or []))
            apart = f" (seeds {seeds})" if seeds not in ("", "1") else ""
            line += [found(cell) + apart.replace("seeds 2", "seed 2"), published(cell)]
        rows.append(line)
    return rows


@table
def bounds_60_epochs() -> Rows:
    cells = against_paper(60)
    rows = [["bound", "60 epochs", "paper, 800 epochs"]]
    for data, title in DATA.items():
        cell = cells["Fully Supervised", data, None, None]
        rows.append([f"Fully Supervised, {title}", found(cell), published(cell)])
    return rows


@table
def more_cells_60_epochs() -> Rows:
    rows = [["row", "data", "share with sets", "q", "60 epochs", "paper, 800 epochs"]]
    for (name, data, share, q), cell in against_paper(60).items():
        shown = name in ("ConCont", "DPLL", "PiCO") and (data, share, q) not in (
            ("cifar10", 0.1, 0.5),
            ("cifar100", 0.2, 0.1),
        )
        if shown and cell["ours_mean"] is not None:
            place = [DATA[data], f"{100 * share:.0f} %", str(q)]
            rows.append([name, *place, found(cell), published(cell)])
    return rows


@table
def methods_60_epochs() -> Rows:
    cells = against_paper()
    rows = [["row", "steps", "last epoch", "momentum network", "paper, 800 epochs"]]
    for run in record("cifar10-methods-60-epochs")["rows"]:
        name = run["row"].replace("ConCont w/o", "w/o")
        place = (None, None) if name == "Fully Supervised" else (0.1, 0.5)
        cell = cells.get((name, "cifar10", *place))
        key = "" if run["accuracy_momentum"] is None else percent(run["accuracy_momentum"])
        paper = "" if cell is None else published(cell)
        rows.append([run["row"], f"{run['steps']:,}", percent(run["accuracy_last"]), key, paper])
    return rows


def classical(recipe: str, share: float, q: float, lam: object = None) -> list[dict[str, Any]]:
    """The ledger's runs of a method without a network."""
    return [
        run
        for run in record("ledger")
        if (run["recipe"], run["labeled"], run["ambiguity"]) == (recipe, share, q)
        and run["settings"]["method"].get("lam") == lam
    ]


def accuracies(runs: list[dict[str, Any]]) -> str:
    return spread([run["accuracy_last"] for run in runs])


@table
def classical_cifar10() -> Rows:
    levels, cells = (0.1, 0.3, 0.5, 0.7), against_paper()

    def ours(title: str, name: str, lam: object = None) -> list[str]:
        return [title, *(accuracies(classical(f"cifar10+{name}", 0.1, q, lam)) for q in levels)]

    def theirs(name: str) -> list[str]:
        return ["the paper's", *(published(cells[name, "cifar10", 0.1, q]) for q in levels)]

    return [
        ["CIFAR-10, 10 %", *(f"q = {q}" for q in levels)],
        ours("SSPL", "sspl"),
        theirs("SSPL"),
        ours("PARM (`--recipe parm`)", "parm", "cv"),
        ours("PARM, `lam` = `mu` = 1", "parm", 1.0),
        theirs("PARM"),
    ]


@table
def classical_cifar100() -> Rows:
    levels, cells = (0.05, 0.1, 0.15, 0.2), against_paper()
    searched = {q: classical("cifar100+parm", 0.2, q, "cv") for q in levels}
    return [
        ["CIFAR-100, 20 %", *(f"q = {q}" for q in levels)],
        ["SSPL", *(accuracies(classical("cifar100+sspl", 0.2, q)) for q in levels)],
        ["the paper's", *(published(cells["SSPL", "cifar100", 0.2, q]) for q in levels)],
        [
            "PARM (`--recipe parm`), seed 1",
            *(accuracies(searched[q]) if searched[q] else "" for q in levels),
        ],
    ]


@table
def classical_time() -> Rows:
    (sspl,) = (r for r in classical("cifar10+sspl", 0.1, 0.5) if r["seed"] == 1)
    (alone,) = (r for r in classical("cifar100+parm", 0.2, 0.1, 1.0) if r["seed"] == 1)
    (search,) = classical("cifar100+parm", 0.2, 0.1, "cv")
    beside = [r for q in (0.05, 0.1, 0.15, 0.2) for r in classical("cifar100+parm", 0.2, q, 1.0)]
    beside.remove(alone)
    times = [r["seconds"] for r in beside]
    cpu = record("classic-cpu")
    by = cpu["summary"]["seconds_by"]

    def line(what: str, seconds: str, runs: list[dict[str, Any]]) -> list[str]:
        (memory,) = {f"{r['peak_gpu_memory_gb']:.2f} GB" for r in runs}
        return [what, "one H200", seconds, memory]

    cifar10, cifar100 = "CIFAR-10, 10 %, q = 0.5", "CIFAR-100, 20 %"
    return [
        ["what", "machine", "seconds", "memory at most"],
        ["GIST of 60,000 CIFAR images", "one H200", f"{sspl['seconds_by']['features']:.1f}", ""],
        line(f"SSPL, {cifar10}: GIST, fit, predictions", f"{sspl['seconds']:.1f}", [sspl]),
        line(
            f"PARM, {cifar100}, q = 0.1, `lam` = `mu` = 1, seed 1 "
            f"(accuracy {percent(alone['accuracy_last'])} %), with GIST, alone on the GPU",
            f"{alone['seconds']:.1f}",
            [alone],
        ),
        line(
            f"the same after GIST, q = 0.05 to 0.2, {len(beside)} runs beside five other jobs",
            f"{min(times):.0f} to {max(times):.0f}",
            beside,
        ),
        line(
            f"PARM, {cifar100}, q = 0.1, with the search of both, beside other jobs",
            f"{search['seconds']:.1f}",
            [search],
        ),
        ["GIST of 60,000 CIFAR images", "two CPU cores", f"{by['features']:.0f}", ""],
        [
            f"SSPL, {cifar10}, after GIST: fit, predictions",
            "two CPU cores",
            f"{by['fit'] + by['evaluation']:.0f}",
            f"{cpu['peak_memory_gib']:.2f} GiB in all",
        ],
    ]


@table
def real_sets() -> Rows:
    whole = record("real-partial")
    by_place = {
        (kind, row["data"], row["method"]): row
        for kind in ("as_they_are", "scaled")
        for row in whole[kind]["rows"]
    }
    columns = [(kind, name) for kind in ("as_they_are", "scaled") for name in ("SSPL", "PARM")]
    header = ["set", "SSPL", "PARM", "SSPL, features scaled", "PARM, features scaled"]
    names = dict.fromkeys(row["data"] for row in whole["scaled"]["rows"])
    rows = [header]
    for data in names:
        cells = [by_place[kind, data, name] for kind, name in columns]
        rows.append([data, *(f"{percent(c['mean'], 1)} ± {percent(c['std'], 1)}" for c in cells)])
    return rows


@table
def parm_hardened() -> Rows:
    levels, cells = record("parm-hardened")["rows"], against_paper()
    rows = [["soft labels", "`lam`", *(f"q = {level['q']}" for level in levels)]]
    for kind, title in (("as_spread", "as spread"), ("hardened", "all to the likeliest class")):
        for i, lam in enumerate((1, 10_000)):
            machines = [level[kind][i] for level in levels]
            assert {machine["lam"] for machine in machines} == {lam}
            rows.append([title, f"{lam:,}", *(percent(m["accuracy"], 1) for m in machines)])
    paper = [published(cells["PARM", "cifar10", 0.1, level["q"]]) for level in levels]
    return [*rows, ["the paper's, with unlabelled rows", "", *paper]]


@table
def parm_soft_labels() -> Rows:
    levels = record("parm-hardened")["rows"]
    shares = {
        "the likeliest label is right, %": "likeliest_is_right",
        "it has more than half, %": "likeliest_has_more_than_half",
    }
    margin = [percent(level["hardened"][1]["rows_at_the_margin"], 1) for level in levels]
    return [
        ["partial rows", *(f"q = {level['q']}" for level in levels)],
        [
            "5,000 less those whose set is full: they count as unlabelled",
            *(f"{level['rows']:,}" for level in levels),
        ],
        *([title, *(percent(level[key], 1) for level in levels)] for title, key in shares.items()),
        ["hardened, `lam` = 10,000: the highest score is a margin above the next, %", *margin],
    ]


def bench(command: str, commit: str) -> Any:
    """What a command measured at a commit."""
    for one in record("speed-h200")["measurements"]:
        figures = one["figures"]
        at = one.get("environment") or figures["environment"]
        if (one["command"], at["commit"]) == (command, commit):
            return figures
    raise KeyError(command)


def timed(method: str) -> dict[str, Any]:
    """A method's newest step."""
    whole = record("methods-h200")
    return {one["method"]: one for one in [*whole["before"], *whole["after"]]}[method]


@table
def step() -> Rows:
    now, first = timed("concont"), bench("concont bench --json", "7650180")
    plain = bench("concont bench --json", "cc428c2")
    empty = "TORCHINDUCTOR_CACHE_DIR=EMPTY concont bench"
    cold = bench(f"{empty} --no-plain --steps 30 --json", "7650180")
    large = bench(f"{empty} --batch 1024 --no-plain --steps 30 --json", "7650180")
    long = record("cifar10-260-epochs")["summary"]["seconds_by"]

    def ms(one: dict[str, Any], key: str, digits: int = 1) -> str:
        return f"{one[key]:.{digits}f} ms"

    def rate(one: dict[str, Any]) -> str:
        return f"{one['tflops']:.0f} of {one['matmul_tflops']:.0f} TFLOP/s"

    def times(key: str) -> str:
        return f"{plain[key] / plain['step_ms']:.1f} times as long"

    return [
        ["what", "measured", "commit"],
        ["ConCont step, batch 256, all included", ms(now, "step_ms", 2), "91c49c5"],
        ["an epoch of 50,000 images", f"{now['epoch_s']:.2f} s", "91c49c5"],
        ["the same, batch 1024", ms(large, "step_ms"), "7650180"],
        ["an epoch", f"{large['epoch_s']:.2f} s", "7650180"],
        ["views (three an image), within the step", ms(now, "views_ms", 2), "91c49c5"],
        ["achieved rate, and that of a large bfloat16 product of matrices", rate(now), "91c49c5"],
        ["first step, compile cache empty", f"{cold['first_step_s']:.1f} s", "7650180"],
        ["first step, compile cache filled", f"{first['first_step_s']:.1f} s", "7650180"],
        ["first step, first process on a new machine", f"{long['first_step']:.1f} s", "7650180"],
        [
            "memory beyond networks and data, batch 256 / 1024",
            f"{first['peak_memory_gb']:.1f} / {large['peak_memory_gb']:.1f} GB",
            "7650180",
        ],
        ["ConCont step when the plain way was timed", ms(plain, "step_ms", 2), "cc428c2"],
        [
            "the plain way, 16 workers, bfloat16",
            f"{ms(plain, 'plain_bfloat16_step_ms')}, {times('plain_bfloat16_step_ms')}",
            "cc428c2",
        ],
        [
            "the plain way, 16 workers, float32 with TF32",
            f"{ms(plain, 'plain_float32_step_ms')}, {times('plain_float32_step_ms')}",
            "cc428c2",
        ],
        [
            "of these, the network alone, bfloat16 / float32",
            f"{plain['plain_bfloat16_network_ms']:.1f} / {ms(plain, 'plain_float32_network_ms')}",
            "cc428c2",
        ],
        ["views of a batch by 16 workers, one machine", ms(first, "plain_views_ms"), "7650180"],
        ["the same on another machine", ms(plain, "plain_views_ms"), "cc428c2"],
    ]


@table
def step_cpu() -> Rows:
    figures = record("speed-cpu")["figures"]
    ratio = figures["plain_views_ms"] / figures["views_ms"]
    return [
        ["two CPU cores, batch 64, the small network", "concont", "the plain way"],
        ["step", f"{figures['step_ms']:.0f} ms", f"{figures['plain_step_ms']:.0f} ms"],
        [
            f"views alone ({ratio:.1f} times faster)",
            f"{figures['views_ms']:.1f} ms",
            f"{figures['plain_views_ms']:.1f} ms",
        ],
    ]


@table
def method_steps() -> Rows:
    passes = {
        "concont": "3 / 1.1",
        "dpll": "3 / 3",
        "pico": "2 / 1",
        "lws": "2 / 1",
        "partial": "1 / 1",
        "proden": "1 / 1",
        "supervised": "1 / 1",
    }
    before = {one["method"]: one for one in record("methods-h200")["before"]}
    rows = [["method", "ms", "commit", "at cc428c2", "passes of 256 images, forward / backward"]]
    for name, number in passes.items():
        one = timed(name)
        steps = [f"{one['step_ms']:.2f}", one["environment"]["commit"][:7]]
        rows.append([f"`{name}`", *steps, f"{before[name]['step_ms']:.2f}", number])
    return rows


@table
def pico_kernels() -> Rows:
    whole = record("pico-kernels")
    return [
        ["PiCO's step under the profiler", "ms"],
        ["from first to last kernel", f"{whole['span_us'] / 1000:.2f}"],
        ["the GPU is busy", f"{whole['busy_us'] / 1000:.2f}"],
        [
            "its kernels, added up (those of the two networks overlap)",
            f"{whole['sum_us'] / 1000:.2f}",
        ],
    ]


@table
def scaling() -> Rows:
    rows = [["images", "size", "batch", "where", "microseconds an image"]]
    for one in bench("concont bench --scaling --json --steps 60", "7650180"):
        where = "streamed from a mapped file" if one["streamed"] else "on the device"
        size = f"{one['image_size']} x {one['image_size']}"
        time = f"{one['us_per_image']:.1f}"
        rows.append([f"{one['images']:,}", size, str(one["batch"]), where, time])
    return rows


@table
def initialisation_and_idle_rows() -> Rows:
    what = [
        ["He, fan-out (PiCO's code, torchvision)", "all rows"],
        ["PyTorch's own, `model.init: torch`", "all rows"],
        ["PyTorch's own", "without idle rows, `train.skip_idle`"],
        ["PyTorch's own", "without idle rows, shared statistics held as they are"],
    ]
    runs = record("cifar10-idle-and-init")["runs"]
    found = [[*titles, percent(r["accuracy_last"])] for titles, r in zip(what, runs, strict=True)]
    return [["initialisation of the convolutions", "backward pass", "accuracy, %"], *found]


def _share(value: float) -> str:
    return f"{100 * value:.2g} %"


@table
def twenty_steps_apart() -> Rows:
    rows = [["fast against eager, 20 steps, commit cc428c2", "losses, at most", "weights"]]
    script = "python benchmarks/fast_equals_plain.py"
    for words in (script, f"{script} --float32"):
        one = bench(words, "cc428c2")
        apart = [_share(max(one["loss_apart"])), _share(one["weights_apart"])]
        rows.append([one["precision"], *apart])
    return rows


@table
def gradient_errors() -> Rows:
    rows = [["error of one gradient, at the start, after 20 steps", "fast", "eager", "commit"]]
    script = "python benchmarks/fast_equals_plain.py"
    for words, commit in ((f"{script} --float32", "a8498fc"), (script, "91c49c5")):
        one = bench(words, commit)
        errors = one["gradient_errors"]
        cells = [
            ", ".join(_share(errors[when][way]) for when in ("at the start", "after 20 steps"))
            for way in ("fast", "eager")
        ]
        rows.append([one["precision"], *cells, commit])
    return rows


def render(rows: Rows) -> str:
    """The table in Markdown."""
    header, *body = rows
    lines = [header, ["---"] * len(header), *body]
    return "".join(
        "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n" for cells in lines
    )


def fill(page: str) -> str:
    """The page with its marked tables as the records have them."""
    return MARKED.sub(lambda m: m[1] + "\n" + render(TABLES[m[2]]()) + "\n" + m[3], page)


def pages() -> Iterator[Path]:
    """All that may hold figures."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))


def main() -> None:
    for path in pages():
        before = path.read_text("utf-8")
        after = fill(before)
        if after != before:
            path.write_text(after, "utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
