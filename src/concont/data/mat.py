"""Partial-label data sets in the MATLAB form in which they are passed around."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.errors import DataError, UsageError

REQUIRED = ("data", "partial_target")


def read_mat(path: Path) -> dict[str, NDArray[Any]]:
    """`x_train` (N, D), `candidates` (N, C) and `y_train` (N,) of a file.

    It holds `data` (N x D), `partial_target` (C x N, 1 for a candidate), and where the true labels
    are known `target` (C x N, one 1 a column; a column without any is unknown).
    """
    content = _load_matlab_file(path)
    for name in REQUIRED:
        if name not in content:
            found = ", ".join(sorted(content)) or "nothing"
            raise DataError(f"{path}: no {name} in it; found {found}")
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


def _load_matlab_file(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        content = loadmat(path)
    except NotImplementedError:
        raise DataError(f"{path}: MATLAB 7.3's form; save it with `save -v7`") from None
    except Exception as error:  # a damaged MATLAB file fails in many ways
        raise DataError(f"{path}: not a MATLAB file, or cut short ({error})") from None
    return {name: value for name, value in content.items() if not name.startswith("__")}


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
