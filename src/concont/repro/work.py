"""Doing one job: a process of its own that trains, resumes if it was begun, and leaves a record.

Folder of a sweep: `ledger.sqlite`, `runs/KEY/` (run folder), `runs/KEY.log`, `results/KEY.json`.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from concont.errors import ConcontError
from concont.repro.plan import Job
from concont.repro.record import Record, of_run, read, write
from concont.runs import RunFolder


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    key: str
    record: Record | None = None
    failure: str | None = None  # in one line


@dataclass(frozen=True)
class Sweep:
    """The folder of a sweep."""

    folder: Path

    @property
    def ledger(self) -> Path:
        """What has been found so far."""
        return self.folder / "ledger.sqlite"

    def run(self, key: str) -> RunFolder:
        """Where the job trains."""
        return RunFolder(self.folder / "runs" / key)

    def log(self, key: str) -> Path:
        """What its process prints."""
        return self.folder / "runs" / f"{key}.log"

    def result(self, key: str) -> Path:
        """The record, which can be carried to another machine."""
        return self.folder / "results" / f"{key}.json"


def perform(arguments: list[str], key: str, folder: str) -> Outcome:
    """Do one job to its end, whoever began it; safe to call again, and from several places.

    A call that finds the job being done waits for that one. The lock is the training process's
    too: if only the caller dies, the next one does not start a second.
    """
    sweep = Sweep(Path(folder))
    with locked(sweep, key) as lock:
        if sweep.result(key).is_file():
            return _told(key, lambda: read(sweep.result(key))[0])
        return finish(sweep, key, start(sweep, arguments, key, lock).wait())


@contextmanager
def locked(sweep: Sweep, key: str) -> Iterator[int]:
    """A lock on the job that ends with the last process that holds it."""
    path = sweep.folder / "runs" / f".{key}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def start(sweep: Sweep, arguments: list[str], key: str, lock: int) -> "subprocess.Popen[bytes]":
    """The process that trains, or goes on training."""
    run = sweep.run(key)
    begun = (run / "config.yaml").is_file()
    words = ["--resume", str(run.path)] if begun else [*arguments, "--out", str(run.path)]
    with open(sweep.log(key), "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "concont", "train", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
        )


def finish(sweep: Sweep, key: str, code: int) -> Outcome:
    """The outcome of a process that has ended."""
    if code != 0:
        return Outcome(key, failure=_last_line(sweep.log(key)) or f"exit code {code}")
    return _told(key, lambda: _recorded(sweep, key))


def perform_here(job: Job, folder: Path) -> Outcome:
    """The same in this process, for runs that are shorter than a start of Python."""
    from concont.engine.either import execute as steps
    from concont.engine.either import prepare, reopen

    sweep = Sweep(folder)

    def train() -> Record:
        run = sweep.run(job.key)
        if not run.finished:
            begun = (run / "config.yaml").is_file()
            for _ in steps(reopen(run) if begun else prepare(job.settings, run)):
                pass
        return _recorded(sweep, job.key)

    with locked(sweep, job.key):
        return _told(job.key, train)


def _recorded(sweep: Sweep, key: str) -> Record:
    record = of_run(sweep.run(key))
    write(sweep.result(key), record)
    return record


def _told(key: str, record: Callable[[], Record]) -> Outcome:
    """The record, or why there is none: one job's trouble is not the sweep's."""
    try:
        return Outcome(key, record())
    except ConcontError as error:
        return Outcome(key, failure=str(error))


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
