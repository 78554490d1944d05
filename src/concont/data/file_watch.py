"""Whether a file that is mapped still is as it was."""

import os
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data.mapped_arrays import RowsOf
from concont.errors import DataError, printable


class FileWatch:
    """The file that an array is a view of, if it is one, as it was at first.

    To read beyond a new end would kill the process without a word (SIGBUS), and what somebody else
    writes into the file would be learned from: so ask before each batch, which takes a microsecond.
    A file that is removed, or replaced by another of its name, stays for those who have mapped it.
    """

    def __init__(self, array: NDArray[Any] | RowsOf) -> None:
        self.path = find_mapped_path(array)
        self.handle: int | None = None
        if self.path is not None and os.path.isfile(self.path):  # else nobody can change it by name
            self.handle = os.open(self.path, os.O_RDONLY)
            weakref.finalize(self, os.close, self.handle)
        self.first = self._look()

    def refuse_if_changed(self) -> None:
        """A DataError names the file that is no longer what the run began with."""
        if self._look() != self.first:
            raise DataError(
                f"{printable(self.path)} was changed while it was read; once it is as it was, "
                "`concont train --resume` goes on with the run"
            )

    def _look(self) -> tuple[int, ...]:
        if self.handle is None:
            return ()
        found = os.fstat(self.handle)
        return found.st_size, found.st_mtime_ns


def find_mapped_path(array: NDArray[Any] | RowsOf) -> str | None:
    """Where the file lies that an array is a view of; None of an array in memory."""
    base: object = array.array if isinstance(array, RowsOf) else array
    path = None
    while isinstance(base, np.ndarray):
        path = getattr(base, "filename", None) or path  # of a view it may be missing
        base = base.base
    return None if path is None else os.fspath(path)
