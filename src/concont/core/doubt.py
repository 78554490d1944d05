"""Doubt: candidate sets that seem to miss the truth are overruled, and not learned from."""

from dataclasses import dataclass

import torch
from torch import Tensor

from concont.types import State

BEGINS = 0.4  # of the run: before, the network knows too little to contradict anybody
MEMORY = 0.8  # of a row's mass outside its set, a visit
PACE = 0.1  # of the limit, a step
LEAST = 0.02  # mass outside a set up to which it is never doubted


@dataclass(frozen=True)
class Doubt:
    """Overrules the sets that the network contradicts most, as many as trust leaves.

    A row's mass outside its set, 1 - sum_j y_j f_j, is averaged over its visits. Its set is doubted
    while that is above a limit, which after every step moves to where a share of 1 - trust of the
    partial rows is doubted. From `BEGINS` on a doubted set is overruled: the row learns like one
    without a label, and is judged anew at its next visit.
    """

    trust: float  # share of the sets that are believed; 1: all of them

    def init_state(self, rows: int) -> State:
        """Nothing is known of any row, and nothing is doubted."""
        if self.trust == 1:
            return {}
        return {"outside": torch.zeros(rows), "outside_limit": torch.ones(())}

    def overrule(self, index: Tensor, sets: Tensor, state: State, done: Tensor) -> Tensor:
        """Which rows `index` (B,) with sets (B, C) are not believed; done: share of the run."""
        return self._find_doubted(index, sets, state) & (done >= BEGINS)

    def update(self, state: State, index: Tensor, sets: Tensor, outside: Tensor) -> None:
        """Take in a step on rows `index` (B,), in place: their sets (B, C), mass outside (B,)."""
        table, limit = state["outside"], state["outside_limit"]
        partial = ~sets.all(dim=1)
        doubted = self._find_doubted(index, sets, state).sum() / partial.sum().clamp(min=1)
        doubted = torch.where(partial.any(), doubted, 1 - self.trust)
        table.index_copy_(0, index, table[index].lerp(outside.to(table), 1 - MEMORY))
        excess = doubted.to(limit) - (1 - self.trust)
        limit.mul_((PACE * excess).exp()).clamp_(LEAST, 1)

    def _find_doubted(self, index: Tensor, sets: Tensor, state: State) -> Tensor:
        return ~sets.all(dim=1) & (state["outside"][index] > state["outside_limit"])


def measure_outside(sets: Tensor, probs: Tensor) -> Tensor:
    """The mass of probabilities (B, C) outside the sets (B, C), a row."""
    return 1 - (probs * sets).sum(dim=1)


def believe(sets: Tensor, evidence: Tensor, overruled: Tensor | None) -> tuple[Tensor, Tensor]:
    """Sets and evidence (B, C), where those that are overruled (B,) say nothing; None: none is."""
    if overruled is None:
        return sets, evidence
    rows = overruled[:, None]
    return sets | rows, torch.where(rows, 1, evidence)
