"""What the tables of measurements share: records, cells in words, and a list of all tables."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from concont.paper.comparison import compare
from concont.paper.plan import cells_of

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DATA = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "svhn": "SVHN"}

Rows = list[list[str]]  # the header first
TABLES: dict[str, Callable[[], Rows]] = {}


def table(make: Callable[[], Rows]) -> Callable[[], Rows]:
    """Let pages hold it under the function's name, with hyphens."""
    TABLES[make.__name__.replace("_", "-")] = make
    return make


@cache
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


@cache
def against_paper(epochs: int | None = None) -> dict[tuple[str, str, float | None, float], Any]:
    """The cells of all tables by row, data, share and q; of runs of one length where asked."""
    runs = [r for r in record("ledger") if epochs is None or r["epochs"] == epochs]
    rows = compare(cells_of("all"), runs)
    keys = ("method", "data", "labeled", "q")
    return {tuple(row[key] for key in keys): row for row in rows if "table" in row["table"]}
