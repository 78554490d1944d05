"""A chart as plain data: what Plotly draws, and the same in words and as a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from concont.report.wording import SHORT, show_in_chart
from concont.types import Plain

POINTS = 300  # of a line, at most: more cannot be told apart on a screen
MARKED = 30  # points of a line up to which each has a mark
COLOURS = 10  # of the page's palette: --series-0 to --series-9
DASHES = ("solid", "dash", "dot")
MARKS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star")
INK, MUTED, QUIET = "var(--ink)", "var(--muted)", "var(--quiet)"
GRID, SURFACE = "var(--grid)", "var(--surface)"
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """Traces and layout of Plotly, a sentence that says what they show, and their numbers.

    A colour `var(--name)` is one of the page's, which it fills in.
    """

    title: str
    sentence: str
    data: list[Plain]
    layout: Plain
    head: Sequence[str]
    rows: Sequence[Sequence[str]] = field(default_factory=list)

    def as_dict(self) -> Plain:
        """For the page's script."""
        return {
            "title": self.title,
            "sentence": self.sentence,
            "data": self.data,
            "layout": self.layout,
            "head": list(self.head),
            "rows": [list(row) for row in self.rows],
        }


def pick_colour(number: int) -> str:
    """Of a series by its number; they come round again."""
    return f"var(--series-{number % COLOURS})"


def make_line(name: str, points: Points, number: int = 0, **more: Any) -> Plain:
    """A line through (x, y), thinned to what a screen shows; number: which series it is."""
    kept = thin(points)
    line: Plain = {
        "type": "scatter",
        "mode": "lines+markers" if len(kept) <= MARKED else "lines",
        "name": show_in_chart(name),
        "x": [x for x, _ in kept],
        "y": [y for _, y in kept],
        "line": {
            "color": pick_colour(number),
            "width": 2,
            "dash": DASHES[number // COLOURS % len(DASHES)],
        },
        "marker": {"size": 5, "color": pick_colour(number)},
    }
    return {**line, **more}


def shorten_name(line: Plain, name: str) -> Plain:
    """A line of a class: its name is short in the legend, and whole where it is pointed at."""
    whole = {"meta": show_in_chart(name), "hovertemplate": "%{meta}: %{y}<extra></extra>"}
    return {**line, **whole, "name": show_in_chart(name, SHORT)}


def make_layout(x: str, y: str, **more: Any) -> Plain:
    """The look that all charts share, with these titles of the axes."""
    axis: Plain = {
        "gridcolor": GRID,
        "linecolor": GRID,
        "zeroline": False,
        "automargin": True,
        "tickfont": {"color": MUTED, "size": 12},
    }
    words: Plain = {"font": {"color": MUTED, "size": 13}, "standoff": 10}
    layout: Plain = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK, "size": 13},
        "margin": {"l": 56, "r": 16, "t": 12, "b": 48},
        "hovermode": "x unified",
        "hoverlabel": {
            "bgcolor": SURFACE,
            "bordercolor": GRID,
            "font": {"color": INK},
            "namelength": -1,
        },
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "showlegend": True,
        "uirevision": "same",  # new points leave zoom and hidden lines as they are
        "xaxis": {**axis, "title": {"text": x, **words}},
        "yaxis": {**axis, "title": {"text": y, **words}},
    }
    for name, value in more.items():
        inner = layout.get(name)
        both = isinstance(inner, dict) and isinstance(value, dict)
        layout[name] = {**inner, **value} if both else value  # type: ignore[dict-item]
    return layout


def thin(points: Points) -> Points:
    """Evenly chosen points, the last among them, no more than `POINTS`."""
    if len(points) <= POINTS:
        return points
    last = len(points) - 1
    return [points[round(k * last / (POINTS - 1))] for k in range(POINTS)]
