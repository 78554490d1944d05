"""The confidence-weighted machine of Crammer and Singer, which is PARM's linear model.

    P(W) = |W|^2 / 2 + sum_i c_i sum_j F_ij xi_ij,  xi_ij = max(0, 1 + max_{k != j} s_ik - s_ij)

with scores s = x W', soft labels F (rows of sum 1) and costs c. Its dual has a distribution a_i
over the classes for each row: P is nowhere below

    P(0) - sum_i c_i over(a_i + F_i) - |V(a)|^2 / 2,     V(a) = sum_i c_i (F_i - a_i) x_i'

where over() is what the largest entry has above 1. Both are computed less P(0) = sum c: where
labels are ambiguous, P falls by so little that the constant would swallow it.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

CHECK_EVERY = 10  # steps, between two computations of the gap
ADAPT_RARELY_AFTER = 100  # steps, after which the step size is adapted ever more rarely
OVER_RELAXATION = 1.8  # from 1, none, to below 2; high values take fewer steps
NEGLIGIBLE = 1e-5  # a W shorter by this factor than labels could make it is 0
BLOCK = 2**24  # numbers taken to float64 at once: 128 MiB


@dataclass(frozen=True)
class Machine:
    """A solution and how good it is."""

    weights: Tensor  # W (C, D)
    shares: Tensor  # a (N, C), the dual's
    gain: float  # P(0) - P(W), at least 0
    gap: float  # P(W) is at most so far above the optimum
    steps: int
    converged: bool
    worthless: bool  # the optimum is W = 0, as near as can be told


@dataclass(frozen=True)
class WeightedRows:
    """Rows with costs, made ready for machines with any soft labels."""

    x: Tensor  # (N, D)
    cost: Tensor  # c (N,)
    values: Tensor  # (D,) of the costs' second moment, sum c x x', in its own directions
    vectors: Tensor  # (D, D)

    @classmethod
    def from_costs(cls, x: Tensor, cost: Tensor, moment: Tensor | None = None) -> Self:
        """The second moment (D, D) is computed unless given."""
        moment = compute_second_moment(x, cost) if moment is None else moment
        values, vectors = torch.linalg.eigh(moment)
        return cls(x, cost, values.clamp(min=0).to(x.dtype), vectors.to(x.dtype))

    def sum_by_class(self, shares: Tensor) -> Tensor:
        """sum c a x' (C, D) for a (N, C)."""
        return (shares * self.cost[:, None]).T @ self.x

    def norm_by_cost(self, scores: Tensor) -> float:
        """Of scores (N, C), by cost."""
        return float((self.cost @ scores.square()).double().sum().sqrt())


@dataclass(frozen=True)
class _Iterate:
    """What a step changes."""

    weights: Tensor  # W (C, D)
    scores: Tensor  # x W' (N, C)
    split: Tensor  # (N, C) scores as the shares want them, which x W' are to become
    shares: Tensor  # a (N, C)
    step_size: float  # how far the shares move for a unit of difference between the two


