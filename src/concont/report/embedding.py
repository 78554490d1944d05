"""The images as the network sees them, laid flat: a map of a sample, the review list marked."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from concont.errors import printable
from concont.report.charts import INK, MARKS, Chart, make_layout, pick_colour
from concont.report.wording import SHORT, show_in_chart, show_share
from concont.types import Plain

if TYPE_CHECKING:
    from concont.answers.resolution import Resolution

MOST = 3000  # images on the map: more take a browser long, and hide each other
LEGEND = 24  # classes up to which a legend is of use
Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


def draw_map(resolution: "Resolution", listed: Rows) -> Chart | None:
    """The first two principal directions of the features, coloured by the resolved label.

    listed: the rows of the review list, all of which are on the map.
    """
    rows = choose_sample(len(resolution), listed)
    if len(rows) < 3 or resolution.features.shape[1] < 2:
        return None
    places, held = project(resolution.features[rows])
    present = np.unique(resolution.label[rows]).tolist()
    traces = [
        _make_points(resolution, rows[own], places[own], label)
        for label in present
        for own in [resolution.label[rows] == label]
    ]
    traces.append(_make_rings(resolution, rows, places, listed))
    whole = len(rows) == len(resolution)
    shown = f"All {len(rows):,}" if whole else f"A sample of {len(rows):,} of {len(resolution):,}"
    names = [printable(resolution.classes[label]) for label in present]
    counts = [int((resolution.label[rows] == label).sum()) for label in present]
    return Chart(
        "The images as the network sees them",
        f"{shown} images by their features; the {len(listed):,} of the review list are ringed. The "
        f"two directions drawn hold {show_share(held, 0)} of the spread: what lies close here may "
        "be far apart in the others.",
        traces,
        make_layout(
            "first direction",
            "second direction",
            hovermode="closest",
            xaxis={"showticklabels": False},
            yaxis={"showticklabels": False},
            showlegend=len(present) <= LEGEND,
        ),
        ["resolved label", "images on the map"],
        [[name, f"{n:,}"] for name, n in zip(names, counts, strict=True)],
    )


def choose_sample(n: int, listed: Rows) -> Rows:
    """The rows on the map, in order: the review list, and others by chance up to `MOST`."""
    others = np.setdiff1d(np.arange(n), listed)
    room = max(0, MOST - len(listed))
    if len(others) > room:
        others = np.random.RandomState(0).choice(others, room, replace=False)
    rows: Rows = np.sort(np.concatenate([listed, others]))
    return rows


def project(features: Floats) -> tuple[Floats, float]:
    """Features (M, D) in their first two principal directions (M, 2), and what share these hold."""
    from sklearn.decomposition import PCA

    centred = features - features.mean(axis=0)
    if not centred.any():  # all the same: there is no direction
        return np.zeros((len(features), 2), np.float32), 1.0
    found = PCA(2, svd_solver="covariance_eigh").fit(centred)
    places: Floats = found.transform(centred).astype(np.float32)
    return places, float(found.explained_variance_ratio_.sum())


def _make_points(resolution: "Resolution", rows: Rows, places: Floats, label: int) -> Plain:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": show_in_chart(resolution.classes[label], SHORT),
        "x": _round(places[:, 0]),
        "y": _round(places[:, 1]),
        "text": [_describe(resolution, row) for row in rows.tolist()],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "size": 6,
            "opacity": 0.75,
            "color": pick_colour(label),
            "symbol": MARKS[label % len(MARKS)],  # told apart without colour, too
        },
    }


def _make_rings(resolution: "Resolution", rows: Rows, places: Floats, listed: Rows) -> Plain:
    own = np.isin(rows, listed)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "review list",
        "x": _round(places[own, 0]),
        "y": _round(places[own, 1]),
        "hoverinfo": "skip",
        "marker": {"size": 11, "symbol": "circle-open", "color": INK, "line": {"width": 1.2}},
    }


def _describe(resolution: "Resolution", row: int) -> str:
    """What is said of a point under the mouse."""
    label = show_in_chart(resolution.classes[resolution.label[row]])
    share = show_share(float(resolution.probability[row]), 0)
    place = f"{resolution.review[row]:,} in the review list"
    return f"{show_in_chart(resolution.images[row])}<br>{label}, {share}<br>{place}"


def _round(values: Floats) -> list[float]:
    return [round(value, 4) for value in values.tolist()]
