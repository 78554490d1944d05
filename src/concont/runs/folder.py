"""The run folder: what it holds, written so that a kill at any moment leaves it whole."""

import json
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from concont.errors import DataError, UsageError
from concont.runs.summary import Summary

CONTENTS = {
    "config.yaml": "every setting, complete; `--recipe` reads it back",
    "environment.json": "versions, hardware, commit, command",
    "data.json": "class names, normalisation, digest, sizes",
    "candidates.npz": "candidate sets and the rows trained on; `data.candidates` reads it",
    "metrics.jsonl": "one line an evaluation",
    "checkpoint.pt": "everything that `--resume` needs",
    "checkpoint.previous.pt": "the one before it",
    "model.safetensors": "the trained network",
    "verdict.json": "pseudo-labels by class at the end, and how well they were told apart",
    "summary.json": "settings and result; written last",
}


def write_whole(path: Path, write: Callable[[Path], None], keep: Path | None = None) -> None:
    """Let `write` make a file under a temporary name, sync it, rename it into place.

    The name is of this call alone, so that two processes may write one file: the last one stays.
    What stood there before moves to `keep`, if given. Who may read it follows the umask, even if
    `write` puts a file of its own in place, as safetensors does, for the user alone to read.
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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class RunFolder:
    """One run's files."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def dated(cls, name: str) -> "RunFolder":
        """A new folder under `runs/`, named for the moment; its number grows if it is taken."""
        stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"
        candidates = (Path("runs") / (stem if n == 1 else f"{stem}-{n}") for n in range(1, 1000))
        return cls(next(path for path in candidates if not path.exists()))

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def refuse_if_used(self, cure: str = "choose another folder") -> None:
        """A folder that holds anything is never written over by accident."""
        if self.path.is_file():
            raise UsageError(f"{self.path} is a file, not a folder")
        if self.path.is_dir() and any(not _is_unfinished(path) for path in self.path.iterdir()):
            raise UsageError(f"{self.path} is not empty; {cure}")

    def refuse_if_not_a_run(self) -> None:
        """Only what a run has written may be cleared away."""
        if self.path.is_file():
            raise UsageError(f"{self.path} is a file, not a folder")
        for path in self.path.iterdir() if self.path.is_dir() else ():
            if not _is_part_of_a_run(path):
                raise UsageError(f"{path} is not part of a run, so {self.path} is left alone")

    def clear(self) -> None:
        """Remove an earlier run; its settings go last, so that what is left is still a run."""
        self.refuse_if_not_a_run()
        if self.path.is_dir():
            for path in sorted(self.path.iterdir(), key=lambda path: path.name == "config.yaml"):
                path.unlink()

    def remove_unfinished(self) -> None:
        """Remove what earlier, killed processes left half written."""
        for path in self.path.iterdir():
            if _is_unfinished(path):
                path.unlink(missing_ok=True)

    def require(self, name: str) -> Path:
        """The path of a file that must be there."""
        if not self.path.is_dir():
            raise UsageError(f"{self.path}: no such run folder")
        if not (self / name).is_file():
            raise UsageError(f"{self.path} holds no {name}, so it is not a run that can be used")
        return self / name

    def write_text(self, name: str, text: str) -> None:
        """A whole text file."""
        write_whole(self / name, lambda temporary: _write(temporary, text))

    def write_json(self, name: str, content: Any) -> None:
        """A whole JSON file."""
        self.write_text(name, json.dumps(content, indent=2) + "\n")

    def read_json(self, name: str) -> Any:
        """What `write_json` wrote."""
        path = self.require(name)
        try:
            return json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}") from None

    def write_summary(self, summary: Summary) -> None:
        """Write `summary.json`, which marks the run as finished."""
        self.write_json("summary.json", summary.as_dict())

    def read_summary(self) -> Summary:
        """What `write_summary` wrote, or an older version of it."""
        content = self.read_json("summary.json")
        try:
            return Summary.from_dict(content)
        except DataError as error:
            raise DataError(f"{self / 'summary.json'} is no summary of a run: {error}") from None

    def refuse_other_data(self, digest: str, source: str = "") -> None:
        """What a run has learned holds for its own data, known by its digest, and no other."""
        if (self / "data.json").is_file() and self.read_json("data.json")["digest"] != digest:
            now = f"in {source} now" if source else "there now"
            raise DataError(f"{self.path} was trained on other data than what is {now}")

    def resume_command(self, own_method: str | None = None) -> str:
        """What goes on with the run; own_method: the code of the user's own that it may run."""
        named = "" if own_method is None else f" --method {own_method}"
        return f"concont train --resume {self.path}{named}"

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return (self / "summary.json").is_file()

    def append_metrics(self, row: dict[str, Any]) -> None:
        """One line more, on disk when this returns."""
        with open(self / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def metrics(self) -> list[dict[str, Any]]:
        """The lines so far; one that a kill cut short is left out."""
        path = self / "metrics.jsonl"
        if not path.is_file():
            return []
        lines = path.read_text("utf-8").split("\n")[:-1]  # after the last newline: cut short
        try:
            return [json.loads(line) for line in lines if line]
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}") from None

    def cut_metrics(self, step: int) -> None:
        """Forget the lines after a step, which a resumed run will write again."""
        kept = [row for row in self.metrics() if row["step"] <= step]
        self.write_text("metrics.jsonl", "".join(json.dumps(row) + "\n" for row in kept))


def _is_unfinished(path: Path) -> bool:
    """Whether a kill cut the writing of this file short."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def is_name_of_a_part(name: str) -> bool:
    """Whether a run writes a file of this name."""
    return name in CONTENTS or name.startswith("events.out.tfevents")


def _is_part_of_a_run(path: Path) -> bool:
    return path.is_file() and (is_name_of_a_part(path.name) or _is_unfinished(path))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
