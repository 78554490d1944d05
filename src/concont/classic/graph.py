"""Graphs between rows of features: who is near whom, and with which weight."""

import torch
from torch import Tensor

BLOCK = 2**28  # distances (float32) held at once on a GPU: 1 GiB


def neighbours(queries: Tensor, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k points nearest to each query, nearest first: squared distances and indices (Q, k).

    Exact. On a CPU through scikit-learn, on a GPU in blocks of at most `BLOCK` distances.
    """
    if queries.device.type == "cpu":
        return _by_library(queries, points, k)
    return _by_blocks(queries, points, k)


def other_neighbours(points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """As `neighbours` of the points among themselves, each taken out of its own k: (N, k - 1)."""
    squared, index = neighbours(points, points, k)
    own = index == torch.arange(len(points), device=index.device)[:, None]
    own[:, -1] |= ~own.any(dim=1)  # a crowd of duplicates pushed it out: the farthest goes
    kept = ~own
    shape = (len(points), k - 1)
    return squared[kept].view(shape), index[kept].view(shape)


def _by_library(queries: Tensor, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points.numpy())
    distance, index = search.kneighbors(queries.numpy())
    return torch.from_numpy(distance).square().to(queries.dtype), torch.from_numpy(index)


def _by_blocks(queries: Tensor, points: Tensor, k: int) -> tuple[Tensor, Tensor]:
    lengths = points.square().sum(dim=1)
    rows = max(1, BLOCK // len(points))
    found = []
    for block in queries.split(rows):
        apart = torch.addmm(lengths, block, points.T, alpha=-2)  # less the query's own length
        nearest = apart.topk(k, dim=1, largest=False)
        squared = (nearest.values + block.square().sum(dim=1, keepdim=True)).clamp(min=0)
        found.append((squared, nearest.indices))
    squared, index = (torch.cat(part) for part in zip(*found, strict=True))
    return squared, index
