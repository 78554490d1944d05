"""The paper's figures and our own, drawn from the ledger: SVG and PNG, with the numbers in CSV."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concont.errors import UsageError
from concont.repro.against import compare, runs_of
from concont.repro.paper import Cell
from concont.repro.plan import cells_of
from concont.repro.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
MARKS = {"ConCont": "o-", "DPLL": "s--", "PiCO": "^:"}
# Thresholds that move and thresholds that do not.
_BALANCED = tuple(
    cell
    for cell in cells_of("table5")
    if cell.data == "cifar10" and cell.method in ("Adaptive", "Vanilla")
)


def draw(name: str, records: Iterable[Record], folder: Path) -> list[Path]:
    """The files of a figure; none where the ledger has nothing for it."""
    drawing = FIGURES[name]
    rows = list(drawing.numbers(records))
    if not rows:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in ("csv", "svg", "png")]
    with open(paths[0], "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    figure = _figure()
    drawing.paint(rows, figure.add_subplot())
    for path in paths[1:]:
        figure.savefig(path, dpi=200)
    return paths


def shares(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Figure 1: accuracy against the share of images with candidate sets."""
    for row in compare(cells_of("figure1"), records):
        if row["ours_mean"] is not None:
            kept = ("method", "labeled", "q", "ours_mean", "ours_std", "seeds", "epochs")
            yield {name: row[name] for name in kept}


def _paint_shares(rows: Rows, axes: "Axes") -> None:
    for method, mark in MARKS.items():
        line = sorted((r for r in rows if r["method"] == method), key=lambda r: r["labeled"])
        if line:
            axes.errorbar(
                [100 * r["labeled"] for r in line],
                [r["ours_mean"] for r in line],
                [r["ours_std"] or 0 for r in line],
                fmt=mark,
                label=method,
                capsize=3,
            )
    axes.set_xscale("log")
    ticks = sorted({100 * r["labeled"] for r in rows})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("images with candidate sets, %")
    axes.set_ylabel("test accuracy, %")
    axes.set_title(f"CIFAR-10, q = 0.5, {_lengths(rows)}")
    axes.legend(frameon=False)


def curves(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Precision against recall of right pseudo-labels, by p-score and by highest probability."""
    for cell, record in _one_each(cells_of("figure-pr"), records, "verdict"):
        start = {"q": cell.q, "epochs": record["epochs"], "seed": record["seed"]}
        for score, values in record["verdict"]["precision"].items():
            for number, value in enumerate(values or (), 1):
                recall = number / len(values)
                yield {**start, "score": score, "recall": recall, "precision": value}


def _paint_curves(rows: Rows, axes: "Axes") -> None:
    names = {"p_score": "p-score", "max_probability": "maximum probability"}
    for number, q in enumerate(sorted({row["q"] for row in rows})):
        for score, style in (("p_score", "-"), ("max_probability", "--")):
            line = [r for r in rows if (r["q"], r["score"]) == (q, score)]
            axes.plot(
                [100 * r["recall"] for r in line],
                [100 * r["precision"] for r in line],
                style,
                color=f"C{number}",
                label=f"{names[score]}, q = {q}",
            )
    axes.set_xlabel("recall, %")
    axes.set_ylabel("precision, %")
    axes.set_title(f"CIFAR-100, 40 %, {_lengths(rows)}")
    axes.legend(frameon=False)


def pseudo_labels(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """The pseudo-labels of each class at the end, thresholds adaptive and fixed, on CIFAR-10."""
    for cell, record in _one_each(_BALANCED, records, "verdict"):
        start = {"method": cell.method, "epochs": record["epochs"], "seed": record["seed"]}
        names = ("pseudo_labels", "confident", "confident_right")
        columns = [record["verdict"][name] for name in names]
        for number, counts in enumerate(zip(*columns, strict=True)):
            yield {**start, "class": number, **dict(zip(names, counts, strict=True))}


def _paint_pseudo_labels(rows: Rows, axes: "Axes") -> None:
    for k, (method, label) in enumerate((("Adaptive", "adaptive"), ("Vanilla", "fixed"))):
        bars = [r for r in rows if r["method"] == method]
        places = [r["class"] + 0.4 * k - 0.2 for r in bars]
        axes.bar(places, [r["confident"] for r in bars], 0.4, label=label if bars else None)
        axes.bar(
            places,
            [r["confident"] - r["confident_right"] for r in bars],
            0.4,
            [r["confident_right"] for r in bars],
            color="none",
            edgecolor="black",
            hatch="////",
            label="of these wrong" if k == 0 else None,
        )
    axes.set_xticks(sorted({r["class"] for r in rows}))
    axes.set_xlabel("class")
    axes.set_ylabel("confident pseudo-labels")
    axes.set_title(f"CIFAR-10, 10 %, q = 0.5, {_lengths(rows)}")
    axes.legend(frameon=False, ncols=3, fontsize="small")


def thresholds(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """The thresholds of each class over time, adaptive and fixed, on CIFAR-10."""
    for cell, record in _one_each(_BALANCED, records, "thresholds"):
        start = {"method": cell.method, "epochs": record["epochs"], "seed": record["seed"]}
        for epoch, values in record["thresholds"]:
            for number, value in enumerate(values):
                yield {**start, "epoch": epoch, "class": number, "threshold": value}


def _paint_thresholds(rows: Rows, axes: "Axes") -> None:
    for number in sorted({row["class"] for row in rows}):
        for method, style in (("Adaptive", "-"), ("Vanilla", ":")):
            line = [r for r in rows if (r["method"], r["class"]) == (method, number)]
            axes.plot(
                [r["epoch"] for r in line],
                [r["threshold"] for r in line],
                style,
                color=f"C{number % 10}",
                label=f"class {number}" if method == "Adaptive" and line else None,
            )
    axes.set_xlabel("epoch")
    axes.set_ylabel("threshold")
    axes.set_title(f"CIFAR-10, 10 %, q = 0.5, {_lengths(rows)}; dotted: fixed")
    axes.legend(frameon=False, fontsize="small", ncols=2)


@dataclass(frozen=True)
class Drawing:
    """Of which target, from which numbers, and how."""

    target: str
    numbers: Callable[[Iterable[Record]], Iterator[dict[str, Any]]]
    paint: Callable[[Rows, "Axes"], None]


FIGURES = {
    "figure1": Drawing("figure1", shares, _paint_shares),
    "figure-pr": Drawing("figure-pr", curves, _paint_curves),
    "thresholds": Drawing("table5", thresholds, _paint_thresholds),
    "pseudo-labels": Drawing("table5", pseudo_labels, _paint_pseudo_labels),
}


def _one_each(
    cells: Sequence[Cell], records: Iterable[Record], field: str
) -> Iterator[tuple[Cell, Record]]:
    """A run of each cell that has one with this field; of several seeds, the first."""
    found = [record for record in records if record.get(field)]
    for cell in cells:
        runs = runs_of(cell, found)
        if runs:
            yield cell, runs[min(runs)]


def _lengths(rows: Sequence[dict[str, Any]]) -> str:
    lengths = sorted({row["epochs"] for row in rows})
    return f"{' and '.join(map(str, lengths))} epochs"


def _figure() -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("drawing needs Matplotlib: pip install 'concont[figures]'") from None
    return Figure(figsize=(5.5, 4), layout="constrained")
