"""Jobs as processes of this machine, which are stopped with the sweep."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from concont.paper.plan import Job
from concont.signals import unbroken
from concont.sweep.process import Outcome, Running, Sweep

log = logging.getLogger("concont")
POLL = 0.2

# Of the jobs that are left, the one to start now beside those under way, if any.
Choose = Callable[[Sequence[Job], Sequence[Running]], Job | None]


def local(jobs: Sequence[Job], folder: Path, parallel: int = 1) -> Iterator[Outcome]:
    """So many at a time."""

    def choose(left: Sequence[Job], under_way: Sequence[Running]) -> Job | None:
        return left[0] if left and len(under_way) < parallel else None

    return drive(jobs, folder, choose)


def drive(jobs: Sequence[Job], folder: Path, choose: Choose) -> Iterator[Outcome]:
    """Start what is chosen, until nothing is and all have ended.

    A job that another process is doing is put off, and taken up when that one has ended. When this
    is stopped, so are those under way: each saves where it is.
    """
    sweep, left, under_way = Sweep(folder), list(jobs), list[Running]()
    put_off = cache(
        lambda job: log.warning("under way elsewhere, so put off: %s", job.name)
    )  # once
    try:
        while left or under_way:
            job = choose(left, under_way)
            if job is not None:
                left.remove(job)
                try:
                    with unbroken():
                        under_way.append(Running(sweep, job))
                except BlockingIOError:
                    left.append(job)
                    put_off(job)
            elif not under_way:
                return
            yield from _ended(under_way)
            time.sleep(POLL)
    finally:
        for running in under_way:
            running.stop()
        for running in under_way:
            running.close()


def _ended(under_way: list[Running]) -> Iterator[Outcome]:
    """How those ended that have, which leave the list."""
    for running in list(under_way):
        outcome = running.poll()
        if outcome is not None:
            under_way.remove(running)
            yield outcome
