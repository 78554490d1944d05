"""The run folder: what it holds, written so that a kill at any moment leaves it whole."""

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from concont.errors import DataError, UsageError, printable
from concont.runs import checksums, lock
from concont.runs.checksums import Checksums
from concont.runs.contents import (
    check_data,
    check_environment,
    check_line,
    check_verdict,
    name_cure,
)
from concont.runs.files import holds_settings, is_part_of_a_run, is_trace, is_unfinished
from concont.runs.lock import FolderLock
from concont.runs.summary import Summary


def write_whole(path: Path, write: Callable[[Path], None], keep: Path | None = None) -> None:
    """Let `write` make a file under a temporary name, sync it, rename it into place.

    The name is of this call alone, so that two processes may write one file: the last one stays.
    What stood there before moves to `keep`, if given. Who may read it follows the umask, even if
    `write` puts a file of its own in place, as safetensors does, for the user alone to read. An
    OSError names the file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        write(temporary)
        temporary.chmod(mode)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        if keep is not None:
            with suppress(FileNotFoundError):  # nothing stood there
                os.replace(path, keep)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    """A whole text file."""
    write_whole(path, lambda temporary: _write(temporary, text))


class RunFolder:
    """One run's files, written by the one process that holds the folder's lock.

    others: names to take instead, one after another, where `path` is taken by then.
    """

    def __init__(self, path: str | Path, others: Iterator[Path] | None = None) -> None:
        self.path, self._others = Path(path), others
        self.lock = FolderLock()

    @classmethod
    def dated(cls, name: str) -> "RunFolder":
        """A new folder under `runs/`, named for the moment; its number grows if it is taken."""
        stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"
        names = (Path("runs") / (stem if n == 1 else f"{stem}-{n}") for n in range(1, 1000))
        return cls(next(path for path in names if not path.exists()), names)

    @property
    def checksums(self) -> Checksums:
        """What its files must hold."""
        return Checksums(self.path, write_text)

    def claim(self, new: bool) -> None:
        """Have the folder for this process alone; a new one is made, and refused if it is used."""
        if new and not self.lock.is_held:
            self._make()
        self.lock.acquire(self.path)
        try:
            if new:
                self.refuse_if_used()
                (self / checksums.NAME).unlink(missing_ok=True)
            self.remove_unfinished()
        except BaseException:
            self.lock.release()
            raise

    def _refuse_if_live(self) -> None:
        """A UsageError names the process that has the folder, if there is one."""
        if (self / lock.LOCK).is_file() and not self.lock.is_held:
            self.lock.acquire(self.path)
            self.lock.release()

    def _make(self) -> None:
        """Make the folder; of a dated one the process that makes it has the name."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.path.mkdir()
        except FileExistsError:
            if self._others is not None:
                self.path = next(self._others)
                self._make()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def refuse_if_used(self, cure: str = "choose another folder") -> None:
        """A folder that holds anything is never written over by accident."""
        if self.path.is_file():
            raise UsageError(f"{self.path} is a file, not a folder")
        if self.path.is_dir() and not all(map(is_trace, self.path.iterdir())):
            self._refuse_if_live()
            raise UsageError(f"{self.path} is not empty; {cure}")

    def refuse_if_not_a_run(self) -> None:
        """Only what a run has written may be cleared away."""
        if self.path.is_file():
            raise UsageError(f"{self.path} is a file, not a folder")
        there = self.path.iterdir() if self.path.is_dir() else ()
        kept = [path for path in there if not is_trace(path)]
        for path in kept:
            if not is_part_of_a_run(path):
                raise UsageError(f"{path} is not part of a run, so {self.path} is left alone")
        if kept and not holds_settings(self / "config.yaml"):
            raise UsageError(
                f"{self.path} has no config.yaml of a run, so it is left alone: files of these "
                "names may be another program's"
            )

    def clear(self) -> None:
        """Remove an earlier run; its settings go last, so that what is left is still a run."""
        self.refuse_if_not_a_run()
        if self.path.is_dir():
            for path in sorted(self.path.iterdir(), key=lambda path: path.name == "config.yaml"):
                if path.name not in (lock.LOCK, lock.HOLDER):  # which this process may hold
                    path.unlink()

    def remove_unfinished(self) -> None:
        """Remove what earlier, killed processes left half written."""
        for path in self.path.iterdir():
            if is_unfinished(path):
                path.unlink(missing_ok=True)

    def require(self, name: str) -> Path:
        """The path of a file that must be there."""
        if not self.path.is_dir():
            raise UsageError(f"{self.path}: no such run folder")
        if not (self / name).is_file():
            raise UsageError(f"{self.path} holds no {name}, so it is not a run that can be used")
        return self / name

    def require_whole(self, *names: str) -> None:
        """Refuse files that do not hold what the run wrote; those that are not there are no run's.

        Settings are known by their hash: what cannot change the result may be edited.
        """
        for name in names:
            if (self / name).is_file() and not self.checksums.fits(name):
                raise self.describe_damage(name, "it does not fit its checksum")

    def describe_damage(self, name: str, problem: object) -> DataError:
        """An error that names the file, what is wrong with it, and the cure."""
        what = f"{printable(self / name)} is damaged: {printable(problem)}"
        return DataError(f"{what}; {name_cure(name)}")

    def write(self, name: str, write: Callable[[Path], None], previous: str | None = None) -> None:
        """Let `write` make a file of the run; what stood there is kept as `previous`, if given."""

        def write_and_note(temporary: Path) -> None:
            write(temporary)
            self.checksums.expect(name, temporary, previous)

        keep = None if previous is None else self / previous
        write_whole(self / name, write_and_note, keep)

    def write_text(self, name: str, text: str) -> None:
        """A whole text file."""
        self.write(name, lambda temporary: _write(temporary, text))

    def write_json(self, name: str, content: Any) -> None:
        """A whole JSON file."""
        self.write_text(name, json.dumps(content, indent=2) + "\n")

    def read_json(self, name: str) -> dict[str, Any]:
        """What `write_json` wrote."""
        try:
            content = json.loads(self.require(name).read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise self.describe_damage(name, error) from None
        if not isinstance(content, dict):
            raise self.describe_damage(name, "it holds no names with values")
        return content

    def read_data(self) -> dict[str, Any]:
        """What `data.json` holds, checked."""
        return self._read_checked("data.json", check_data)

    def read_environment(self) -> dict[str, Any]:
        """What `environment.json` holds, checked."""
        return self._read_checked("environment.json", check_environment)

    def read_verdict(self) -> dict[str, Any]:
        """What `verdict.json` holds, checked."""
        return self._read_checked("verdict.json", check_verdict)

    def _read_checked(self, name: str, check: Callable[[str], None]) -> dict[str, Any]:
        content = self.read_json(name)
        try:
            check(json.dumps(content))
        except DataError as error:
            raise self.describe_damage(name, error) from None
        return content

    def write_summary(self, summary: Summary) -> None:
        """Write `summary.json`, which marks the run as finished."""
        self.write_json("summary.json", summary.as_dict())

    def read_summary(self) -> Summary:
        """What `write_summary` wrote, or an older version of it."""
        content = self.read_json("summary.json")
        try:
            return Summary.from_dict(content)
        except DataError as error:
            raise self.describe_damage("summary.json", f"no summary of a run: {error}") from None

    def refuse_other_data(self, digest: str, source: str = "") -> None:
        """What a run has learned holds for its own data, known by its digest, and no other."""
        if (self / "data.json").is_file() and self.read_data()["digest"] != digest:
            now = f"in {source} now" if source else "there now"
            raise DataError(f"{self.path} was trained on other data than what is {now}")

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return (self / "summary.json").is_file()

    def append_metrics(self, row: dict[str, Any]) -> None:
        """One line more, on disk when this returns."""
        path = self / "metrics.jsonl"
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            error.filename = str(path)
            raise

    def metrics(self) -> list[dict[str, Any]]:
        """The lines so far; one that a kill cut short is left out."""
        path = self / "metrics.jsonl"
        if not path.is_file():
            return []
        try:
            lines = path.read_text("utf-8").split("\n")[:-1]  # after the last newline: cut short
            for line in filter(None, lines):
                check_line(line)
            return [json.loads(line) for line in lines if line]
        except (ValueError, RecursionError, DataError) as error:
            raise self.describe_damage("metrics.jsonl", error) from None

    def cut_metrics(self, step: int) -> None:
        """Forget the lines after a step, which a resumed run will write again."""
        kept = [row for row in self.metrics() if row["step"] <= step]
        self.write_text("metrics.jsonl", "".join(json.dumps(row) + "\n" for row in kept))


def _sync_folder(path: Path) -> None:
    """Have the names in a folder on disk, too."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
