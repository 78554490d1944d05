"""Partial-label data sets in the MATLAB form in which they are passed around."""

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data.mat_elements import refuse_unknown_types
from concont.errors import ConcontError, DataError, UsageError, printable
from concont.memory import refuse_beyond_memory

REQUIRED = ("data", "partial_target")
SIZES = ("8", "16", "32", "64")
# What MATLAB calls numbers, as `scipy.io.whosmat` tells.
NUMBERS = (
    *("double", "single", "logical", "sparse"),
    *(f"int{n}" for n in SIZES),
    *(f"uint{n}" for n in SIZES),
)
BYTES_OF_A_NUMBER = 8  # at most
LEVEL_5 = 1  # as SciPy counts the forms of the file


def read_mat(path: Path) -> dict[str, NDArray[Any]]:
    """`x_train` (N, D), `candidates` (N, C) and `y_train` (N,) of a file.

    It holds `data` (N x D), `partial_target` (C x N, 1 for a candidate), and where the true labels
    are known `target` (C x N, one 1 a column; a column without any is unknown).
    """
    content = load_matlab(path, (*REQUIRED, "target"))
    for name in REQUIRED:
        if name not in content:
            raise DataError(f"{path}: no {name} in it; {_list_names(path)}")
    rows = _to_matrix(content["data"], "data", path)
    broken = ~np.isfinite(rows).all(axis=1)
    if broken.any():
        raise DataError(f"{path}: data row {int(broken.argmax())} is not finite")
    sets = _to_memberships(content["partial_target"], "partial_target", len(rows), path)
    empty = ~sets.any(axis=0)
    if empty.any():
        raise DataError(
            f"{path}: partial_target column {int(empty.argmax())} is empty ({int(empty.sum())} "
            "such); every row of data needs at least one class, all = unlabelled"
        )
    arrays = {"x_train": rows, "candidates": sets.T.copy()}
    if "target" in content:
        truth = _to_memberships(content["target"], "target", len(rows), path)
        if truth.shape != sets.shape:
            raise DataError(f"{path}: target is {truth.shape}, partial_target {sets.shape}")
        counts = truth.sum(axis=0)
        if (counts > 1).any():
            column = int((counts > 1).argmax())
            raise DataError(f"{path}: target column {column} has {counts[column]} true labels")
        arrays["y_train"] = np.where(counts == 1, truth.argmax(axis=0), -1).astype(np.int64)
    return arrays


def read_mat_shape(path: Path) -> tuple[int, ...]:
    """The shape (N, D) of the features in a file, by its header; a DataError where it has none."""
    from scipy.io import whosmat

    try:
        found: dict[str, tuple[int, ...]] = {name: shape for name, shape, _ in whosmat(path)}
        return found["data"]
    except Exception as error:  # a damaged MATLAB file fails in many ways
        raise DataError(f"{path}: no MATLAB file with features ({printable(error)})") from None


def load_matlab(path: Path, names: Collection[str]) -> dict[str, Any]:
    """The numbers of these names in a MATLAB file, as far as they are there.

    What they take in memory is told by their headers, and held against what there is before they
    are read; nothing else in the file is.
    """
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import matfile_version

    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        found = {name: (shape, kind) for name, shape, kind in whosmat(path) if name in names}
        largest = _refuse_declared(found, path)
        if matfile_version(path)[0] == LEVEL_5:
            refuse_unknown_types(path, largest)
        content = loadmat(path, variable_names=list(found))
    except NotImplementedError:
        raise DataError(f"{path}: MATLAB 7.3's form; save it with `save -v7`") from None
    except ConcontError:
        raise
    except Exception as error:  # a damaged MATLAB file fails in many ways
        reason = printable(error)
        raise DataError(f"{path}: not a MATLAB file, or cut short ({reason})") from None
    return {name: content[name] for name in found if name in content}


def _refuse_declared(found: Mapping[str, tuple[tuple[int, ...], str]], path: Path) -> int:
    """What is no numbers, or more of them than there is room for; returns the bytes they take."""
    for name, (shape, kind) in found.items():
        if kind not in NUMBERS:
            raise DataError(f"{path}: {name} is {printable(kind)} of shape {shape}, no numbers")
    needed = sum(math.prod(shape) * BYTES_OF_A_NUMBER for shape, _ in found.values())
    refuse_beyond_memory(needed, f"{path}: {' and '.join(found)} take")
    return needed


def _list_names(path: Path) -> str:
    from scipy.io import whosmat

    found = sorted(printable(name) for name, _, _ in whosmat(path))
    return f"found {', '.join(found) or 'nothing'}"


def _to_matrix(value: Any, name: str, path: Path) -> NDArray[Any]:
    """A matrix of numbers, sparse or not, as an array."""
    try:
        if hasattr(value, "check_format"):  # a bad index would be written to, wherever it points
            value.check_format(full_check=True)
        dense = np.asarray(value.todense() if hasattr(value, "todense") else value)
    except (ValueError, MemoryError) as error:
        raise DataError(f"{path}: {name} is sparse and cannot be read ({error})") from None
    if dense.ndim != 2 or dense.dtype.kind not in "fiub" or dense.size == 0:
        raise DataError(
            f"{path}: {name} is {dense.dtype} of shape {dense.shape}, no matrix of numbers"
        )
    return dense if dense.dtype.kind == "f" else dense.astype(np.float64)


def _to_memberships(value: Any, name: str, rows: int, path: Path) -> NDArray[np.bool_]:
    """Which class each row belongs to (C, N)."""
    matrix = _to_matrix(value, name, path)
    if matrix.shape[1] != rows:
        raise DataError(
            f"{path}: {name} is {matrix.shape}; it must be classes x rows, and data has {rows} rows"
        )
    if not np.isin(matrix, (0, 1)).all():
        raise DataError(f"{path}: {name} must hold 0 and 1 alone")
    return np.asarray(matrix == 1)
