"""The paper's figures and our own, drawn from the ledger: SVG and PNG, with the numbers in CSV."""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concont.errors import UsageError
from concont.paper.comparison import compare, runs_of
from concont.paper.plan import cells_of
from concont.paper.tables import Cell
from concont.runs.output import refuse_output
from concont.sweep.record import Record

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FigureRows = list[dict[str, Any]]
MARKS = {"ConCont": "o-", "DPLL": "s--", "PiCO": "^:"}
BALANCED = {"Adaptive": "adaptive", "Vanilla": "fixed"}  # rows of Table 5
GREYS = ("C0", "0.6")  # told apart without colour too
MARKERS = "osD^v<>Pp*"


def draw(name: str, records: Iterable[Record], folder: Path, overwrite: bool = False) -> list[Path]:
    """The files of a figure; none where the ledger has nothing for it.

    overwrite: replace files of these names that are there.
    """
    drawing = FIGURES[name]
    rows = list(drawing.numbers(list(records)))
    if not rows:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in ("csv", "svg", "png")]
    for path in paths:
        refuse_output(path, overwrite)
    with open(paths[0], "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    figure = _make_figure()
    axes = figure.add_subplot()
    drawing.paint(rows, axes)
    axes.set_title(f"{drawing.title}, {rows[0]['epochs']} epochs", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    for path in paths[1:]:
        figure.savefig(path, dpi=200)
    return paths


def collect_shares(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Figure 1: accuracy against the share of images with candidate sets."""
    for cell, runs in _runs_of_one_length(cells_of("figure1"), records):
        (row,) = compare([cell], runs)
        yield {
            **{name: row[name] for name in ("method", "labeled", "q", "ours_mean", "ours_std")},
            "seeds": " ".join(map(str, row["seeds"])),
            "epochs": row["epochs"],
        }


def _paint_shares(rows: FigureRows, axes: "Axes") -> None:
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
    axes.legend(frameon=False)


def collect_curves(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Precision against recall of right pseudo-labels, by p-score and by their probability."""
    for cell, record in _pick_one_run_each(cells_of("figure-pr"), records, "verdict"):
        start = {"q": cell.q, "epochs": record["epochs"], "seed": record["seed"]}
        for score, values in record["verdict"]["precision"].items():
            for number, value in enumerate(values or (), 1):
                recall = number / len(values)
                yield {**start, "score": score, "recall": recall, "precision": value}


def _paint_curves(rows: FigureRows, axes: "Axes") -> None:
    names = {"p_score": "p-score", "max_probability": "highest probability in the set"}
    for number, q in enumerate(sorted({row["q"] for row in rows})):
        for score, style in (("p_score", "-"), ("max_probability", "--")):
            line = [r for r in rows if (r["q"], r["score"]) == (q, score)]
            axes.plot(
                [100 * r["recall"] for r in line],
                [100 * r["precision"] for r in line],
                style,
                color=GREYS[number],
                label=f"{names[score]}, q = {q}",
            )
    axes.set_xlabel("recall, %")
    axes.set_ylabel("precision, %")
    axes.legend(frameon=False)


def collect_pseudo_labels(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """The pseudo-labels of each class at the end, thresholds adaptive and fixed, on CIFAR-10."""
    for cell, record in _pick_one_run_each(_cells_by_balance(), records, "verdict"):
        start = {"method": cell.method, "epochs": record["epochs"], "seed": record["seed"]}
        names = ("pseudo_labels", "confident", "confident_right")
        columns = [record["verdict"][name] for name in names]
        for number, counts in enumerate(zip(*columns, strict=True)):
            yield {**start, "class": number, **dict(zip(names, counts, strict=True))}


def _paint_pseudo_labels(rows: FigureRows, axes: "Axes") -> None:
    from matplotlib.patches import Patch

    shown = []
    for k, (method, name) in enumerate(BALANCED.items()):
        bars = [r for r in rows if r["method"] == method]
        places = [r["class"] + 0.4 * k - 0.2 for r in bars]
        right = [r["confident_right"] for r in bars]
        wrong = [r["confident"] - r["confident_right"] for r in bars]
        style: dict[str, Any] = {"facecolor": GREYS[k], "edgecolor": "black", "linewidth": 0.5}
        axes.bar(places, right, 0.4, **style)
        axes.bar(places, wrong, 0.4, right, **{**style, "facecolor": "white", "hatch": "/////"})
        if bars:
            shown.append(Patch(**style, label=f"{name} thresholds"))
    shown.append(Patch(facecolor="white", edgecolor="black", hatch="/////", label="wrong"))
    axes.set_xticks(sorted({r["class"] for r in rows}))
    axes.set_xlabel("class")
    axes.set_ylabel("confident pseudo-labels")
    _legend_below(axes, shown)


def collect_thresholds(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """The thresholds of each class over time, adaptive and fixed, on CIFAR-10."""
    for cell, record in _pick_one_run_each(_cells_by_balance(), records, "thresholds"):
        start = {"method": cell.method, "epochs": record["epochs"], "seed": record["seed"]}
        for epoch, values in record["thresholds"]:
            for number, value in enumerate(values):
                yield {**start, "epoch": epoch, "class": number, "threshold": value}


def _paint_thresholds(rows: FigureRows, axes: "Axes") -> None:
    for method, style in (("Vanilla", ":"), ("Adaptive", "-")):
        lines: dict[tuple[tuple[int, float], ...], list[int]] = {}  # equal ones are drawn once
        for number in sorted({r["class"] for r in rows if r["method"] == method}):
            line = [r for r in rows if (r["method"], r["class"]) == (method, number)]
            lines.setdefault(tuple((r["epoch"], r["threshold"]) for r in line), []).append(number)
        for k, (points, classes) in enumerate(lines.items()):
            epochs, values = zip(*points, strict=True)
            numbers = (
                f"{'class' if len(classes) == 1 else 'classes'} {', '.join(map(str, classes))}"
            )
            name = "fixed" if method == "Vanilla" else numbers
            mark = MARKERS[k % len(MARKERS)] if method == "Adaptive" else ""
            color = "black" if method == "Vanilla" else f"C{classes[0] % 10}"
            axes.plot(
                epochs,
                values,
                f"{mark}{style}",
                color=color,
                markersize=4,
                markevery=max(1, len(points) // 8),
                label=name,
            )
    axes.set_xlabel("epoch")
    axes.set_ylabel("threshold")
    _legend_below(axes)


def _legend_below(axes: "Axes", shown: "Sequence[Artist] | None" = None) -> None:
    handles = axes.get_legend_handles_labels()[0] if shown is None else shown
    axes.legend(
        handles=handles,
        frameon=False,
        fontsize="small",
        ncols=4,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.15),
    )


@dataclass(frozen=True)
class Drawing:
    """Of which target, called what, from which numbers, and how."""

    target: str
    title: str
    numbers: Callable[[Sequence[Record]], Iterator[dict[str, Any]]]
    paint: Callable[[FigureRows, "Axes"], None]


FIGURES = {
    "figure1": Drawing("figure1", "CIFAR-10, q = 0.5", collect_shares, _paint_shares),
    "figure-pr": Drawing("figure-pr", "CIFAR-100, 40 %", collect_curves, _paint_curves),
    "thresholds": Drawing(
        "table5", "CIFAR-10, 10 %, q = 0.5", collect_thresholds, _paint_thresholds
    ),
    "pseudo-labels": Drawing(
        "table5", "CIFAR-10, 10 %, q = 0.5", collect_pseudo_labels, _paint_pseudo_labels
    ),
}


def _cells_by_balance() -> list[Cell]:
    return [c for c in cells_of("table5") if c.data == "cifar10" and c.method in BALANCED]


def _pick_one_run_each(
    cells: Sequence[Cell], records: Sequence[Record], field: str
) -> Iterator[tuple[Cell, Record]]:
    """A run of each cell that has one with this field, of the first seed that most of them have."""
    kept = [record for record in records if record.get(field)]
    found = list(_runs_of_one_length(cells, kept))
    counts = Counter(record["seed"] for _, runs in found for record in runs)
    for cell, runs in found:
        yield cell, min(runs, key=lambda record: (-counts[record["seed"]], record["seed"]))


def _runs_of_one_length(
    cells: Sequence[Cell], records: Sequence[Record]
) -> Iterator[tuple[Cell, list[Record]]]:
    """The runs of each cell, all of the length that most cells have, of equals the longest."""
    found = runs_of(cells, records)
    counts = Counter(epochs for runs in found.values() for epochs in runs)
    if counts:
        length = max(counts, key=lambda epochs: (counts[epochs], epochs))
        for cell, runs in found.items():
            if length in runs:
                yield cell, list(runs[length].values())


def _make_figure() -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("drawing needs Matplotlib: pip install 'concont[figures]'") from None
    return Figure(figsize=(5.5, 4), layout="constrained")
