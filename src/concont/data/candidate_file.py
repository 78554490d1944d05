"""Candidate sets as a file: a run's own, or made to compare another code base on the same ones."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data.mapped_arrays import DAMAGE, read_arrays
from concont.errors import DataError, UsageError, printable
from concont.runs.folder import write_whole


@dataclass(frozen=True)
class CandidateSets:
    """Who keeps a candidate set, which one, and for which data."""

    labeled: NDArray[np.bool_]  # (N,) rows of the training set that keep a set
    candidates: NDArray[np.bool_]  # (N, C); all True where nothing is kept
    data: str  # digest of the data they belong to

    @property
    def hash(self) -> str:
        """SHA-256 of all of it."""
        state = hashlib.sha256(f"{self.data} {self.candidates.shape};".encode())
        state.update(np.packbits(self.labeled).tobytes())
        state.update(np.packbits(self.candidates, axis=1).tobytes())
        return state.hexdigest()

    def write(self, path: Path, rows: NDArray[np.int64] | None = None) -> None:
        """A whole `.npz` with the hash inside; rows: those that a run has trained on, if any."""
        write_whole(path, lambda temporary: self.save(temporary, rows))

    def save(self, path: Path, rows: NDArray[np.int64] | None = None) -> None:
        """The same written straight to its place."""
        arrays: dict[str, Any] = {"labeled": self.labeled, "candidates": self.candidates}
        arrays |= {"data": self.data, "hash": self.hash}
        if rows is not None:
            arrays["rows"] = rows
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)


def read_candidate_sets(path: Path) -> CandidateSets:
    """What `CandidateSets.write` saved; refused where the hash does not fit."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        arrays = read_arrays(path, ("rows", "labeled", "candidates", "data", "hash"))
        if "rows" in arrays and "labeled" not in arrays:
            raise DataError(f"{path}: of a run by an earlier version; its sets are not all there")
        sets = CandidateSets(arrays["labeled"], arrays["candidates"], str(arrays["data"]))
        expected = str(arrays["hash"])
    except (KeyError, *DAMAGE) as error:
        reason = printable(error)
        raise DataError(f"{path}: not a file of candidate sets, or cut short ({reason})") from None
    if sets.labeled.dtype != np.bool_ or sets.candidates.dtype != np.bool_:
        raise DataError(f"{path}: labeled and candidates must be bool")
    if sets.candidates.ndim != 2 or sets.labeled.shape != sets.candidates.shape[:1]:
        raise DataError(f"{path}: labeled and candidates do not fit each other")
    if sets.hash != expected:
        raise DataError(f"{path}: the sets are not those that were written (hash {sets.hash[:12]})")
    return sets
