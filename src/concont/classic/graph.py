"""Graphs between rows of features: who is near whom, and with which weight."""

from dataclasses import dataclass

import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

BLOCK = 2**25  # numbers (float64) held at once for distances or for weights: 256 MiB
TOLERANCE = 1e-10  # of a gradient, in units of the largest at weights of 0
RIDGE = 1e-12  # on a Gram matrix of unit rows, so that duplicates leave it positive definite


def unit_rows(x: Tensor) -> Tensor:
    """Rows (N, D) scaled to length 1, whatever they were but 0: no square over- or underflows."""
    largest = torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True)
    return normalize(x / largest.where(largest > 0, 1.0))


def neighbours(queries: Tensor, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k points nearest to each query, nearest first: squared distances and indices (Q, k).

    Exact. On a CPU by scikit-learn's search, on a GPU in blocks of at most `BLOCK` numbers.
    """
    if queries.device.type != "cpu":
        return _by_blocks(queries, points, k)
    if k == 0 or len(queries) == 0:
        return queries.new_empty((len(queries), k)), torch.empty((len(queries), k)).long()
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points.numpy())
    distance, index = search.kneighbors(queries.numpy())
    return torch.from_numpy(distance).square().to(queries.dtype), torch.from_numpy(index)


def _by_blocks(queries: Tensor, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same by products of matrices, in float64."""
    wide = points.double()
    lengths = wide.square().sum(dim=1)
    squared = queries.new_empty((len(queries), k))
    index = torch.empty((len(queries), k), dtype=torch.long, device=queries.device)
    rows = max(1, BLOCK // (len(points) + 4 * k + 2 * points.shape[1]))
    for start in range(0, len(queries), rows):
        here = slice(start, start + rows)
        squared[here], index[here] = _nearest(queries[here].double(), wide, lengths, k)
    return squared, index


def _nearest(queries: Tensor, points: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Of one block, with the points' squared lengths (N,)."""
    apart = torch.addmm(lengths, queries, points.T, alpha=-2)  # less the query's own length
    nearest = apart.topk(k, dim=1, largest=False)
    own = queries.square().sum(dim=1, keepdim=True)
    return (nearest.values + own).clamp(min=0), nearest.indices


def other_neighbours(points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """As `neighbours` of the points among themselves, each taken out of its own k: (N, k - 1)."""
    squared, index = neighbours(points, points, k)
    own = index == torch.arange(len(points), device=index.device)[:, None]
    own[:, -1] |= ~own.any(dim=1)  # a crowd of duplicates pushed it out: the farthest goes
    kept = ~own
    shape = (len(points), k - 1)
    return squared[kept].view(shape), index[kept].view(shape)


@dataclass(frozen=True)
class Graph:
    """A sparse matrix (Q, N) with the same number of entries in every row."""

    index: Tensor  # (Q, k) columns
    weight: Tensor  # (Q, k)

    def __matmul__(self, values: Tensor) -> Tensor:
        """Each row's weighted sum (Q, C) of the rows of values (N, C)."""
        if self.index.numel() == 0:
            return values.new_zeros((len(self.index), values.shape[1]))
        return embedding_bag(self.index, values, per_sample_weights=self.weight, mode="sum")


def nnls_weights(queries: Tensor, points: Tensor, index: Tensor) -> Tensor:
    """Weights (Q, k) of each query's neighbours: non-negative least squares, rows of sum 1.

    queries (Q, D), points (N, D), index (Q, k) rows of points. Where no weight helps, for every
    neighbour is at a right angle or farther, all weights are equal. Computed in float64, in
    blocks of at most `BLOCK` numbers.
    """
    weights = queries.new_empty(index.shape)
    rows = rows_at_once(index.shape[1], points.shape[1])
    for start in range(0, len(queries), rows):
        here = slice(start, start + rows)
        weights[here] = _shares(nonnegative(*gram(queries[here], points[index[here]])))
    return weights


def rows_at_once(k: int, width: int, beside: int = 0) -> int:
    """How many queries with k neighbours of so many features, and numbers beside, make a block.

    A query takes its neighbours, as given and in float64, and some five matrices k x k.
    """
    return max(1, BLOCK // max(1, 2 * k * (width + 3 * k + 4) + beside))


def gram(queries: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
    """In float64, the products of neighbours near (Q, k, D) with one another and the query.

    Those (Q, k, k) and these (Q, k): all that least squares and its residual need to know.
    """
    near = near.double()
    return near @ near.mT, _times(near, queries.double())


def nonnegative(products: Tensor, right: Tensor) -> Tensor:
    """The least-squares weights (Q, k) >= 0 of problems in the form of `gram`, all at once.

    The active sets of Lawson and Hanson: the weights are the best on a set of neighbours; the
    one with the steepest gradient joins, those pushed below 0 leave. Exact but for rounding,
    unless near-opposites have to cancel at a thousand times the query's length and more. Where
    duplicates leave a choice, one of the best.
    """
    if right.shape[1] == 0:
        return right
    sets = _ActiveSets(products, right)
    todo = torch.arange(len(right), device=right.device)
    for _ in range(10 * right.shape[1]):  # twice for each is rare
        todo = sets.join(todo)
        if len(todo) == 0:
            break
        sets.step(todo)
    return sets.weights * sets.unit


class _ActiveSets:
    """The problems, scaled to neighbours of length 1 and a largest product of 1 with the query."""

    def __init__(self, products: Tensor, right: Tensor) -> None:
        length = products.diagonal(dim1=1, dim2=2).sqrt()
        inverse = torch.where(length > 0, 1 / length, 0.0)
        self.one = torch.eye(right.shape[1], dtype=right.dtype, device=right.device)
        self.products = products * inverse[:, :, None] * inverse[:, None, :] + RIDGE * self.one
        largest = (right * inverse).abs().amax(dim=1, keepdim=True)
        self.right = right * inverse / largest.where(largest > 0, 1.0)
        self.unit = largest * inverse
        self.weights = torch.zeros_like(right)
        self.chosen = torch.zeros_like(right, dtype=torch.bool)
        self.best = torch.ones_like(right[:, 0], dtype=torch.bool)  # are the weights, on the chosen

    def join(self, todo: Tensor) -> Tensor:
        """Where the weights are the best on the chosen, one more joins; the rows not yet done."""
        gradient = self.right[todo] - _times(self.products[todo], self.weights[todo])
        steepest, who = gradient.masked_fill(self.chosen[todo], -torch.inf).max(dim=1)
        joins = self.best[todo] & (steepest > TOLERANCE)
        self.chosen[todo[joins], who[joins]] = True
        return todo[joins | ~self.best[todo]]

    def step(self, todo: Tensor) -> None:
        """From the weights to the best on the chosen, or to where the first of them reaches 0."""
        now, inside = self.weights[todo], self.chosen[todo]
        within = inside[:, :, None] & inside[:, None, :]
        system = torch.where(within, self.products[todo], self.one)
        aim = torch.linalg.solve_ex(system, self.right[todo] * inside).result
        below = inside & (aim <= 0)
        way = torch.where(below, now / (now - aim).clamp(min=1e-300), 1.0)
        shortest = way.amin(dim=1, keepdim=True)
        stays = inside & ~(below & (way <= shortest))
        there = (now + shortest * (aim - now)).clamp(min=0)
        self.weights[todo] = torch.where(stays, there, 0.0)
        self.chosen[todo] = stays
        self.best[todo] = ~below.any(dim=1)


def _times(matrices: Tensor, vectors: Tensor) -> Tensor:
    return (matrices @ vectors[:, :, None]).squeeze(2)


def _shares(weights: Tensor) -> Tensor:
    total = weights.sum(dim=1, keepdim=True)
    return torch.where(total > 0, weights / total, 1 / max(1, weights.shape[1]))
