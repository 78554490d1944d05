"""The search of PARM's lam and mu, against fits by hand and guesses."""

import numpy as np
import pytest
import torch
from sklearn.model_selection import KFold

from classic.programmes import problem
from concont.classic import parm
from concont.classic.linear_machine import Machine
from concont.classic.parm import PARMClassifier, SolverLimits


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
    monkeypatch.setattr(parm, "SEARCH_LIMITS", SolverLimits(1e-3, 1000, -1.0))
    x, sets, _, _ = problem(seed, 30, 9, noise=2.0)
    lams, mus = ((grid if v == "cv" else (v,)) for v in CHOICES[name].values())
    settings = {"tolerance": 1e-3, "max_steps": 1000, "rounds": 2, "device": "cpu"}
    settings["random_state"] = seed
    model = PARMClassifier(**CHOICES[name], **settings).fit(x, sets)
    by_hand = searched_by_hand(x, sets, lams, mus, settings)
    assert (model.lam_, model.mu_) == by_hand


class Guess(PARMClassifier):
    """Predicts one class for every row of ones: the one that (lam, mu) is given for."""

    def _alternate(self, prepared, lam, mu, limits, start=None):
        weights = torch.zeros(5, 1, dtype=torch.float64)
        weights[self.guesses[lam, mu]] = 1
        return prepared.soft, [Machine(weights, prepared.soft, 1.0, 0.0, 1, True, False)]


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
    monkeypatch.setattr(parm, "SEARCH_LIMITS", SolverLimits(1e-3, 1000, -1.0))
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
