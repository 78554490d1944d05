"""The training set on the device, and the order in which its rows are visited."""

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


@dataclass(frozen=True)
class TrainingSet:
    """All rows, on the training device, images as uint8."""

    images: Tensor  # (N, channels, H, W) uint8
    candidates: Tensor  # (N, C) bool
    truth: Tensor  # (N,) int64

    @classmethod
    def of(cls, problem: Problem, device: torch.device) -> "TrainingSet":
        """A problem's rows, moved to the device."""
        return cls(
            to_images(problem.images, device),
            torch.from_numpy(problem.candidates).to(device),
            torch.from_numpy(problem.truth).to(device),
        )


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
