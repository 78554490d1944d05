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
    partial_first: bool = False  # in each batch, and never more of them than `leading_partial`

    @classmethod
    def of(cls, problem: Problem, train: Train, partial_first: bool = False) -> "Order":
        """The order that the settings ask for; a batch never exceeds the rows."""
        unlabelled = torch.from_numpy(~problem.partial)
        partial, rest = (~unlabelled).nonzero()[:, 0], unlabelled.nonzero()[:, 0]
        size = min(train.batch_size, len(unlabelled))
        mixed = len(partial) > 0 and len(rest) > 0
        share = train.partial_share if mixed else None
        count = None if share is None else round(share * size)
        return cls(partial, rest, size, count, train.seed, partial_first)

    @property
    def steps(self) -> int:
        """Batches in an epoch; a last short one is dropped."""
        return (len(self.partial) + len(self.rest)) // self.batch_size

    @property
    def leading_partial(self) -> int | None:
        """How many rows at the head of each batch hold all of its partial ones; None: no such.

        Where the shuffle decides, that is their share of an epoch's rows, up to a multiple of 8.
        """
        if self.n_partial is not None or not self.partial_first:
            return self.n_partial
        share = len(self.partial) / (self.steps * self.batch_size)  # the rows dropped may be others
        return min(self.batch_size, 8 * math.ceil((share * self.batch_size + 1) / 8))

    def epoch(self, number: int) -> Tensor:
        """The rows of every batch of an epoch, (steps, B)."""
        stream = torch_stream(self.seed, "order", number)
        if self.n_partial is None:
            rows = torch.cat([self.partial, self.rest])
            rows = rows[torch.randperm(len(rows), generator=stream)]
            batches = rows[: self.steps * self.batch_size].view(self.steps, self.batch_size)
            return self._put_partial_first(batches) if self.partial_first else batches
        partial = _cycle(self.partial, self.steps * self.n_partial, stream)
        rest = _cycle(self.rest, self.steps * (self.batch_size - self.n_partial), stream)
        return torch.cat([partial.view(self.steps, -1), rest.view(self.steps, -1)], dim=1)

    def _put_partial_first(self, batches: Tensor) -> Tensor:
        """The same rows, in each batch the partial ones first and no more than there is room for.

        What a full batch has too many of changes places with other rows of the emptiest.
        """
        room = self.leading_partial
        assert room is not None
        is_partial = torch.zeros(len(self.partial) + len(self.rest), dtype=torch.bool)
        is_partial[self.partial] = True
        first = (~is_partial[batches]).byte().argsort(dim=1, stable=True)
        table = batches.gather(1, first).numpy()
        counts = is_partial[batches].sum(dim=1).numpy()
        while (excess := counts.max() - room) > 0:
            full, free = counts.argmax(), counts.argmin()
            n = min(excess, room - counts[free])
            a, b = counts[full] - n, counts[free]
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
