"""SSPL against itself written as loops, one point at a time."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from sklearn.utils.estimator_checks import parametrize_with_checks

from classic.test_graph import Held
from concont.classic import graph
from concont.classic.sspl import SSPLClassifier


@dataclass
class Oracle:
    """The four steps of SSPL in Python numbers."""

    k: int = 10
    alpha: float = 0.7
    beta: float = 0.25
    r: float = 0.7
    rounds: int = 100
    tolerance: float = 1e-4

    def fit(self, x, sets):
        self.classes = len(sets[0])
        x = [unit(row) for row in x]
        self.p = [i for i, row in enumerate(sets) if not all(row)]
        self.u = [i for i, row in enumerate(sets) if all(row)]
        self.x_p, self.x_u = [x[i] for i in self.p], [x[i] for i in self.u]
        y = [sets[i] for i in self.p]
        j, h = self.graph(self.x_p, self.x_p, True), self.graph(self.x_u, self.x_p)
        l, k = self.graph(self.x_p, self.x_u), self.graph(self.x_u, self.x_u, True)  # noqa: E741
        start = [[float(c) / sum(row) for c in row] for row in y]
        f_p, f_u = start, [[1 / self.classes] * self.classes for _ in self.u]
        for t in range(1, self.rounds + 1):
            self.made, before = t, f_p + f_u
            f_p = mixed(self.alpha, product(j, f_p), start)
            f_u = mixed(self.alpha, product(h, f_p), f_u)
            f_p = masked(f_p, y)
            beta = self.beta * t / self.rounds if t <= self.rounds / 2 else self.beta
            f_u = mixed(beta, product(k, f_u), f_u)
            f_p = masked(mixed(beta, product(l, f_u), f_p), y)
            if np.linalg.norm(np.array(f_p + f_u) - np.array(before)) < self.tolerance:
                break
        factors = []
        for c in range(self.classes):
            now = sum(row[c] for row in f_p)
            factors.append(sum(row[c] for row in start) / now if now else 0.0)
        self.f_p = [[v * f for v, f in zip(row, factors, strict=True)] for row in f_p]
        self.f_u = [[v * f for v, f in zip(row, factors, strict=True)] for row in f_u]
        found = dict(zip(self.p + self.u, self.f_p + self.f_u, strict=True))
        return [[v / sum(found[i]) for v in found[i]] for i in range(len(x))]

    def near(self, query, points, left_out=None):
        others = [i for i in range(len(points)) if i != left_out]
        others.sort(key=lambda i: sum((query - points[i]) ** 2))
        return others[: self.k - (left_out is not None)]

    def graph(self, queries, points, own=False):
        """Neighbours with their weights of each query."""
        found = []
        for i, query in enumerate(queries):
            near = self.near(query, points, i if own else None)
            if not near:
                found.append({})
                continue
            weights = fitted(query, points, near)
            shares = weights / sum(weights) if sum(weights) else [1 / len(near)] * len(near)
            found.append(dict(zip(near, shares, strict=True)))
        return found

    def residuals(self, x):
        return [self.residuals_of(unit(row)) for row in x]

    def residuals_of(self, query):
        found = []
        near_p, near_u = self.near(query, self.x_p), self.near(query, self.x_u)
        w_p = fitted(query, self.x_p, near_p)
        w_u = fitted(query, self.x_u, near_u) if near_u else []
        r = self.r if near_u else 1.0
        for c in range(self.classes):
            rest = query.copy()
            for w, i in zip(w_p, near_p, strict=True):
                rest -= r * w * self.x_p[i] * (np.argmax(self.f_p[i]) == c)
            for w, i in zip(w_u, near_u, strict=True):
                rest -= (1 - r) * w * self.x_u[i] * (np.argmax(self.f_u[i]) == c)
            found.append(math.sqrt(sum(rest**2)))
        return found


def unit(row):
    return row / max(math.sqrt(sum(row**2)), 1e-12)


def fitted(query, points, near):
    return nnls(np.array([points[i] for i in near]).T, query)[0]


def product(graph, values):
    width = len(values[0]) if values else 0
    return [[sum(w * values[i][c] for i, w in row.items()) for c in range(width)] for row in graph]


def mixed(share, a, b):
    if not any(a):  # a graph without points
        a = [[0.0] * len(row) for row in b]
    pairs = zip(a, b, strict=True)
    return [[share * v + (1 - share) * w for v, w in zip(*pair, strict=True)] for pair in pairs]


def masked(values, y):
    inside = [[v * m for v, m in zip(*pair, strict=True)] for pair in zip(values, y, strict=True)]
    return [[v / sum(row) for v in row] for row in inside]


def problem(seed, partial=25, unlabelled=35, classes=4, width=6, dtype=np.float64):
    """Rows of a few overlapping classes, their candidate sets in mixed order, and test rows."""
    stream = np.random.RandomState(seed)
    count = partial + unlabelled + 15
    truth = stream.randint(0, classes, count)
    x = stream.randn(classes, width)[truth] + 0.9 * stream.randn(count, width)
    x = x * stream.uniform(0.5, 2, (count, 1))
    sets = stream.rand(count, classes) < 0.4
    sets[np.arange(count), truth] = True
    rows = np.arange(count)
    sets[rows, (truth + 1 + stream.randint(0, classes - 1, count)) % classes] = False
    sets[stream.permutation(count - 15)[:unlabelled]] = True
    x = x.astype(dtype)
    return x[:-15], sets[:-15], x[-15:], truth


def agree(model, oracle, x, sets, test, tolerance=1e-6):
    model.fit(x, sets)
    found = np.array(oracle.fit(x.astype(float), sets))
    assert model.n_iter_ == oracle.made
    assert model.distribution_ == pytest.approx(found, abs=tolerance)
    assert np.array_equal(model.labels_, found.argmax(axis=1))
    residuals = np.array(oracle.residuals(test.astype(float)))
    scores = model.decision_function(test)
    assert scores == pytest.approx(-residuals, abs=tolerance)
    assert np.array_equal(model.predict(test), residuals.argmin(axis=1))


SETTINGS = {
    "the paper's": {},
    "others": {"k": 5, "alpha": 0.4, "beta": 0.6, "r": 0.3},
    "odd rounds": {"rounds": 7, "tolerance": 0},
    "all rounds": {"tolerance": 0},
    "early end": {"tolerance": 0.3},
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_what_the_loops_compute(name, seed):
    settings = SETTINGS[name]
    x, sets, test, _ = problem(seed)
    agree(SSPLClassifier(**settings, device="cpu"), Oracle(**settings), x, sets, test)


SIZES = {
    "no unlabelled row": {"partial": 30, "unlabelled": 0},
    "one unlabelled row": {"partial": 30, "unlabelled": 1},
    "one partial row": {"partial": 1, "unlabelled": 20},
    "fewer rows than neighbours": {"partial": 6, "unlabelled": 4},
    "more neighbours than features": {"width": 2},
    "many classes": {"classes": 9},
}


@pytest.mark.parametrize("name", SIZES)
def test_it_is_that_at_any_size(name):
    x, sets, test, _ = problem(5, **SIZES[name])
    settings = {"tolerance": 0}
    agree(SSPLClassifier(**settings, device="cpu"), Oracle(**settings), x, sets, test)


def test_float32_is_good_enough():
    x, sets, test, _ = problem(1, dtype=np.float32)
    settings = {"tolerance": 0}
    model = SSPLClassifier(**settings, device="cpu")
    agree(model, Oracle(**settings), x, sets, test, tolerance=1e-5)
    assert model.distribution_.dtype == np.float32


def test_blocks_change_nothing(monkeypatch):
    x, sets, test, _ = problem(2)
    whole = SSPLClassifier(device="cpu").fit(x, sets)
    scores = whole.decision_function(test)
    monkeypatch.setattr(graph, "BLOCK", 300)
    parts = SSPLClassifier(device="cpu").fit(x, sets)
    assert parts.distribution_ == pytest.approx(whole.distribution_, abs=1e-9)
    assert parts.decision_function(test) == pytest.approx(scores, abs=1e-9)


@pytest.mark.parametrize(("width", "classes"), [(3, 4), (40, 4), (3, 500)])
def test_memory_of_predictions_is_bounded(width, classes, monkeypatch):
    stream = np.random.RandomState(0)
    x = torch.from_numpy(stream.randn(400, width))
    labels = np.eye(classes, dtype=bool)[stream.randint(0, classes, 400)]
    labels[200:] = True
    model = SSPLClassifier(rounds=1, device="cpu").fit(x, labels)
    monkeypatch.setattr(graph, "BLOCK", 2**17)
    with Held(x) as predicting:
        scores = model._scores(x[:120])
    rows_and_neighbours = 8 * (2 * x.numel() + 120 * 5 * 20)
    assert predicting.most <= 8 * graph.BLOCK + scores.nbytes + rows_and_neighbours


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_size_of_features_says_nothing(size):
    x, sets, test, _ = problem(3)
    model, same = (SSPLClassifier(device="cpu").fit(rows, sets) for rows in (x, size * x))
    assert same.distribution_ == pytest.approx(model.distribution_)
    assert same.decision_function(size * test) == pytest.approx(model.decision_function(test))


def test_unlabelled_rows_are_resolved():
    x, sets, _, truth = problem(3, partial=40, unlabelled=200, width=12)
    model = SSPLClassifier(device="cpu").fit(x, sets)
    blank = sets.all(axis=1)
    right = model.labels_ == truth[:-15]
    assert right[~blank].mean() > 0.85
    assert right[blank].mean() > 0.75
    assert sets[np.arange(len(sets)), model.labels_].all()
    assert model.distribution_.sum(axis=1) == pytest.approx(1)


def test_labels_spread_to_the_rows_without():
    x, sets, test, truth = problem(4, classes=3)
    labels = np.array(["a", "b", "c"])[truth[:-15]]
    model = SSPLClassifier(device="cpu").fit(x, labels)
    assert np.array_equal(model.labels_, labels)
    assert set(model.predict(test)) <= {"a", "b", "c"}
    single = np.where(sets.all(axis=1)[:, None], True, np.eye(3, dtype=bool)[truth[:-15]])
    agree(SSPLClassifier(device="cpu"), Oracle(), x, single, test)
    assert SSPLClassifier(device="cpu").fit(x, single).n_iter_ > 50  # not as soon as P is settled


def test_a_class_in_no_candidate_set_is_never_given():
    x, sets, test, _ = problem(6)
    without = np.insert(sets, 2, sets.all(axis=1), axis=1)
    model = SSPLClassifier(device="cpu").fit(x, without)
    assert (model.distribution_[:, 2] == 0).all()
    assert 2 not in model.predict(test)
    agree(SSPLClassifier(device="cpu"), Oracle(), x, without, test)


def test_zero_rows_and_duplicates_do_no_harm():
    x, sets, test, _ = problem(7)
    x[[3, 30]] = 0
    x[5:25] = x[4]
    model = SSPLClassifier(device="cpu").fit(x, sets)
    assert np.isfinite(model.distribution_).all()
    assert np.isfinite(model.decision_function(np.vstack([test, 0 * test]))).all()
    assert set(model.predict(0 * test)) == {0}  # nothing speaks for any class: the first


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0, 1])
def test_the_limits_of_the_settings_work(name, value):
    x, sets, test, _ = problem(8, unlabelled=1)
    model = SSPLClassifier(**{name: value}, device="cpu").fit(x, sets)
    assert np.isfinite(model.distribution_).all()
    assert np.isfinite(model.decision_function(test)).all()


WRONG = {"k": 1, "alpha": 1.5, "beta": -1, "r": "x", "rounds": 0, "tolerance": -1e-9}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_refused(name):
    x, sets, _, _ = problem(0)
    with pytest.raises(ValueError, match=f"{name} must be"):
        SSPLClassifier(**{name: WRONG[name]}, device="cpu").fit(x, sets)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("unlabelled", [0, 400])
def test_a_gpu_finds_the_same(unlabelled):
    x, sets, test, _ = problem(9, 200, unlabelled, width=16, dtype=np.float32)
    here = SSPLClassifier(tolerance=0, device="cpu").fit(x, sets)
    there = SSPLClassifier(tolerance=0, device="cuda").fit(x, sets)
    assert there.distribution_ == pytest.approx(here.distribution_, abs=1e-5)
    assert there.decision_function(test) == pytest.approx(here.decision_function(test), abs=1e-5)
    assert np.array_equal(there.predict(test), here.predict(test))
    there.device = "cpu"
    assert np.array_equal(there.predict(test), here.predict(test))


@parametrize_with_checks([SSPLClassifier(device="cpu")])
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)
