"""The machine against quadratic programmes with a slack a label, solved by SciPy."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from concont.classic.machine import Rows, hinges, nearest_shares, project, solve


def tensors(*arrays):
    return [torch.tensor(array, dtype=torch.float64) for array in arrays]


def programme(x, soft, cost):
    """W and P(W) - P(0): minimise over W and slacks, one constraint a row, label and rival."""
    (rows, dim), classes = x.shape, soft.shape[1]
    weights, price = classes * dim, (cost[:, None] * soft).ravel()
    left, right = [], []
    for i in range(rows):
        for j in range(classes):
            for k in range(classes):
                line = np.zeros(weights + rows * classes)
                line[weights + i * classes + j] = 1
                if k != j:
                    line[j * dim : (j + 1) * dim] += x[i]
                    line[k * dim : (k + 1) * dim] -= x[i]
                left.append(line)
                right.append(float(k != j))
    a, b = np.array(left), np.array(right)
    found = minimize(
        lambda v: (v[:weights] ** 2).sum() / 2 + price @ v[weights:],
        np.concatenate([np.zeros(weights), np.ones(rows * classes)]),
        jac=lambda v: np.concatenate([v[:weights], price]),
        constraints={"type": "ineq", "fun": lambda v: a @ v - b, "jac": lambda v: a},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert found.success
    return found.x[:weights].reshape(classes, dim), found.fun - cost.sum()


def random_problem(seed):
    stream = np.random.RandomState(seed)
    rows, dim, classes = stream.randint(4, 9), stream.randint(2, 4), stream.randint(2, 5)
    x = stream.randn(rows, dim)
    soft = stream.dirichlet(np.full(classes, (0.2, 1, 5)[seed % 3]), rows)
    cost = stream.rand(rows) * (0.1, 1, 10)[seed % 4 % 3] / rows
    return x, soft, cost


def by_hand(x, soft, cost, weights):
    """P(W) - P(0), in loops."""
    total = (weights**2).sum() / 2 - cost.sum()
    for row, f, c in zip(x, soft, cost, strict=True):
        scores = weights @ row
        for j, share in enumerate(f):
            rival = max(s for k, s in enumerate(scores) if k != j)
            total += c * share * max(0.0, 1 + rival - scores[j])
    return total


@pytest.mark.parametrize("seed", range(16))
def test_it_is_the_optimum_of_the_quadratic_programme(seed):
    x, soft, cost = random_problem(seed)
    expected, value = programme(x, soft, cost)
    t_x, t_soft, t_cost = tensors(x, soft, cost)
    found = solve(Rows.of(t_x, t_cost), t_soft, tolerance=1e-7, most=5000)
    assert found.converged or found.gap < 1e-5 * cost.sum()
    assert -found.gain == pytest.approx(value, abs=1e-6)
    assert -found.gain == pytest.approx(by_hand(x, soft, cost, found.weights.numpy()), abs=1e-9)
    assert np.allclose(found.weights, expected, atol=3e-3 * max(1e-3, np.abs(expected).max()))


@pytest.mark.parametrize("most", [0, 10, 40])
def test_the_gap_is_a_bound_wherever_it_stops(most):
    for seed in range(6):
        x, soft, cost = random_problem(seed)
        _, value = programme(x, soft, cost)
        t_x, t_soft, t_cost = tensors(x, soft, cost)
        found = solve(Rows.of(t_x, t_cost), t_soft, tolerance=1e-12, most=most)
        assert found.steps <= most
        assert found.gap >= 0
        assert -found.gain - found.gap <= value + 1e-8
        assert value <= -found.gain + 1e-8


def test_a_start_at_the_optimum_stays_there():
    t_x, t_soft, t_cost = tensors(*random_problem(6))
    rows = Rows.of(t_x, t_cost)
    first = solve(rows, t_soft, tolerance=1e-6, most=20_000)
    again = solve(rows, t_soft, (first.weights, first.shares), tolerance=1e-6)
    assert again.steps <= 10 <= first.steps / 3
    assert torch.allclose(again.weights, first.weights, atol=1e-4)


def test_labels_that_say_nothing_leave_it_at_zero():
    x = torch.randn(30, 4, dtype=torch.float64)
    cost = torch.full((30,), 1 / 30, dtype=torch.float64)
    for classes in (2, 5):
        even = torch.full((30, classes), 1 / classes, dtype=torch.float64)
        found = solve(Rows.of(x, cost), even)
        assert found.worthless
        assert not found.weights.any()
        assert found.gain == 0


def test_hinges_by_hand():
    scores = torch.tensor([[2.0, 0.5, 1.5]])
    assert hinges(scores).tolist() == [[0.5, 2.5, 1.5]]
    assert hinges(torch.tensor([[3.0, 0.0]])).tolist() == [[0.0, 4.0]]


@pytest.mark.parametrize("seed", range(5))
def test_projection_is_the_nearest_distribution(seed):
    rows = np.random.RandomState(seed).randn(4, 3) * 2
    found = project(torch.tensor(rows)).numpy()
    for row, own in zip(rows, found, strict=True):
        best = minimize(
            lambda v, row=row: ((v - row) ** 2).sum(),
            np.full(3, 1 / 3),
            bounds=[(0, 1)] * 3,
            constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        )
        assert np.allclose(own, best.x, atol=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_the_nearest_shares_with_a_price_on_what_is_over(seed):
    stream = np.random.RandomState(seed)
    targets, weight = stream.randn(6, 3), stream.rand() * 2
    soft = stream.dirichlet([0.3] * 3, 6)
    found = nearest_shares(torch.tensor(targets), torch.tensor(soft), weight).numpy()

    def value(a, target, f):
        return ((a - target) ** 2).sum() / 2 + weight * max(0.0, (a + f).max() - 1)

    grid = np.array(
        [
            (a, b, 1 - a - b)
            for a in np.linspace(0, 1, 101)
            for b in np.linspace(0, 1, 101)
            if a + b <= 1
        ]
    )
    for target, f, own in zip(targets, soft, found, strict=True):
        assert own.min() >= 0
        assert own.sum() == pytest.approx(1)
        assert value(own, target, f) <= min(value(a, target, f) for a in grid) + 1e-9
