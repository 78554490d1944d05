"""The results ledger: one append-only table of finished runs.

SQLite rather than Parquet: a row is appended without writing the file anew, two processes may do so
at once, a run enters once by its hash, and Python reads it without another library.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from concont.errors import DataError
from concont.repro.record import Record, key_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
  settings_hash TEXT PRIMARY KEY,
  method TEXT, recipe TEXT, data TEXT, labeled REAL, ambiguity REAL, unlabeled INTEGER,
  seed INTEGER, epochs INTEGER, accuracy_last REAL, accuracy_best REAL, seconds REAL,
  device TEXT, "commit" TEXT, clean INTEGER,
  record TEXT NOT NULL  -- all of it: settings, curve, environment
);
CREATE TRIGGER IF NOT EXISTS no_update BEFORE UPDATE ON results
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS no_delete BEFORE DELETE ON results
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""
FILTERS = ("method", "recipe", "data", "labeled", "ambiguity", "seed", "epochs")
COLUMNS = (
    *("settings_hash", "method", "recipe", "data", "labeled", "ambiguity", "unlabeled", "seed"),
    *("epochs", "accuracy_last", "accuracy_best", "seconds"),
)
PATIENCE = 60.0  # seconds to wait for another process that writes


class Ledger:
    """Finished runs by the hash of their settings; what is in it stays as it is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, records: Iterable[Record]) -> int:
        """Append those that are not there yet; how many were."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        marks = ", ".join("?" * (len(COLUMNS) + 4))
        with self._open() as table:
            before = table.total_changes
            table.executemany(f"INSERT OR IGNORE INTO results VALUES ({marks})", map(_row, records))
            return table.total_changes - before

    def records(self, **wanted: Any) -> list[Record]:
        """All that have these values, in the order in which they came."""
        unknown = set(wanted) - set(FILTERS)
        if unknown:
            raise DataError(f"the ledger cannot be asked by {', '.join(sorted(unknown))}")
        if not self.path.is_file():
            return []
        given = {name: value for name, value in wanted.items() if value is not None}
        where = " AND ".join(["1", *(f"{name} = ?" for name in given)])
        with self._open() as table:
            found = table.execute(
                f"SELECT record FROM results WHERE {where} ORDER BY rowid", list(given.values())
            )
            return [json.loads(text) for (text,) in found]

    def finished(self) -> dict[str, Record]:
        """All, by the hash that this version gives their settings."""
        return {key_of(record): record for record in self.records()}

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            table = sqlite3.connect(self.path, timeout=PATIENCE)
            try:
                with table:
                    table.executescript(SCHEMA)
                    yield table
            finally:
                table.close()
        except sqlite3.DatabaseError as error:
            raise DataError(f"{self.path} is no ledger, or cannot be used: {error}") from None


def _row(record: Record) -> list[Any]:
    environment = record["environment"]
    own = [environment.get(name) for name in ("device", "commit", "clean")]
    return [*(record.get(name) for name in COLUMNS), *own, json.dumps(record)]