def solve_machine(
    rows: WeightedRows,
    soft: Tensor,
    start: tuple[Tensor, Tensor] | None = None,
    tolerance: float = 1e-3,
    max_steps: int = 1000,
) -> Machine:
    """Minimise P for soft labels F (N, C), starting from weights and shares if given.

    Ends when the gap is at most `tolerance` of the gain, when no more than nothing can be gained,
    or after `max_steps` steps. They alternate (ADMM) between all weights, a linear system that the
    second moment's directions make diagonal, and all shares, row by row. The shares are a point
    of the dual after every step: hence the gap.
    """
    total_cost = float(rows.cost.sum())
    # As long as W gets: |W|^2 / 2 is at most P(0), and W a sum of rows times their costs.
    longest = min(
        (2 * total_cost) ** 0.5, float(rows.cost @ torch.linalg.vector_norm(rows.x, dim=1))
    )
    negligible_gain = (NEGLIGIBLE * longest) ** 2 / 2
    shortest_scores = 0.01 * NEGLIGIBLE * longest * float(rows.values.amax().sqrt())
    label_sum = rows.sum_by_class(soft)
    point = _start(rows, soft, label_sum, start)
    best_weights, least, bound = torch.zeros_like(label_sum), 0.0, -torch.inf
    steps = next_adaptation = 0
    while True:
        value = _objective(rows, soft, point)
        if value < least:
            least, best_weights = value, point.weights
        bound = min(max(bound, _lower_bound(rows, soft, label_sum, point.shares)), least)
        worthless = -bound <= negligible_gain
        if worthless:
            least, best_weights = 0.0, torch.zeros_like(label_sum)
        converged = worthless or least - bound <= -tolerance * least
        if converged or steps >= max_steps:
            gain, gap = 0.0 - least, least - bound
            return Machine(best_weights, point.shares, gain, gap, steps, converged, worthless)
        if steps >= next_adaptation:
            point = replace(point, step_size=_adapt_step_size(rows, soft, point, shortest_scores))
            next_adaptation = steps + CHECK_EVERY if steps < ADAPT_RARELY_AFTER else 2 * steps
        for _ in range(min(CHECK_EVERY, max_steps - steps)):
            point = _step(rows, soft, label_sum, point)
            steps += 1


def hinge_losses(scores: Tensor) -> Tensor:
    """xi (N, C): the slack of every label."""
    return 1 + _hinge_less_one(scores)


def project_to_simplex(rows: Tensor, total: Tensor | float = 1.0) -> Tensor:
    """The nearest point (N, C) to each row with no entry below 0 and a sum of `total` (N, 1)."""
    ordered = rows.sort(dim=1, descending=True).values
    places = torch.arange(1, rows.shape[1] + 1, device=rows.device)
    levels = (ordered.cumsum(dim=1) - total) / places
    used = (ordered > levels).sum(dim=1, keepdim=True).clamp(min=1)
    return (rows - levels.gather(1, used - 1)).clamp(min=0)


def find_nearest_shares(targets: Tensor, soft: Tensor, weight: float) -> Tensor:
    """The distributions a (N, C) that minimise |a - target|^2 / 2 + weight over(a + F).

    At most one class j of a row can have a + F above 1. Where one has, it gives way: by the whole
    weight, or until the sum is 1.
    """
    shares = project_to_simplex(targets)
    largest, top_class = (shares + soft).max(dim=1, keepdim=True)
    above = (largest > 1).squeeze(1).nonzero().squeeze(1)
    if len(above) == 0:
        return shares
    top_class, targets = top_class[above], targets[above]
    room = 1 - soft[above].gather(1, top_class)
    lowered = project_to_simplex(targets.scatter_add(1, top_class, torch.full_like(room, -weight)))
    others = project_to_simplex(targets.scatter(1, top_class, -torch.inf), 1 - room)
    others = others.scatter(1, top_class, room)
    shares[above] = torch.where(lowered.gather(1, top_class) < room, others, lowered)
    return shares


