"""The order in which the rows of a training set are visited."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from concont.data.problem import Problem
from concont.rng import torch_stream
from concont.runs.settings import Train


@dataclass(frozen=True)
class Order:
    """Which rows make up each batch of each epoch; a pure function of seed and epoch."""

    partial: Tensor  # (P,) rows with a candidate set
    rest: Tensor  # (N - P,) rows without
    batch_size: int
    n_partial: int | None  # rows of each batch that are partial; None: as the shuffle has it
    seed: int
    sort: bool = False  # the partial rows of a batch last, and never more than `most_partial`

    @classmethod
    def of(cls, problem: Problem, train: Train, sort: bool = False) -> "Order":
        """The order that the settings ask for; a batch never exceeds the rows."""
        unlabelled = torch.from_numpy(problem.candidates.all(axis=1))
        partial, rest = (~unlabelled).nonzero()[:, 0], unlabelled.nonzero()[:, 0]
        size = min(train.batch_size, len(unlabelled))
        mixed = len(partial) > 0 and len(rest) > 0
        share = train.partial_share if mixed else None
        count = None if share is None else round(share * size)
        return cls(partial, rest, size, count, train.seed, sort)

    @property
    def steps(self) -> int:
        """Batches in an epoch; a last short one is dropped."""
        return (len(self.partial) + len(self.rest)) // self.batch_size

    @property
    def leading_partial(self) -> int | None:
        """How many rows at the head of each batch hold all of its partial ones; None: no such."""
        return None if self.sort else self.n_partial

    @property
    def most_partial(self) -> int:
        """Partial rows that a sorted batch has room for: their share, up to a multiple of 8.

        Of the rows of an epoch, that is: those that it drops may all be others.
        """
        if self.n_partial is not None:
            return self.n_partial
        share = len(self.partial) / (self.steps * self.batch_size)
        return min(self.batch_size, 8 * math.ceil((share * self.batch_size + 1) / 8))

    def epoch(self, number: int) -> Tensor:
        """The rows of every batch of an epoch, (steps, B)."""
        stream = torch_stream(self.seed, "order", number)
        if self.n_partial is None:
            rows = torch.cat([self.partial, self.rest])
            rows = rows[torch.randperm(len(rows), generator=stream)]
            batches = rows[: self.steps * self.batch_size].view(self.steps, self.batch_size)
            return self._sorted(batches) if self.sort else batches
        partial = _cycle(self.partial, self.steps * self.n_partial, stream)
        rest = _cycle(self.rest, self.steps * (self.batch_size - self.n_partial), stream)
        both = (partial.view(self.steps, -1), rest.view(self.steps, -1))
        return torch.cat(both[::-1] if self.sort else both, dim=1)

    def _sorted(self, batches: Tensor) -> Tensor:
        """The same rows, in each batch the partial ones last and no more than there is room for.

        What a full batch has too many of changes places with other rows of the emptiest.
        """
        is_partial = torch.zeros(len(self.partial) + len(self.rest), dtype=torch.bool)
        is_partial[self.partial] = True
        partial_last = is_partial[batches].byte().argsort(dim=1, stable=True)
        table = batches.gather(1, partial_last).numpy()
        counts, size = is_partial[batches].sum(dim=1).numpy(), self.batch_size
        while (excess := counts.max() - self.most_partial) > 0:
            full, free = counts.argmax(), counts.argmin()
            n = min(excess, self.most_partial - counts[free])
            a, b = size - counts[full], size - counts[free] - n
            table[full, a : a + n], table[free, b : b + n] = (
                table[free, b : b + n].copy(),
                table[full, a : a + n].copy(),
            )
            counts[full] -= n
            counts[free] += n
        return torch.from_numpy(table)


def _cycle(rows: Tensor, count: int, stream: torch.Generator) -> Tensor:
    """`count` of the rows, shuffled pass after pass."""
    passes = -(-count // len(rows))
    shuffled = [rows[torch.randperm(len(rows), generator=stream)] for _ in range(passes)]
    return torch.cat([*shuffled, rows[:0]])[:count]
