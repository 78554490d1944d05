"""PARM against itself written as loops, with quadratic programmes for its two steps."""

import math
import pickle

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from classic.programmes import Oracle, problem
from concont.classic.parm import PARMClassifier, UninformativeWarning


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
