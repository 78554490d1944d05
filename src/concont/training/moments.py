"""By what rows of features are normalised: the mean and standard deviation of each."""

import logging

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from concont.augment.features import NEVER_VARIES
from concont.data.mapped_arrays import RowsOf
from concont.data.sources import Inputs

log = logging.getLogger("concont")
AT_ONCE = 2**22  # numbers that are looked at at once
DIGITS = 1e-6  # of a number, that float32 can tell


@np.errstate(over="ignore", invalid="ignore")  # numbers beyond float32: refused where it is placed
def measure_features(rows: Inputs | RowsOf) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (D,) of each feature over the training rows (N, D).

    A feature that does not vary, as far as float32 can tell, is to count for nothing.
    """
    n_rows, size = rows.shape
    step = max(1, AT_ONCE // size)
    parts = [slice(start, start + step) for start in range(0, n_rows, step)]
    mean, varies = _measure_mean(rows, parts)
    squares = (((_widen(rows, part) - mean) ** 2).sum(axis=0) for part in parts)
    std = np.sqrt(sum(squares, np.zeros(size)) / n_rows)
    tells = varies & (std > DIGITS * np.abs(mean)) & (std > np.finfo(np.float32).tiny)
    _warn_of_lost(np.flatnonzero(varies & ~tells), size)
    std = np.where(tells, std, NEVER_VARIES)
    return torch.tensor(mean, dtype=torch.float32), torch.tensor(std, dtype=torch.float32)


def _measure_mean(
    rows: Inputs | RowsOf, parts: list[slice]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The mean (D,) of each feature, and whether it varies, which no rounding of sums touches."""
    n_rows, size = rows.shape
    total, low, high = np.zeros(size), np.full(size, np.inf), np.full(size, -np.inf)
    for part in parts:
        wide = _widen(rows, part)
        total += wide.sum(axis=0)
        low, high = np.minimum(low, wide.min(axis=0)), np.maximum(high, wide.max(axis=0))
    return total / n_rows, high > low


def _warn_of_lost(lost: NDArray[np.intp], size: int) -> None:
    """Features that vary, but in digits that float32 does not have."""
    if len(lost):
        log.warning(
            "%d of %d features vary too little beside their mean for float32, and count for "
            "nothing, feature %d first: subtract their mean, and divide by their deviation",
            *(len(lost), size, int(lost[0])),
        )


def _widen(rows: Inputs | RowsOf, part: slice) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.asarray(rows[part], dtype=np.float64)
