"""Runs beside each other: what differs in their settings, and what came of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from concont.errors import printable
from concont.report.answer import describe_progress
from concont.report.record import RunRecord, find_differences, is_number
from concont.report.wording import show_duration, show_number, show_setting, show_share

if TYPE_CHECKING:
    from concont.config.changes import Changes
    from concont.report.measured import Measured

ABREAST = 6  # runs up to which each has a column of settings; more have a row each


@dataclass(frozen=True)
class Table:
    """Text in rows; the first cell of each names it."""

    caption: str
    head: list[str]
    rows: list[list[str]]


def compare_settings(records: Sequence[RunRecord]) -> Table | None:
    """The settings that are not the same in all runs; None where all are."""
    known = [record for record in records if record.settings is not None]
    differing = find_differences(known) if len(known) > 1 else {}
    if not differing:
        return None
    caption = "Settings that differ"
    names = [record.name for record in known]
    columns = [[printable(name), *map(show_setting, own)] for name, own in differing.items()]
    if len(known) <= ABREAST:
        return Table(caption, ["setting", *names], columns)
    by_run = list(zip(*columns, strict=True))
    rows = [[name, *own] for name, own in zip(names, by_run[1:], strict=True)]
    return Table(caption, ["run", *by_run[0]], rows)


def compare_figures(
    records: Sequence[RunRecord], measured: "Mapping[str, Measured] | None" = None
) -> Table:
    """A row a run: how far it is, and what came of it; columns that no run fills are left out."""
    found = measured or {}
    columns = {
        "run": [record.name for record in records],
        "method": [record.method for record in records],
        "state": [describe_progress(record) for record in records],
        "accuracy": [_show(record.last.get("accuracy")) for record in records],
        "measured on": [_show_held_back(record) for record in records],
        "confident": [_show(record.last.get("confident")) for record in records],
        "loss": [_show(record.last.get("loss"), number=True) for record in records],
        "to review": [_count_open(found.get(record.name)) for record in records],
        "calibration error": [_find_error(found.get(record.name)) for record in records],
        "images/s": [_show(record.last.get("images_per_s"), number=True) for record in records],
        "time": [
            "" if record.seconds is None else show_duration(record.seconds) for record in records
        ],
    }
    kept = {name: own for name, own in columns.items() if any(own)}
    rows = [list(row) for row in zip(*kept.values(), strict=True)]
    return Table("What came of them", list(kept), rows)


def list_changes(what: str, changes: "Changes") -> Table | None:
    """What the user chose, beside what stands there otherwise."""
    if not changes:
        return None
    rows = [[name, *map(show_setting, pair)] for name, pair in changes.items()]
    return Table(f"Settings that differ from {what}", ["setting", "this run", "otherwise"], rows)


def _show(value: object, number: bool = False) -> str:
    if not is_number(value):
        return ""
    return show_number(value) if number else show_share(value)


def _show_held_back(record: RunRecord) -> str:
    n = (record.data or {}).get("n_test")
    held = "held-out images"
    words = {"test": "test images", "holdout": held, "sets": held}.get(record.evaluated_on or "")
    return f"{n:,} {words}" if words and n else ""


def _count_open(measured: "Measured | None") -> str:
    resolution = measured.resolution if measured else None
    if resolution is None or resolution.confident is None:
        return ""
    return f"{int((~resolution.confident | resolution.overruled).sum()):,} of {len(resolution):,}"


def _find_error(measured: "Measured | None") -> str:
    quality = (measured.quality if measured else None) or {}
    return _show(quality.get("calibration_error"))
