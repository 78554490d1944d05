"""Results from elsewhere: whatever a user may point at that holds finished runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from concont.errors import DataError, printable
from concont.runs.folder import RunFolder
from concont.sweep.folder import SweepFolder
from concont.sweep.ledger import Ledger
from concont.sweep.record import Record, check_record, key_of, of_run, read, settings_in


def collect_records(path: Path) -> list[Record]:
    """The records of a file, a ledger, a run folder, a sweep's folder, or a folder of these."""
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if _is_unfinished_run(path):
        raise DataError(f"{path} is a run that is not finished")
    found = list(_find_records(path))
    if not found:
        raise DataError(f"{path} holds no finished run")
    return found


def refuse_false_claims(records: Sequence[Record], known: set[str]) -> None:
    """Refuse a record whose settings are one run's and whose stated hash is another run's.

    known: the hashes of a ledger. A hash that no run has is one of an earlier version.
    """
    keys = [key_of(record) for record in records]
    others = known | set(keys)
    for record, key in zip(records, keys, strict=True):
        claimed = record["settings_hash"]
        if claimed != key and claimed in others and settings_in(record) is not None:
            raise DataError(
                f"a record claims the hash {printable(claimed)}, which is another run's; by its "
                f"settings it is {key}: leave it out, nothing was added"
            )


def _find_records(path: Path) -> Iterator[Record]:
    if path.suffix == ".sqlite" and path.is_file():
        yield from Ledger(path).records()
    elif path.suffix == ".json" or path.is_file():
        yield from read(path)
    elif RunFolder(path).finished:
        record = of_run(RunFolder(path))
        check_record(record, path)
        yield record
    elif not _is_unfinished_run(path):
        for entry in _list_entries(path):
            yield from _find_records(entry)


def _list_entries(folder: Path) -> list[Path]:
    """What may hold records: of a sweep its ledger, and its results in case it was killed."""
    sweep = SweepFolder(folder)
    own = [entry for entry in (sweep.ledger, sweep.results) if entry.exists()]
    if own:
        return own
    return [e for e in sorted(folder.iterdir()) if e.is_dir() or e.suffix in (".json", ".sqlite")]


def _is_unfinished_run(path: Path) -> bool:
    return (path / "config.yaml").is_file() and not RunFolder(path).finished
