"""What is in a file, known without reading it: by its path, size, times and number."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from concont.runs.folder import write_whole

# Bytes, when the content and when anything was changed in nanoseconds, and the file's own number:
# a file that takes another's place may have its size and the first of the times.
Stamp = tuple[int, int, int, int]
HEXADECIMAL = 64  # letters of a SHA-256 sum


class FileIndex:
    """SHA-256 sums of files, one JSON file a folder; the last process to write one has its way.

    What is lost by that, or is damaged, is read from the files again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.here = folder, os.getcwd()

    def find(self, paths: Sequence[str], stamps: Sequence[Stamp | None]) -> list[str | None]:
        """The sums of files that have not changed since they were kept."""
        found: list[str | None] = [None] * len(paths)
        for parent, rows, names in self._group(paths):
            known = self._read(parent)
            for row, name in zip(rows, names, strict=True):
                entry, stamp = known.get(name), stamps[row]
                if entry is not None and stamp is not None and entry[:-1] == [*stamp]:
                    found[row] = entry[-1]
        return found

    def keep(
        self, paths: Sequence[str], stamps: Sequence[Stamp | None], contents: Sequence[str]
    ) -> None:
        """Remember the sums of files as they were when these stamps were taken."""
        os.makedirs(self.folder, exist_ok=True)
        for parent, rows, names in self._group(paths):
            known = self._read(parent)
            new = {
                name: [*stamp, contents[row]]
                for row, name in zip(rows, names, strict=True)
                if (stamp := stamps[row]) is not None
            }
            if any(known.get(name) != entry for name, entry in new.items()):
                write_whole(self._locate(parent), partial(_write, known | new))

    def _group(self, paths: Sequence[str]) -> Iterator[tuple[str, list[int], list[str]]]:
        """Each folder with its files: their places among the paths, and their names."""
        parts = [os.path.split(os.path.join(self.here, path)) for path in paths]
        order = sorted(range(len(paths)), key=lambda row: parts[row][0])
        for parent, rows in groupby(order, key=lambda row: parts[row][0]):
            own = list(rows)
            yield parent, own, [parts[row][1] for row in own]

    def _locate(self, parent: str) -> Path:
        return self.folder / f"{hashlib.sha256(os.fsencode(parent)).hexdigest()[:32]}.json"

    def _read(self, parent: str) -> dict[str, list[Any]]:
        try:
            known = json.loads(self._locate(parent).read_text("ascii"))
            return known if all(map(_is_entry, known.values())) else {}
        except (OSError, ValueError, AttributeError):  # not there, or damaged
            return {}


def stamp_files(paths: Sequence[str]) -> list[Stamp | None]:
    """What tells a file from another, of each file; None where it cannot be looked at."""
    return [_stamp(path) for path in paths]


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _is_entry(entry: Any) -> bool:
    return type(entry) is list and len(entry) == 5 and len(str(entry[4])) == HEXADECIMAL


def _write(entries: dict[str, list[Any]], path: Path) -> None:
    path.write_text(json.dumps(entries, separators=(",", ":")), "ascii")
