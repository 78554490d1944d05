"""Rows of features in a file, to be labelled: numbers as text, or an array."""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from concont.data.mapped_arrays import DAMAGE, list_arrays, read_arrays
from concont.data.mat import load_matlab
from concont.data.sources import check_inputs
from concont.errors import DataError, UsageError, printable

log = logging.getLogger("concont")
FEATURE_FILES = (".npy", ".npz", ".mat", ".csv")
IN_NPZ = ("x_test", "x_train")  # the first of them that there is


def read_feature_file(path: Path, size: int) -> NDArray[np.floating]:
    """The rows (M, D) of a file; size: D of what is to label them.

    An `.npy` holds one matrix, an `.npz` `x_test` or else `x_train`, a `.mat` `data`; a `.csv`
    holds a row a line, with or without a header.
    """
    if path.suffix not in FEATURE_FILES:
        known = ", ".join(FEATURE_FILES)
        raise UsageError(f"the run learned from rows of features: give a file of them, {known}")
    if not path.is_file():
        raise UsageError(f"{printable(path)}: no such file")
    where = printable(path)
    try:
        found, name = _read(path)
    except (*DAMAGE, UserWarning) as error:
        raise DataError(f"{where}: damaged, or no matrix of numbers ({printable(error)})") from None
    if found.ndim != 2 or found.dtype.kind not in "fiu":
        raise DataError(f"{where}: {name} is {found.dtype} of shape {found.shape}, no features")
    rows = found if found.dtype.kind == "f" else found.astype(np.float64)
    if rows.shape[1:] != (size,):
        raise DataError(f"{where} has {rows.shape[1]} features a row; the run learned from {size}")
    return check_inputs(rows, name, where)


def _read(path: Path) -> tuple[NDArray[Any], str]:
    """What is in the file, and what it is called there."""
    if path.suffix == ".npz":
        return _read_npz(path)
    if path.suffix == ".mat":
        content = load_matlab(path, ("data",))
        if "data" not in content:
            raise DataError(f"{printable(path)}: no data in it")
        return np.asarray(content["data"]), "data"
    if path.suffix == ".npy":  # mapped: no more is taken up than the file has
        return npy.open_memmap(path, mode="r"), "the array"
    return _read_csv(path), "the table"


def _read_npz(path: Path) -> tuple[NDArray[Any], str]:
    there = list_arrays(path)
    name = next((each for each in IN_NPZ if each in there), None)
    if name is None:
        raise DataError(f"{printable(path)}: neither x_test nor x_train in it")
    return read_arrays(path, [name])[name], name


def _read_csv(path: Path) -> NDArray[np.float64]:
    """Numbers with commas between them; a header has none, or is 0, 1, 2, ..., as pandas has it."""
    with open(path, encoding="utf-8-sig") as file:
        first = [cell.strip() for cell in file.readline().split(",")]
    counted = len(first) > 1 and first == list(map(str, range(len(first))))
    if counted:
        where = printable(path)
        log.warning("%s: its first line, 0, 1, ..., is read as names of columns", where)
    header = counted or not any(map(_is_number, first))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of an empty file
        return np.loadtxt(
            path, delimiter=",", skiprows=int(header), ndmin=2, encoding="utf-8-sig", comments=None
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
