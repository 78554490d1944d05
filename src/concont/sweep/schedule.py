"""Runs those of the jobs that are missing, or the first of them that fit into the time there is."""

import math
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from concont.errors import ConcontError
from concont.sweep.estimate import (
    LOAD,
    Kind,
    Rates,
    estimate_seconds,
    kind_of,
    seconds_per_step,
    start_seconds,
)
from concont.sweep.folder import SweepFolder
from concont.sweep.job import Job
from concont.sweep.launch import Launcher
from concont.sweep.launch_local import run_processes
from concont.sweep.ledger import Ledger
from concont.sweep.process import Outcome, TrainingProcess


def find_missing(jobs: Sequence[Job], ledger: Ledger) -> list[Job]:
    """Those whose result is not in the ledger."""
    done = ledger.keys()
    return [job for job in jobs if job.key not in done]


def run(
    jobs: Sequence[Job], folder: Path, launcher: Launcher, parallel: int = 1
) -> Generator[Outcome, None, None]:
    """Do these, whatever becomes of any one; a result is in the ledger when it is told."""
    yield from _add_to_ledger(launcher(jobs, folder, parallel), folder)


def run_within(
    jobs: Sequence[Job], folder: Path, minutes: float, rates: Rates, try_untimed: bool = False
) -> Generator[Outcome, None, None]:
    """Do the first that will end in time, then the next; one starts up while the last one ends.

    Jobs come most wanted first. One like which nothing was timed here is left alone, or tried:
    alone, and stopped when the time is up, so that the next time it goes on.
    """
    clock = Clock(SweepFolder(folder), minutes, rates, try_untimed)
    outcomes = run_processes(jobs, folder, clock.choose, clock.is_time_up)
    for outcome in _add_to_ledger(outcomes, folder):
        clock.learn(jobs, outcome)
        yield outcome


def jobs_that_fit(jobs: Sequence[Job], folder: Path, minutes: float, rates: Rates) -> list[Job]:
    """What `run_within` would start, if all takes as long as it is thought to."""
    clock, chosen, used = Clock(SweepFolder(folder), minutes, rates), list[Job](), 0.0
    for job in jobs:
        left = clock.seconds_left(job)
        if left is not None and used + left <= 60 * minutes:
            chosen.append(job)
            used += left - clock.start_of(job)
    return chosen


class Clock:
    """Which job to start when, so that all end in time."""

    def __init__(
        self, sweep: SweepFolder, minutes: float, rates: Rates, try_untimed: bool = False
    ) -> None:
        self.sweep, self.rates, self.try_untimed = sweep, dict(rates), try_untimed
        self.deadline = time.monotonic() + 60 * minutes
        self.first_start = start_seconds()
        self.starts: dict[Kind, float] = {}  # what a start took here: less, once it is compiled
        self.expected: dict[str, float] = {}  # when a job that was started will end
        self.epochs_before: dict[str, int] = {}  # that it had done when it was started
        self.newest: dict[str, tuple[int, float]] = {}  # its last epoch, and when that was seen

    def choose(self, left: Sequence[Job], under_way: Sequence[TrainingProcess]) -> Job | None:
        """The first that will end in time, when it is time to start it."""
        if len(under_way) > 1:
            return None
        now = time.monotonic()
        free = max([now, *(self.end_of(process) for process in under_way)])
        for job in left:
            start, needed = max(now, free - self.start_of(job)), self.seconds_left(job)
            if needed is None and self.try_untimed and not under_way and now < self.deadline:
                return self._start(job, math.inf)
            if needed is not None and start + needed <= self.deadline:
                return self._start(job, now + needed) if start <= now else None
        return None

    def is_time_up(self, under_way: Sequence[TrainingProcess]) -> bool:
        """Whether a job of unknown length is still under way at the end of the time."""
        unknown = any(self.expected[process.job.key] == math.inf for process in under_way)
        return unknown and time.monotonic() >= self.deadline

    def learn(self, jobs: Sequence[Job], outcome: Outcome) -> None:
        """How long the next start of this kind will take, and a step where that took longer."""
        record = outcome.record or {}
        (job,) = (job for job in jobs if job.key == outcome.key)
        kind = kind_of(job.settings)
        first_step = (record.get("seconds_by") or {}).get("first_step")
        # of a run that was begun before, it is the sum of several starts
        if first_step is not None and not self.epochs_before.get(job.key):
            self.starts[kind] = LOAD + first_step
        took = seconds_per_step(record) if job.settings.has_epochs else record.get("seconds")
        if took is not None:
            self.rates[kind] = max(took, self.rates.get(kind, 0.0))

    def start_of(self, job: Job) -> float:
        """Seconds until it has taken its first step, or without a network until it begins."""
        kind = kind_of(job.settings)
        return self.starts.get(kind, self.first_start) if job.settings.has_epochs else LOAD

    def seconds_left(self, job: Job) -> float | None:
        """Seconds until it has ended, of what is left of it."""
        done = self.epochs_done(job)
        return estimate_seconds(job.settings, self.rates, done, self.start_of(job))

    def epochs_done(self, job: Job) -> int:
        """Epochs that it has behind it."""
        return max((line["epoch"] for line in self.read_metrics(job)), default=0)

    def read_metrics(self, job: Job) -> list[dict[str, Any]]:
        """Its metrics; none where they cannot be read, which its own process will tell."""
        try:
            return self.sweep.run(job.key).metrics()
        except ConcontError:
            return []

    def end_of(self, process: TrainingProcess) -> float:
        """When it will end, by the pace of its own epochs; by the estimate where it has none."""
        job, now = process.job, time.monotonic()
        before = self.epochs_before[job.key]
        lines = [line for line in self.read_metrics(job) if line["epoch"] > before]
        if len(lines) < 2:
            return self.expected[job.key]
        first, last = lines[0], lines[-1]
        if self.newest.get(job.key, (0, now))[0] != last["epoch"]:
            self.newest[job.key] = last["epoch"], now
        age = now - self.newest[job.key][1]
        pace = (last["seconds"] - first["seconds"]) / (last["epoch"] - first["epoch"])
        rest = pace * (job.settings.train.epochs - last["epoch"])
        return now + max(0.0, float(rest) - age)

    def _start(self, job: Job, end: float) -> Job:
        self.expected[job.key], self.epochs_before[job.key] = end, self.epochs_done(job)
        return job


def _add_to_ledger(outcomes: Iterator[Outcome], folder: Path) -> Iterator[Outcome]:
    ledger = Ledger(SweepFolder(folder).ledger)
    for outcome in outcomes:
        if outcome.record is not None:
            ledger.add([outcome.record])
        yield outcome
