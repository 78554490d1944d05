"""Results from elsewhere: whatever a user may point at that holds finished runs."""

from collections.abc import Iterator
from pathlib import Path

from concont.errors import DataError
from concont.runs.folder import RunFolder
from concont.sweep.ledger import Ledger
from concont.sweep.process import Sweep
from concont.sweep.record import Record, of_run, read, refuse_odd


def collect(path: Path) -> list[Record]:
    """The records of a file, a ledger, a run folder, a sweep's folder, or a folder of these."""
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    found = list(_inside(path))
    if not found:
        raise DataError(f"{path} holds no finished run")
    return found


def _inside(path: Path) -> Iterator[Record]:
    if path.suffix == ".sqlite" and path.is_file():
        for record in Ledger(path).records():
            refuse_odd(record, path)
            yield record
    elif path.suffix == ".json" or path.is_file():
        yield from read(path)
    elif RunFolder(path).finished:
        yield of_run(RunFolder(path))
    else:
        for entry in _entries(path):
            yield from _inside(entry)


def _entries(folder: Path) -> list[Path]:
    """What may hold records: of a sweep its ledger, and its results in case it was killed."""
    sweep = Sweep(folder)
    own = [entry for entry in (sweep.ledger, sweep.results) if entry.exists()]
    if own:
        return own
    return [e for e in sorted(folder.iterdir()) if e.is_dir() or e.suffix in (".json", ".sqlite")]
