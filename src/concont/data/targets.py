"""What people hold of each row's label, in every form that they have it in, as candidate sets."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data.classes import refuse_too_many
from concont.errors import DataError

Sets = NDArray[np.bool_]  # (N, C); all True = unlabelled
BETWEEN = "|"  # the names of a set that is written as text


@dataclass(frozen=True)
class Targets:
    """Candidate sets of named classes."""

    classes: NDArray[Any]  # (C,) names or numbers, sorted; of a matrix its columns
    sets: Sets
    unlabelled: NDArray[np.bool_]  # (N,) rows that say nothing: their sets are full
    by_column: bool = False  # a matrix without names: its classes are 0 to C - 1


def read_targets(y: Any, name: str = "y", no_votes: NDArray[np.bool_] | None = None) -> Targets:
    """Candidate sets out of any of these, all with a row an input; `name` is what an error calls y.

    A list of sets of class names; a matrix of 0 and 1, dense, sparse or a DataFrame whose columns
    are the classes; a column of texts such as `cat|dog`; plain labels, each a set of one. None,
    NaN, an empty text and a set of all classes are an unlabelled row. So is a row of a matrix that
    holds 0 alone where that says what votes do: `no_votes` (N,) are the rows without any.
    """
    refuse_masks(y)
    matrix = _read_matrix(y, name, no_votes)
    if matrix is not None:
        return matrix
    column = _to_column(y, name)
    if column.dtype.kind in "iub":
        classes, index = np.unique(column, return_inverse=True)
        labels = _make_empty(len(column), len(classes), name)
        labels[np.arange(len(column)), index] = True
        return Targets(classes, labels, np.zeros(len(labels), dtype=bool))
    rows = _split_rows(column, name)
    classes = _sort_names({each for row in rows if row for each in row}, name)
    sets, missing = _fill(rows, classes, name), np.array([row is None for row in rows], dtype=bool)
    if len(classes) > 1:
        missing |= sets.all(axis=1)
    return Targets(classes, sets, missing)


def as_sets(y: Any) -> list[frozenset[Any] | None]:
    """Candidate sets in the one form that all of scikit-learn can split and index.

    Parameters
    ----------
    y : list, array, Series, DataFrame or sparse matrix
        Candidate sets in any form that `PartialLabelClassifier.fit` takes.

    Returns
    -------
    list of frozenset or None
        The class names of each row; None where it is unlabelled.

    Examples
    --------
    >>> import concont
    >>> concont.as_sets(["dog", None, "cat"])
    [frozenset({'dog'}), None, frozenset({'cat'})]
    """
    found = read_targets(y)
    names = np.array(found.classes.tolist(), dtype=object)
    rows = zip(found.sets, found.unlabelled, strict=True)
    return [None if nothing else frozenset(names[row].tolist()) for row, nothing in rows]


def encode_targets(y: Any, classes: NDArray[Any], name: str = "y") -> Targets:
    """The same over classes that are known; a row whose names are none of them has an empty set.

    Whole numbers are places where the classes have names that are no numbers.
    """
    found, known = read_targets(y, name), classes.tolist()
    if found.by_column:
        if len(found.classes) != len(known):
            columns = len(found.classes)
            raise ValueError(f"{name} has {columns} columns; there are {len(known)} classes")
        return Targets(classes, found.sets, found.unlabelled)
    by_place = found.classes.dtype.kind in "iu" and classes.dtype.kind not in "iufb"
    place = {each: k for k, each in enumerate(range(len(known)) if by_place else known)}
    sets = np.zeros((len(found.sets), len(known)), dtype=bool)
    for column, each in enumerate(found.classes.tolist()):
        if each in place:
            sets[:, place[each]] = found.sets[:, column]
    sets[found.unlabelled] = True
    return Targets(classes, sets, found.unlabelled)


def _read_matrix(y: Any, name: str, no_votes: NDArray[np.bool_] | None) -> Targets | None:
    """A matrix of 0 and 1 with two columns or more; None where y is a column."""
    if hasattr(y, "toarray"):
        _refuse_too_many(y.shape[0], math.prod(y.shape[1:]), name)
        y = y.toarray()
    if isinstance(y, list | tuple) and any(isinstance(row, str) for row in y):
        return None  # an array of texts takes as much for each as for the longest
    columns = list(y.columns) if is_frame(y) else None
    if columns is None and _holds_lists(y):
        y = _stack_zeros_and_ones(y)
        if y is None:
            return None
    array = as_array(y)
    if array.ndim != 2 or array.shape[1] < 2:
        return None
    sets = _read_zeros_and_ones(array, name, no_votes)
    classes = np.arange(array.shape[1]) if columns is None else _to_names(columns, name)
    full = np.asarray(sets.all(axis=1))
    return Targets(classes, sets, full, by_column=columns is None)


def _split_rows(column: NDArray[Any], name: str) -> list[tuple[Any, ...] | None]:
    """The names of each row of a column; None where it is unlabelled."""
    rows = list[tuple[Any, ...] | None]()
    for number, cell in enumerate(column.tolist()):
        if isinstance(cell, str):
            row = tuple(each.strip() for each in cell.split(BETWEEN)) if cell.strip() else None
        elif _is_missing(cell):
            row = None
        elif isinstance(cell, set | frozenset | list | tuple | np.ndarray):
            row = tuple(_plain(each) for each in cell)
        else:
            row = (cell,)
        if row is not None and (not row or any(_is_missing(each) or each == "" for each in row)):
            raise ValueError(
                f"row {number} of {name} has an empty set or name; None stands for unlabelled"
            )
        try:
            hash(row)
        except TypeError:
            kind = type(cell).__name__
            raise ValueError(f"row {number} of {name} is a {kind}, which names no class") from None
        rows.append(row)
    return rows


def _is_missing(cell: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    if isinstance(cell, float | np.floating):
        return bool(np.isnan(cell))
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def is_frame(y: Any) -> bool:
    """Whether this is a DataFrame, of whatever library."""
    return hasattr(y, "columns") and hasattr(y, "__array__")


def as_array(values: Any) -> NDArray[Any]:
    """An array of what may become one; a tensor may lie on a GPU or have a gradient."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)


