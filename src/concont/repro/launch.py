"""Where jobs run. A launcher takes jobs and gives outcomes as they come."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from concont.repro.plan import Job
from concont.repro.work import Outcome, perform, perform_here

Launcher = Callable[[Sequence[Job], Path, int], Iterator[Outcome]]


def here(jobs: Sequence[Job], folder: Path, parallel: int = 1) -> Iterator[Outcome]:
    """One after another in this process."""
    for job in jobs:
        yield perform_here(job, folder)


def local(jobs: Sequence[Job], folder: Path, parallel: int = 1) -> Iterator[Outcome]:
    """Processes of this machine, so many at a time."""
    with ThreadPoolExecutor(parallel) as pool:
        try:
            waiting = [pool.submit(perform, job.arguments, job.key, str(folder)) for job in jobs]
            for done in as_completed(waiting):
                yield done.result()
        finally:  # of those that have not begun; a signal reaches the others by itself
            pool.shutdown(wait=True, cancel_futures=True)


LAUNCHERS: dict[str, Launcher] = {"local": local}
