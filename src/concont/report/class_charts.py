"""Charts class by class, and of how far probabilities can be believed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concont.report.charts import MUTED, QUIET, Chart, make_layout, make_line, pick_colour
from concont.report.record import RunRecord
from concont.report.wording import SHORT, show_in_chart, show_share
from concont.types import Plain

BINS = 15  # as in the calibration error
NAMED = 40  # classes up to which each has its name on an axis
DRAWN = 100  # classes whose confusions are drawn
WORST = 30  # confusions in the table
HEAT = [[0.0, "var(--heat-0)"], [0.5, "var(--heat-1)"], [1.0, "var(--heat-2)"]]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Bin:
    """Images whose highest probability is about the same."""

    probability: float  # mean
    accuracy: float
    n: int


def draw_class_counts(record: RunRecord) -> Chart | None:
    """The pseudo-labels of each class at the end: confident and right, confident, the others."""
    verdict, names = record.verdict or {}, record.classes
    every, confident = verdict.get("pseudo_labels"), verdict.get("confident")
    if not every or not confident or len(every) != len(names):
        return None
    right = verdict.get("confident_right")
    rest = _subtract(every, confident)
    said = f"{sum(confident):,} of {sum(every):,} pseudo-labels are confident"
    if right is None:
        bars = {"confident": confident, "not confident": rest}
    else:
        wrong = _subtract(confident, right)
        bars = {"confident and right": right, "confident and wrong": wrong, "not confident": rest}
        said += f", {show_share(sum(right) / max(1, sum(confident)))} of them right"
    return Chart(
        "Pseudo-labels by class",
        f"{said}.",
        [_make_bars(name, names, counts, k) for k, (name, counts) in enumerate(bars.items())],
        make_layout(
            "class",
            "images",
            barmode="stack",
            xaxis=_name_ticks(names),
            legend={"traceorder": "normal"},
        ),
        ["class", *bars],
        [[name, *(f"{own[k]:,}" for own in bars.values())] for k, name in enumerate(names)],
    )


def draw_confusion(confusion: Sequence[Sequence[int]], classes: Sequence[str], on: str) -> Chart:
    """A row a true class, a column a predicted one; coloured by the share of the row.

    Of very many classes those are drawn that are confused most.
    """
    counts = np.asarray(confusion)
    kept = _find_most_confused(counts)
    some = "" if len(kept) == len(classes) else f" The {len(kept)} classes with most confusions."
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    inner, names = np.ix_(kept, kept), [show_in_chart(classes[k]) for k in kept]
    heat: Plain = {
        "type": "heatmap",
        "z": np.round(shares[inner], 2).tolist(),
        "customdata": counts[inner].tolist(),
        "text": [[f"{true} taken for {other}" for other in names] for true in names],
        "hovertemplate": "%{text}<br>%{customdata} images, %{z:.1f} %<extra></extra>",
        "colorscale": HEAT,
        "zmin": 0,
        "zmax": 100,
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"ticksuffix": " %", "thickness": 10, "outlinewidth": 0},
    }
    axis = {**_name_ticks([classes[k] for k in kept]), "showgrid": False}
    layout = make_layout("predicted", "true", hovermode="closest", xaxis=axis, showlegend=False)
    layout["yaxis"] |= {**axis, "autorange": "reversed"}
    rows = list_confusions(counts, classes)
    head = ["true class", "taken for", "images", "of the class"]
    said = "No image is taken for another class."
    if rows:
        said = f"Most often {rows[0][0]} is taken for {rows[0][1]}: {rows[0][2]} images."
    return Chart("Who is taken for whom", f"Of {on}.{some} {said}", [heat], layout, head, rows)


def list_confusions(counts: NDArray[np.int64], classes: Sequence[str]) -> list[list[str]]:
    """True class, predicted class, images and their share of the class; the most first."""
    wrong = counts - np.diag(np.diag(counts))
    pairs = np.argwhere(wrong).tolist()
    pairs.sort(key=lambda pair: -int(wrong[pair[0], pair[1]]))
    totals = counts.sum(axis=1)
    return [
        [classes[i], classes[k], f"{wrong[i, k]:,}", show_share(float(wrong[i, k] / totals[i]))]
        for i, k in pairs[:WORST]
    ]


def fill_bins(probs: Floats, labels: NDArray[np.int64]) -> list[Bin]:
    """Images with probabilities (M, C) and true labels (M,), by their highest probability."""
    highest, right = probs.max(axis=1), probs.argmax(axis=1) == labels
    place = np.minimum((highest * BINS).astype(int), BINS - 1)
    inside = [(place == k) for k in range(BINS)]
    return [
        Bin(float(highest[own].mean()), float(right[own].mean()), int(own.sum()))
        for own in inside
        if own.any()
    ]


def draw_reliability(groups: dict[str, list[Bin]], sentence: str) -> Chart:
    """How often a class is right that the network gives a probability; by what the bins are."""
    even = make_line("as it should be", [(0, 0), (100, 100)], mode="lines", hoverinfo="skip")
    even["line"] = {"color": MUTED, "dash": "dot", "width": 1}
    traces = [even]
    for number, (name, bins) in enumerate(groups.items()):
        points = [(100 * each.probability, 100 * each.accuracy) for each in bins]
        line = make_line(name, points, number, mode="lines+markers")
        line["line"]["width"] = 1
        most = max(each.n for each in bins)
        line["marker"]["size"] = [6 + 14 * (each.n / most) ** 0.5 for each in bins]
        line["customdata"] = [each.n for each in bins]
        line["hovertemplate"] = "%{x:.1f} % sure, %{y:.1f} % right, %{customdata} images"
        traces.append(line)
    rows = [
        [name, show_share(each.probability, 1), show_share(each.accuracy, 1), f"{each.n:,}"]
        for name, bins in groups.items()
        for each in bins
    ]
    percent = {"ticksuffix": " %", "range": [0, 103]}
    layout = make_layout(
        "highest probability", "right", hovermode="closest", xaxis=percent, yaxis=percent
    )
    head = ["", "mean probability", "right", "images"]
    return Chart("Do probabilities mean what they say?", sentence, traces, layout, head, rows)


def _find_most_confused(counts: NDArray[np.int64]) -> list[int]:
    """The classes that are drawn, in order."""
    wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diag(counts)
    return sorted(np.argsort(-wrong, kind="stable")[:DRAWN].tolist())


def _make_bars(name: str, classes: Sequence[str], counts: Sequence[int], number: int) -> Plain:
    colour = QUIET if name == "not confident" else pick_colour(number)
    return {
        "type": "bar",
        "name": name,
        "x": list(range(len(counts))),
        "y": list(counts),
        "marker": {"color": colour},
        "customdata": [show_in_chart(each) for each in classes],
        "hovertemplate": f"%{{customdata}}: %{{y}} {name}<extra></extra>",
    }


def _name_ticks(names: Sequence[str]) -> Plain:
    """An axis with the classes' names, or some of them where there are many."""
    step = -(-len(names) // NAMED)
    places = list(range(0, len(names), step))
    return {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [show_in_chart(names[k], SHORT) for k in places],
    }


def _subtract(total: Sequence[int], part: Sequence[int]) -> list[int]:
    return [n - own for n, own in zip(total, part, strict=True)]
