"""What is wrong with single rows of a table: paths, sets, votes, labels, the same image twice."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concont.errors import count, printable
from concont.tables.listing import describe_missing, find_leaving, look_up, to_mask
from concont.tables.problems import Problems, Severity
from concont.tables.sets import Integers, TableSets
from concont.tables.text import TableText

HOLDOUT = "concont holds images out by itself (data.holdout)"


class RowProblems:
    """Takes problems of a table's rows."""

    def __init__(self, text: TableText, problems: Problems) -> None:
        self.text, self.problems = text, problems

    def __call__(
        self,
        severity: Severity,
        kind: str,
        rows: Integers | NDArray[np.bool_],
        describe: str | Callable[[int], str],
    ) -> None:
        """Add rows, or those where a mask is true, with one message or a message for each."""
        indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        say: Callable[[int], str] = describe if callable(describe) else lambda _: describe
        self.problems.add_rows(severity, kind, indices, self.text.place, say)


def check_paths(text: TableText, add: RowProblems) -> NDArray[np.bool_]:
    """Every row names a file inside the folder of its images; returns those that do (N,)."""
    image = text.cells["image"]
    unnamed, leaving = to_mask(pc.equal(image, "")), find_leaving(image)

    def describe_leaving(i: int) -> str:
        return f"{text.cell('image', i)} leaves the image folder {_root(text, i)}"

    def describe_absent(i: int) -> str:
        return describe_missing(image[i].as_py(), text.roots[text.root[i]])

    add("error", "path", unnamed, "names no image")
    add("error", "outside", leaving, describe_leaving)
    fine = ~unnamed & ~leaving
    asked = fine & (text.row > 0)  # the others were found in their folder
    for k, root in enumerate(text.roots):
        rows = np.flatnonzero(asked & (text.root == k))
        there, away = look_up(image.take(pa.array(rows)), root)
        add("error", "outside", rows[away], lambda i: f"{describe_leaving(i)} through a link")
        add("error", "missing image", rows[~there & ~away], describe_absent)
        fine[rows[~there]] = False
    return fine


def check_sets(sets: TableSets, add: RowProblems) -> None:
    """No empty name in a candidate set, and none twice."""
    row, name = sets.members.row, sets.members.name
    add("error", "empty name", np.unique(row[name < 0]), "an empty name among its candidates")
    n_classes = max(1, len(sets.classes))
    keys = np.sort(row[name >= 0] * n_classes + name[name >= 0])
    twice = keys[1:][keys[1:] == keys[:-1]]
    rows, first = np.unique(twice // n_classes, return_index=True)

    def describe(i: int) -> str:
        repeated = twice[first[np.searchsorted(rows, i)]] % n_classes
        return f"{printable(sets.classes[repeated])!r} stands twice among its candidates"

    add("error", "repeated class", rows, describe)


def check_votes(text: TableText, sets: TableSets, add: RowProblems) -> None:
    """As many counts as candidates, whole numbers, not all 0."""
    size = sets.members.size

    def describe_misfit(i: int) -> str:
        return (
            f"votes {text.cell('votes', i)!r}: {sets.n_counts[i]} for {count(size[i], 'candidate')}"
        )

    def describe_odd(i: int) -> str:
        return f"votes {text.cell('votes', i)!r}: each must be a whole number from 0 on"

    add("error", "votes", sets.misfit_votes, describe_misfit)
    add("error", "votes", sets.odd_votes, describe_odd)
    total = np.bincount(sets.members.row, weights=sets.votes, minlength=len(text))
    fine = np.ones(len(text), np.bool_)
    fine[sets.odd_votes] = fine[sets.misfit_votes] = False
    add("error", "votes", fine & (size > 0) & (total == 0), "all its votes are 0")


def check_labels(text: TableText, sets: TableSets, add: RowProblems) -> None:
    """A split that there is, a label where one is needed, one class, among the candidates."""

    def describe_split(i: int) -> str:
        return f"split {text.cell('split', i)!r} is neither train nor test; {HOLDOUT}"

    def describe_label(i: int) -> str:
        return f"label {text.cell('label', i)!r}"

    add("error", "split", sets.strange_splits, describe_split)
    add("error", "test label", sets.is_test & (sets.labels < 0), "a test row needs a label")
    joined = to_mask(pc.match_substring(text.cells["label"], "|"))
    add("error", "label", joined, lambda i: f"{describe_label(i)} is more than one class")
    row, name = sets.members.row, sets.members.name
    inside = np.zeros(len(text), np.bool_)
    inside[row[name == sets.labels[row]]] = True
    outside = ~inside & ~joined & (sets.labels >= 0) & (sets.members.size > 0)
    says = "is not among its candidates"
    add("warning", "label outside", outside, lambda i: f"{describe_label(i)} {says}")


def check_repeated(text: TableText, sets: TableSets, add: RowProblems) -> None:
    """The same path twice: an error where the two rows say different things."""
    first = find_first_rows(text)
    rows = np.flatnonzero(first != np.arange(len(text)))
    if not len(rows):
        return
    content = _sign_rows(sets)
    differs = (content[rows] != content[first[rows]]).any(axis=1)

    def describe(i: int) -> str:
        return f"{text.cell('image', i)} stands in row {text.row[first[i]]} already"

    add("error", "repeated image", rows[differs], lambda i: f"{describe(i)}, with other content")
    add("warning", "repeated image", rows[~differs], describe)


def find_first_rows(text: TableText) -> Integers:
    """Of each row (N,) the first row that names the same image."""
    codes = text.cells["image"].dictionary_encode()
    if len(text.roots) == 1 and len(codes.dictionary) == len(text):
        return np.arange(len(text))
    keys = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    keys = keys * len(text.roots) + text.root
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(first[inverse], dtype=np.int64)


def _sign_rows(sets: TableSets) -> Integers:
    """Numbers (N, 3) that are the same where rows say the same, in whatever order."""
    signs = np.random.RandomState(0).randint(1, 2**62, len(sets.classes) + 1)  # the last: no name
    signature = np.zeros(len(sets.labels), np.int64)
    np.add.at(signature, sets.members.row, signs[sets.members.name] * (sets.votes + 1))
    return np.stack([signature, sets.labels, sets.is_test.astype(np.int64)], axis=1)


def _root(text: TableText, i: int) -> str:
    return printable(text.roots[text.root[i]])
