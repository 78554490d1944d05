"""The machine against quadratic programmes, loops, and scikit-learn's own for exact labels."""

import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC

from classic.programmes import nearest, primal, programme
from concont.classic import linear_machine
from concont.classic.linear_machine import (
    WeightedRows,
    compute_second_moment,
    find_nearest_shares,
    hinge_losses,
    project_to_simplex,
    solve_machine,
)

EXACT = {"tolerance": 1e-9, "max_steps": 30_000}


def problem(seed, n=7, d=3, c=3, sharp=2.0, size=1.0, weight=1.0):
    stream = np.random.RandomState(seed)
    x = size * stream.randn(n, d)
    soft = stream.rand(n, c) ** sharp
    soft[stream.rand(n, c) < 0.3] = 0
    soft[np.arange(n), stream.randint(0, c, n)] += 0.3
    soft /= soft.sum(axis=1, keepdims=True)
    cost = weight * stream.uniform(0.5, 1.5, n) / n
    return x, soft, cost


def learnable(seed, n=200, d=8, c=4, clear=0.6, weight=1.0):
    """Labels that the rows do say something of, in part."""
    stream = np.random.RandomState(seed)
    label = stream.randint(0, c, n)
    x = stream.randn(c, d)[label] + stream.randn(n, d)
    soft = clear * np.eye(c)[label] + (1 - clear) * stream.dirichlet(np.ones(c), n)
    return x, soft, np.full(n, weight / n)


def solved(x, soft, cost, dtype=torch.float64, **options):
    x, soft, cost = (torch.from_numpy(a).to(dtype) for a in (x, soft, cost))
    return solve_machine(WeightedRows.from_costs(x, cost), soft, **{**EXACT, **options})


