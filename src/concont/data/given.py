"""Arrays as a user gives them, by name: whose names are known, and which hide nothing."""

import logging
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.errors import DataError, printable

log = logging.getLogger("concont")
NAMES = ("x_train", "y_train", "candidates", "candidate_weights", "x_test", "y_test", "classes")


def take_arrays(arrays: Mapping[str, Any], where: str) -> dict[str, NDArray[Any]]:
    """Those whose names are known, as arrays; None stands for an array that is not given."""
    given = {name: value for name, value in arrays.items() if value is not None}
    check_names(given, where)
    return {name: to_array(given[name], name, where) for name in NAMES if name in given}


def to_array(value: Any, name: str, where: str) -> NDArray[Any]:
    """An array of what may become one; refused where a mask hides some of it."""
    if np.ma.is_masked(value):
        raise DataError(
            f"{where}: {name} is masked in {int(np.ma.getmaskarray(value).sum()):,} places, and "
            "masks are not read; fill them in, labels with -1"
        )
    try:
        return np.asarray(value)
    except ValueError as error:  # rows of unequal lengths
        raise DataError(f"{where}: {name} is no array ({error})") from None


def check_names(found: Iterable[str], where: str) -> None:
    """Refuse a name that looks like one that is missing; of others say that they are not read."""
    names = list(found)
    missing = [name for name in NAMES if name not in names]
    unread = [name for name in names if name not in NAMES]
    for name in unread:
        close = get_close_matches(name.lower(), missing, n=1)
        if close:
            raise DataError(f"{where}: unknown array {printable(name)}; did you mean {close[0]}?")
    if unread:
        listed = ", ".join(map(printable, unread))
        log.warning("%s: not read: %s", printable(where), listed)
