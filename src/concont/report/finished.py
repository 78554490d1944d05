"""The page of runs with all that can be said of them: by their records, and by their networks."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from concont.config.changes import find_changes
from concont.config.resolve import read_settings
from concont.errors import ConcontError, printable
from concont.report.answer import HELD_BACK, describe_answer
from concont.report.charts import Chart
from concont.report.class_charts import draw_confusion, draw_reliability
from concont.report.comparison import Table, list_changes
from concont.report.curves import draw_precision
from concont.report.embedding import draw_map
from concont.report.measured import Measured, measure_run
from concont.report.page import Page, RunView, lay_out, view_record
from concont.report.record import RunRecord
from concont.report.wording import hide_folders, show_share

NOT_ENDED = "No map, review list or confusions: the run has not ended; they need its network."


def make_page(
    records: Sequence[RunRecord],
    review: int,
    device: str = "auto",
    data: str | None = None,
    images: str | None = None,
    network: nn.Module | None = None,
) -> Page:
    """The page of these runs; review: how many images of each to show for review.

    data, images: where the runs' data and a table's images lie now, if not where they lay. network:
    of the user's own, of runs that have one.
    """
    measured = {
        record.name: measure_run(record.path, review, device, data, images, network)
        if record.summary is not None
        else Measured(missing=(NOT_ENDED,))
        for record in records
    }
    views = [view_run(record, measured[record.name]) for record in records]
    title = records[0].name if len(records) == 1 else f"{len(records)} runs"
    return lay_out(records, views, measured, title=title)


def view_run(record: RunRecord, measured: Measured) -> RunView:
    """What the page says of a run alone."""
    view = view_record(record, {**_draw_quality(record, measured), "map": _draw_map(measured)})
    changes, problems = _list_changes(record)
    return replace(
        view,
        facts=describe_answer(record, measured),
        cards=measured.cards,
        changes=changes,
        missing=[*view.missing, *problems, *_tell_missing(record), *measured.missing],
    )


def _draw_quality(record: RunRecord, measured: Measured) -> dict[str, Chart | None]:
    """Confusions, and calibration where there are probabilities."""
    quality = measured.quality
    if quality is None:
        return {}
    on = f"{quality['n']:,} {HELD_BACK.get(record.evaluated_on or '', 'images')}"
    names = [printable(name) for name in quality["per_class"]]
    charts: dict[str, Chart | None] = {"confusion": draw_confusion(quality["confusion"], names, on)}
    if measured.bins:
        charts["reliability"] = draw_reliability(measured.bins, _tell_calibration(measured, on))
    return charts


def _draw_map(measured: Measured) -> Chart | None:
    resolution, listed = measured.resolution, measured.listed
    return None if resolution is None or listed is None else draw_map(resolution, listed)


def _tell_calibration(measured: Measured, on: str) -> str:
    """The calibration error, and what a temperature made of it where one was fitted."""
    error = show_share((measured.quality or {}).get("calibration_error"))
    said = (
        f"Of {on}, probabilities and the share that is right are {error} apart on average "
        "(calibration error). A larger mark stands for more images."
    )
    calibration = None if measured.resolution is None else measured.resolution.calibration
    if calibration is None:
        return f"{said} There is no hold-out to calibrate on."
    return (
        f"{said} A temperature of {calibration.temperature:.2f}, fitted on {calibration.n:,} held-"
        f"out images, takes the error from {show_share(calibration.error_before)} to "
        f"{show_share(calibration.error_after)} on images that it was not fitted on; the curve "
        "shows all of them, and so flatters it a little."
    )


def _list_changes(record: RunRecord) -> tuple[Table | None, list[str]]:
    try:
        settings = read_settings(record.path / "config.yaml")
        return list_changes(*find_changes(record.path, settings)), []
    except ConcontError as error:
        why = hide_folders(printable(error), record.path)
        return None, [f"No comparison with the recipe: {why}."]


def _tell_missing(record: RunRecord) -> list[str]:
    """What the record does not hold, and why."""
    said = []
    if not record.rows:
        said.append("No curves: the run has not been evaluated yet.")
    if record.rows and record.last.get("thresholds") is None:
        said.append(f"No thresholds and no confident labels: {record.method} has no controller.")
    elif record.summary is not None and draw_precision([record]) is None:
        said.append("No precision of scores: the true labels of the training images are unknown.")
    return said