KINDS = {
    "below the margin": {"weight": 0.05},
    "about the margin": {"weight": 3.0, "sharp": 4.0},
    "beyond the margin": {"weight": 30.0, "sharp": 8.0},
    "two classes": {"c": 2, "weight": 3.0},
    "four classes": {"c": 4, "n": 6, "weight": 4.0, "sharp": 6.0},
    "more features than rows": {"n": 3, "d": 5, "weight": 5.0, "sharp": 4.0},
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_it_solves_the_quadratic_programme(kind, seed):
    x, soft, cost = problem(seed, **KINDS[kind])
    best = programme(x, soft, cost)
    assert np.abs(best).max() > 1e-3
    found = solved(x, soft, cost)
    weights = found.weights.numpy()
    assert found.converged
    assert weights == pytest.approx(best, abs=1e-4 * max(0.1, np.abs(best).max()))
    reached, least = primal(weights, x, soft, cost), primal(best, x, soft, cost)
    assert reached == pytest.approx(least, rel=1e-7)
    assert found.gain == pytest.approx(cost.sum() - reached, abs=1e-9 * cost.sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_is_a_bound_wherever_it_stops(kind, seed):
    x, soft, cost = problem(seed, **KINDS[kind])
    least = primal(programme(x, soft, cost), x, soft, cost)
    for max_steps in (1, 7, 20, 60):
        found = solved(x, soft, cost, max_steps=max_steps)
        above = primal(found.weights.numpy(), x, soft, cost) - least
        assert above <= found.gap + 1e-8
        assert found.gain >= 0
        assert found.steps <= max_steps
        assert found.converged or found.steps == max_steps


def test_the_gap_is_not_far_from_the_truth():
    x, soft, cost = problem(1, weight=3.0, sharp=4.0)
    first, last = (solved(x, soft, cost, max_steps=max_steps) for max_steps in (10, 500))
    assert first.gap > 1e3 * last.gap
    assert 0 <= last.gap < 1e-8


def test_exact_labels_are_the_machine_of_crammer_and_singer():
    stream = np.random.RandomState(0)
    label = stream.randint(0, 4, 150)
    x = stream.randn(4, 6)[label] + stream.randn(150, 6)
    known = LinearSVC(
        C=0.02, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=10**6
    ).fit(x, label)
    found = solved(x, np.eye(4)[label], np.full(150, 0.02))
    assert found.weights.numpy() == pytest.approx(known.coef_, abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weight", [1e-6, 1e-3])
def test_faint_labels_and_small_costs_are_resolved(weight, dtype):
    """P then falls by a millionth of its value and less: its constant would swallow that."""
    x, soft, cost = learnable(2, clear=0.2)
    whole = solved(x, soft, 1e-2 * cost, tolerance=1e-7).weights.numpy()
    found = solved(x, soft, weight * cost, dtype, tolerance=1e-3, max_steps=1000)
    assert found.converged
    assert found.gain < 1e-3 * weight
    whole = whole * weight / 1e-2
    assert found.weights.numpy() == pytest.approx(whole, abs=0.02 * np.abs(whole).max())


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_features_of_any_size_are_solved(size):
    x, soft, cost = learnable(3)
    x = size * (x + 2)  # far from the origin, too
    found = solved(x, soft, cost, tolerance=1e-3, max_steps=3000)
    assert found.converged
    assert not found.worthless
    assert 0 < found.gap <= 1e-3 * found.gain


def test_labels_without_a_majority_say_nothing():
    x, soft, cost = problem(0, n=40, c=4)
    soft = 0.5 * soft + 0.5 * np.roll(soft, 1, axis=1)
    soft = np.minimum(soft, 0.5)
    soft += (1 - soft.sum(axis=1, keepdims=True)) / 4 * (soft < 0.4)
    soft = np.where(soft.max(axis=1, keepdims=True) > 0.5, 0.25, soft)
    soft /= soft.sum(axis=1, keepdims=True)
    assert soft.max() <= 0.5
    found = solved(x, soft, cost)
    assert found.worthless
    assert found.converged
    assert found.steps == 0
    assert (found.weights == 0).all()
    assert found.gap == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e3])
def test_a_few_clear_labels_are_outweighed(weight, dtype):
    x, soft, cost = problem(1, n=14, d=2)
    soft[:] = 1 / 3
    soft[:2] = np.eye(3)[:2]
    assert np.abs(programme(x, soft, cost)).max() < 1e-6
    found = solved(x, soft, weight * cost, dtype, max_steps=1000)
    assert found.worthless
    assert found.converged
    assert found.steps > 0
    assert np.abs(found.weights.numpy()).max() <= 1e-3 * weight
    cost[:2] = 1
    heavy = solved(x, soft, cost)
    assert not heavy.worthless
    assert heavy.weights.numpy() == pytest.approx(programme(x, soft, cost), abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_faint_machine_is_not_nothing(dtype):
    """Two classes, one of which has a hair more than half: W is 3e-5 of the longest there is."""
    x = np.array([[1.0], [-1.0]] * 5)
    soft = 0.5 + 1.06e-5 * np.hstack([x, -x])
    found = solved(x, soft, np.full(10, 0.1), dtype, tolerance=1e-2)
    assert found.converged
    assert not found.worthless
    assert found.weights.norm().item() == pytest.approx(3e-5, rel=0.01)


def test_it_goes_on_from_where_it_was():
    x, soft, cost = learnable(4, n=60)
    first = solved(x, soft, cost)
    again = solved(x, soft, cost, start=(first.weights, first.shares), tolerance=1e-8)
    assert again.steps == 0
    assert torch.equal(again.weights, first.weights)
    flat = np.full_like(soft, 1 / 4)
    nothing = solved(x, flat, cost)
    assert nothing.worthless
    back = solved(x, soft, cost, start=(nothing.weights, nothing.shares))
    assert back.weights.numpy() == pytest.approx(first.weights.numpy(), abs=1e-4)


def test_rows_without_cost_take_no_part():
    x, soft, cost = learnable(5, n=30)
    few = solved(x[:20], soft[:20], cost[:20])
    cost[20:] = 0
    assert solved(x, soft, cost).weights.numpy() == pytest.approx(few.weights.numpy(), abs=1e-4)


def test_hinges_are_what_the_loops_compute():
    scores = torch.randn(50, 4, dtype=torch.float64)
    scores[:5] *= 0.01
    scores[5, 1] = scores[5, 2] = 9.0  # two first
    for row, got in zip(scores.tolist(), hinge_losses(scores).tolist(), strict=True):
        for j in range(4):
            other = max(row[k] for k in range(4) if k != j)
            assert got[j] == pytest.approx(max(0.0, 1 + other - row[j]), abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_a_projection_is_the_nearest_distribution(seed):
    stream = np.random.RandomState(seed)
    rows = stream.randn(4, stream.randint(2, 7)) * stream.choice([0.1, 1, 10])
    found = project_to_simplex(torch.from_numpy(rows)).numpy()
    assert found.sum(axis=1) == pytest.approx(1)
    for row, got in zip(rows, found, strict=True):
        assert got == pytest.approx(nearest(row), abs=1e-5)


def test_a_projection_has_the_total_that_is_asked_for():
    rows = torch.randn(20, 5, dtype=torch.float64)
    total = torch.rand(20, 1, dtype=torch.float64)
    found = project_to_simplex(rows, total)
    assert torch.allclose(found.sum(dim=1, keepdim=True), total)
    assert torch.allclose(found / total, project_to_simplex(rows / total))
    assert (project_to_simplex(rows, torch.zeros_like(total)) == 0).all()


@pytest.mark.parametrize("seed", range(30))
def test_shares_give_way_where_they_are_over(seed):
    stream = np.random.RandomState(seed)
    c = stream.randint(2, 6)
    soft = stream.dirichlet(np.full(c, 0.4), 6)
    targets = soft + stream.randn(6, c) * stream.choice([0.2, 1.0])
    weight = stream.choice([0.05, 0.5, 5.0])
    found = find_nearest_shares(torch.from_numpy(targets), torch.from_numpy(soft), weight).numpy()
    for row, label, got in zip(targets, soft, found, strict=True):
        assert got == pytest.approx(nearest(row, label, weight), abs=1e-5)


def test_the_second_moment_is_summed_in_blocks(monkeypatch):
    x, cost = torch.randn(37, 5), torch.rand(37)
    direct = torch.einsum("i,ij,ik->jk", cost.double(), x.double(), x.double())
    assert torch.allclose(compute_second_moment(x, cost), direct)
    monkeypatch.setattr(linear_machine, "BLOCK", 20)
    assert torch.allclose(compute_second_moment(x, cost), direct)
    assert torch.allclose(compute_second_moment(x), x.double().T @ x.double())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_finds_the_same():
    x, soft, cost = learnable(6, n=500, d=20, c=7, weight=3.0)
    here = solved(x, soft, cost, tolerance=1e-8)
    tensors = [torch.from_numpy(a).float().cuda() for a in (x, cost, soft)]
    there = solve_machine(WeightedRows.from_costs(*tensors[:2]), tensors[2], tolerance=1e-5)
    assert there.converged
    assert there.gain == pytest.approx(here.gain, rel=1e-4)
    near = here.weights.numpy()
    assert there.weights.cpu().numpy() == pytest.approx(near, abs=5e-3 * np.abs(near).max())
