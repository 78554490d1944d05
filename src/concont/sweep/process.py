"""Doing one job: a process of its own that trains, resumes if it was begun, and leaves a record.

Folder of a sweep: `ledger.sqlite`, `runs/KEY/` (run folder), `runs/KEY.log`, `results/KEY.json`.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from concont.errors import ConcontError, DataError
from concont.paper.plan import Job
from concont.runs.folder import RunFolder
from concont.sweep.record import Record, key_of, of_run, read, write


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

    @property
    def results(self) -> Path:
        """The records, which can be carried to another machine."""
        return self.folder / "results"

    def result(self, key: str) -> Path:
        """The record of one."""
        return self.results / f"{key}.json"


def perform(arguments: list[str], key: str, folder: str) -> Outcome:
    """Do one job to its end, whoever began it; safe to call again, and from several places.

    A call that finds the job being done waits for that one. The lock is the training process's
    too: if only the caller dies, the next one does not start a second.
    """
    sweep = Sweep(Path(folder))

    def train() -> Record:
        with locked(sweep, key) as lock:
            if sweep.result(key).is_file():
                return _known(sweep, key)
            return _finished(sweep, key, _start(sweep, arguments, key, lock).wait())

    return _told(key, train)


@contextmanager
def locked(sweep: Sweep, key: str, wait: bool = True) -> Iterator[int]:
    """A lock on the job that ends with the last process that holds it.

    Unless it is to be waited for, one that another process holds is a BlockingIOError.
    """
    path = sweep.folder / "runs" / f".{key}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield handle
    finally:
        os.close(handle)


class Running:
    """A job under way in a process of its own, while this one goes on.

    A BlockingIOError says that another process is doing it. A signal to this process's group, such
    as Ctrl-C, does not reach the other one: `stop` does.
    """

    def __init__(self, sweep: Sweep, job: Job) -> None:
        self.sweep, self.job, self.began = sweep, job, time.monotonic()
        self.process: subprocess.Popen[bytes] | None = None
        self.trouble: str | None = None  # why it could not be started
        self.held = ExitStack()
        try:
            lock = self.held.enter_context(locked(sweep, job.key, wait=False))
            if not sweep.result(job.key).is_file():
                self.process = _start(sweep, job.arguments, job.key, lock, apart=True)
        except BlockingIOError:
            raise
        except OSError as error:
            self.trouble = str(error)

    def poll(self) -> Outcome | None:
        """How it ended; None before that."""
        sweep, key, process = self.sweep, self.job.key, self.process
        if process is not None and process.poll() is None:
            return None
        with self.held:
            if self.trouble is not None:
                return Outcome(key, failure=self.trouble)
            if process is None:
                return _told(key, lambda: _known(sweep, key))
            return _told(key, lambda: _finished(sweep, key, process.wait()))

    def stop(self) -> None:
        """Ask it to save where it is and end."""
        if self.process is not None:
            self.process.terminate()

    def close(self) -> None:
        """Wait for its end, whatever that is."""
        with self.held:
            if self.process is not None:
                self.process.wait()


def perform_here(job: Job, folder: Path) -> Outcome:
    """The same in this process, for runs that are shorter than a start of Python."""
    from concont.training.trainers import reopen_run, trainer_of

    sweep = Sweep(folder)

    def train() -> Record:
        with locked(sweep, job.key):
            run = sweep.run(job.key)
            if not run.finished:
                begun = (run / "config.yaml").is_file()
                prepare = trainer_of(job.settings).prepare
                ready = reopen_run(run) if begun else prepare(job.settings, run)
                for _ in ready.execute():
                    pass
            return _recorded(sweep, job.key)

    return _told(job.key, train)


def _start(
    sweep: Sweep, arguments: list[str], key: str, lock: int, apart: bool = False
) -> "subprocess.Popen[bytes]":
    """The process that trains, or goes on training; apart: out of reach of our group's signals."""
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
            start_new_session=apart,
        )


def _finished(sweep: Sweep, key: str, code: int) -> Record:
    """The record of a process that has ended."""
    if code != 0:
        raise ConcontError(_last_line(sweep.log(key)) or f"exit code {code}")
    return _recorded(sweep, key)


def _recorded(sweep: Sweep, key: str) -> Record:
    record = of_run(sweep.run(key))
    write(sweep.result(key), record)
    return _known(sweep, key)


def _known(sweep: Sweep, key: str) -> Record:
    """The record on disk, which must be that of the job and of no other."""
    (record,) = read(sweep.result(key)) or [{}]
    if not record or key_of(record) != key:
        raise DataError(f"{sweep.result(key)} is not the record of this run")
    return record


def _told(key: str, record: Callable[[], Record]) -> Outcome:
    """The record, or in a line why there is none: one job's trouble is not the sweep's."""
    try:
        return Outcome(key, record())
    except ConcontError as error:
        return Outcome(key, failure=str(error))
    except Exception as error:
        return Outcome(key, failure=f"{type(error).__name__}: {error}".splitlines()[0])


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