def refuse_masks(*given: Any) -> None:
    """What a mask hides would be learned from all the same."""
    if any(np.ma.is_masked(each) for each in given):
        raise ValueError("masks of arrays are not read: fill in what they hide, or leave it out")


def _to_column(y: Any, name: str) -> NDArray[Any]:
    """One cell a row: numbers or texts as such, anything else as objects."""
    if isinstance(y, list | tuple):
        array = as_array(y) if all(isinstance(k, int | float | np.generic) for k in y) else None
        return _as_objects(y) if array is None else array
    array = as_array(y)
    if array.ndim == 2:
        from sklearn.utils import column_or_1d

        array = column_or_1d(array, warn=True)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} axes; it must have one, or two")
    return array


def _as_objects(cells: Sequence[Any]) -> NDArray[Any]:
    column = np.empty(len(cells), dtype=object)
    for number, cell in enumerate(cells):
        column[number] = cell
    return column


def _holds_lists(y: Any) -> bool:
    """A list of lists, which may be sets of names or the rows of a matrix."""
    return isinstance(y, list | tuple) and any(_is_row(row) for row in y)


def _is_row(cell: Any) -> bool:
    return isinstance(cell, list | tuple) or (isinstance(cell, np.ndarray) and cell.ndim == 1)


def _stack_zeros_and_ones(rows: Iterable[Any]) -> NDArray[Any] | None:
    """Lists of one length that hold 0 and 1 alone, as a matrix; None: they are sets of names."""
    given = list(rows)
    kinds = {len(row) if _is_row(row) else -1 for row in given}
    if len(kinds) > 1 or min(kinds) < 2:
        return None
    if not all(isinstance(each, int | float | np.generic) for row in given for each in row):
        return None
    array = np.asarray(given)
    return array if np.isin(array, (0, 1)).all() else None


def _read_zeros_and_ones(
    array: NDArray[Any], name: str, no_votes: NDArray[np.bool_] | None
) -> Sets:
    if array.dtype.kind not in "biufO" or _holds_text(array):
        raise ValueError(f"a matrix {name} must hold 0 and 1 alone (or booleans), no texts")
    if array.dtype.kind == "O":
        array = np.where(np.frompyfunc(_is_missing, 1, 1)(array).astype(bool), np.nan, array)
    try:
        values = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"a matrix {name} must hold 0 and 1 alone (or booleans)") from None
    values[np.isnan(values).all(axis=1)] = 1
    if np.isnan(values).any():
        row = int(np.isnan(values).any(axis=1).argmax())
        raise ValueError(f"row {row} of {name} holds NaN beside numbers; NaN alone is unlabelled")
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"a matrix {name} must hold 0 and 1 alone (or booleans): candidate sets")
    if no_votes is not None and len(no_votes) == len(values):
        values[no_votes & ~values.any(axis=1)] = 1
    empty = np.flatnonzero(~values.any(axis=1))
    if len(empty):
        raise ValueError(
            f"row {empty[0]} of {name} has no candidate; an unlabelled row has them all"
        )
    return values.astype(bool)


def _holds_text(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "O" and any(isinstance(each, str) for each in array.flat)


def _sort_names(names: set[Any], name: str) -> NDArray[Any]:
    if any(isinstance(each, float) and not each.is_integer() for each in names):
        raise ValueError(f"Unknown label type: {name} holds continuous numbers, no classes")
    return np.sort(_to_names(list(names), name))


def _to_names(names: Sequence[Any], name: str) -> NDArray[Any]:
    """Texts or numbers, of which `np.array` would make texts where both are there."""
    if len({isinstance(each, str) for each in names}) > 1:
        raise ValueError(f"{name} names classes by numbers and by words; use one of them")
    return np.array([_plain(each) for each in names])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _fill(rows: Sequence[tuple[Any, ...] | None], classes: NDArray[Any], name: str) -> Sets:
    place = {each: k for k, each in enumerate(classes.tolist())}
    sets = _make_empty(len(rows), len(classes), name)
    for number, row in enumerate(rows):
        if row is None:
            sets[number] = True
        else:
            sets[number, [place[each] for each in row]] = True
    return sets


def _make_empty(rows: int, classes: int, name: str) -> Sets:
    _refuse_too_many(rows, classes, name)
    return np.zeros((rows, classes), dtype=bool)


def _refuse_too_many(rows: int, classes: int, name: str) -> None:
    """As where each row has a number or a text of its own, which are no classes."""
    try:
        refuse_too_many(rows, classes, name)
    except DataError as error:
        raise ValueError(str(error)) from None
