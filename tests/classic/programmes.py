"""The machine and PARM as quadratic programmes and loops, and problems small enough for them."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize


def primal(w, x, soft, cost):
    """P(W), one label at a time."""
    total = sum(float(v) ** 2 for v in w.ravel()) / 2
    for i, row in enumerate(x):
        s = [float(v @ row) for v in w]
        for j in range(len(w)):
            slack = max(0.0, 1 + max(s[k] for k in range(len(w)) if k != j) - s[j])
            total += cost[i] * soft[i][j] * slack
    return total


def programme(x, soft, cost):
    """The weights that minimise P, with a slack for every row and label: W and xi at once."""
    (n, d), c = x.shape, soft.shape[1]
    wide = c * d
    limits, least = [], []
    for i in range(n):
        for j in range(c):
            for k in range(c):
                if k != j:  # xi_ij - w_k x + w_j x >= 1
                    limit = np.zeros(wide + n * c)
                    limit[wide + i * c + j] = 1
                    limit[k * d : k * d + d] = -x[i]
                    limit[j * d : j * d + d] = x[i]
                    limits.append(limit)
                    least.append(1)
    limits, least = np.array(limits), np.array(least)
    price = np.concatenate([np.zeros(wide), (cost[:, None] * soft).ravel()])
    found = minimize(
        lambda v: v[:wide] @ v[:wide] / 2 + price @ v,
        np.concatenate([np.zeros(wide), np.ones(n * c)]),
        jac=lambda v: np.concatenate([v[:wide], np.zeros(n * c)]) + price,
        bounds=[(None, None)] * wide + [(0, None)] * (n * c),
        constraints={"type": "ineq", "fun": lambda v: limits @ v - least, "jac": lambda _: limits},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    return found.x[:wide].reshape(c, d)


def nearest(target, soft=None, weight=0.0):
    """The nearest distribution, with a price on the highest sum with the soft label, by a QP."""
    c = len(target)
    soft = np.zeros(c) if soft is None else soft
    found = minimize(
        lambda v: ((v[:c] - target) ** 2).sum() / 2 + weight * v[c],
        np.append(np.full(c, 1 / c), 1.0),
        jac=lambda v: np.append(v[:c] - target, weight),
        bounds=[(0, None)] * (c + 1),
        constraints=[
            {"type": "eq", "fun": lambda v: v[:c].sum() - 1},
            {"type": "ineq", "fun": lambda v: v[c] - (v[:c] + soft - 1)},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x[:c]


@dataclass
class Oracle:
    """The three steps of PARM in Python numbers."""

    lam: float = 1.0
    mu: float = 1.0
    k: int = 8
    alpha: float = 0.95
    gamma: float = 0.01
    rounds: int = 5

    def fit(self, x, sets):
        """The weights (C, D) and the soft labels (N, C)."""
        p = [i for i, row in enumerate(sets) if not all(row)]
        u = [i for i, row in enumerate(sets) if all(row)]
        unit = [row / max(math.sqrt(sum(row**2)), 1e-12) for row in x]
        f_p = self.spread([unit[i] for i in p], [sets[i] for i in p])
        near = [self.seen(unit[i], [unit[j] for j in p], f_p) for i in u]
        f_u = near
        cost = np.array([self.lam / len(p)] * len(p) + [self.mu / max(1, len(u))] * len(u))
        for _ in range(self.rounds):
            w = programme(x[p + u], np.array(f_p + f_u), cost)
            f_u = [self.corrected(x[i], w, seen, len(u)) for i, seen in zip(u, near, strict=True)]
        found = dict(zip(p + u, f_p + f_u, strict=True))
        return w, np.array([found[i] for i in range(len(x))])

    def spread(self, unit, y):
        f = [[float(v) / sum(row) for v in row] for row in y]
        for _ in range(200):
            before = math.sqrt(sum(v**2 for row in f for v in row))
            new = []
            for i, row in enumerate(unit):
                seen = self.seen(row, unit, f, i)
                mixed = [
                    self.alpha * s + (1 - self.alpha) * v for s, v in zip(seen, f[i], strict=True)
                ]
                inside = [v * m for v, m in zip(mixed, y[i], strict=True)]
                new.append([v / sum(inside) for v in inside] if sum(inside) else f[i])
            f = new
            if abs(math.sqrt(sum(v**2 for row in f for v in row)) - before) < 0.01:
                break
        return f

    def seen(self, query, points, f, left_out=None):
        """The weighted mean label of the nearest points."""
        others = [i for i in range(len(points)) if i != left_out]
        others.sort(key=lambda i: sum((query - points[i]) ** 2))
        weights = {i: math.exp(-sum((query - points[i]) ** 2) / 2) for i in others[: self.k]}
        total = sum(weights.values())
        return [
            sum(w * f[i][c] for i, w in weights.items()) / (total or 1) for c in range(len(f[0]))
        ]

    def corrected(self, row, w, seen, count):
        s = [float(v @ row) for v in w]
        slack = [
            max(0.0, 1 + max(s[k] for k in range(len(s)) if k != j) - s[j]) for j in range(len(s))
        ]
        tie = self.mu / (2 * self.gamma * count)
        return list(nearest(np.array([v - tie * xi for v, xi in zip(seen, slack, strict=True)])))


def problem(seed, partial=8, unlabelled=6, classes=3, width=3, noise=0.6, extra=0.3, tests=10):
    """Rows of a few classes, of various lengths, their sets in mixed order, and test rows."""
    stream = np.random.RandomState(seed)
    count = partial + unlabelled + tests
    truth = np.arange(count) % classes
    x = 2 * stream.randn(classes, width)[truth] + noise * stream.randn(count, width)
    x *= stream.uniform(0.5, 1.5, (count, 1))
    sets = stream.rand(count, classes) < extra
    sets[np.arange(count), truth] = True
    sets[np.arange(count), (truth + 1 + stream.randint(0, classes - 1, count)) % classes] = False
    sets[stream.permutation(count - tests)[:unlabelled]] = True
    cut = count - tests
    return x[:cut], sets[:cut], x[cut:], truth
