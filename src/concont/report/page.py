"""The page: one HTML file that holds all it shows, and asks nobody for anything."""

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from concont.report.answer import Fact, describe_answer, describe_data, describe_progress
from concont.report.charts import Chart
from concont.report.class_charts import draw_class_counts
from concont.report.comparison import Table, compare_figures, compare_settings
from concont.report.curves import (
    draw_accuracy,
    draw_confident,
    draw_losses,
    draw_precision,
    draw_thresholds,
)
from concont.report.origin import describe_origin
from concont.report.record import RunRecord
from concont.types import Plain
from concont.version import __version__

if TYPE_CHECKING:
    from concont.report.gallery import Card
    from concont.report.measured import Measured

PLOTLY = "plotly-cartesian.min.js"
SECTIONS = {  # headings with the charts below them, in order
    "training": ("While it trained", ("accuracy", "losses")),
    "labels": ("Which labels it is sure of", ("confident", "thresholds", "classes", "precision")),
    "held": ("On images it did not learn from", ("confusion", "reliability")),
    "map": ("Map", ("map",)),
}
OVERLAID = 16  # runs whose curves are drawn, at most, the newest


@dataclass(frozen=True)
class RunView:
    """What the page says of one run alone."""

    name: str
    state: str
    lead: str
    facts: list[Fact]
    origin: list[tuple[str, str]]
    changes: Table | None = None
    cards: "Sequence[Card]" = ()
    missing: Sequence[str] = ()
    charts: dict[str, Chart] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """All that the page says; plain enough to be compared in a test."""

    title: str
    runs: list[RunView]
    shared: dict[str, Chart]  # of all runs together
    differences: Table | None = None
    figures: Table | None = None
    live: bool = False

    @property
    def several(self) -> bool:
        """Whether runs are to be compared."""
        return len(self.runs) > 1

    @property
    def charts(self) -> Plain:
        """For the page's script: charts of all runs, and of each by its name."""
        runs = {run.name: _as_dicts(run.charts) for run in self.runs}
        return {"shared": _as_dicts(self.shared), "runs": runs}

    def sections(self) -> dict[str, tuple[str, list[str]]]:
        """Headings and charts that any run has; while runs train, those that may come, too."""
        own = {name for run in self.runs for name in run.charts}
        present = {*self.shared, *own}
        if self.live:
            present |= {"accuracy", "losses", "confident", "thresholds", "precision", "classes"}
        kept = {
            key: (heading, [name for name in names if name in present])
            for key, (heading, names) in SECTIONS.items()
        }
        return {key: value for key, value in kept.items() if value[1]}

    def find_chart(self, name: str) -> Chart | None:
        """The chart of this name that is shown first."""
        return self.shared.get(name) or (self.runs[0].charts.get(name) if self.runs else None)


def view_record(record: RunRecord, charts: Mapping[str, Chart | None] | None = None) -> RunView:
    """What a record alone says; charts: further ones."""
    drawn = {
        "thresholds": draw_thresholds(record),
        "classes": draw_class_counts(record),
        **(charts or {}),
    }
    return RunView(
        name=record.name,
        state=describe_progress(record),
        lead=describe_data(record),
        facts=describe_answer(record),
        origin=describe_origin(record),
        missing=record.problems,
        charts=_drop_missing(drawn),
    )


def lay_out(
    records: Sequence[RunRecord],
    views: list[RunView],
    measured: "Mapping[str, Measured] | None" = None,
    **more: Any,
) -> Page:
    """The page of these runs, as each is viewed; more: what else a `Page` holds.

    While runs train the newest comes first, and yet the others keep their colours.
    """
    drawn = records[:OVERLAID][:: -1 if more.get("live") else 1]
    shared = {
        "accuracy": draw_accuracy(drawn),
        "losses": draw_losses(drawn),
        "confident": draw_confident(drawn),
        "precision": draw_precision(drawn),
    }
    several = len(records) > 1
    return Page(
        runs=views,
        shared=_drop_missing(shared) if records else {},
        differences=compare_settings(records) if several else None,
        figures=compare_figures(records, measured) if several else None,
        **more,
    )


def render(page: Page, version: int = 0) -> str:
    """The whole page as HTML; version: of its content, where it is asked for changes later."""
    plotly, own = read_plotly(), _read_asset("page.js")
    data = json.dumps({"charts": page.charts, "live": page.live, "version": version})
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            software=f"concont {__version__}",
            policy=make_policy([plotly, own], page.live),
            style=_read_asset("page.css"),
            plotly=plotly,
            script=own,
            data=escape_in_script(data),
        )
    )


def render_part(name: str, page: Page) -> str:
    """One part of the page that changes while runs train: `summary` or `origin`."""
    return _environment().get_template(f"{name}.html").render(page=page)


def escape_in_script(text: str) -> str:
    """JSON that ends no script element, whatever is written in it."""
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def make_policy(scripts: Sequence[str], live: bool) -> str:
    """A Content-Security-Policy: these scripts alone, and no network but the page's own server."""
    hashes = [b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{each}'" for each in hashes),
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


@cache
def read_plotly() -> str:
    """Plotly.js as it is published."""
    packed = (resources.files("concont.report") / "assets" / f"{PLOTLY}.gz").read_bytes()
    return gzip.decompress(packed).decode()


@cache
def _read_asset(name: str) -> str:
    return (resources.files("concont.report") / "assets" / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("concont.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _drop_missing(charts: Mapping[str, Chart | None]) -> dict[str, Chart]:
    return {name: chart for name, chart in charts.items() if chart is not None}


def _as_dicts(charts: Mapping[str, Chart]) -> Plain:
    return {name: chart.as_dict() for name, chart in charts.items()}
