"""Where the training set lies: images on the device or fetched ahead, labels always on it.

Rows of features take the place of images, float32 in place of uint8.
"""

import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from concont.data.file_watch import FileWatch
from concont.data.mapped_arrays import RowsOf, find_mapped_file, gather_rows, read_ahead
from concont.data.problem import Problem
from concont.data.sources import Inputs
from concont.errors import DataError
from concont.ranks.tensors import own_rows

TENSORS = {np.uint8: torch.uint8, np.float32: torch.float32}
AT_ONCE = 1000  # images that are moved to the device at once, where they are chosen rows


def to_images(images: Inputs | RowsOf, device: torch.device) -> Tensor:
    """uint8 images (N, H, W, channels) as (N, channels, H, W), laid out channels last.

    Of rows of features (N, D), float32.
    """
    if isinstance(images, RowsOf):  # a part at a time: all of them may not fit in main memory
        tensor = torch.empty(images.shape, dtype=TENSORS[_kind_of(images)], device=device)
        for start in range(0, len(images), AT_ONCE):
            part = _convert(images[start : start + AT_ONCE])
            tensor[start : start + AT_ONCE] = torch.from_numpy(part)
        return channels_first(tensor)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable")  # nothing writes to them
        tensor = torch.from_numpy(_convert(images))
    return channels_first(tensor.to(device))


def channels_first(inputs: Tensor) -> Tensor:
    """Images (N, H, W, channels) as (N, channels, H, W); rows of features as they are."""
    return inputs.permute(0, 3, 1, 2) if inputs.ndim == 4 else inputs


def to_floats(inputs: Tensor) -> Tensor:
    """Images in [0, 1] of uint8; rows of features as they are."""
    return inputs if inputs.is_floating_point() else inputs.float() / 255


def _convert(inputs: Inputs) -> Inputs:
    """In the type that is trained on, copied only where they are of another one."""
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(inputs, _kind_of(inputs))
    if found.dtype != inputs.dtype and not np.isfinite(found).all():
        raise DataError("the features hold a number that is beyond the range of float32, 3e38")
    return found


def _kind_of(inputs: Inputs | RowsOf) -> type[np.float32] | type[np.uint8]:
    return np.float32 if inputs.dtype.kind == "f" else np.uint8


class Resident:
    """Images that lie on the training device, as uint8."""

    def __init__(self, images: Inputs | RowsOf, device: torch.device) -> None:
        self.images, self.device = to_images(images, device), device
        self.shape = self.images.shape

    def batches(self, rows: Tensor) -> Iterator[Tensor]:
        """The images (B, channels, H, W) of each batch of rows (steps, B)."""
        for batch in rows.to(self.device):
            yield self.images[batch]

    def split(self, size: int, first: int = 0, every: int = 1) -> Iterable[Tensor]:
        """All images in order, so many at a time; or every k-th such part, from the first on."""
        return torch.split(self.images, size)[first::every]


class Streamed:
    """Images in main memory or a mapped file; the next batches are fetched while one trains."""

    AHEAD = 3  # batches: enough to hide a slow read, and little memory
    FETCHERS = 2  # threads: one waits for the disk while the other copies

    def __init__(self, images: Inputs | RowsOf, device: torch.device) -> None:
        self.pixels = images if isinstance(images, RowsOf) else np.ascontiguousarray(images)
        self.file = FileWatch(self.pixels)
        count, *size = self.pixels.shape
        self.shape, self.device = torch.Size((count, *size[-1:], *size[:-1])), device

    def batches(self, rows: Iterable[Tensor]) -> Iterator[Tensor]:
        """The same images in the same order as a resident set gives."""
        with ThreadPoolExecutor(self.FETCHERS) as fetchers:
            fetched: deque[Future[Tensor]] = deque()
            for batch in rows:
                fetched.append(fetchers.submit(self._fetch, batch))
                if len(fetched) > self.AHEAD:
                    yield fetched.popleft().result().to(self.device, non_blocking=True)
            while fetched:
                yield fetched.popleft().result().to(self.device, non_blocking=True)

    def split(self, size: int, first: int = 0, every: int = 1) -> Iterable[Tensor]:
        """All images in order, so many at a time; or every k-th such part, from the first on."""
        return self.batches(torch.split(torch.arange(len(self.pixels)), size)[first::every])

    def _fetch(self, batch: Tensor) -> Tensor:
        rows = batch.numpy()
        self.file.refuse_if_changed()
        read_ahead(self.pixels, rows)
        kind = _kind_of(self.pixels)
        images = torch.empty(
            (len(rows), *self.pixels.shape[1:]),
            dtype=TENSORS[kind],
            pin_memory=self.device.type == "cuda",
        )
        if self.pixels.dtype == kind:
            gather_rows(self.pixels, rows, images.numpy())
        else:  # features of another precision
            images.numpy()[:] = _convert(self.pixels[rows])
        return channels_first(images)


def place_images(
    images: Inputs | RowsOf, device: torch.device, memory_share: float
) -> Resident | Streamed:
    """On the device where the images take at most that share of its free memory."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        fits = images.nbytes <= memory_share * free
    else:
        # In main memory either way, but for a mapped file, which may not fit.
        fits = memory_share > 0 and find_mapped_file(images) is None
    return Resident(images, device) if fits else Streamed(images, device)


def scale_weights(weights: NDArray[np.float32]) -> Tensor:
    """Votes (N, C) so that the largest of a row is 1."""
    return torch.from_numpy(weights / weights.max(axis=1, keepdims=True))


@dataclass(frozen=True)
class TrainingSet:
    """All rows; candidate sets and labels on the training device, images there or streamed."""

    images: Resident | Streamed
    candidates: Tensor  # (N, C) bool
    truth: Tensor  # (N,) int64
    weights: Tensor | None = None  # (N, C) of the candidates, the largest of a row 1

    @classmethod
    def of(cls, problem: Problem, device: torch.device, memory_share: float) -> "TrainingSet":
        """A problem's rows, moved to the device."""
        return cls(
            place_images(problem.images, device, memory_share),
            torch.from_numpy(problem.candidates).to(device),
            torch.from_numpy(problem.truth).to(device),
            None if problem.weights is None else scale_weights(problem.weights).to(device),
        )

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return self.images.device

    def batches(self, plan: Tensor) -> Iterator[Tensor]:
        """The images of each batch of rows (steps, B); of several ranks each has its rows alone."""
        return self.images.batches(own_rows(plan, dim=1))
