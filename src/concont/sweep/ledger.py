"""The results ledger: one append-only table of finished runs.

SQLite rather than Parquet: a row is appended without writing the file anew, two processes may do so
at once, a run enters once by its hash, and Python reads it without another library.
"""

import json
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from concont.errors import DataError, UsageError, printable
from concont.runs.json_text import parse_json
from concont.sweep.record import Record, RecordSchema, key_of

NAME = "ledger.sqlite"
SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
  settings_hash TEXT PRIMARY KEY,  -- as of when it came
  method TEXT, recipe TEXT, data TEXT, labeled REAL, ambiguity REAL, unlabeled INTEGER,
  seed INTEGER, epochs INTEGER, accuracy_last REAL, accuracy_best REAL, seconds REAL,
  device TEXT, "commit" TEXT, clean INTEGER,
  record TEXT NOT NULL  -- all of it: settings, curve, environment
);
CREATE TRIGGER IF NOT EXISTS no_update BEFORE UPDATE ON results
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TABLE IF NOT EXISTS forgotten (
  settings_hash TEXT, at TEXT, why TEXT,
  record TEXT NOT NULL  -- all of it, as it stood among the results
);
DROP TRIGGER IF EXISTS no_delete;  -- of the first version, which forgot nothing
CREATE TRIGGER IF NOT EXISTS delete_only_forgotten BEFORE DELETE ON results
  WHEN NOT EXISTS (SELECT 1 FROM forgotten
                   WHERE settings_hash = OLD.settings_hash AND record = OLD.record)
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS no_update_of_forgotten BEFORE UPDATE ON forgotten
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS no_delete_of_forgotten BEFORE DELETE ON forgotten
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""
FILTERS = ("method", "recipe", "data", "seed", "epochs")
COLUMNS = (
    *("method", "recipe", "data", "labeled", "ambiguity", "unlabeled", "seed"),
    *("epochs", "accuracy_last", "accuracy_best", "seconds"),
)
OF_ENVIRONMENT = ("device", "commit", "clean")
WAIT_SECONDS = 60.0  # seconds to wait for another process that writes


class Ledger:
    """Finished runs by the hash of their settings; what is in it stays as it is.

    What a user has forgotten is kept beside them, with when and why.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # The hash that this version gives a row, by the one that the row was added under, which an
        # earlier version may have given it. Rows never change, so that each is hashed once.
        self._keys: dict[str, str] = {}

    def add(self, records: Iterable[Record]) -> int:
        """Append those whose settings are not there yet, as this version reads them; how many."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new: dict[str, Record] = {}
        for record in records:
            new.setdefault(key_of(record), record)
        marks = ", ".join("?" * (1 + len(COLUMNS) + len(OF_ENVIRONMENT) + 1))
        with self._open() as table:
            self._read_keys(table)  # what is slow, before others have to wait
            table.execute("BEGIN IMMEDIATE")  # nobody adds between the look and the append
            present = self._read_keys(table)
            rows = [_make_row(self._name_row(key), new[key]) for key in new if key not in present]
            table.executemany(f"INSERT INTO results VALUES ({marks})", rows)
            return len(rows)

    def forget(self, key: str, why: str = "") -> Record | None:
        """Move the run of this hash to those that are forgotten; returns its record.

        A damaged row goes by the hash that it was added under; its record is None.
        """
        if self._is_empty():
            raise UsageError(f"no run {printable(key)} in {printable(self.path)}")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._open() as table:
            table.execute("BEGIN IMMEDIATE")
            row, record = self._find_row(table, key)
            table.execute(
                "INSERT INTO forgotten SELECT settings_hash, ?, ?, record FROM results "
                "WHERE settings_hash = ?",
                (now, why, row),
            )
            table.execute("DELETE FROM results WHERE settings_hash = ?", [row])
        self._keys.pop(row, None)
        return record

    def _find_row(self, table: sqlite3.Connection, key: str) -> tuple[str, Record | None]:
        """What the run of this hash was added under, and its record, whatever else is damaged."""
        for row, text in _select(table, "1", []):
            try:
                record = self._parse(row, text)
            except DataError:
                if row == key:
                    return row, None
            else:
                if key_of(record) == key:
                    return row, record
        raise UsageError(f"no run {printable(key)} in {printable(self.path)}")

    def records(self, **wanted: Any) -> list[Record]:
        """All that have these values, in the order in which they came."""
        unknown = set(wanted) - set(FILTERS)
        if unknown:
            raise DataError(f"the ledger cannot be asked by {', '.join(sorted(unknown))}")
        if self._is_empty():
            return []
        given = {name: value for name, value in wanted.items() if value is not None}
        where = " AND ".join(["1", *(f"{name} = ?" for name in given)])
        with self._open(write=False) as table:
            return [self._parse(*found) for found in _select(table, where, list(given.values()))]

    def keys(self) -> set[str]:
        """The hashes that this version gives the settings of all."""
        if self._is_empty():
            return set()
        with self._open(write=False) as table:
            return self._read_keys(table)

    def _read_keys(self, table: sqlite3.Connection) -> set[str]:
        stored = [row[0] for row in table.execute("SELECT settings_hash FROM results")]
        for row in stored:
            if row not in self._keys:
                (found,) = _select(table, "settings_hash = ?", [row])
                self._keys[row] = key_of(self._parse(*found))
        return {self._keys[row] for row in stored}

    def _parse(self, row: str, text: bytes) -> Record:
        """The record of a row; what has become none is named with its cure."""
        try:
            record: Record = parse_json(text, "it")
            RecordSchema.from_dict(record)
        except DataError as error:
            where, folder = printable(self.path), shlex.quote(printable(self.path.parent))
            first = "" if self.path.name == NAME else f"call the file {NAME}, then "
            raise DataError(
                f"a row of {where} holds no record of a run ({error}); {first}take it out: "
                f"concont results forget {shlex.quote(printable(row))} --folder {folder}"
            ) from None
        return record

    def _name_row(self, key: str) -> str:
        """What a new row is added under: its hash, unless an unreadable record took that name."""
        return key if key not in self._keys else f"{key}-{len(self._keys)}"

    def _is_empty(self) -> bool:
        """Whether there is no file, or one that is about to be made."""
        return not self.path.is_file() or self.path.stat().st_size == 0

    @contextmanager
    def _open(self, write: bool = True) -> Iterator[sqlite3.Connection]:
        try:
            where = f"{self.path.resolve().as_uri()}?mode={'rwc' if write else 'rw'}"
            table = sqlite3.connect(where, timeout=WAIT_SECONDS, uri=True)
            try:
                with table:
                    if write:
                        table.executescript(SCHEMA)
                    yield table
            finally:
                table.close()
        except (sqlite3.DatabaseError, OverflowError, UnicodeDecodeError) as error:
            raise DataError(f"{self.path} is no ledger, or cannot be used: {error}") from None


def _select(
    table: sqlite3.Connection, where: str, values: Sequence[Any]
) -> list[tuple[str, bytes]]:
    """What rows were added under and their records, in the order in which they came."""
    words = f"SELECT settings_hash, CAST(record AS BLOB) FROM results WHERE {where} ORDER BY rowid"
    found: list[tuple[str, bytes]] = table.execute(words, values).fetchall()
    return found


def _make_row(key: str, record: Record) -> list[Any]:
    columns, own = (
        (record[name] for name in COLUMNS),
        (record["environment"].get(name) for name in OF_ENVIRONMENT),
    )
    return [key, *columns, *own, json.dumps(record)]
