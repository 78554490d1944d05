"""Where the training set lies: images on the device or fetched ahead, labels always on it."""

import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from concont.data.mapped_arrays import find_mapped_file, read_ahead
from concont.data.problem import Problem
from concont.data.sources import Images


def to_images(images: Images, device: torch.device) -> Tensor:
    """uint8 images (N, H, W, channels) as (N, channels, H, W), laid out channels last."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable")  # nothing writes to them
        tensor = torch.from_numpy(np.ascontiguousarray(images))
    return tensor.to(device).permute(0, 3, 1, 2)


class Resident:
    """Images that lie on the training device, as uint8."""

    def __init__(self, images: Images, device: torch.device) -> None:
        self.images, self.device = to_images(images, device), device

    def batches(self, rows: Tensor) -> Iterator[Tensor]:
        """The images (B, channels, H, W) of each batch of rows (steps, B)."""
        for batch in rows.to(self.device):
            yield self.images[batch]


class Streamed:
    """Images in main memory or a mapped file; the next batches are fetched while one trains."""

    AHEAD = 3  # batches: enough to hide a slow read, and little memory

    def __init__(self, images: Images, device: torch.device) -> None:
        self.pixels, self.device = np.ascontiguousarray(images), device
        self.images = to_images(self.pixels, torch.device("cpu"))

    def batches(self, rows: Tensor) -> Iterator[Tensor]:
        """The same images in the same order as a resident set gives."""
        with ThreadPoolExecutor(1) as fetcher:
            fetched: deque[Future[Tensor]] = deque()
            for batch in rows:
                fetched.append(fetcher.submit(self._fetch, batch))
                if len(fetched) > self.AHEAD:
                    yield fetched.popleft().result().to(self.device, non_blocking=True)
            while fetched:
                yield fetched.popleft().result().to(self.device, non_blocking=True)

    def _fetch(self, batch: Tensor) -> Tensor:
        read_ahead(self.pixels, batch.tolist())
        images = self.images[batch]
        return images.pin_memory() if self.device.type == "cuda" else images


def place_images(images: Images, device: torch.device, memory_share: float) -> Resident | Streamed:
    """On the device where the images take at most that share of its free memory."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        fits = images.nbytes <= memory_share * free
    else:
        # In main memory either way, but for a mapped file, which may not fit.
        fits = memory_share > 0 and find_mapped_file(images) is None
    return Resident(images, device) if fits else Streamed(images, device)


@dataclass(frozen=True)
class TrainingSet:
    """All rows; candidate sets and labels on the training device, images there or streamed."""

    images: Resident | Streamed
    candidates: Tensor  # (N, C) bool
    truth: Tensor  # (N,) int64

    @classmethod
    def of(cls, problem: Problem, device: torch.device, memory_share: float) -> "TrainingSet":
        """A problem's rows, moved to the device."""
        return cls(
            place_images(problem.images, device, memory_share),
            torch.from_numpy(problem.candidates).to(device),
            torch.from_numpy(problem.truth).to(device),
        )

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return self.images.device
