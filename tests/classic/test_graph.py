import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.neighbors import NearestNeighbors
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from concont.classic import graph
from concont.classic.graph import (
    Graph,
    find_neighbours,
    find_other_neighbours,
    nnls_weights,
    scale_to_unit_length,
    solve_nonnegative,
)

gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture(params=["scikit-learn", "blocks"])
def search(request, monkeypatch):
    """Both searches: the GPU's runs on a CPU as well."""
    if request.param == "blocks":
        monkeypatch.setattr(graph, "find_neighbours", graph._find_by_blocks)
    return graph.find_neighbours


def rows(count, width, dtype=torch.float64):
    return torch.randn(count, width, dtype=torch.float64).to(dtype)


def distances(queries, points):
    """Between every two rows, squared, one by one."""
    return [[float((p.double() - q.double()).square().sum()) for p in points] for q in queries]


def check_nearest(queries, points, squared, index):
    """The distances are the least there are, and the indices are theirs, none of them twice."""
    table = distances(queries, points)
    k = index.shape[1]
    for row, found, who in zip(table, squared.tolist(), index.tolist(), strict=True):
        assert found == pytest.approx(sorted(row)[:k], rel=1e-6, abs=1e-6)
        assert [row[i] for i in who] == pytest.approx(sorted(row)[:k], rel=1e-6, abs=1e-6)
        assert len(set(who)) == k


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_neighbours_are_the_nearest(k, dtype, search):
    queries, points = rows(15, 4, dtype), rows(20, 4, dtype)
    squared, index = search(queries, points, k)
    assert squared.dtype == dtype
    check_nearest(queries, points, squared, index)


def test_neighbours_among_duplicates_are_the_nearest(search):
    points = torch.randint(3, (30, 2)).double()
    squared, index = search(points[:10], points, 6)
    check_nearest(points[:10], points, squared, index)


def test_neighbours_are_those_of_scikit_learn(search):
    queries, points = rows(80, 6) + 100, rows(300, 6) + 100  # far from the origin, too
    squared, index = search(queries, points, 7)
    distance, theirs = NearestNeighbors(n_neighbors=7).fit(points.numpy()).kneighbors(queries)
    assert np.array_equal(index, theirs)
    assert squared.sqrt().numpy() == pytest.approx(distance, rel=1e-6)


def test_tiny_differences_count_in_float32(search):
    near = torch.tensor([[1000.0, 0.0], [1000.0, 0.5], [1000.0, 0.25]])
    _, index = search(torch.tensor([[1000.0, 0.0]]), near, 3)
    assert index.tolist() == [[0, 2, 1]]


@pytest.mark.parametrize("block", [1, 500, 10_000])
def test_blocks_change_nothing(monkeypatch, block):
    queries, points = rows(40, 5), rows(25, 5)
    squared, index = graph._find_by_blocks(queries, points, 4)
    weights = nnls_weights(queries, points, index)
    monkeypatch.setattr(graph, "BLOCK", block)
    found = graph._find_by_blocks(queries, points, 4)
    assert torch.equal(found[1], index)
    assert torch.allclose(found[0], squared)
    assert torch.allclose(nnls_weights(queries, points, index), weights)


class Held(TorchDispatchMode):
    """The most bytes that tensors made inside have held at a time; views of those given are not."""

    def __init__(self, *given):
        super().__init__()
        self.given = {tensor.untyped_storage()._cdata for tensor in given}
        self.alive, self.most = {}, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            storage = made.untyped_storage() if isinstance(made, torch.Tensor) else None
            if storage is not None and storage._cdata not in self.given:
                self.alive[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.alive = {key: held for key, held in self.alive.items() if not held[0].expired()}
        self.most = max(self.most, sum(size for _, size in self.alive.values()))
        return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("k", "width"), [(1, 1), (3, 2), (10, 3), (20, 3), (10, 40), (4, 300)])
def test_memory_is_bounded(k, width, dtype, monkeypatch):
    monkeypatch.setattr(graph, "BLOCK", 2**15)
    points = rows(500, width, dtype)
    with Held(points) as searching:
        found = graph._find_by_blocks(points, points, k)
    kept = sum(part.nbytes for part in found)
    wide = 8 * points.numel()
    assert searching.most <= 8 * graph.BLOCK + 2 * wide + kept
    with Held(points, found[1]) as weighing:
        nnls_weights(points, points, found[1])
    assert weighing.most <= 8 * graph.BLOCK + kept


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_any_size_get_length_1(dtype):
    x = rows(4, 3, dtype)
    limits = torch.finfo(dtype)
    sizes = torch.tensor([99 * limits.tiny, 1e-13, 1e30, limits.max / 9], dtype=dtype)
    expected = torch.nn.functional.normalize(x)
    assert torch.allclose(scale_to_unit_length(x * sizes[:, None]), expected)
    assert (scale_to_unit_length(torch.zeros(2, 3)) == 0).all()


def test_others_leave_out_oneself(search):
    points = rows(30, 3)
    squared, index = find_other_neighbours(points, 6)
    assert index.shape == squared.shape == (30, 5)
    for i, (found, who) in enumerate(zip(squared.tolist(), index.tolist(), strict=True)):
        others = sorted(float((points[j] - points[i]).square().sum()) for j in range(30) if j != i)
        assert found == pytest.approx(others[:5])
        assert i not in who


