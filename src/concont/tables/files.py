"""A table file, CSV or Parquet, as columns of text, with the row of each entry as people count."""

import csv
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from concont.errors import DataError, UsageError, count, printable
from concont.tables.columns import find_joined, tidy, to_strings, unescape_column
from concont.tables.spreadsheet import unescape_formula

DELIMITERS = ",;\t"  # a spreadsheet writes semicolons where the comma is the decimal mark
BLOCK = 1 << 24  # bytes that are parsed at a time; a row must fit into one
SUFFIXES = (".csv", ".parquet")
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """The cells of a file as text; what is missing is empty."""

    path: Path
    names: tuple[str, ...]  # all columns of the file
    columns: dict[str, Any]  # those that were asked for: Arrow arrays of strings, without nulls
    rows: Rows  # (N,) the row of each entry; in a CSV the line, where the header is line 1
    misfits: tuple[tuple[int, str], ...]  # rows that cannot be read, left out, and why

    def __len__(self) -> int:
        return len(self.rows)


def read_cells(path: Path, wanted: Collection[str] | None = None) -> Cells:
    """Read a `.csv` or `.parquet` file; wanted: the columns to read, by default all of them."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{printable(path)} is no table: its name must end in .csv or .parquet")
    if not path.is_file():
        raise UsageError(f"{printable(path)}: no such file")
    if path.stat().st_size == 0:
        raise DataError(f"{printable(path)}: the file is empty")
    cells = (_read_parquet if path.suffix.lower() == ".parquet" else _read_csv)(path, wanted)
    return _drop_empty_rows(cells)


def read_all(path: Path) -> tuple[Any, Rows]:
    """Every column as it is stored, which in a CSV is text, and the row of each entry.

    For files that `read_cells` has read without an error.
    """
    if path.suffix.lower() == ".parquet":
        table = pa.parquet.read_table(path)
        return table, np.arange(1, table.num_rows + 1)
    cells = read_cells(path)
    return pa.table(cells.columns), cells.rows


def _read_parquet(path: Path, wanted: Collection[str] | None) -> Cells:
    try:
        names = tuple(pa.parquet.read_schema(path).names)
        _refuse_repeated(path, names)
        chosen = [name for name in names if wanted is None or name in wanted]
        table = pa.parquet.read_table(path, columns=chosen)
    except (pa.ArrowException, OSError, NotImplementedError) as error:
        raise DataError(f"{printable(path)}: cannot be read as Parquet ({_first(error)})") from None
    columns: dict[str, Any] = {}
    joined: dict[int, str] = {}
    for name in chosen:
        columns[name], found = _read_column(path, name, table[name])
        joined = {i: f"{printable(found[i])!r} in its {name} holds a |" for i in found} | joined
    left = np.delete(np.arange(table.num_rows), list(joined))
    if joined:
        columns = {name: column.take(pa.array(left)) for name, column in columns.items()}
    misfits = tuple((i + 1, joined[i]) for i in sorted(joined))
    return Cells(path, names, columns, left + 1, misfits)


def _read_column(path: Path, name: str, column: Any) -> tuple[Any, dict[int, str]]:
    """A column of a Parquet file as text, and names in its lists that hold a `|`."""
    try:
        return to_strings(column), find_joined(column)
    except (pa.ArrowException, NotImplementedError):
        raise DataError(
            f"{printable(path)}: column {printable(name)} holds {printable(column.type)}, "
            "where text, numbers or lists of them can be read"
        ) from None


def _read_csv(path: Path, wanted: Collection[str] | None) -> Cells:
    data = _read_text(path)
    end = _find_header_end(data)
    names, delimiter = _read_header(path, data[:end].decode())
    body = data[end:]
    chosen = [name for name in names if wanted is None or name in wanted]
    if not body.strip():
        none = pa.array([], pa.string())
        return Cells(path, names, dict.fromkeys(chosen, none), np.zeros(0, np.int64), ())
    table, misfits = _parse(path, body, names, chosen, delimiter)
    if misfits:  # only one thread knows the number of a row
        table, misfits = _parse(path, body, names, chosen, delimiter, threads=False)
    starts = _find_starts(path, body, table.num_rows + len(misfits)) + data[:end].count(b"\n")
    bad = np.array([number - 1 for number, _, _ in misfits], dtype=np.int64)
    columns = {name: unescape_column(to_strings(table[name])) for name in chosen}
    told = (
        (int(starts[number - 1]), f"has {count(n, 'cell')}, the header has {len(names)}")
        for number, n, text in misfits
        if text.strip()
    )
    return Cells(path, names, columns, np.delete(starts, bad), tuple(told))


def _read_text(path: Path) -> bytes:
    """The bytes of a text in UTF-8, without a mark at its start, with line ends of `\\n`."""
    data = path.read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{printable(path)}: is in UTF-16; save it as CSV in UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        pa.array([data], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        _refuse_other_encoding(path, data)
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def _refuse_other_encoding(path: Path, data: bytes) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{printable(path)} row {row}: byte {data[error.start]:#04x} is no UTF-8; "
            "save the table as CSV in UTF-8"
        ) from None


def _find_header_end(data: bytes) -> int:
    """Where the first line that holds anything ends; a line end in quotes is part of the line."""
    end, quoted = 0, False
    for line in data[:BLOCK].splitlines(keepends=True):
        end += len(line)
        quoted ^= line.count(b'"') % 2 == 1
        if not quoted and data[:end].strip():
            break
    return end


def _read_header(path: Path, text: str) -> tuple[tuple[str, ...], str]:
    delimiter = max(DELIMITERS, key=text.count)
    try:
        found = next(csv.reader([text.strip("\r\n")], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise DataError(f"{printable(path)}: its header cannot be read ({error})") from None
    names = tuple(unescape_formula(name.strip()) for name in found)
    _refuse_repeated(path, names)
    return names, delimiter


def _refuse_repeated(path: Path, names: tuple[str, ...]) -> None:
    for k, name in enumerate(names):
        if name in names[:k]:
            what = f"is called {printable(name)!r}" if name else "has no name"
            raise DataError(f"{printable(path)}: more than one column {what}")


def _parse(
    path: Path,
    body: bytes,
    names: tuple[str, ...],
    chosen: list[str],
    delimiter: str,
    threads: bool = True,
) -> tuple[Any, list[tuple[int, int, str]]]:
    """The table, and of rows that do not fit: number among the rows, number of cells, text."""
    misfits: list[tuple[int, int, str]] = []

    def skip(row: Any) -> str:
        misfits.append((row.number, row.actual_columns, row.text))
        return "skip"

    try:
        table = pa.csv.read_csv(
            pa.py_buffer(body),
            pa.csv.ReadOptions(column_names=names, use_threads=threads, block_size=BLOCK),
            pa.csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=b'"' in body,
                invalid_row_handler=skip,
            ),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=chosen or None,
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        raise DataError(f"{printable(path)}: cannot be read as CSV ({_first(error)})") from None
    return table, misfits


def _find_starts(path: Path, body: bytes, n_rows: int) -> Rows:
    """The line, from 1, in which each of the rows starts; blank lines are no rows."""
    letters = np.frombuffer(body, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    if len(body) and body[-1:] != b"\n":
        ends = np.append(ends, len(body))
    starts = _find_full_lines(letters, ends)
    if len(starts) == n_rows:
        return starts + 1
    # Some cells hold line ends, within quotes.
    quotes = np.flatnonzero(letters == ord('"'))
    before = np.searchsorted(quotes, ends)
    if len(quotes) % 2:
        line = int(np.searchsorted(ends, quotes[-1])) + 2  # after the header's
        raise DataError(
            f"{printable(path)}: a quotation mark is not closed (the last one is in line {line})"
        )
    whole = before % 2 == 0
    rows = _find_full_lines(letters, ends[whole])
    first_lines = np.concatenate([[0], np.flatnonzero(whole)[:-1] + 1])
    if len(rows) != n_rows:
        raise DataError(f"{printable(path)}: quotation marks within cells; double them")
    return np.asarray(first_lines[rows] + 1, dtype=np.int64)


def _find_full_lines(letters: NDArray[np.uint8], ends: Rows) -> Rows:
    """The indices of lines that hold more than their end."""
    lengths = np.diff(ends, prepend=-1) - 1
    returns = (lengths == 1) & (letters[np.maximum(ends - 1, 0)] == ord("\r"))
    return np.flatnonzero((lengths > 0) & ~returns)


def _drop_empty_rows(cells: Cells) -> Cells:
    """Without rows of empty cells, which spreadsheets leave at the end."""
    columns = list(cells.columns.values())
    if not columns or not len(cells):
        return cells
    full = pc.not_equal(tidy(columns[0]), "")
    for column in columns[1:]:
        if pc.all(full).as_py():
            return cells
        full = pc.or_(full, pc.not_equal(tidy(column), ""))
    kept = {name: column.filter(full) for name, column in cells.columns.items()}
    rows = cells.rows[full.to_numpy(zero_copy_only=False)]
    return Cells(cells.path, cells.names, kept, rows, cells.misfits)


def _first(error: Exception) -> str:
    return printable(str(error).split("\n")[0])
