"""What PARM begins with: rows in order, their costs, and labels spread among the partial ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from concont.classic.graph import (
    Graph,
    find_neighbours,
    find_other_neighbours,
    scale_to_unit_length,
)
from concont.classic.linear_machine import WeightedRows, compute_second_moment

SPREAD_ROUNDS, SPREAD_TOLERANCE = 200, 0.01


@dataclass(frozen=True)
class PreparedRows:
    """What does not depend on lam and mu; the partial rows come first."""

    x: Tensor  # (N, D)
    soft: Tensor  # (N, C)
    order: Tensor  # (N,) where each row came from
    partial: int  # how many rows are
    moments: tuple[Tensor, Tensor]  # (D, D) of partial and unlabelled rows

    def weighted(self, lam: float, mu: float) -> WeightedRows:
        """The rows with their costs: lam and mu, shared out equally."""
        others = len(self.x) - self.partial
        each = lam / self.partial, mu / max(1, others)
        cost = torch.cat(
            [self.x.new_full((n,), c) for n, c in zip((self.partial, others), each, strict=True)]
        )
        moment = each[0] * self.moments[0] + each[1] * self.moments[1]
        return WeightedRows.from_costs(self.x, cost, moment)


def check_feature_size(x: Tensor) -> None:
    """Refuse features for which scores, that grow with their square, could not be squared."""
    limits = torch.finfo(x.dtype)
    largest, lowest, highest = float(x.abs().max()), limits.tiny**0.25, limits.max**0.25
    if largest and not lowest <= largest <= highest:
        raise ValueError(
            f"the largest feature is {largest:.2g}; scale X so that it lies between "
            f"{lowest:.2g} and {highest:.2g} (in {str(x.dtype).removeprefix('torch.')})"
        )


def prepare_rows(x: Tensor, sets: Tensor, k: int, alpha: float) -> PreparedRows:
    """Rows x (N, D) with their candidate sets (N, C), and the soft labels to begin with."""
    unlabelled = sets.all(dim=1)
    partial = len(sets) - int(unlabelled.sum())
    order = unlabelled.int().argsort(stable=True)
    x, unit = x[order], scale_to_unit_length(x[order])
    f_p = spread_labels(unit[:partial], sets[order[:partial]].to(x.dtype), k, alpha)
    nearest = find_neighbours(unit[partial:], unit[:partial], min(k, partial))
    near = _weigh_by_distance(*nearest) @ f_p
    moments = compute_second_moment(x[:partial]), compute_second_moment(x[partial:])
    return PreparedRows(x, torch.cat([f_p, near]), order, partial, moments)


def spread_labels(unit: Tensor, members: Tensor, k: int, alpha: float) -> Tensor:
    """Soft labels (P, C) of rows of length 1: their candidates (0 or 1), as neighbours see them."""
    graph = _weigh_by_distance(*find_other_neighbours(unit, min(k + 1, len(unit))))
    soft = members / members.sum(dim=1, keepdim=True)
    for _ in range(SPREAD_ROUNDS):
        before = soft
        inside = members * (alpha * (graph @ soft) + (1 - alpha) * soft)
        total = inside.sum(dim=1, keepdim=True)
        # With alpha = 1 the neighbours may leave a row nothing: it stays as it is.
        soft = torch.where(total > 0, inside / total.where(total > 0, 1.0), soft)
        change = torch.linalg.matrix_norm(soft) - torch.linalg.matrix_norm(before)
        if abs(float(change)) < SPREAD_TOLERANCE:
            break
    return soft


def _weigh_by_distance(squared: Tensor, index: Tensor) -> Graph:
    weight = (-squared / 2).exp()
    return Graph(index, weight / weight.sum(dim=1, keepdim=True))
