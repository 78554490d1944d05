"""PARM against itself written as loops, with quadratic programmes for its two steps."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from classic.test_machine import nearest, programme
from concont.classic import parm
from concont.classic.machine import Machine
from concont.classic.parm import Limits, PARMClassifier, UninformativeWarning, spread


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


def exact(**settings):
    return PARMClassifier(**settings, tolerance=1e-9, max_steps=30_000, device="cpu")


def agree(settings, x, sets, test):
    model = exact(**settings).fit(x, sets)
    weights, soft = Oracle(**settings).fit(x, sets)
    assert np.abs(weights).max() > 1e-3
    assert model.coef_ == pytest.approx(weights, abs=2e-4 * np.abs(weights).max())
    assert model.distribution_ == pytest.approx(soft, abs=2e-4)
    same_winner(model.labels_, soft)
    assert model.decision_function(test) == pytest.approx(test @ model.coef_.T)
    same_winner(model.predict(test), test @ weights.T)


def same_winner(labels, values):
    """Where there is one, and no tie that rounding decides."""
    second, first = np.sort(values, axis=1)[:, -2:].T
    clear = first - second > 1e-3
    assert clear.any()
    assert np.array_equal(labels[clear], values.argmax(axis=1)[clear])


SETTINGS = {
    "the default": {},
    "loosely tied": {"lam": 3.0, "mu": 0.5, "gamma": 0.5},
    "far below the margin": {"lam": 0.01, "mu": 0.001},
    "others": {"lam": 10.0, "mu": 2.0, "k": 3, "alpha": 0.5, "gamma": 0.1, "rounds": 2},
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_what_the_loops_compute(name, seed):
    x, sets, test, _ = problem(seed)
    agree(SETTINGS[name], x, sets, test)


SIZES = {
    "no unlabelled row": {"partial": 10, "unlabelled": 0},
    "one unlabelled row": {"partial": 10, "unlabelled": 1},
    "fewer partial rows than neighbours": {"partial": 4, "unlabelled": 5},
    "one partial row": {"partial": 1, "unlabelled": 2, "extra": 0},
    "four classes": {"classes": 4, "partial": 8, "unlabelled": 4},
}


@pytest.mark.parametrize("name", SIZES)
def test_it_is_that_at_any_size(name):
    x, sets, test, _ = problem(3, **SIZES[name])
    agree({"lam": 2.0, "gamma": 0.1, "rounds": 2}, x, sets, test)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_labels_spread_as_the_loops_do(seed, alpha):
    x, sets, _, _ = problem(seed, 60, 0, classes=5, width=6, extra=0.5, noise=2.0)
    unit = torch.nn.functional.normalize(torch.from_numpy(x))
    found = spread(unit, torch.from_numpy(sets).double(), 8, alpha).numpy()
    slow = Oracle(alpha=alpha).spread(list(unit.numpy()), sets)
    assert found == pytest.approx(np.array(slow), abs=1e-12)
    assert (found[~sets] == 0).all()


def test_float32_is_good_enough():
    x, sets, test, _ = problem(1, 60, 100, classes=4, width=8)
    model = PARMClassifier(lam=3.0, device="cpu").fit(x.astype(np.float32), sets)
    fine = exact(lam=3.0).fit(x, sets)
    assert model.coef_.dtype == model.distribution_.dtype == np.float32
    assert fine.coef_.dtype == fine.distribution_.dtype == np.float64
    assert model.coef_ == pytest.approx(fine.coef_, abs=0.03 * np.abs(fine.coef_).max())
    assert np.array_equal(model.predict(test), fine.predict(test))


def test_unlabelled_rows_are_resolved():
    x, sets, test, truth = problem(2, 60, 200, classes=5, width=8, tests=100)
    model = PARMClassifier(mu=0.1, device="cpu").fit(x, sets)
    blank = sets.all(axis=1)
    right = model.labels_ == truth[:-100]
    assert right[~blank].mean() > 0.9
    assert right[blank].mean() > 0.8
    assert (model.predict(test) == truth[-100:]).mean() > 0.8
    assert sets[np.arange(len(sets)), model.labels_].all()
    assert model.distribution_.sum(axis=1) == pytest.approx(1)
    assert 0 <= model.gap_ <= 1e-3 * model.gain_
    assert model.steps_ > 0
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(test), model.predict(test))


def test_names_of_classes_come_back():
    x, _, test, truth = problem(4, 30, 0)
    names = np.array(["a", "b", "c"])[truth[:-10]]
    model = PARMClassifier(device="cpu").fit(x, names)
    assert np.array_equal(model.labels_, names)
    assert (model.predict(test) == np.array(["a", "b", "c"])[truth[-10:]]).mean() > 0.7


def test_labels_that_say_nothing_are_remarked_on():
    x, sets, test, _ = problem(5, 40, 20, classes=4)
    sets[~sets.all(axis=1)] = [True, True, False, False]
    with pytest.warns(UninformativeWarning, match="best linear machine is W = 0") as seen:
        model = PARMClassifier(device="cpu").fit(x, sets)
    assert seen[0].filename == __file__
    assert (model.coef_ == 0).all()
    assert np.isfinite(model.decision_function(test)).all()


def test_too_few_steps_are_remarked_on():
    x, sets, _, _ = problem(6, 60, 40, classes=4)
    with pytest.warns(ConvergenceWarning, match="after 1 steps") as seen:
        model = PARMClassifier(lam=10.0, max_steps=1, rounds=1, device="cpu").fit(x, sets)
    assert seen[0].filename == __file__
    assert model.steps_ == 1
    best = PARMClassifier(lam=10.0, rounds=1, device="cpu").fit(x, sets)
    assert best.gain_ <= model.gain_ + model.gap_ + 1e-9


def test_later_rounds_go_on_from_the_first():
    x, sets, _, _ = problem(7, 60, 300, classes=4)
    once = PARMClassifier(rounds=1, gamma=100.0, device="cpu").fit(x, sets)
    often = PARMClassifier(rounds=5, gamma=100.0, device="cpu").fit(x, sets)
    assert often.steps_ <= once.steps_ + 40


def searched_by_hand(x, sets, lams, mus, settings):
    """The pair with the most credit, by fits without a third of the partial rows."""
    members = np.flatnonzero(~sets.all(axis=1))
    credit = {(lam, mu): 0.0 for lam in lams for mu in mus}
    for _, held in KFold(3, shuffle=True, random_state=settings["random_state"]).split(members):
        out = members[held]
        rest = np.setdiff1d(np.arange(len(x)), out)
        for lam, mu in credit:
            model = PARMClassifier(lam, mu, **settings).fit(x[rest], sets[rest])
            for row, label in zip(sets[out], model.predict(x[out]), strict=True):
                credit[lam, mu] += row[label] / row.sum()
    assert len(set(credit.values())) > 1
    return min(credit, key=lambda pair: (-round(credit[pair], 9), pair))


CHOICES = {
    "both": {"lam": "cv", "mu": "cv"},
    "lam": {"lam": "cv", "mu": 0.1},
    "mu": {"lam": 0.5, "mu": "cv"},
}


@pytest.mark.filterwarnings("ignore::concont.classic.parm.UninformativeWarning")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CHOICES)
def test_a_search_finds_what_fits_by_hand_find(name, seed, monkeypatch):
    grid = (0.01, 5.0)
    monkeypatch.setattr(parm, "GRID", grid)
    monkeypatch.setattr(parm, "FOLDS", 3)
    monkeypatch.setattr(parm, "SEARCH", Limits(1e-4, 3000, -1.0))
    x, sets, _, _ = problem(seed, 30, 9, noise=2.0)
    lams, mus = ((grid if v == "cv" else (v,)) for v in CHOICES[name].values())
    settings = {"tolerance": 1e-4, "max_steps": 3000, "rounds": 2, "device": "cpu"}
    settings["random_state"] = seed
    model = PARMClassifier(**CHOICES[name], **settings).fit(x, sets)
    by_hand = searched_by_hand(x, sets, lams, mus, settings)
    assert (model.lam_, model.mu_) == by_hand


class Guess(PARMClassifier):
    """Predicts one class for every row of ones: the one that (lam, mu) is given for."""

    def _alternate(self, ground, lam, mu, limits, start=None):
        weights = torch.zeros(5, 1, dtype=torch.float64)
        weights[self.guesses[lam, mu]] = 1
        return ground.soft, [Machine(weights, ground.soft, 1.0, 0.0, 1, True, False)]


def guessed(monkeypatch, guesses, sets):
    """What a search makes of guesses for (lam, mu), with two unlabelled rows beside the sets."""
    monkeypatch.setattr(parm, "GRID", (0.1, 1.0))
    members = np.array([[c in row for c in range(5)] for row in (*sets, range(5), range(5))])
    model = Guess("cv", "cv", device="cpu", random_state=0)
    model.guesses = dict(
        zip([(0.1, 0.1), (0.1, 1.0), (1.0, 0.1), (1.0, 1.0)], guesses, strict=True)
    )
    model.fit(np.ones((len(members), 1)), members)
    return model.lam_, model.mu_


def test_a_search_counts_small_sets_for_more(monkeypatch):
    """Six large sets are worth 2, four of a single label 4."""
    sets = [(0, 2, 3)] * 6 + [(1,)] * 4
    assert guessed(monkeypatch, (0, 0, 0, 1), sets) == (1.0, 1.0)
    assert guessed(monkeypatch, (0, 1, 0, 0), sets) == (0.1, 1.0)


@pytest.mark.parametrize("guesses", [(0, 0, 0, 0), (0, 1, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0)])
def test_a_search_takes_the_smallest_among_equals(guesses, monkeypatch):
    """Six sets of three are worth as much as two of one, but for rounding."""
    sets = [(0, 2, 3)] * 6 + [(1,)] * 2
    assert guessed(monkeypatch, guesses, sets) == (0.1, 0.1)
    assert guessed(monkeypatch, (4, *guesses[1:]), sets) == (0.1, 1.0)


@pytest.mark.parametrize(
    ("settings", "seed"),
    [
        ({"lam": "cv", "mu": 0.01}, 3),
        ({"lam": "cv", "mu": 0.01}, 11),
        ({"lam": "cv", "mu": 1.0}, 7),
        ({"lam": 0.1, "mu": "cv"}, 4),
    ],
)
def test_a_search_need_not_be_exact(settings, seed, monkeypatch):
    monkeypatch.setattr(parm, "GRID", (0.1, 1.0))
    monkeypatch.setattr(parm, "FOLDS", 2)
    x, sets, _, _ = problem(seed, 60, 60, 4, 6, noise=1.5, extra=0.5)
    model = PARMClassifier(**settings, device="cpu", random_state=0).fit(x, sets)
    monkeypatch.setattr(parm, "SEARCH", Limits(1e-3, 1000, -1.0))
    fine = PARMClassifier(**settings, device="cpu", random_state=0).fit(x, sets)
    assert (model.lam_, model.mu_) == (fine.lam_, fine.mu_)


def test_a_search_turns_down_what_does_harm():
    """Unlabelled rows of no class at all: when they count most, they are what is learned."""
    x, sets, test, truth = problem(8, 60, 120, 4, 6, noise=1.5, extra=0.5, tests=200)
    x[sets.all(axis=1)] = np.random.RandomState(0).randn(120, 6)
    chosen = PARMClassifier(mu="cv", device="cpu", random_state=0).fit(x, sets)
    most = PARMClassifier(mu=parm.GRID[-1], device="cpu").fit(x, sets)
    right = [(model.predict(test) == truth[-200:]).mean() for model in (chosen, most)]
    assert chosen.lam_ == 1.0
    assert right[0] > right[1] + 0.1


def test_a_search_is_the_same_again(monkeypatch):
    monkeypatch.setattr(parm, "GRID", (0.1, 1.0))
    x, sets, _, _ = problem(9, 40, 20, classes=4, noise=2.0)
    settings = {"lam": "cv", "mu": "cv", "device": "cpu", "rounds": 1}
    first, again = (PARMClassifier(**settings, random_state=3).fit(x, sets) for _ in range(2))
    assert (first.lam_, first.mu_) == (again.lam_, again.mu_)
    assert np.array_equal(first.coef_, again.coef_)


def test_a_search_without_unlabelled_rows_leaves_mu():
    x, sets, _, _ = problem(10, 40, 0, classes=4, noise=2.0)
    model = PARMClassifier(lam="cv", mu="cv", device="cpu", random_state=0).fit(x, sets)
    assert model.mu_ == parm.GRID[0]
    assert model.lam_ in parm.GRID
    one, marks, _, _ = problem(11, 1, 5)
    with pytest.raises(ValueError, match="cannot be searched with a single partial row"):
        PARMClassifier(lam="cv", device="cpu").fit(one, marks)


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(1e-25, "float32"), (1e20, "float32"), (1e-120, "float64"), (1e200, "float64")],
)
def test_features_whose_squares_are_no_numbers_are_refused(size, dtype):
    x, sets, _, _ = problem(0)
    with pytest.raises(ValueError, match=f"the largest feature is .*in {dtype}"):
        PARMClassifier(device="cpu").fit((size * x).astype(dtype), sets)
    assert (PARMClassifier(device="cpu").fit(1e-9 * x, sets).coef_ != 0).any()
    with pytest.warns(UninformativeWarning):
        PARMClassifier(device="cpu").fit(0 * x, sets)


WRONG = {
    "lam": 0,
    "mu": "most",
    "k": 0,
    "alpha": 1.5,
    "gamma": 0,
    "rounds": 0,
    "tolerance": -1,
    "max_steps": 2.5,
}
INFINITE = ("lam", "mu", "gamma", "tolerance")


@pytest.mark.parametrize(
    ("name", "value"), [*WRONG.items(), *((name, math.inf) for name in INFINITE)]
)
def test_wrong_settings_are_refused(name, value):
    x, sets, _, _ = problem(0)
    with pytest.raises(ValueError, match=f"{name} must be"):
        PARMClassifier(**{name: value}, device="cpu").fit(x, sets)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("unlabelled", [0, 400])
def test_a_gpu_finds_the_same(unlabelled):
    x, sets, test, _ = problem(12, 200, unlabelled, classes=6, width=16, tests=200)
    here = exact(lam=3.0).fit(x, sets)
    there = PARMClassifier(lam=3.0, tolerance=1e-5, device="cuda").fit(x, sets)
    assert there.distribution_ == pytest.approx(here.distribution_, abs=5e-3)
    assert there.coef_ == pytest.approx(here.coef_, abs=0.01 * np.abs(here.coef_).max())
    assert (there.predict(test) == here.predict(test)).mean() > 0.99
    there.device = "cpu"
    assert (there.predict(test) == here.predict(test)).mean() > 0.99


@parametrize_with_checks([PARMClassifier(device="cpu")])
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)
