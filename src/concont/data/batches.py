"""The training set on the device, and the order in which its rows are visited."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from concont.data.partial import Problem
from concont.data.sources import Images
from concont.rng import torch_stream
from concont.settings import Train


def to_images(images: Images, device: torch.device) -> Tensor:
    """uint8 images (N, H, W, channels) as (N, channels, H, W), laid out channels last."""
    return torch.from_numpy(np.ascontiguousarray(images)).to(device).permute(0, 3, 1, 2)


class Resident:
    """Images that lie on the training device, as uint8."""

    def __init__(self, images: Images, device: torch.device) -> None:
        self.images, self.device = to_images(images, device), device

    def batches(self, rows: Tensor) -> Iterator[Tensor]:
        """The images (B, channels, H, W) of each batch of rows (steps, B)."""
        for batch in rows.to(self.device):
            yield self.images[batch]


class Streamed:
    """Images that stay in main memory; the next batches are fetched while one trains."""

    AHEAD = 3

    def __init__(self, images: Images, device: torch.device) -> None:
        self.images, self.device = to_images(images, torch.device("cpu")), device

    def batches(self, rows: Tensor) -> Iterator[Tensor]:
        """The same images in the same order as a resident set gives."""
        with ThreadPoolExecutor(1) as fetcher:
            waiting: deque[Future[Tensor]] = deque()
            for batch in rows:
                waiting.append(fetcher.submit(self._fetch, batch))
                if len(waiting) > self.AHEAD:
                    yield waiting.popleft().result().to(self.device, non_blocking=True)
            while waiting:
                yield waiting.popleft().result().to(self.device, non_blocking=True)

    def _fetch(self, batch: Tensor) -> Tensor:
        images = self.images[batch]
        return images.pin_memory() if self.device.type == "cuda" else images


def place(images: Images, device: torch.device, memory_share: float) -> Resident | Streamed:
    """On the device where the images take at most that share of its free memory."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        fits = images.nbytes <= memory_share * free
    else:
        fits = memory_share > 0  # they are in main memory either way
    return Resident(images, device) if fits else Streamed(images, device)


@dataclass(frozen=True)
class TrainingSet:
    """All rows; sets and labels on the training device, images there or on their way."""

    images: Resident | Streamed
    candidates: Tensor  # (N, C) bool
    truth: Tensor  # (N,) int64

    @classmethod
    def of(cls, problem: Problem, device: torch.device, memory_share: float) -> "TrainingSet":
        """A problem's rows, moved to the device."""
        return cls(
            place(problem.images, device, memory_share),
            torch.from_numpy(problem.candidates).to(device),
            torch.from_numpy(problem.truth).to(device),
        )

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return self.images.device


@dataclass(frozen=True)
class Order:
    """Which rows make up each batch of each epoch; a pure function of seed and epoch."""

    partial: Tensor  # (P,) rows with a candidate set
    rest: Tensor  # (N - P,) rows without
    batch_size: int
    n_partial: int | None  # rows of each batch that are partial; None: as the shuffle has it
    seed: int

    @classmethod
    def of(cls, problem: Problem, train: Train) -> "Order":
        """The order that the settings ask for; a batch never exceeds the rows."""
        unlabelled = torch.from_numpy(problem.candidates.all(axis=1))
        partial, rest = (~unlabelled).nonzero()[:, 0], unlabelled.nonzero()[:, 0]
        size = min(train.batch_size, len(unlabelled))
        mixed = len(partial) > 0 and len(rest) > 0
        share = train.partial_share if mixed else None
        count = None if share is None else round(share * size)
        return cls(partial, rest, size, count, train.seed)

    @property
    def steps(self) -> int:
        """Batches in an epoch; a last short one is dropped."""
        return (len(self.partial) + len(self.rest)) // self.batch_size

    def epoch(self, number: int) -> Tensor:
        """The rows of every batch of an epoch, (steps, B)."""
        stream = torch_stream(self.seed, "order", number)
        if self.n_partial is None:
            rows = torch.cat([self.partial, self.rest])
            rows = rows[torch.randperm(len(rows), generator=stream)]
            return rows[: self.steps * self.batch_size].view(self.steps, self.batch_size)
        partial = _cycle(self.partial, self.steps * self.n_partial, stream)
        rest = _cycle(self.rest, self.steps * (self.batch_size - self.n_partial), stream)
        both = (partial.view(self.steps, -1), rest.view(self.steps, -1))
        return torch.cat(both, dim=1)


def _cycle(rows: Tensor, count: int, stream: torch.Generator) -> Tensor:
    """`count` of the rows, shuffled pass after pass."""
    passes = -(-count // len(rows))
    shuffled = [rows[torch.randperm(len(rows), generator=stream)] for _ in range(passes)]
    return torch.cat([*shuffled, rows[:0]])[:count]
