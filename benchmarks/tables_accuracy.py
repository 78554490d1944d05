"""The tables of accuracies, and of what methods without a network take."""

from typing import Any

from tables_common import (
    DATA,
    Rows,
    against_paper,
    found,
    percent,
    published,
    record,
    spread,
    table,
)


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
