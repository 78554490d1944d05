"""Results from elsewhere: whatever a user may point at that holds finished runs."""

from collections.abc import Iterator
from pathlib import Path

from concont.errors import DataError
from concont.repro.ledger import Ledger
from concont.repro.record import Record, of_run, read
from concont.repro.work import Sweep
from concont.runs import RunFolder


def collect(path: Path) -> list[Record]:
    """The records of a file, a ledger, a run folder, a sweep's folder, or a folder of these."""
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    found = list(_inside(path))
    if not found:
        raise DataError(f"{path} holds no finished run")
    return found


def _inside(path: Path) -> Iterator[Record]:
    run, sweep = RunFolder(path), Sweep(path)
    if not path.is_dir():
        yield from Ledger(path).records() if path.suffix == sweep.ledger.suffix else read(path)
    elif run.finished:
        yield of_run(run)
    elif sweep.ledger.is_file():
        yield from Ledger(sweep.ledger).records()
        yield from _inside(sweep.results)  # of a sweep that was killed before it told of one
    else:
        for entry in sorted(path.iterdir()) if path.is_dir() else []:
            if entry.suffix == ".json" or (entry / "summary.json").is_file():
                yield from _inside(entry)
