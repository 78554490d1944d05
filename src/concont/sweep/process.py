"""Doing one job: a process of its own that trains, resumes if it was begun, and leaves a record."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from concont.errors import ConcontError
from concont.sweep.folder import SweepFolder
from concont.sweep.job import Job
from concont.sweep.record import Record


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    key: str
    record: Record | None = None
    failure: str | None = None  # in one line


def run_job(key: str, folder: str, own_method: str | None = None) -> Outcome:
    """Do a job whose settings are written to its end, whoever began it; safe to call again.

    own_method: the code of the user's own that its settings may run. A call that finds the job
    being done waits for that one. The lock is the training process's too: if only the caller dies,
    the next one does not start a second.
    """
    sweep = SweepFolder(Path(folder))

    def train() -> Record:
        with sweep.lock(key) as lock:
            if sweep.result(key).is_file():
                return sweep.load_record(key)
            return _collect_record(sweep, key, _start_training(sweep, key, lock, own_method).wait())

    return _catch_failure(key, train)


class TrainingProcess:
    """The process of a job under way, while this one goes on.

    A BlockingIOError says that another process is doing it. A signal to this process's group, such
    as Ctrl-C, does not reach the other one: `stop` does.
    """

    def __init__(self, sweep: SweepFolder, job: Job) -> None:
        self.sweep, self.job = sweep, job
        self.process: subprocess.Popen[bytes] | None = None  # None: the record is there already
        self.start_failure: str | None = None
        self.lock = ExitStack()
        try:
            handle = self.lock.enter_context(sweep.lock(job.key, wait=False))
            if not sweep.result(job.key).is_file():
                sweep.write_settings(job)
                self.process = _start_training(
                    sweep, job.key, handle, job.settings.own_method, own_session=True
                )
        except BlockingIOError:
            raise
        except OSError as error:
            self.start_failure = str(error)

    def poll(self) -> Outcome | None:
        """How it ended; None before that."""
        sweep, key, process = self.sweep, self.job.key, self.process
        if process is not None and process.poll() is None:
            return None
        with self.lock:
            if self.start_failure is not None:
                return Outcome(key, failure=self.start_failure)
            if process is None:
                return _catch_failure(key, lambda: sweep.load_record(key))
            return _catch_failure(key, lambda: _collect_record(sweep, key, process.wait()))

    def stop(self) -> None:
        """Ask it to save where it is and end."""
        if self.process is not None:
            self.process.terminate()

    def close(self) -> None:
        """Wait for its end, whatever that is."""
        with self.lock:
            if self.process is not None:
                self.process.wait()


def run_job_in_this_process(job: Job, folder: Path) -> Outcome:
    """The same without another process, for runs that are shorter than a start of Python."""
    from concont.training.trainers import reopen_run, trainer_of

    sweep = SweepFolder(folder)

    def train() -> Record:
        with sweep.lock(job.key):
            run = sweep.run(job.key)
            if not run.finished:
                begun = (run / "config.yaml").is_file()
                if begun:
                    ready = reopen_run(run, method=job.settings.own_method)
                else:
                    ready = trainer_of(job.settings).prepare(job.settings, run)
                for _ in ready.execute():
                    pass
            return sweep.write_record(job.key)

    return _catch_failure(job.key, train)


def _start_training(
    sweep: SweepFolder,
    key: str,
    lock: int,
    own_method: str | None = None,
    own_session: bool = False,
) -> "subprocess.Popen[bytes]":
    """The process that trains, or goes on training; it holds the lock as long as it lives.

    own_session: out of reach of the signals of our group.
    """
    run = sweep.run(key)
    if (run / "config.yaml").is_file():
        words = ["--resume", str(run.path)]
    else:
        words = ["--config", str(sweep.settings(key)), "--out", str(run.path)]
    words += [] if own_method is None else ["--method", own_method]
    with open(sweep.log(key), "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "concont", "train", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
            start_new_session=own_session,
        )


def _collect_record(sweep: SweepFolder, key: str, exit_code: int) -> Record:
    """The record of a process that has ended."""
    if exit_code != 0:
        raise ConcontError(_last_line(sweep.log(key)) or f"exit code {exit_code}")
    return sweep.write_record(key)


def _catch_failure(key: str, make_record: Callable[[], Record]) -> Outcome:
    """The record, or in a line why there is none: one job's trouble is not the sweep's."""
    try:
        return Outcome(key, make_record())
    except ConcontError as error:
        return Outcome(key, failure=str(error))
    except Exception as error:
        return Outcome(key, failure=f"{type(error).__name__}: {error}".splitlines()[0])


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
