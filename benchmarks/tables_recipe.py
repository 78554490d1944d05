"""The tables of runs towards a strong recipe."""

from statistics import mean
from typing import Any

from tables_common import DATA, Rows, percent, record, spread, table

from concont.paper.tables import published

COMPARED = ("table1", "table2", "table3")  # the others take ConCont apart


def arms(data: str) -> dict[str, Any]:
    """The runs towards a strong recipe, by what was changed."""
    return {arm["arm"]: arm for arm in record(f"{data}-strong-search")["arms"]}


def compare_arms(data: str) -> Rows:
    columns = {
        "accuracy, %": "accuracy",
        "momentum network, %": "accuracy_momentum",
        "picked, %": "accuracy_in_set",
        "partial, %": "pseudo_accuracy_partial",
        "unlabelled, %": "pseudo_accuracy_unlabeled",
    }
    rows = [["changed", *columns]]
    for name, arm in arms(data).items():
        last = arm["lines"][-1]
        words = "nothing: the start" if name == "start" else name
        rows.append([words, *(percent(last[key]) for key in columns.values())])
    return rows


@table
def strong_search() -> Rows:
    return compare_arms("cifar10")


@table
def strong_search_svhn() -> Rows:
    return compare_arms("svhn")


@table
def strong_search_cifar100() -> Rows:
    return compare_arms("cifar100")


def best_of_the_paper(data: str, labeled: float, q: float) -> tuple[float, str]:
    """The highest published accuracy of a cell, in percent, and the row that has it."""
    return max(
        (cell.mean, cell.method)
        for cell in published()
        if (cell.data, cell.labeled, cell.q) == (data, labeled, q)
        and cell.table in COMPARED
        and cell.mean is not None
    )


@table
def strong_cells() -> Rows:
    """The cells of the paper's tables that were measured with the strong recipe."""
    runs: dict[tuple[str, float, float], list[Any]] = {}
    for run in record("ledger"):
        if run["recipe"].endswith("-strong") and run["evaluated_on"] == "test":
            runs.setdefault((run["data"], run["labeled"], run["ambiguity"]), []).append(run)
    rows = [["cell", "the paper's best row", "strong", "seeds", "epochs", "seconds"]]
    for (data, labeled, q), found in sorted(runs.items()):
        best, name = best_of_the_paper(data, labeled, q)
        (epochs,) = {run["epochs"] for run in found}
        rows.append(
            [
                f"{DATA[data]}, {labeled:.0%}, q = {q}",
                f"{best:.2f} ({name})",
                f"**{spread([run['accuracy_last'] for run in found])}**",
                str(len(found)),
                str(epochs),
                f"{mean(run['seconds'] for run in found):.0f}",
            ]
        )
    return rows


@table
def own_data_search() -> Rows:
    """The runs that chose the recipe for one's own images on a CPU."""
    columns = ("network", "width", "batch", "epochs", "lr", "momentum", "partial_share", "branches")
    rows = [[*(name.replace("_", " ") for name in columns), "accuracy, %"]]
    runs = [run for run in record("own-data-search")["runs"] if "branches" in run]
    for run in sorted(runs, key=lambda run: -run["accuracy"]):
        view = ", weak view pad4" if "weak_view" in run else ""
        named = {**run, "network": run["network"] + view}
        rows.append([*(str(named[name]) for name in columns), percent(run["accuracy"])])
    return rows
