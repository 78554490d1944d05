"""Inputs of features: those of the data, or GIST of its images, kept on disk by content."""

import logging
import os
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from concont.cache import cache_folder
from concont.classic.descriptor import gist
from concont.data.mapped_arrays import DAMAGE
from concont.data.sources import Inputs, digest
from concont.runs.folder import write_whole

log = logging.getLogger("concont")
VERSION = 1  # of the descriptor: another one is kept beside it


def compute_features(
    inputs: Inputs, size: int, device: str = "auto", keep: bool = True
) -> NDArray[np.floating]:
    """Features (N, D) of images (N, H, W, channels), or the inputs where they are such already.

    keep: GIST of the same images is computed once; the cache is a folder `gist` beside downloaded
    data.
    """
    if inputs.ndim == 2:
        return inputs
    if not keep:
        return gist(inputs, size=size, device=device)
    path = cache_folder() / "gist" / f"{digest({'images': inputs})[:32]}-{size}-{VERSION}.npy"
    kept = _read_kept(path, len(inputs))
    if kept is not None:
        return kept
    found = gist(inputs, size=size, device=device)
    _keep(path, found)
    return found


def _read_kept(path: Path, rows: int) -> NDArray[np.float32] | None:
    try:  # mapped, so that no more is taken up than the file has, whatever its header claims
        kept: NDArray[np.float32] = npy.open_memmap(path, mode="r")
    except DAMAGE:  # or not there: made again
        return None
    fits = kept.shape == (rows, 512) and kept.dtype == np.float32
    return np.array(kept) if fits else None


def _keep(path: Path, found: NDArray[np.float32]) -> None:
    def save(temporary: Path) -> None:
        with open(temporary, "wb") as file:
            np.save(file, found)

    try:
        os.makedirs(path.parent, exist_ok=True)
        write_whole(path, save)
    except OSError as error:
        log.warning("the features are not kept: %s", error)
