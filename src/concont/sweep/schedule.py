"""Runs what is missing of a plan, and the most wanted of it in the time there is."""

import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from concont.errors import ConcontError
from concont.paper.plan import Job
from concont.sweep.estimate import LOAD, START, Kind, Rates, kind_of, seconds, step_of
from concont.sweep.launch import Launcher
from concont.sweep.launch_local import drive
from concont.sweep.ledger import Ledger
from concont.sweep.process import Outcome, Running, Sweep


def missing(jobs: Sequence[Job], ledger: Ledger) -> list[Job]:
    """Those whose result is not in the ledger."""
    done = ledger.finished()
    return [job for job in jobs if job.key not in done]


def run(
    jobs: Sequence[Job], folder: Path, launcher: Launcher, parallel: int = 1
) -> Generator[Outcome, None, None]:
    """Do these, whatever becomes of any one; a result is in the ledger when it is told."""
    yield from _kept(launcher(jobs, folder, parallel), folder)


def run_within(
    jobs: Sequence[Job], folder: Path, minutes: float, timed: Rates
) -> Generator[Outcome, None, None]:
    """Do the first that will end in time, then the next; one starts up while the last one ends.

    Jobs come most wanted first. One like which nothing was timed here is left alone.
    """
    clock = Clock(Sweep(folder), minutes, timed)
    for outcome in _kept(drive(jobs, folder, clock.choose), folder):
        clock.learn(jobs, outcome)
        yield outcome


def fitting(jobs: Sequence[Job], folder: Path, minutes: float, timed: Rates) -> list[Job]:
    """What `run_within` would start, if all takes as long as it is thought to."""
    clock, chosen, used = Clock(Sweep(folder), minutes, timed), list[Job](), 0.0
    for job in jobs:
        needed = clock.needed(job)
        if needed is not None and used + needed <= 60 * minutes:
            chosen.append(job)
            used += needed - clock.start(job)
    return chosen


class Clock:
    """Which job to start when, so that all end in time."""

    def __init__(self, sweep: Sweep, minutes: float, timed: Rates) -> None:
        self.sweep, self.timed = sweep, dict(timed)
        self.deadline = time.monotonic() + 60 * minutes
        self.expected: dict[str, float] = {}  # when those that were started will end
        self.before: dict[str, int] = {}  # epochs that they had done then
        self.starts: dict[Kind, float] = {}  # what a start took here: less, once it is compiled

    def choose(self, left: Sequence[Job], under_way: Sequence[Running]) -> Job | None:
        """The first that will end in time, when it is time to start it."""
        if len(under_way) > 1:
            return None
        now = time.monotonic()
        ends = max([now, *(self.ends(running) for running in under_way)])
        for job in left:
            moment, needed = max(now, ends - self.start(job)), self.needed(job)
            if needed is not None and moment + needed <= self.deadline:
                if moment > now:
                    return None
                self.expected[job.key], self.before[job.key] = now + needed, self.done(job)
                return job
        return None

    def learn(self, jobs: Sequence[Job], outcome: Outcome) -> None:
        """How long the next start of this kind will take, and a step where that took longer."""
        record = outcome.record or {}
        first, step = (record.get("seconds_by") or {}).get("first_step"), step_of(record)
        (job,) = (job for job in jobs if job.key == outcome.key)
        kind = kind_of(job.settings)
        if first is not None and not self.before.get(job.key):  # else it is of several starts
            self.starts[kind] = LOAD + first
        if step is not None:
            self.timed[kind] = max(step, self.timed.get(kind, 0.0))

    def start(self, job: Job) -> float:
        """Seconds until it has taken its first step, or without a network until it begins."""
        kind = kind_of(job.settings)
        return self.starts.get(kind, START) if job.settings.has_network else LOAD

    def needed(self, job: Job) -> float | None:
        """Seconds until it has ended, of what is left of it."""
        return seconds(job.settings, self.timed, self.done(job), self.start(job))

    def done(self, job: Job) -> int:
        """Epochs that it has behind it."""
        return max((line["epoch"] for line in self.lines(job)), default=0)

    def lines(self, job: Job) -> list[dict[str, Any]]:
        """Its metrics; none where they cannot be read, which its own process will tell."""
        try:
            return self.sweep.run(job.key).metrics()
        except ConcontError:
            return []

    def ends(self, running: Running) -> float:
        """When it will, by the pace of its own epochs; by the estimate where it has none yet."""
        job, now = running.job, time.monotonic()
        lines = [line for line in self.lines(job) if line["epoch"] > self.before[job.key]]
        if len(lines) < 2:
            return self.expected[job.key]
        age = time.time() - (self.sweep.run(job.key) / "metrics.jsonl").stat().st_mtime
        first, last = lines[0], lines[-1]
        pace = (last["seconds"] - first["seconds"]) / (last["epoch"] - first["epoch"])
        rest = pace * (job.settings.train.epochs - last["epoch"])
        return now + max(0.0, float(rest) - age)


def _kept(outcomes: Iterator[Outcome], folder: Path) -> Iterator[Outcome]:
    ledger = Ledger(Sweep(folder).ledger)
    for outcome in outcomes:
        if outcome.record is not None:
            ledger.add([outcome.record])
        yield outcome
