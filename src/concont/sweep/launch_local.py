"""Jobs as processes of this machine, which are stopped with the sweep."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from concont.signals import unbroken
from concont.sweep.folder import SweepFolder
from concont.sweep.job import Job
from concont.sweep.process import Outcome, TrainingProcess

log = logging.getLogger("concont")
POLL = 0.2

# Of the jobs that are left, the one to start now beside those under way, if any.
ChooseJob = Callable[[Sequence[Job], Sequence[TrainingProcess]], Job | None]
# Whether those under way are to be stopped, and nothing more started.
IsTimeUp = Callable[[Sequence[TrainingProcess]], bool]


def on_this_machine(jobs: Sequence[Job], folder: Path, parallel: int = 1) -> Iterator[Outcome]:
    """So many at a time."""

    def choose(left: Sequence[Job], under_way: Sequence[TrainingProcess]) -> Job | None:
        return left[0] if left and len(under_way) < parallel else None

    return run_processes(jobs, folder, choose)


def run_processes(
    jobs: Sequence[Job],
    folder: Path,
    choose: ChooseJob,
    is_time_up: IsTimeUp = lambda under_way: False,
) -> Iterator[Outcome]:
    """Start what is chosen, until nothing is and all have ended.

    A job that another process is doing is put off, and taken up when that one has ended. When this
    is stopped, so are those under way: each saves where it is.
    """
    sweep, left, under_way = SweepFolder(folder), list(jobs), list[TrainingProcess]()
    warn_once = cache(lambda name: log.warning("under way elsewhere, so put off: %s", name))
    try:
        while (left or under_way) and not is_time_up(under_way):
            job = choose(left, under_way)
            if job is not None:
                left.remove(job)
                try:
                    with unbroken():
                        under_way.append(TrainingProcess(sweep, job))
                except BlockingIOError:
                    left.append(job)
                    warn_once(job.name)
            elif not under_way:
                return
            yield from _collect_ended(under_way)
            time.sleep(POLL)
    finally:
        for process in under_way:
            process.stop()
        for process in under_way:
            process.close()


def _collect_ended(under_way: list[TrainingProcess]) -> Iterator[Outcome]:
    """How those ended that have, which leave the list."""
    for process in list(under_way):
        outcome = process.poll()
        if outcome is not None:
            under_way.remove(process)
            yield outcome
