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

CHECK = 10  # steps between two looks at the gap
SETTLED = 100  # steps after which the pace is seen to ever more rarely
RELAX = 1.8  # over-relaxation
NOTHING = 1e-5  # a W shorter by this factor than labels could make it is 0
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
class Rows:
    """Rows with costs, made ready for machines with any soft labels."""

    x: Tensor  # (N, D)
    cost: Tensor  # c (N,)
    values: Tensor  # (D,) of the costs' second moment, sum c x x', in its own directions
    vectors: Tensor  # (D, D)

    @classmethod
    def of(cls, x: Tensor, cost: Tensor, moment: Tensor | None = None) -> Self:
        """The second moment (D, D) is computed unless given."""
        values, vectors = torch.linalg.eigh(second_moment(x, cost) if moment is None else moment)
        return cls(x, cost, values.clamp(min=0).to(x.dtype), vectors.to(x.dtype))

    def pull(self, shares: Tensor) -> Tensor:
        """sum c a x' (C, D) for a (N, C)."""
        return (shares * self.cost[:, None]).T @ self.x

    def length(self, scores: Tensor) -> float:
        """Of scores (N, C), by cost."""
        return float((self.cost @ scores.square()).double().sum().sqrt())


@dataclass(frozen=True)
class _Point:
    """Where the steps have come to."""

    weights: Tensor  # W (C, D)
    scores: Tensor  # x W' (N, C)
    split: Tensor  # (N, C) that are to become the scores
    shares: Tensor  # a (N, C)
    pace: float  # how far the shares move for a unit of difference between the two


def solve(
    rows: Rows,
    soft: Tensor,
    start: tuple[Tensor, Tensor] | None = None,
    tolerance: float = 1e-3,
    most: int = 1000,
) -> Machine:
    """Minimise P for soft labels F (N, C), starting from weights and shares if given.

    Ends when the gap is at most `tolerance` of the gain, when no more than nothing can be gained,
    or after `most` steps. They alternate (ADMM) between all weights, a linear system that the
    second moment's directions make diagonal, and all shares, row by row. The shares are a point
    of the dual after every step: hence the gap.
    """
    whole = float(rows.cost.sum())
    reach = min((2 * whole) ** 0.5, float(rows.cost @ torch.linalg.vector_norm(rows.x, dim=1)))
    floor = (NOTHING * reach) ** 2 / 2
    shortest = 0.01 * NOTHING * reach * float(rows.values.amax().sqrt())
    aim = rows.pull(soft)
    point = _first(rows, soft, aim, start)
    best, least, bound = torch.zeros_like(aim), 0.0, -torch.inf
    steps = next_fit = 0
    while True:
        value, lower = _objective(rows, soft, point), _bound(rows, soft, aim, point.shares)
        if value < least:
            least, best = value, point.weights
        bound = min(max(bound, lower), least)
        worthless = -bound <= floor
        if worthless:
            least, best = 0.0, torch.zeros_like(aim)
        converged = worthless or least - bound <= -tolerance * least
        if converged or steps >= most:
            gap = least - bound
            return Machine(best, point.shares, 0.0 - least, gap, steps, converged, worthless)
        if steps >= next_fit:
            point = replace(point, pace=_pace(rows, soft, point, shortest))
            next_fit = steps + CHECK if steps < SETTLED else 2 * steps
        for _ in range(min(CHECK, most - steps)):
            point = _step(rows, soft, aim, point)
            steps += 1


def hinges(scores: Tensor) -> Tensor:
    """xi (N, C): the slack of every label."""
    return 1 + _slack(scores)


def project(rows: Tensor, total: Tensor | float = 1.0) -> Tensor:
    """The nearest point (N, C) to each row with no entry below 0 and a sum of `total` (N, 1)."""
    ordered = rows.sort(dim=1, descending=True).values
    places = torch.arange(1, rows.shape[1] + 1, device=rows.device)
    levels = (ordered.cumsum(dim=1) - total) / places
    used = (ordered > levels).sum(dim=1, keepdim=True).clamp(min=1)
    return (rows - levels.gather(1, used - 1)).clamp(min=0)


def nearest_shares(targets: Tensor, soft: Tensor, weight: float) -> Tensor:
    """The distributions a (N, C) that minimise |a - target|^2 / 2 + weight over(a + F).

    At most one class j of a row can have a + F above 1. Where one has, it gives way: by the whole
    weight, or until the sum is 1.
    """
    shares = project(targets)
    most, who = (shares + soft).max(dim=1, keepdim=True)
    above = (most > 1).squeeze(1).nonzero().squeeze(1)
    if len(above) == 0:
        return shares
    who, targets = who[above], targets[above]
    room = 1 - soft[above].gather(1, who)
    lowered = project(targets.scatter_add(1, who, torch.full_like(room, -weight)))
    others = project(targets.scatter(1, who, -torch.inf), 1 - room).scatter(1, who, room)
    shares[above] = torch.where(lowered.gather(1, who) < room, others, lowered)
    return shares


