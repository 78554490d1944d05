"""Votes added to the candidate sets of a table; all else in it stays as it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from concont.errors import UsageError, printable
from concont.tables.columns import to_strings
from concont.tables.files import read_all
from concont.tables.problems import Problems, refuse_errors, suggest
from concont.tables.row_check import (
    RowProblems,
    check_labels,
    check_repeated,
    check_sets,
    check_votes,
)
from concont.tables.sets import Integers, TableSets, parse_sets, sort_classes
from concont.tables.text import IMAGE, TableText, read_text
from concont.tables.votes import (
    Counts,
    Votes,
    choose_candidates,
    count_votes,
    list_candidates,
    read_votes,
)


@dataclass(frozen=True)
class AddedVotes:
    """What came of votes that were added to a table."""

    rows: int  # of the new table
    voted: int  # rows that got votes
    added: int  # of these: rows that are new
    votes: int
    single: int  # rows with one candidate now, which had another number before
    unchanged: int  # rows whose candidates are those of before
    left_out: int  # votes for a class that has too few of them to be a candidate: they are lost
    classes: tuple[str, ...]  # of the new table
    new_classes: tuple[str, ...]  # of these: candidates that were in no row before


@dataclass(frozen=True)
class _Sum:
    """Old and new votes on R rows, those of the table and then new ones; `image` is the row."""

    classes: list[str]  # in order
    old: Counts  # of all rows
    new: Counts
    chosen: Counts  # the candidates of the rows that got votes
    n_rows: int

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Which rows (R,) got votes."""
        return np.bincount(self.new.image, minlength=self.n_rows) > 0


def add_votes(
    source: Path,
    votes: Path,
    problems: Problems,
    images: Path | None = None,
    min_votes: int = 1,
    replace: bool = False,
) -> tuple[Any, AddedVotes]:
    """The table `source` as an Arrow table with the votes of a file added, and what came of it.

    images: the folder that its paths start from, by default its own; an image of this folder that
    is in no row becomes one. A class with `min_votes` votes is a candidate of a row that got some;
    replace: the new ones alone count there. What is odd is added to the problems as a warning; a
    DataError tells what is wrong.
    """
    text, sets = _read_table(source, images)
    found = read_votes(votes, text.roots[0], problems, text.cells["image"])
    named = found.images.take(pa.array(np.unique(found.image)))
    added = named.filter(pc.invert(pc.is_in(named, value_set=text.cells["image"])))
    row_images = pa.concat_arrays([text.cells["image"], added])
    result = _sum_up(sets, found, row_images, min_votes, replace)
    _refuse_test_rows(text, sets, votes, found, result)
    new_classes = _find_new_classes(sets, votes, found, result, problems)
    report = AddedVotes(
        rows=result.n_rows,
        added=len(added),
        votes=len(found.row),
        classes=tuple(result.classes),
        new_classes=new_classes,
        **_count_changes(result),
    )
    return _write_into(source, text, result, added), report


def _read_table(source: Path, images: Path | None) -> tuple[TableText, TableSets]:
    """A table's words and what they say; a row that training would refuse for them is refused."""
    if source.is_dir():
        raise UsageError(f"{printable(source)} is a folder; give a table, .csv or .parquet")
    problems = Problems()
    text = read_text(source, images, None, problems)
    refuse_errors(problems)
    sets, add = parse_sets(text), RowProblems(text, problems)
    check_sets(sets, add)
    check_votes(text, sets, add)
    check_labels(text, sets, add)
    check_repeated(text, sets, add)
    refuse_errors(problems, ", which `concont data check` lists")
    return text, sets


def _sum_up(sets: TableSets, found: Votes, row_images: Any, min_votes: int, replace: bool) -> _Sum:
    """Old and new votes by row; an image that stands in two rows has its votes in both."""
    classes = sort_classes({*sets.classes, *found.classes})
    place = {name: k for k, name in enumerate(classes)}
    given, n_rows = count_votes(found), len(row_images)
    shape = (len(found.images), len(found.classes))
    by_image = sparse.csr_array((given.votes, (given.image, given.label)), shape=shape)
    of_row = pc.index_in(row_images, value_set=found.images).to_numpy(zero_copy_only=False)
    by_row = sparse.coo_array(by_image[of_row])
    new = Counts(by_row.row.astype(np.int64), _find(found.classes, place)[by_row.col], by_row.data)
    label = _find(sets.classes, place)[sets.members.name]
    old = Counts(sets.members.row, label, sets.votes)
    kept = np.isin(old.image, new.image) & (not replace)
    parts = zip((old.image, old.label, old.votes), (new.image, new.label, new.votes), strict=True)
    image, label, votes = (np.concatenate([before[kept], more]) for before, more in parts)
    keys, inverse = np.unique(image * len(classes) + label, return_inverse=True)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, inverse, votes)
    chosen = choose_candidates(Counts(*np.divmod(keys, len(classes)), total), min_votes)
    return _Sum(classes, old, new, chosen, n_rows)


