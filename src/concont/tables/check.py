"""Everything that is wrong with a table, row by row; errors stop training, warnings do not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from concont.errors import printable
from concont.images.decoding import Decoded
from concont.images.decoding_processes import verify_files
from concont.tables.class_check import check_classes
from concont.tables.problems import ProblemKind, Problems
from concont.tables.row_check import (
    RowProblems,
    check_labels,
    check_paths,
    check_repeated,
    check_sets,
    check_votes,
    find_first_rows,
)
from concont.tables.sets import Integers, TableSets, parse_sets
from concont.tables.text import TableText, read_text


@dataclass(frozen=True)
class TableReport:
    """What a check has found."""

    source: Path
    rows: int
    labeled: int  # training rows with a candidate set
    full: int  # of these: sets that hold every class
    unlabeled: int
    test: int
    classes: tuple[str, ...]
    errors: int
    warnings: int
    kinds: tuple[ProblemKind, ...]


def check_table(
    source: Path,
    images: Path | None = None,
    unlabeled: Path | None = None,
    *,
    classes: Sequence[str] | None = None,
    decode: bool = True,
    limit: int | None = 20,
    progress: Callable[[int, int], None] | None = None,
) -> TableReport:
    """Read a table and list what is wrong with it.

    source, images, unlabeled: as `read_images_table` takes them; classes: the names that may
    occur. decode: read every image, too. limit: how many problems of a kind are listed, None
    for all. progress: told how many images have been read, of how many.
    """
    problems = Problems(limit)
    text = read_text(source, images, unlabeled, problems)
    sets, there = check_text(text, problems, classes)
    if decode:
        rows = np.flatnonzero(there & (find_first_rows(text) == np.arange(len(text))))
        _check_content(text, sets, RowProblems(text, problems), rows, progress)
    labeled = (sets.members.size > 0) & ~sets.is_test
    return TableReport(
        source=source,
        rows=len(text),
        labeled=int(labeled.sum()),
        full=int((labeled & find_full(sets)).sum()),
        unlabeled=int((~labeled & ~sets.is_test).sum()),
        test=int(sets.is_test.sum()),
        classes=sets.classes,
        errors=problems.count("error"),
        warnings=problems.count("warning"),
        kinds=problems.kinds,
    )


def check_text(
    text: TableText,
    problems: Problems,
    classes: Sequence[str] | None = None,
    to_learn: bool = True,
) -> tuple[TableSets, NDArray[np.bool_]]:
    """All checks that need no decoding.

    Returns what the rows say of their classes, and whether the image of each (N,) is there.
    """
    sets, add = parse_sets(text), RowProblems(text, problems)
    if any(kind.kind == "column" and kind.severity == "error" for kind in problems.kinds):
        return sets, np.zeros(len(text), np.bool_)  # the rest would follow from it
    there = check_paths(text, add)
    check_sets(sets, add)
    check_votes(text, sets, add)
    check_labels(text, sets, add)
    check_repeated(text, sets, add)
    check_classes(text, sets, add, classes, to_learn)
    return sets, there


def find_full(sets: TableSets) -> NDArray[np.bool_]:
    """Which rows' sets (N,) hold every class."""
    n_classes, members = len(sets.classes), sets.members
    asked = (members.name >= 0) & (members.size[members.row] >= n_classes)  # few of them
    keys = np.unique(members.row[asked] * n_classes + members.name[asked])
    distinct = np.bincount(keys // max(1, n_classes), minlength=len(sets.labels))
    return np.asarray((distinct == n_classes) & (distinct > 0))


def _check_content(
    text: TableText,
    sets: TableSets,
    add: RowProblems,
    rows: Integers,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Read each image once: what cannot be decoded, and what is there under another name."""
    states = verify_files([str(text.path(i)) for i in rows.tolist()], progress)
    reasons = {i: state.problem for i, state in zip(rows.tolist(), states, strict=True)}
    damaged = np.array([state.problem is not None for state in states], np.bool_)

    def describe(i: int) -> str:
        return f"{text.cell('image', i)} cannot be read: {printable(reasons[i])}"

    add("error", "damaged image", rows[damaged], describe)
    _check_copies(text, sets, add, rows, states)


def _check_copies(
    text: TableText,
    sets: TableSets,
    add: RowProblems,
    rows: Integers,
    states: list[Decoded],
) -> None:
    """The same content under two names: an error where one trains and the other tests."""
    digests = np.array([state.content or "" for state in states], dtype="U64")
    _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
    original = dict(zip(rows.tolist(), rows[first[inverse]].tolist(), strict=True))
    copied = (first[inverse] != np.arange(len(rows))) & (digests != "")
    copies, originals = rows[copied], rows[first[inverse]][copied]
    across = sets.is_test[copies] != sets.is_test[originals]

    def describe(i: int) -> str:
        k = original[i]
        other = f"{text.cell('image', k)} (row {text.row[k]})" if text.row[k] else text.path(k)
        return f"{text.cell('image', i)} has the same content as {printable(other)}"

    def describe_across(i: int) -> str:
        return f"{describe(i)}, and one is for training, the other for the test"

    add("error", "copied image", copies[across], describe_across)
    add("warning", "copied image", copies[~across], describe)
