"""The folder of a sweep: its ledger, and each job's settings, run, log, lock and record."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from concont.config.resolve import write_yaml
from concont.errors import DataError
from concont.runs.folder import RunFolder, write_text
from concont.sweep import ledger
from concont.sweep.job import Job
from concont.sweep.record import Record, key_of, of_run, read, write


@dataclass(frozen=True)
class SweepFolder:
    """Paths by what they hold; a job is known by its key."""

    path: Path

    @property
    def ledger(self) -> Path:
        """All results so far."""
        return self.path / ledger.NAME

    @property
    def results(self) -> Path:
        """The records, which can be carried to another machine."""
        return self.path / "results"

    def result(self, key: str) -> Path:
        """The record of one job."""
        return self.results / f"{key}.json"

    def holds_result(self, key: str) -> bool:
        """Whether that record is there; a name that is no hash has none."""
        return key.isalnum() and self.result(key).is_file()

    def settings(self, key: str) -> Path:
        """The settings that its process trains with."""
        return self.path / "runs" / f"{key}.yaml"

    def run(self, key: str) -> RunFolder:
        """Where it trains."""
        return RunFolder(self.path / "runs" / key)

    def log(self, key: str) -> Path:
        """What its process prints."""
        return self.path / "runs" / f"{key}.log"

    def write_settings(self, job: Job) -> None:
        """A whole file that `concont train --config` reads."""
        path = self.settings(job.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, write_yaml(job.settings))

    def write_record(self, key: str) -> Record:
        """The record of a run that is finished, written to its place."""
        write(self.result(key), of_run(self.run(key)))
        return self.load_record(key)

    def load_record(self, key: str) -> Record:
        """The record on disk, which must be that of the job and of no other."""
        (record,) = read(self.result(key)) or [{}]
        if not record or key_of(record) != key:
            raise DataError(f"{self.result(key)} is not the record of this run")
        return record

    @contextmanager
    def lock(self, key: str, wait: bool = True) -> Iterator[int]:
        """A lock on the job that ends with the last process that holds it.

        Unless it is to be waited for, one that another process holds is a BlockingIOError.
        """
        path = self.path / "runs" / f".{key}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            yield handle
        finally:
            os.close(handle)
