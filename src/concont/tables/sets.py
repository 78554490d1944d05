"""Candidate sets, votes, labels and splits out of their words: arrays, and rows that are wrong."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concont.tables.columns import tidy
from concont.tables.listing import to_mask
from concont.tables.text import TableText

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Members:
    """Lists of names, one below the other."""

    row: Integers  # (M,) which row a name belongs to
    name: Integers  # (M,) which of the names it is, -1 where it is empty
    size: Integers  # (N,) how many a row has


@dataclass(frozen=True)
class TableSets:
    """What N rows say of their classes."""

    classes: tuple[str, ...]  # C names in order
    members: Members  # of the candidate sets
    votes: Integers  # (M,) how many voted for each member; 1 each where nobody was counted
    labels: Integers  # (N,) -1 unknown
    is_test: NDArray[np.bool_]  # (N,)
    strange_splits: Integers  # rows
    misfit_votes: Integers  # rows whose counts are more or fewer than the candidates
    n_counts: Integers  # (N,) how many counts a row has
    odd_votes: Integers  # rows with a count that is no whole number from 0 on


def sort_classes(names: Iterable[str]) -> list[str]:
    """Class names in order: numbers by their value, then the others by their letters."""

    def rank(name: str) -> tuple[bool, float, str]:
        number = NUMBER.fullmatch(name) is not None
        return not number, float(name) if number else 0.0, name

    return sorted(names, key=rank)


def split_names(text: Any) -> tuple[Any, Integers, Integers]:
    """Texts joined by `|` taken apart: names, the row of each, and the number of names a row.

    An empty text has no names.
    """
    full = to_mask(pc.not_equal(text, ""))
    rows = np.flatnonzero(full)
    lists = pc.split_pattern(text.filter(pa.array(full)), "|")
    size = np.zeros(len(text), np.int64)
    size[rows] = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return tidy(lists.flatten()), np.repeat(np.arange(len(text)), size), size


def parse_sets(text: TableText) -> TableSets:
    """Read the words of a table; what makes no sense is marked, and otherwise left out."""
    names, row, size = split_names(text.cells["candidates"])
    known = pc.unique(pa.concat_arrays([pc.unique(names), pc.unique(text.cells["label"])]))
    classes = sort_classes(filter(None, known.to_pylist()))
    value_set = pa.array(classes, pa.string())
    members = Members(row, _find_index(names, value_set), size)
    split = pc.utf8_lower(text.cells["split"])
    strange = pc.invert(pc.is_in(split, value_set=pa.array(["", "train", "test"])))
    votes, n_counts, odd = _parse_votes(text.cells["votes"], members)
    return TableSets(
        classes=tuple(classes),
        members=members,
        votes=votes,
        labels=_find_index(text.cells["label"], value_set),
        is_test=to_mask(pc.equal(split, "test")),
        strange_splits=np.flatnonzero(to_mask(strange)),
        misfit_votes=np.flatnonzero((n_counts != size) & (n_counts > 0)),
        n_counts=n_counts,
        odd_votes=odd,
    )


def _find_index(names: Any, known: Any) -> Integers:
    found = pc.fill_null(pc.index_in(names, value_set=known), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _parse_votes(text: Any, members: Members) -> tuple[Integers, Integers, Integers]:
    """Votes by member, how many counts a row has, and rows with counts that are no numbers."""
    votes = np.ones(len(members.row), np.int64)
    counts, row, n_counts = split_names(text)
    whole = pc.match_substring_regex(counts, r"^[0-9]{1,9}$")
    odd = np.unique(row[~to_mask(whole)])
    numbers = pc.if_else(whole, counts, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    fits = (n_counts == members.size) & (n_counts > 0)
    votes[fits[members.row]] = numbers[fits[row]]
    return votes, n_counts, odd
