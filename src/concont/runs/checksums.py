"""Checksums of a run's files, right whatever moment a kill chose to interrupt a write.

What a file is about to hold is noted before it takes its place, beside what it holds until then.
`metrics.jsonl` grows line by line: its checksum is of the lines that there were when it was taken.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from concont.errors import DataError, printable

NAME, GROWING = "checksums.json", "metrics.jsonl"
CHUNK = 2**20  # bytes that are read at once


class Digest(NamedTuple):
    """What so many bytes from the start of a file are known by."""

    sha256: str
    size: int


class Checksums:
    """The checksums of one folder's files; without any, which older runs are, all files fit."""

    def __init__(self, folder: Path, write: Callable[[Path, str], None]) -> None:
        self.folder, self.path, self._write_file = folder, folder / NAME, write

    def expect(self, name: str, content: Path, previous: str | None = None) -> None:
        """Note what `name` will hold in a moment: what the file `content` does.

        previous: the name that what `name` holds now will have then.
        """
        settings_hash, listed = self._read()
        before = listed.get(name, [])
        if previous is not None and before:
            listed[previous] = [before[0], *listed.get(previous, [])[:1]]
        listed[name] = [digest(content), *before[:1]]
        growing = self.folder / GROWING
        if name != GROWING and growing.is_file():
            listed[GROWING] = [digest(growing)]
        self._write(settings_hash, listed)

    def expect_settings(self, settings_hash: str) -> None:
        """Note which settings `config.yaml` stands for."""
        self._write(settings_hash, self._read()[1])

    @property
    def settings_hash(self) -> str | None:
        """The hash of the settings that the run was started with, if that was noted."""
        return self._read()[0]

    def fits(self, name: str) -> bool:
        """Whether a file that is there holds what was written; None was noted of: it does."""
        known = self._read()[1].get(name)
        return known is None or _find_fitting(self.folder / name, known) is not None

    def settle(self) -> None:
        """Forget what was noted of a write that a kill prevented; all the files must fit."""
        if not self.path.is_file():
            return
        settings_hash, listed = self._read()
        there = {name: known for name, known in listed.items() if (self.folder / name).is_file()}
        found = {name: _find_fitting(self.folder / name, known) for name, known in there.items()}
        self._write(settings_hash, {name: [own] for name, own in found.items() if own is not None})

    def _read(self) -> tuple[str | None, dict[str, list[Digest]]]:
        """The settings' hash, and what each file may hold, the newest first."""
        try:
            content = json.loads(self.path.read_text("utf-8"))
            if content.pop("checksum") != _seal(content):
                raise ValueError("its own checksum does not fit")
            listed = {n: [Digest(*each) for each in known] for n, known in content["files"].items()}
        except FileNotFoundError:
            return None, {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DataError(
                f"{printable(self.path)} is damaged; put it back from a copy, or delete it to go "
                "on without checksums"
            ) from None
        return content["settings_hash"], listed

    def _write(self, settings_hash: str | None, listed: dict[str, list[Digest]]) -> None:
        content: dict[str, Any] = {"settings_hash": settings_hash, "files": listed}
        sealed = {"checksum": _seal(content), **content}
        self._write_file(self.path, json.dumps(sealed, indent=1) + "\n")


def digest(path: Path, size: int | None = None) -> Digest:
    """Of a file, or of its first bytes."""
    state, left = hashlib.sha256(), path.stat().st_size if size is None else size
    total = left
    with open(path, "rb") as file:
        while left and (chunk := file.read(min(CHUNK, left))):
            state.update(chunk)
            left -= len(chunk)
    return Digest(state.hexdigest(), total - left)


def _find_fitting(path: Path, known: list[Digest]) -> Digest | None:
    """Which of these a file holds."""
    size = path.stat().st_size
    for each in known:
        whole = each.size == size or (path.name == GROWING and each.size < size)
        if whole and digest(path, each.size) == each:
            return each
    return None


def _seal(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
