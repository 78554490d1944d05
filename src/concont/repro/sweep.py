"""Runs what is missing of a plan, and the most wanted of it in the time there is."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from concont.repro.estimate import START, Rates, seconds
from concont.repro.launch import Launcher
from concont.repro.ledger import Ledger
from concont.repro.plan import Job
from concont.repro.work import Outcome, Sweep, finish, locked, start

POLL = 0.5


def missing(jobs: Sequence[Job], ledger: Ledger) -> list[Job]:
    """Those whose result is not in the ledger."""
    done = ledger.finished()
    return [job for job in jobs if job.key not in done]


def run(
    jobs: Sequence[Job], folder: Path, launcher: Launcher, parallel: int = 1
) -> Iterator[Outcome]:
    """Do these, whatever becomes of any one; a result is in the ledger when it is told."""
    ledger = Ledger(Sweep(folder).ledger)
    for outcome in launcher(jobs, folder, parallel):
        yield _kept(ledger, outcome)


@dataclass
class Running:
    """A job under way."""

    job: Job
    poll: Callable[[], int | None]  # its exit code once it has ended
    ends: float  # as far as can be told


def run_within(
    jobs: Sequence[Job], folder: Path, minutes: float, measured: Rates | None = None
) -> Iterator[Outcome]:
    """Do the first that will end in time, then the next; one starts up while the last one ends.

    Jobs come most wanted first. One that was never timed is left alone.
    """
    sweep, ledger = Sweep(folder), Ledger(Sweep(folder).ledger)
    deadline, left, under_way = time.monotonic() + 60 * minutes, list(jobs), list[Running]()
    with ExitStack() as locks:
        while left or under_way:
            if len(under_way) < 2 and all(r.ends - time.monotonic() < START for r in under_way):
                job = _next(left, under_way, deadline, measured)
                if job is None:
                    left = []
                else:
                    left.remove(job)
                    lock = locks.enter_context(locked(sweep, job.key))
                    process = start(sweep, job.arguments, job.key, lock)
                    ends = time.monotonic() + (seconds(job.settings, measured) or 0)
                    under_way.append(Running(job, process.poll, ends))
            for running in list(under_way):
                code = running.poll()
                if code is None:
                    running.ends = _ends(sweep, running)
                else:
                    under_way.remove(running)
                    yield _kept(ledger, finish(sweep, running.job.key, code))
            time.sleep(POLL)


def _next(
    left: Sequence[Job], under_way: Sequence[Running], deadline: float, measured: Rates | None
) -> Job | None:
    """The first that will end in time; beside another it gets going when that one has ended."""
    now = max([time.monotonic(), *(running.ends - START for running in under_way)])
    for job in left:
        needed = seconds(job.settings, measured)
        if needed is not None and now + needed <= deadline:
            return job
    return None


def _ends(sweep: Sweep, running: Running) -> float:
    """When it will end, by the pace of its own epochs; as before where it has none yet."""
    lines = sweep.run(running.job.key).metrics()
    if len(lines) < 2:
        return running.ends
    first, last = lines[0], lines[-1]
    pace = (last["seconds"] - first["seconds"]) / (last["epoch"] - first["epoch"])
    rest = pace * (running.job.settings.train.epochs - last["epoch"])
    age = time.time() - (sweep.run(running.job.key) / "metrics.jsonl").stat().st_mtime
    return time.monotonic() + max(0.0, float(rest) - age)


def _kept(ledger: Ledger, outcome: Outcome) -> Outcome:
    if outcome.record is not None:
        ledger.add([outcome.record])
    return outcome