def compute_second_moment(x: Tensor, cost: Tensor | None = None) -> Tensor:
    """sum c x x' (D, D) in float64; without costs every row counts 1."""
    total = torch.zeros((x.shape[1], x.shape[1]), dtype=torch.float64, device=x.device)
    size = max(1, BLOCK // x.shape[1])
    for start in range(0, len(x), size):
        block = x[start : start + size].double()
        weighted = block if cost is None else block * cost[start : start + size, None]
        total.addmm_(weighted.T, block)
    return total


def _hinge_less_one(scores: Tensor) -> Tensor:
    """xi - 1: the highest other score less the label's own, but no less than -1."""
    first, top_class = scores.max(dim=1, keepdim=True)
    second = scores.scatter(1, top_class, -torch.inf).amax(dim=1, keepdim=True)
    other = first.expand_as(scores).scatter(1, top_class, second)
    return (other - scores).clamp(min=-1)


def _objective(rows: WeightedRows, soft: Tensor, point: _Iterate) -> float:
    """P(W) - P(0)."""
    losses = (soft * _hinge_less_one(point.scores)).sum(dim=1).double()
    return float(point.weights.double().square().sum() / 2 + rows.cost.double() @ losses)


def _lower_bound(rows: WeightedRows, soft: Tensor, label_sum: Tensor, shares: Tensor) -> float:
    """What P - P(0) is nowhere below; shares that are over by their rounding alone are not."""
    over = (shares + soft).amax(dim=1) - 1
    over = over.where(over > 4 * torch.finfo(over.dtype).eps, 0.0).double()
    square = (label_sum - rows.sum_by_class(shares)).double().square().sum()
    return -float(square / 2 + rows.cost.double() @ over)


def _start(
    rows: WeightedRows, soft: Tensor, label_sum: Tensor, start: tuple[Tensor, Tensor] | None
) -> _Iterate:
    """The start, or V(a) of shares that come close to F, shortened to scores of the hinge's size.

    Where no label has more than half of F, V is 0: nothing pulls W away from there.
    """
    shares = _balance_shares(soft) if start is None else start[1]
    if start is not None and bool(start[0].any()):
        weights = start[0]
    else:
        weights = label_sum - rows.sum_by_class(shares)
        typical_score = rows.norm_by_cost(rows.x @ weights.T) / float(rows.cost.sum().sqrt())
        weights = weights / max(1.0, typical_score)
    scores = rows.x @ weights.T
    return _Iterate(weights, scores, scores, shares, 1.0)


def _balance_shares(soft: Tensor) -> Tensor:
    """The shares F, but a label with more than half keeps only what brings a + F to 1."""
    high, top_class = soft.max(dim=1, keepdim=True)
    others = soft.scatter(1, top_class, 0.0)
    rest = others.sum(dim=1, keepdim=True)
    even = torch.full_like(soft, 1 / (soft.shape[1] - 1))
    raised = torch.where(rest > 0, others / rest.where(rest > 0, 1.0), even) * high
    return torch.where(high > 0.5, raised.scatter(1, top_class, 1 - high), soft)


def _adapt_step_size(
    rows: WeightedRows, soft: Tensor, point: _Iterate, shortest_scores: float
) -> float:
    """The step size that brings shares and scores to one length; as it was where it nearly does.

    Scores beyond the hinge's size do not count; nor do those that go to nothing with W.
    """
    norm_of_ones = float(rows.cost.sum().sqrt())
    centred = point.split - point.split.mean(dim=1, keepdim=True)
    shares = max(rows.norm_by_cost(point.shares - soft), 0.1 * norm_of_ones)
    balanced = shares / min(max(rows.norm_by_cost(centred), shortest_scores), norm_of_ones)
    return point.step_size if 0.7 < balanced / point.step_size < 1.4 else balanced


def _step(rows: WeightedRows, soft: Tensor, label_sum: Tensor, point: _Iterate) -> _Iterate:
    """The weights for the shares and the split scores, then both of these for the weights.

    The system is solved for the change of the weights: the directions, rounded, then only guide.
    """
    pull = point.step_size * (point.split - point.scores) - point.shares
    right = label_sum - point.weights + rows.sum_by_class(pull)
    change = (right @ rows.vectors / (1 + point.step_size * rows.values)) @ rows.vectors.T
    weights = point.weights + change
    weights = weights - weights.mean(dim=0)  # what all classes share is rounding
    scores = rows.x @ weights.T
    relaxed = OVER_RELAXATION * scores + (1 - OVER_RELAXATION) * point.split
    shares = find_nearest_shares(point.shares + point.step_size * relaxed, soft, point.step_size)
    split = relaxed - (shares - point.shares) / point.step_size
    return _Iterate(weights, scores, split, shares, point.step_size)