def _find(names: tuple[str, ...], place: dict[str, int]) -> Integers:
    return np.array([place[name] for name in names], dtype=np.int64)


def _refuse_test_rows(
    text: TableText, sets: TableSets, path: Path, found: Votes, result: _Sum
) -> None:
    """A test row has its true label, which no vote changes: they must be meant for another."""
    problems = Problems()

    def first_vote(i: int) -> tuple[Path, int]:
        image = found.images.index(text.cells["image"][i]).as_py()
        return path, int(found.row[found.image == image].min())

    def describe(i: int) -> str:
        return f"{text.cell('image', i)} is a test row of the table (row {text.row[i]})"

    rows = np.flatnonzero(result.voted[: len(text)] & sets.is_test)
    problems.add_rows("error", "test row", rows, first_vote, describe)
    refuse_errors(problems, hint="votes are for training rows; leave these out")


def _find_new_classes(
    sets: TableSets, path: Path, found: Votes, result: _Sum, problems: Problems
) -> tuple[str, ...]:
    """Candidates that the table did not know, each a warning: the name may be misspelt."""
    known, named = list(sets.classes), [result.classes[k] for k in np.unique(result.chosen.label)]
    new = [name for name in named if name not in set(known)]
    for name in new if known else ():
        row = int(found.row[found.label == found.classes.index(name)].min())
        message = f"{printable(name)!r} is a class that the table did not have"
        problems.add("warning", "new class", (path, row), f"{message}{suggest(name, known)}")
    return tuple(new)


def _count_changes(result: _Sum) -> dict[str, int]:
    """How many rows and votes are what the report calls so."""
    old, new, chosen = (
        each.image * len(result.classes) + each.label
        for each in (result.old, result.new, result.chosen)
    )
    before = np.bincount(result.old.image, minlength=result.n_rows)
    now = np.bincount(result.chosen.image, minlength=result.n_rows)
    both = np.bincount(result.chosen.image[np.isin(chosen, old)], minlength=result.n_rows)
    voted = result.voted
    return {
        "voted": int(voted.sum()),
        "single": int((voted & (now == 1) & (before != 1)).sum()),
        "unchanged": int((voted & (both == now) & (both == before)).sum()),
        "left_out": int(result.new.votes[~np.isin(new, chosen)].sum()),
    }


def _write_into(source: Path, text: TableText, result: _Sum, added: Any) -> Any:
    """The table as it is stored, with other candidates and votes in the rows that got some."""
    table, numbers = read_all(source)
    image = next(name for name in IMAGE if name in table.column_names)
    places = np.searchsorted(numbers, text.row)  # rows without any word were left out of the text
    places = np.append(places, np.arange(len(added)) + table.num_rows)[result.voted]
    if "candidates" not in table.column_names:  # as everywhere: labels alone are sets of one
        table = table.append_column("candidates", table["label"])
    if "votes" not in table.column_names:
        table = table.append_column("votes", pa.repeat("", table.num_rows))
    empty = {field.name: pa.nulls(len(added), field.type) for field in table.schema}
    table = pa.concat_tables([table, pa.table(empty, schema=table.schema)])
    lists = list_candidates(result.classes, result.chosen, result.n_rows)
    names, counts = (each.filter(pa.array(result.voted)) for each in lists)
    last = np.arange(table.num_rows - len(added), table.num_rows)
    for name, rows, cells in (
        (image, last, added),
        ("candidates", places, names),
        ("votes", places, counts),
    ):
        column = _replace_cells(table[name], rows, cells)
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _replace_cells(column: Any, rows: Integers, cells: Any) -> Any:
    """A column with other cells in some rows; they take its type, or all of it becomes text."""
    joined = pc.binary_join(cells, "|") if pa.types.is_list(cells.type) else cells
    found = _cast(cells, column.type) or _cast(joined, column.type)
    if found is None:
        column, found = to_strings(column), joined
    index = np.arange(len(column))
    index[rows] = np.arange(len(found)) + len(column)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([*chunks, found], column.type).take(pa.array(index))


def _cast(cells: Any, kind: Any) -> Any:
    """None where these cells have no such type."""
    try:
        return cells.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
