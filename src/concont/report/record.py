"""What a run folder says by itself, finished or not: read without torch, images or network."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeGuard

from concont.classic.options import CLASSICS
from concont.config.flat_settings import drop_untold, flatten, shorten_method
from concont.config.yaml_text import read_yaml_file
from concont.errors import ConcontError, DataError, UsageError, printable
from concont.report.wording import hide_folders
from concont.runs.folder import RunFolder
from concont.runs.model_settings import OF_FEATURES, Model
from concont.runs.settings import Data
from concont.runs.summary import Summary
from concont.runs.view_settings import list_idle
from concont.types import SECTIONS, Plain, find_unused

State = Literal["finished", "running", "stopped", "waiting"]
SILENCE = 60.0  # seconds without a sign before a run counts as stopped, at the least
PATIENCE = 5  # times the usual time between two lines of metrics
NOT_USED = "-"  # the value of a setting in a run whose method does not look at it


@dataclass(frozen=True)
class RunRecord:
    """A run as its folder tells it; what is not there (yet) is None or empty."""

    name: str  # unlike that of any other run on the page
    path: Path
    state: State = "waiting"
    seen: float = 0.0  # when it last wrote anything, in seconds since 1970
    began: float = 0.0  # when its settings were written
    settings: Plain | None = None  # by section, as config.yaml holds them
    rows: tuple[Plain, ...] = ()  # of metrics.jsonl
    summary: Summary | None = None
    data: Plain | None = None
    environment: Plain | None = None
    verdict: Plain | None = None
    problems: tuple[str, ...] = ()  # why a file cannot be read

    @property
    def method(self) -> str:
        """What it is trained by; empty before that is known."""
        return printable(shorten_method(str(self.get_setting("method", "name") or "")))

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names as they can be shown; empty before they are known."""
        return tuple(printable(name) for name in (self.data or {}).get("classes", ()))

    @property
    def epochs(self) -> int | None:
        """How many it will have when it is finished; None for a method without epochs."""
        epochs = self.get_setting("train", "epochs")
        return int(epochs) if isinstance(epochs, int) and self.method not in CLASSICS else None

    @property
    def last(self) -> Plain:
        """The newest line of metrics, empty before the first."""
        return self.rows[-1] if self.rows else {}

    @property
    def seconds(self) -> float | None:
        """Of training, so far."""
        seconds = self.last.get("seconds") if self.summary is None else self.summary.seconds
        return None if seconds is None else float(seconds)

    @property
    def evaluated_on(self) -> str | None:
        """`test`, `holdout`, `sets`, or None: there is nothing to measure on."""
        found = (self.data or {}).get("evaluated_on")
        return str(found) if found else None

    @cached_property
    def flat_settings(self) -> Plain:
        """Settings that the run uses, by the name that `--set` takes; none says where it lies."""
        classic = CLASSICS.get(self.method)
        sections = SECTIONS if classic is None else classic.sections
        settings = self.settings or {}
        own = {name: settings[name] for name in sections if name in settings}
        unused = {
            f"{name}.{each}"
            for name, kind in (("data", Data), ("model", Model))
            if isinstance(own.get(name), Mapping)
            for each in find_unused(kind, own[name])
        }
        of_features = self.get_setting("model", "name") == OF_FEATURES
        unused |= {".".join(("views", *path)) for path in list_idle(of_features)}
        told = drop_untold(flatten(own))
        return {name: value for name, value in told.items() if name not in unused}

    def get_setting(self, section: str, name: str) -> Any:
        """One value; None where there is none."""
        found = (self.settings or {}).get(section)
        return found.get(name) if isinstance(found, Mapping) else None

    def read_series(self, name: str) -> list[tuple[float, float]]:
        """(epoch, value) of each line of metrics that has this value."""
        pairs = ((row.get("epoch"), row.get(name)) for row in self.rows)
        return [(float(x), float(y)) for x, y in pairs if is_number(x) and is_number(y)]


def read_record(path: Path, name: str | None = None) -> RunRecord:
    """A run's record; a file that is damaged is a problem that it tells of, not an error."""
    folder, problems = RunFolder(path), list[str]()

    def read(file: str, load: Callable[[], Any]) -> Any:
        try:
            return load() if (folder / file).is_file() else None
        except (ConcontError, OSError, ValueError) as error:
            problems.append(hide_folders(printable(error), path))
            return None

    found = RunRecord(
        name=name or name_apart([path])[0],
        path=path,
        seen=_last_sign(path),
        began=_time_of(path / "config.yaml"),
        settings=read("config.yaml", lambda: _read_settings(folder / "config.yaml")),
        rows=tuple(
            row for row in read("metrics.jsonl", folder.metrics) or () if isinstance(row, dict)
        ),
        summary=read("summary.json", folder.read_summary),
        data=read("data.json", folder.read_data),
        environment=read("environment.json", folder.read_environment),
        verdict=read("verdict.json", folder.read_verdict),
    )
    return replace(found, state=tell_state(found, time.time()), problems=tuple(problems))


def read_runs(paths: Sequence[Path]) -> list[RunRecord]:
    """Records of run folders, each under a name of its own; refused where there is no run."""
    for path in paths:
        RunFolder(path).require("config.yaml")
    return [read_record(path, name) for path, name in zip(paths, name_apart(paths), strict=True)]


def name_apart(paths: Sequence[Path]) -> list[str]:
    """The folder's name of each path, with as many folders above it as tell them apart."""
    parts = [path.resolve().parts for path in paths]
    if len(set(parts)) < len(parts):
        raise UsageError("the same run is given twice")
    depth = 1
    while len({each[-depth:] for each in parts}) < len(parts):
        depth += 1
    return [printable(os.path.join(*each[-depth:])) for each in parts]


def tell_state(record: RunRecord, now: float) -> State:
    """Whether it has ended, trains, or has been silent for longer than it usually is."""
    if record.summary is not None:
        return "finished"
    times = [seconds for _, seconds in record.read_series("seconds")]
    gaps = [after - before for before, after in zip([0.0, *times], times, strict=False)]
    usual = median(gaps) if gaps else 0.0
    if record.settings is not None and now - record.seen > max(SILENCE, PATIENCE * usual):
        return "stopped"
    return "running" if record.rows else "waiting"


def find_differences(records: Sequence[RunRecord]) -> dict[str, list[Any]]:
    """The settings that have different values in runs that use them, each run's in order.

    Seeds count. A run that does not use a setting has `NOT_USED` in its place.
    """
    flats = [record.flat_settings for record in records]
    found = {}
    for name in dict.fromkeys(name for flat in flats for name in flat):
        used = [flat[name] for flat in flats if name in flat]
        if any(each != used[0] for each in used):
            found[name] = [flat.get(name, NOT_USED) for flat in flats]
    return found


def _read_settings(path: Path) -> Plain:
    return _require_mapping(path, read_yaml_file(path, str(path)))


def _require_mapping(path: Path, content: Any) -> Plain:
    if not isinstance(content, dict):
        raise DataError(f"{path} holds no names with values")
    return content


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is one, and finite."""
    return isinstance(value, int | float) and isfinite(value)


def _last_sign(path: Path) -> float:
    """When anything in the folder was last written; 0 where there is no folder."""
    try:
        return max((_time_of(Path(entry)) for entry in os.scandir(path)), default=0.0)
    except OSError:
        return 0.0


def _time_of(path: Path) -> float:
    """When a file was last written; 0 where there is none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
