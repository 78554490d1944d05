"""PARM against itself written as loops, one point at a time; the machine has tests of its own."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from concont.classic.machine import Rows, solve
from concont.classic.parm import GRID, PARMClassifier, spread


def clusters(rows=60, classes=3, seed=0, hidden=0.5):
    """Round clusters of features, sets of two, and some rows without a set."""
    stream = np.random.RandomState(seed)
    labels = stream.permutation(rows) % classes
    x = np.eye(classes + 1)[labels] * 3 + stream.randn(rows, classes + 1) * 0.5
    sets = np.eye(classes, dtype=bool)[labels]
    sets[np.arange(rows), (labels + stream.randint(1, classes, rows)) % classes] = True
    sets[stream.permutation(rows)[: int(hidden * rows)]] = True
    return x, sets, labels


def unit(row):
    return row / np.linalg.norm(row)


def weights_of(query, points, k, left_out=None):
    others = [i for i in range(len(points)) if i != left_out]
    others.sort(key=lambda i: ((query - points[i]) ** 2).sum())
    near = {i: np.exp(-((query - points[i]) ** 2).sum() / 2) for i in others[:k]}
    return {i: w / sum(near.values()) for i, w in near.items()}


def spread_by_hand(points, members, k, alpha):
    graph = [weights_of(p, points, k, i) for i, p in enumerate(points)]
    soft = [row / row.sum() for row in members.astype(float)]
    for _ in range(200):
        before = np.sqrt(sum((row**2).sum() for row in soft))
        now = []
        for i, own in enumerate(soft):
            told = sum(w * soft[j] for j, w in graph[i].items())
            inside = members[i] * (alpha * told + (1 - alpha) * own)
            now.append(inside / inside.sum())
        soft = now
        if abs(np.sqrt(sum((row**2).sum() for row in soft)) - before) < 0.01:
            break
    return np.array(soft)


def nearest_distribution(row):
    low, high = row.min() - 1, row.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(row - middle, 0).sum() > 1:
            low = middle
        else:
            high = middle
    return np.maximum(row - low, 0)


def by_hand(x, sets, lam, mu, k=8, alpha=0.95, gamma=0.01, rounds=5):
    partial = [i for i, row in enumerate(sets) if not row.all()]
    rest = [i for i, row in enumerate(sets) if row.all()]
    points = np.array([unit(row) for row in x])
    f_p = spread_by_hand(points[partial], sets[partial], k, alpha)
    graph = [weights_of(points[i], points[partial], k) for i in rest]
    near = np.array([sum(w * f_p[j] for j, w in own.items()) for own in graph])
    soft = np.zeros(sets.shape)
    soft[partial], soft[rest] = f_p, near
    cost = np.array([mu / len(rest) if row.all() else lam / len(partial) for row in sets])
    for _ in range(rounds):
        rows = Rows.of(torch.tensor(x), torch.tensor(cost))
        w = solve(rows, torch.tensor(soft), tolerance=1e-6, most=20_000).weights.numpy()
        for n, i in enumerate(rest):
            scores = w @ x[i]
            slack = np.array(
                [
                    max(0, 1 + max(s for m, s in enumerate(scores) if m != j) - scores[j])
                    for j in range(len(scores))
                ]
            )
            soft[i] = nearest_distribution(near[n] - mu / (2 * gamma * len(rest)) * slack)
    return soft, w


@pytest.mark.parametrize(
    ("seed", "lam", "mu", "rounds"), [(0, 1.0, 1.0, 5), (1, 2.0, 0.1, 1), (2, 0.1, 3.0, 2)]
)
def test_it_is_the_one_written_as_loops(seed, lam, mu, rounds):
    x, sets, _ = clusters(seed=seed)
    model = PARMClassifier(lam=lam, mu=mu, rounds=rounds, tolerance=1e-6, device="cpu")
    model.fit(x, sets)
    soft, w = by_hand(x, sets, lam, mu, rounds=rounds)
    assert np.allclose(model.coef_, w, atol=2e-3 * np.abs(w).max())
    assert np.allclose(model.distribution_, soft, atol=1e-3)
    assert np.array_equal(model.predict(x), (x @ w.T).argmax(axis=1))
    assert 0 <= model.gap_ <= 1e-6 * model.gain_


def test_settings_matter():
    x, sets, _ = clusters()
    plain = PARMClassifier(device="cpu").fit(x, sets).distribution_
    for change in ({"k": 2}, {"alpha": 0.2}, {"gamma": 1.0}):
        other = PARMClassifier(device="cpu", **change).fit(x, sets).distribution_
        assert not np.allclose(other, plain, atol=1e-4), change


def test_labels_are_resolved_and_new_rows_told():
    x, sets, labels = clusters(rows=120)
    new, _, expected = clusters(seed=9)
    model = PARMClassifier(device="cpu").fit(x, sets)
    assert np.mean(model.labels_ == labels) > 0.9
    assert model.score(new, expected) > 0.9
    partial = ~sets.all(axis=1)
    assert not model.distribution_[partial][~sets[partial]].any()
    assert np.allclose(model.distribution_.sum(axis=1), 1)


def test_spreading_stays_inside_the_sets_and_among_few_rows():
    x, sets, _ = clusters(rows=5, hidden=0)
    points = np.array([unit(row) for row in x])
    found = spread(torch.tensor(points), torch.tensor(sets).double(), 8, 0.95)
    assert np.allclose(found, spread_by_hand(points, sets, 8, 0.95))


def test_without_unlabelled_rows_mu_says_nothing():
    x, sets, _ = clusters(hidden=0)
    found = [PARMClassifier(mu=mu, device="cpu").fit(x, sets).coef_ for mu in (0.1, 10.0)]
    assert np.array_equal(*found)


def test_the_search_looks_at_sets_alone_and_is_repeated_by_its_seed():
    x, sets, _ = clusters(rows=40)
    model = PARMClassifier(lam="cv", mu=0.1, device="cpu", random_state=3).fit(x, sets)
    assert model.lam_ in GRID
    assert model.mu_ == 0.1
    again = PARMClassifier(lam="cv", mu=0.1, device="cpu", random_state=3).fit(x, sets)
    assert again.lam_ == model.lam_
    assert np.array_equal(again.coef_, model.coef_)
    hits = {}
    for lam in GRID:  # what was chosen hits most of the held-out sets; the first among equals
        one = PARMClassifier(device="cpu")
        t_x, t_sets = torch.tensor(x), torch.tensor(sets)
        partial = ~t_sets.all(dim=1)
        members = partial.nonzero().squeeze(1)
        folds = KFold(5, shuffle=True, random_state=3).split(members)
        hits[lam] = sum(one._hits(t_x, t_sets, partial, members[p], lam, 0.1) for _, p in folds)
    assert model.lam_ == max(hits, key=hits.get)


def test_labels_too_ambiguous_are_warned_of():
    stream = np.random.RandomState(0)
    x, sets = stream.randn(40, 3), np.ones((40, 4), dtype=bool)
    sets[np.arange(40), np.arange(40) % 4] = False  # three of four everywhere
    with pytest.warns(UserWarning, match="leave the best linear machine at 0"):
        model = PARMClassifier(alpha=0.0, device="cpu").fit(x, sets)
    assert not model.coef_.any()


@pytest.mark.parametrize(
    "settings", [{"k": 0}, {"lam": "best"}, {"mu": -1}, {"alpha": 2}, {"rounds": 0}, {"gamma": 0}]
)
def test_wrong_settings_are_refused(settings):
    x, sets, _ = clusters()
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
        PARMClassifier(device="cpu", **settings).fit(x, sets)


class Quiet(PARMClassifier):
    """Scikit-learn's checks fit labels that say nothing, of which PARM warns."""

    def fit(self, X, y):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PARM: ")
            return super().fit(X, y)


@parametrize_with_checks([Quiet(device="cpu")])
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_finds_the_same():
    x, sets, _ = clusters(rows=200)
    x = x.astype(np.float32)
    found = [PARMClassifier(device=device).fit(x, sets) for device in ("cpu", "cuda")]
    assert np.allclose(found[0].coef_, found[1].coef_, atol=0.02 * np.abs(found[0].coef_).max())
    assert np.mean(found[0].predict(x) == found[1].predict(x)) > 0.98
