"""The runs of a folder as they are now, read again only where a file has changed."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from concont.errors import UsageError, printable
from concont.report.page import Page, RunView, lay_out, view_record
from concont.report.record import RunRecord, name_apart, read_record, tell_state

DEPTH = 2  # folders below the given one in which runs are looked for: a sweep's lie in runs/KEY
LISTED = 200  # runs in the table, the newest: a folder may hold thousands
DETAILED = 16  # runs with charts of their own, the newest
Stamp = frozenset[tuple[str, int, int]]  # name, size and time of each file of a run


class Watch:
    """A run's folder, which may not be there yet, or a folder of runs."""

    def __init__(self, path: Path) -> None:
        if path.is_file():
            raise UsageError(f"{path} is a file; give the folder of a run, or a folder of runs")
        self.path = path
        self._records: dict[Path, tuple[Stamp, RunRecord]] = {}
        self._views: dict[str, tuple[RunRecord, RunView]] = {}

    def read(self) -> list[RunRecord]:
        """The runs there are, the newest first; none is no error, since one may come."""
        self._records = {path: self._read_again(path) for path in find_runs(self.path)}
        now = time.time()
        records = [
            replace(record, state=tell_state(record, now)) for _, record in self._records.values()
        ]
        return sorted(records, key=lambda record: (-record.began, record.name))[:LISTED]

    def make_page(self) -> Page:
        """The page of these runs as they are."""
        records = self.read()
        detailed = records[:DETAILED]
        self._views = {record.name: (record, self._view_again(record)) for record in detailed}
        views = [view for _, view in self._views.values()]
        return lay_out(records, views, title=self._name_page(records), live=True)

    def _name_page(self, records: list[RunRecord]) -> str:
        if not records:
            return f"Waiting for a run in {printable(self.path)}"
        return records[0].name if len(records) == 1 else f"{len(self._records):,} runs"

    def _read_again(self, path: Path) -> tuple[Stamp, RunRecord]:
        stamp, known = _stamp(path), self._records.get(path)
        if known is not None and known[0] == stamp:
            return known
        inside = path != self.path
        name = printable(path.relative_to(self.path)) if inside else name_apart([path])[0]
        return stamp, read_record(path, name)

    def _view_again(self, record: RunRecord) -> RunView:
        known = self._views.get(record.name)
        return known[1] if known is not None and known[0] == record else view_record(record)


def find_runs(path: Path, depth: int = DEPTH) -> Iterator[Path]:
    """The path itself if it is a run, else the runs in its folders."""
    if (path / "config.yaml").is_file():
        yield path
    elif depth:
        for folder in _list_folders(path):
            yield from find_runs(folder, depth - 1)


def _list_folders(path: Path) -> list[Path]:
    """Those that can be read; none where the path is not there."""
    try:
        return sorted(Path(entry.path) for entry in os.scandir(path) if entry.is_dir())
    except OSError:
        return []


def _stamp(path: Path) -> Stamp:
    """What changes whenever a file of the folder does."""
    found = set[tuple[str, int, int]]()
    try:
        for entry in os.scandir(path):
            status = entry.stat()
            found.add((entry.name, status.st_size, status.st_mtime_ns))
    except OSError:  # a file that was renamed into place just now: the next look sees it
        pass
    return frozenset(found)
