"""Graphs between rows of features: who is near whom, and with which weight."""

from dataclasses import dataclass

import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

BLOCK = 2**25  # numbers (float64) held at once for distances or for weights: 256 MiB
TOLERANCE = 1e-10  # of a gradient, in units of the largest at weights of 0
RIDGE = 1e-12  # on a Gram matrix of unit rows, so that duplicates leave it positive definite


def scale_to_unit_length(x: Tensor) -> Tensor:
    """Rows (N, D) scaled to length 1, whatever they were but 0: no square over- or underflows."""
    largest = torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True)
    return normalize(x / largest.where(largest > 0, 1.0))


def find_neighbours(queries: Tensor, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k points nearest to each query, nearest first: squared distances and indices (Q, k).

    Exact. On a CPU by scikit-learn's search, on a GPU in blocks of at most `BLOCK` numbers.
    """
    if queries.device.type != "cpu":
        return _find_by_blocks(queries, points, k)
    if k == 0 or len(queries) == 0:
        return queries.new_empty((len(queries), k)), torch.empty((len(queries), k)).long()
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points.numpy())
    distance, index = search.kneighbors(queries.numpy())
    return torch.from_numpy(distance).square().to(queries.dtype), torch.from_numpy(index)


def _find_by_blocks(queries: Tensor, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same by products of matrices, in float64."""
    in_double = points.double()
    lengths = in_double.square().sum(dim=1)
    squared = queries.new_empty((len(queries), k))
    index = torch.empty((len(queries), k), dtype=torch.long, device=queries.device)
    rows = max(1, BLOCK // (len(points) + 4 * k + 2 * points.shape[1]))
    for start in range(0, len(queries), rows):
        block = slice(start, start + rows)
        squared[block], index[block] = _find_in_block(
            queries[block].double(), in_double, lengths, k
        )
    return squared, index


def _find_in_block(
    queries: Tensor, points: Tensor, squared_lengths: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """Of one block of queries, with the points' squared lengths (N,)."""
    # |q - p|^2 less |q|^2, which does not change who is nearest and is added to those alone.
    distances = torch.addmm(squared_lengths, queries, points.T, alpha=-2)
    nearest = distances.topk(k, dim=1, largest=False)
    own = queries.square().sum(dim=1, keepdim=True)
    return (nearest.values + own).clamp(min=0), nearest.indices


def find_other_neighbours(points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """As `find_neighbours` of the points themselves, each taken out of its own k: (N, k - 1)."""
    squared, index = find_neighbours(points, points, k)
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
    rows = count_rows_at_once(index.shape[1], points.shape[1])
    for start in range(0, len(queries), rows):
        block = slice(start, start + rows)
        # Nothing of a block is kept in a name: it would stay in memory beside the next one.
        weights[block] = _normalise(
            solve_nonnegative(*compute_gram(queries[block], points[index[block]]))
        )
    return weights


def count_rows_at_once(k: int, width: int, beside: int = 0) -> int:
    """How many queries with k neighbours of so many features, and numbers beside, make a block.

    A query takes its neighbours, as given and in float64, and some five matrices k x k.
    """
    return max(1, BLOCK // max(1, 2 * k * (width + 3 * k + 4) + beside))


def compute_gram(queries: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
    """In float64, the products of neighbours near (Q, k, D) with one another and the query.

    Those (Q, k, k) and these (Q, k): all that least squares and its residual need to know.
    """
    near = near.double()
    return near @ near.mT, _multiply(near, queries.double())


def solve_nonnegative(products: Tensor, right: Tensor) -> Tensor:
    """The least-squares weights (Q, k) >= 0 of problems in the form of `compute_gram`, all at once.

    The active sets of Lawson and Hanson: the weights are the best on a set of neighbours; the
    one with the steepest gradient joins, those pushed below 0 leave. Exact but for rounding,
    unless near-opposites have to cancel at a thousand times the query's length and more. Where
    duplicates leave a choice, one of the best.
    """
    if right.shape[1] == 0:
        return right
    problems = _ActiveSetProblems(products, right)
    unsolved = torch.arange(len(right), device=right.device)
    for _ in range(10 * right.shape[1]):  # twice for each is rare
        unsolved = problems.add_steepest(unsolved)
        if len(unsolved) == 0:
            break
        problems.move_to_best(unsolved)
    return problems.weights * problems.unit


class _ActiveSetProblems:
    """The problems, scaled to neighbours of length 1 and a largest product of 1 with the query."""

    def __init__(self, products: Tensor, right: Tensor) -> None:
        length = products.diagonal(dim1=1, dim2=2).sqrt()
        inverse = torch.where(length > 0, 1 / length, 0.0)
        self.identity = torch.eye(right.shape[1], dtype=right.dtype, device=right.device)
        self.products = products * inverse[:, :, None] * inverse[:, None, :] + RIDGE * self.identity
        largest = (right * inverse).abs().amax(dim=1, keepdim=True)
        self.right = right * inverse / largest.where(largest > 0, 1.0)
        self.unit = largest * inverse
        self.weights = torch.zeros_like(right)
        self.chosen = torch.zeros_like(right, dtype=torch.bool)
        self.is_best = torch.ones_like(right[:, 0], dtype=torch.bool)  # on the chosen

    def add_steepest(self, unsolved: Tensor) -> Tensor:
        """Where the weights are the best on the chosen, one more joins; the rows not yet done."""
        gradient = self.right[unsolved] - _multiply(self.products[unsolved], self.weights[unsolved])
        steepest, neighbour = gradient.masked_fill(self.chosen[unsolved], -torch.inf).max(dim=1)
        joins = self.is_best[unsolved] & (steepest > TOLERANCE)
        self.chosen[unsolved[joins], neighbour[joins]] = True
        return unsolved[joins | ~self.is_best[unsolved]]

    def move_to_best(self, unsolved: Tensor) -> None:
        """From the weights to the best on the chosen, or to where the first of them reaches 0."""
        weights, chosen = self.weights[unsolved], self.chosen[unsolved]
        both_chosen = chosen[:, :, None] & chosen[:, None, :]
        system = torch.where(both_chosen, self.products[unsolved], self.identity)
        best = torch.linalg.solve_ex(system, self.right[unsolved] * chosen).result
        below = chosen & (best <= 0)
        # Which share of the way to the best each weight can go before it is 0.
        share = torch.where(below, weights / (weights - best).clamp(min=1e-300), 1.0)
        shortest = share.amin(dim=1, keepdim=True)
        stays = chosen & ~(below & (share <= shortest))
        moved = (weights + shortest * (best - weights)).clamp(min=0)
        self.weights[unsolved] = torch.where(stays, moved, 0.0)
        self.chosen[unsolved] = stays
        self.is_best[unsolved] = ~below.any(dim=1)


def _multiply(matrices: Tensor, vectors: Tensor) -> Tensor:
    return (matrices @ vectors[:, :, None]).squeeze(2)


def _normalise(weights: Tensor) -> Tensor:
    total = weights.sum(dim=1, keepdim=True)
    return torch.where(total > 0, weights / total, 1 / max(1, weights.shape[1]))
