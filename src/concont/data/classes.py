"""How many classes there are, and what they are called."""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.errors import DataError, count, printable
from concont.memory import refuse_beyond_memory

log = logging.getLogger("concont")
N_NAMED = 5  # classes in a message
# Bytes of a row and class while sets are drawn: a chance in float64, and whether it is in the set.
BYTES_OF_A_CELL = 9


def name_classes(
    given: NDArray[Any] | None, n_columns: int | None, labels: Mapping[str, Any], where: str
) -> tuple[str, ...]:
    """The classes' names, by default their numbers.

    given: the names, if any; n_columns: of the candidate sets, if any; labels: by what they are
    called, which tell how many classes there are where nothing else does. Refused are names that
    occur twice, fewer than two classes, and numbers of which most are no label of anything.
    """
    names = None if given is None else _read_names(given, where)
    number = len(names) if names is not None else n_columns
    if number is None:
        number = _count_classes(labels, where)
    if names is not None and n_columns not in (None, len(names)):
        raise DataError(
            f"{where}: {len(names)} names in classes, {n_columns} columns in candidates"
        )
    if number < 2:
        raise DataError(f"{where}: {max(number, 0)} class(es); a classifier needs at least two")
    return names or tuple(str(k) for k in range(number))


def refuse_too_many(n_rows: int, n_classes: int, where: str) -> None:
    """Candidate sets must fit in memory: rows times classes."""
    refuse_beyond_memory(
        n_rows * n_classes * BYTES_OF_A_CELL,
        f"{where}: candidate sets of {count(n_rows, 'row')} and {count(n_classes, 'class')} take",
        "are these numbers of classes?",
    )


def _read_names(given: NDArray[Any], where: str) -> tuple[str, ...]:
    if given.ndim != 1:
        raise DataError(f"{where}: classes is of shape {given.shape}; it must be C names")
    try:
        values = np.char.decode(given, "utf-8") if given.dtype.kind == "S" else given
    except UnicodeDecodeError:
        raise DataError(f"{where}: classes holds bytes that are no UTF-8") from None
    names = tuple(map(str, values.tolist()))
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in places:
            raise DataError(
                f"{where}: classes {places[name]} and {place} are both called {printable(name)!r}"
            )
        places[name] = place
    return names


def _count_classes(labels: Mapping[str, Any], where: str) -> int:
    """One more than the highest label; refused where most of them are no label of anything."""
    used = np.unique(np.concatenate([np.unique(own) for own in labels.values()]))
    used = used[used >= 0]
    number = int(used[-1]) + 1 if len(used) else 0
    unused = number - len(used)
    if unused > len(used):
        name, own = next((n, own) for n, own in labels.items() if own.max() == used[-1])
        raise DataError(
            f"{where}: {name} row {int(own.argmax())} is {number - 1}, which makes {number:,} "
            f"classes, {unused:,} of them without an image; write -1 where a label is unknown, "
            "number the classes from 0, or name all of them in `classes`"
        )
    if unused:
        missing = np.setdiff1d(np.arange(number), used)
        more = ", ..." if unused > N_NAMED else ""
        listed = ", ".join(map(str, missing[:N_NAMED].tolist()))
        log.warning("%s: no image has the label %s%s", printable(where), listed, more)
    return number