def test_others_among_duplicates_are_as_near_as_they_can_be(search):
    points = torch.cat([torch.ones(8, 2), 2 * torch.ones(2, 2), 9 * torch.ones(3, 2)]).double()
    squared, index = find_other_neighbours(points, 4)
    assert index.shape == (13, 3)
    assert all(i not in who for i, who in enumerate(index.tolist()))
    expected = [[0.0] * 3] * 8 + [[0.0, 2.0, 2.0]] * 2 + [[0.0, 0.0, 98.0]] * 3
    assert torch.allclose(squared, torch.tensor(expected).double())


def test_without_other_points_there_are_no_neighbours():
    assert find_neighbours(rows(3, 2), rows(0, 2), 0)[1].shape == (3, 0)
    assert find_other_neighbours(rows(1, 2), 1)[1].shape == (1, 0)
    empty = torch.zeros((3, 0), dtype=torch.long)
    assert nnls_weights(rows(3, 2), rows(0, 2), empty).shape == (3, 0)
    nothing = Graph(empty, torch.zeros(3, 0)) @ torch.zeros(0, 4)
    assert torch.equal(nothing, torch.zeros(3, 4))


def test_a_graph_is_a_sparse_matrix():
    index, weight = torch.randint(9, (5, 3)), torch.rand(5, 3)
    dense = torch.zeros(5, 9)
    for i, (columns, values) in enumerate(zip(index.tolist(), weight.tolist(), strict=True)):
        for column, value in zip(columns, values, strict=True):
            dense[i, column] += value
    values = torch.rand(9, 4)
    assert torch.allclose(Graph(index, weight) @ values, dense @ values)


def raw(query, near):
    """Weights before they are made to sum to 1."""
    return solve_nonnegative(*graph.compute_gram(query[None], near[None]))[0]


def check_least(query, near):
    """No further from the query than SciPy's weights come, its square being the unit."""
    weights = raw(query, near).numpy()
    best, residual = nnls(near.numpy().T, query.numpy(), maxiter=1000)
    length = query.norm().item()
    ours = np.linalg.norm(query.numpy() - weights @ near.numpy())
    assert (weights >= 0).all()
    assert ours**2 <= residual**2 + 1e-6 * length**2
    return weights, best


@pytest.mark.parametrize("trial", range(20))
def test_weights_are_those_of_scipy(trial):
    near = rows(1 + trial % 10, 12).abs()
    weights, best = check_least(rows(1, 12)[0] + near.mean(dim=0), near)
    assert weights == pytest.approx(best, abs=1e-8)


@st.composite
def degenerate(draw):
    """A few of a few rows, over and over, moved by little or nothing, of any size."""
    stream = np.random.RandomState(draw(st.integers(0, 2**31)))
    kinds, k, width = draw(st.tuples(*[st.integers(1, n) for n in (5, 10, 8)]))
    base = stream.randint(-2, 3, (kinds, width)).astype(float)
    near = base[stream.randint(0, kinds, k)]
    near += draw(st.sampled_from([0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])) * stream.randn(k, width)
    query = draw(st.sampled_from([stream.randn(width), near.mean(axis=0), -near[0], 0 * near[0]]))
    near, query = near * 10.0 ** draw(st.integers(-3, 3)), query * 10.0 ** draw(st.integers(-3, 3))
    return torch.from_numpy(query), torch.from_numpy(near)


@settings(max_examples=200)
@given(degenerate())
def test_weights_are_as_good_as_those_of_scipy(problem):
    query, near = problem
    best, _ = nnls(near.numpy().T, query.numpy(), maxiter=1000)
    # Not where near-opposites cancel at a thousand times the query's length.
    assume((best * near.norm(dim=1).numpy()).max() <= 1000 * query.norm())
    check_least(query, near)


def test_opposites_that_would_have_to_cancel_do_no_harm():
    query, near = torch.tensor([0.0, 1.0]).double(), torch.tensor([[1.0, 0.0], [-1.0, 1e-9]])
    weights = raw(query, near.double())
    assert weights.isfinite().all()
    assert (query - weights @ near.double()).norm() <= 1


def test_rows_are_solved_apart_from_one_another():
    points, queries = rows(40, 6), rows(25, 6)
    index = torch.randint(40, (25, 9))
    weights = nnls_weights(queries, points, index)
    for query, who, found in zip(queries, index, weights, strict=True):
        alone = raw(query, points[who])
        assert torch.allclose(found, alone / alone.sum())
    assert (weights == 0).any()
    assert (weights.sum(dim=1) - 1).abs().max() < 1e-12


def test_without_a_weight_that_helps_all_are_equal():
    points = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    queries = torch.tensor([[-1.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    weights = nnls_weights(queries, points, torch.tensor([[0, 1, 2]] * 3))
    third = [1 / 3] * 3
    assert weights.tolist() == [pytest.approx(third)] * 2 + [pytest.approx([1.0, 0.0, 0.0])]
    assert weights.dtype == torch.float32


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=gpu)])
def test_float32_is_as_good_as_float64(device):
    queries, points = rows(200, 16, torch.float32), rows(500, 16, torch.float32)
    squared, index = find_neighbours(queries.double(), points.double(), 10)
    weights = nnls_weights(queries.double(), points.double(), index)
    here = queries.to(device), points.to(device)
    found = find_neighbours(*here, 10)
    assert torch.equal(found[1].cpu(), index)
    assert torch.allclose(found[0].cpu().double(), squared, rtol=1e-6)
    assert torch.allclose(nnls_weights(*here, found[1]).cpu().double(), weights, atol=1e-6)
    own = find_other_neighbours(here[1], 5)[1].cpu()
    assert torch.equal(own, find_other_neighbours(points.double(), 5)[1])