def second_moment(x: Tensor, cost: Tensor | None = None) -> Tensor:
    """sum c x x' (D, D) in float64; without costs every row counts 1."""
    total = torch.zeros((x.shape[1], x.shape[1]), dtype=torch.float64, device=x.device)
    size = max(1, BLOCK // x.shape[1])
    for start in range(0, len(x), size):
        block = x[start : start + size].double()
        weighted = block if cost is None else block * cost[start : start + size, None]
        total.addmm_(weighted.T, block)
    return total


def _slack(scores: Tensor) -> Tensor:
    """xi - 1: the highest other score less the label's own, but no less than -1."""
    first, who = scores.max(dim=1, keepdim=True)
    second = scores.scatter(1, who, -torch.inf).amax(dim=1, keepdim=True)
    other = first.expand_as(scores).scatter(1, who, second)
    return (other - scores).clamp(min=-1)


def _objective(rows: Rows, soft: Tensor, point: _Point) -> float:
    """P(W) - P(0)."""
    losses = (soft * _slack(point.scores)).sum(dim=1).double()
    return float(point.weights.double().square().sum() / 2 + rows.cost.double() @ losses)


def _bound(rows: Rows, soft: Tensor, aim: Tensor, shares: Tensor) -> float:
    """What P - P(0) is nowhere below; shares that are over by their rounding alone are not."""
    over = (shares + soft).amax(dim=1) - 1
    over = over.where(over > 4 * torch.finfo(over.dtype).eps, 0.0).double()
    square = (aim - rows.pull(shares)).double().square().sum()
    return -float(square / 2 + rows.cost.double() @ over)


def _first(rows: Rows, soft: Tensor, aim: Tensor, start: tuple[Tensor, Tensor] | None) -> _Point:
    """The start, or V(a) of shares that come close to F, shortened to scores of the hinge's size.

    Where no label has more than half of F, V is 0: nothing pulls W away from there.
    """
    shares = _balanced(soft) if start is None else start[1]
    if start is not None and bool(start[0].any()):
        weights = start[0]
    else:
        weights = aim - rows.pull(shares)
        long = rows.length(rows.x @ weights.T) / float(rows.cost.sum().sqrt())
        weights = weights / max(1.0, long)
    scores = rows.x @ weights.T
    return _Point(weights, scores, scores, shares, 1.0)


def _balanced(soft: Tensor) -> Tensor:
    """The shares F, but a label with more than half keeps only what brings a + F to 1."""
    high, who = soft.max(dim=1, keepdim=True)
    others = soft.scatter(1, who, 0.0)
    rest = others.sum(dim=1, keepdim=True)
    even = torch.full_like(soft, 1 / (soft.shape[1] - 1))
    raised = torch.where(rest > 0, others / rest.where(rest > 0, 1.0), even) * high
    return torch.where(high > 0.5, raised.scatter(1, who, 1 - high), soft)


def _pace(rows: Rows, soft: Tensor, point: _Point, shortest: float) -> float:
    """Shares and scores are to be of one length.

    Scores beyond the hinge's size do not count; nor do those that go to nothing with W.
    """
    whole = float(rows.cost.sum().sqrt())
    centred = point.split - point.split.mean(dim=1, keepdim=True)
    shares = max(rows.length(point.shares - soft), 0.1 * whole)
    fitting = shares / min(max(rows.length(centred), shortest), whole)
    return point.pace if 0.7 < fitting / point.pace < 1.4 else fitting


def _step(rows: Rows, soft: Tensor, aim: Tensor, at: _Point) -> _Point:
    """The weights for the shares and the split scores, then both of these for the weights.

    The system is solved for the change of the weights: the directions, rounded, then only guide.
    """
    wanted = aim - at.weights + rows.pull(at.pace * (at.split - at.scores) - at.shares)
    change = (wanted @ rows.vectors / (1 + at.pace * rows.values)) @ rows.vectors.T
    weights = at.weights + change
    weights = weights - weights.mean(dim=0)  # what all classes share is rounding
    scores = rows.x @ weights.T
    relaxed = RELAX * scores + (1 - RELAX) * at.split
    shares = nearest_shares(at.shares + at.pace * relaxed, soft, at.pace)
    split = relaxed - (shares - at.shares) / at.pace
    return _Point(weights, scores, split, shares, at.pace)
