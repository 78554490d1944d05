"""What is wrong with a table's classes: unknown, misspelt, rare, or too few of them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from concont.errors import printable
from concont.tables.columns import tidy
from concont.tables.problems import find_nearest, suggest
from concont.tables.row_check import RowProblems
from concont.tables.sets import Integers, TableSets
from concont.tables.text import TableText

RARE, FREQUENT = 2, 5  # a name may be misspelt if it occurs so rarely, and another so often
ALIKE = 0.75  # of the letters, where a name is taken for another one misspelt
N_COMPARED = 200_000  # pairs of a rare and a frequent name, which is a second's work


def check_classes(
    text: TableText,
    sets: TableSets,
    add: RowProblems,
    known: Sequence[str] | None,
    to_learn: bool = True,
) -> None:
    """Report on the classes as a whole; known: the names that may occur, None for any.

    to_learn: whether the rows are to be learned from; else labels of known classes are enough.
    """
    name = sets.members.name
    place = (text.files[0], None)
    trained = (name >= 0) & ~sets.is_test[sets.members.row]
    if not len(text):
        add.problems.add("error", "no rows", place, "has no rows")
    elif not to_learn:
        _check_known(sets, add, list(known or sets.classes))
    elif not trained.any():
        message = "no row has candidates: everything is unlabelled"
        add.problems.add("error", "all unlabelled", place, message)
    elif len(sets.classes) < 2:
        message = f"has {len(sets.classes)} class; a classifier needs at least two"
        add.problems.add("error", "one class", place, message)
    else:
        count = np.bincount(name[trained], minlength=len(sets.classes))
        if known is not None:
            _check_known(sets, add, list(known))
        misspelt = _check_spelling(sets, count, add) if known is None else set()
        _check_labels_in_no_set(sets, count, add)
        _check_rare(sets, count, add, misspelt)


def _check_known(sets: TableSets, add: RowProblems, known: list[str]) -> None:
    known = tidy(pa.array(known, pa.string())).to_pylist()
    listed = set(known)
    unknown = np.array([name not in listed for name in sets.classes])
    row, name = sets.members.row, sets.members.name
    wrong = np.flatnonzero((name >= 0) & unknown[name])
    rows, first = np.unique(row[wrong], return_index=True)

    def describe_class(k: int) -> str:
        return f"{printable(sets.classes[k])!r} is no known class{suggest(sets.classes[k], known)}"

    def describe(i: int) -> str:
        return describe_class(int(name[wrong[first[np.searchsorted(rows, i)]]]))

    add("error", "unknown class", rows, describe)
    labels = np.flatnonzero((sets.labels >= 0) & unknown[sets.labels])
    labels = np.setdiff1d(labels, rows)
    add("error", "unknown class", labels, lambda i: f"label {describe_class(int(sets.labels[i]))}")


def _check_spelling(sets: TableSets, count: Integers, add: RowProblems) -> set[int]:
    """Rare names that are much like frequent ones; returns them."""
    frequent = [sets.classes[k] for k in np.flatnonzero(count >= FREQUENT)]
    rare = np.flatnonzero((count > 0) & (count <= RARE))[: N_COMPARED // max(1, len(frequent))]
    found = {}
    for k in rare.tolist() if frequent else []:
        near = find_nearest(sets.classes[k], frequent, ALIKE)
        if near is not None and not _differ_in_numbers(near, sets.classes[k]):
            found[k] = near
    row, name = sets.members.row, sets.members.name
    members = np.flatnonzero(np.isin(name, list(found)) & ~sets.is_test[row])
    rows, first = np.unique(row[members], return_index=True)

    def describe(i: int) -> str:
        k = int(name[members[first[np.searchsorted(rows, i)]]])
        near = printable(found[k])
        return f"{printable(sets.classes[k])!r} is rare and much like {near!r}; is it misspelt?"

    add("warning", "misspelt class", rows, describe)
    return set(found)


def _differ_in_numbers(a: str, b: str) -> bool:
    """`site 10` and `site 11` are alike, and yet two names."""
    numbers = [[letter for letter in name if letter.isdigit()] for name in (a, b)]
    return numbers[0] != numbers[1]


def _check_labels_in_no_set(sets: TableSets, count: Integers, add: RowProblems) -> None:
    labels, first = np.unique(sets.labels, return_index=True)
    lonely = (labels >= 0) & (count[labels] == 0)
    named = [sets.classes[k] for k in np.flatnonzero(count > 0)]

    def describe(i: int) -> str:
        label = sets.classes[sets.labels[i]]
        near = suggest(label, named)
        return f"label {printable(label)!r} is in no training row's candidates{near}"

    add("warning", "label in no set", np.sort(first[lonely]), describe)


def _check_rare(sets: TableSets, count: Integers, add: RowProblems, told: set[int]) -> None:
    single = count == 1
    single[list(told)] = False
    row, name = sets.members.row, sets.members.name
    members = np.flatnonzero((name >= 0) & single[name] & ~sets.is_test[row])
    rows, first = np.unique(row[members], return_index=True)

    def describe(i: int) -> str:
        k = name[members[first[np.searchsorted(rows, i)]]]
        return f"{printable(sets.classes[k])!r} is a candidate here and nowhere else"

    add("warning", "rare class", rows, describe)
