"""Doubt: candidate sets that seem to miss the truth are overruled, and not learned from."""

from dataclasses import dataclass

import torch
from torch import Tensor

from concont.types import State

BEGINS = 0.4  # of the run: before, the network knows too little to contradict anybody
RETURNS = 0.75  # of the run: from here on only those are overruled of which the network is sure
SURE = 0.9  # mass outside
MEMORY = 0.8  # of a row's mass outside its set, a visit
PACE = 0.1  # of the limit, a step
LEAST = 0.02  # mass outside up to which a set is never doubted


@dataclass(frozen=True)
class Doubt:
    """Overrules the sets that the network contradicts most, as many of each class as trust leaves.

    A row's mass outside its set, 1 - sum_j y_j f_j, is averaged over its visits. Its set is doubted
    while that is above the limit of its class, the likeliest of its candidates, at the last visit.
    After every step the limits move to where a share of 1 - trust of the sets of each class is
    doubted: with one limit for all, a class that the network mistakes for another would lose its
    sets, and with them all that could teach it. From `BEGINS` on a doubted set is overruled: the
    row learns like one without a label, so that a wrong set is not learned by heart before it is
    found out, and is judged anew at its next visit. From `RETURNS` on a set is believed again
    unless its mass outside is at least `SURE`: most of those that were doubted are only hard.
    """

    trust: float  # share of the sets that are believed; 1: all of them

    def init_state(self, rows: int, classes: int) -> State:
        """Nothing is known of any row, and nothing is doubted."""
        if self.trust == 1:
            return {}
        return {
            "outside": torch.zeros(rows),
            "inside_label": torch.zeros(rows, dtype=torch.int64),
            "outside_limit": torch.ones(classes),
        }

    def overrule(self, index: Tensor, sets: Tensor, state: State, done: Tensor) -> Tensor:
        """Which rows `index` (B,) with sets (B, C) are not believed; done: share of the run."""
        doubted = self._find_doubted(index, sets, state) & (done >= BEGINS)
        return doubted & ((done < RETURNS) | (state["outside"][index] >= SURE))

    def update(self, state: State, index: Tensor, sets: Tensor, probs: Tensor) -> None:
        """Take in a step on rows `index` (B,) of sets and probabilities (B, C), in place."""
        table, label, limits = state["outside"], state["inside_label"], state["outside_limit"]
        partial, doubted = ~sets.all(dim=1), self._find_doubted(index, sets, state)
        # By how much more of a class are doubted than should be, in shares of the average class.
        excess = (doubted.to(limits) - (1 - self.trust)) * partial
        of_class = torch.zeros_like(limits).index_add_(0, label[index], excess)
        of_class *= sets.shape[1] / partial.sum().clamp(min=1)
        limits.mul_((PACE * of_class).exp()).clamp_(LEAST, 1)
        outside = 1 - (probs * sets).sum(dim=1)
        table.index_copy_(0, index, table[index].lerp(outside.to(table), 1 - MEMORY))
        label.index_copy_(0, index, torch.where(sets, probs, -1).argmax(dim=1))

    def _find_doubted(self, index: Tensor, sets: Tensor, state: State) -> Tensor:
        limits = state["outside_limit"][state["inside_label"][index]]
        return ~sets.all(dim=1) & (state["outside"][index] > limits)


def believe(sets: Tensor, evidence: Tensor, overruled: Tensor | None) -> tuple[Tensor, Tensor]:
    """Sets and evidence (B, C), where those that are overruled (B,) say nothing; None: none is."""
    if overruled is None:
        return sets, evidence
    rows = overruled[:, None]
    return sets | rows, torch.where(rows, 1, evidence)
