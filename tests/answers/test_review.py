import numpy as np
import pytest

from concont.answers import review as module
from concont.answers.review import MISSED, choose_batch, rank_for_review


def draw(n=40, classes=4, seed=0):
    stream = np.random.RandomState(seed)
    probs = stream.dirichlet(np.full(classes, 0.5), n).astype(np.float32)
    neighbours = (stream.multinomial(10, [1 / classes] * classes, n) / 10).astype(np.float32)
    sets = stream.rand(n, classes) < 0.5
    sets[np.arange(n), stream.randint(classes, size=n)] = True
    sets[:5] = True
    return probs, neighbours, sets, np.where(sets, probs, -1).argmax(axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_images_stand_in_the_order_of_the_doubt_by_bayes_rule(seed):
    probs, neighbours, sets, label = draw(seed=seed)
    doubts = []
    for f, near, own, chosen in zip(probs, neighbours, sets, label, strict=True):
        evidence = [
            (a + b) / 2 * (1 if c else MISSED) for a, b, c in zip(f, near, own, strict=True)
        ]
        doubts.append(1 - evidence[chosen] / sum(evidence))
    ranks = rank_for_review(probs, neighbours, sets, label)
    assert sorted(ranks) == list(range(1, 41))
    assert np.all(np.diff(np.array(doubts)[np.argsort(ranks)]) <= 1e-6)


@pytest.mark.parametrize(
    ("probs", "neighbours", "own"),
    [
        ((0.5, 0.4, 0.1), (0.98, 0.02, 0.0), (1, 1, 0)),  # another candidate comes close
        ((0.1, 0.0, 0.9), (0.98, 0.02, 0.0), (1, 1, 0)),  # the prediction lies outside the set
        ((0.98, 0.02, 0.0), (0.2, 0.8, 0.0), (1, 1, 0)),  # the neighbours are something else
        ((0.6, 0.2, 0.2), (0.98, 0.02, 0.0), (1, 1, 1)),  # nobody said anything
    ],
)
def test_each_kind_of_doubt_brings_an_image_to_the_front(probs, neighbours, own):
    sure = np.array([0.98, 0.02, 0.0])
    both = [np.array(pair, np.float32) for pair in ((sure, probs), (sure, neighbours))]
    sets = np.array([[1, 1, 0], own], bool)
    assert rank_for_review(*both, sets, np.array([0, 0])).tolist() == [2, 1]


def test_equally_doubtful_images_keep_their_order():
    probs = np.full((5, 2), 0.5, np.float32)
    ranks = rank_for_review(probs, probs, np.ones((5, 2), bool), np.zeros(5, np.int64))
    assert ranks.tolist() == [1, 2, 3, 4, 5]


@pytest.fixture
def groups():
    """Forty copies of one mistake head the review list, ten other images follow."""
    stream = np.random.RandomState(0)
    features = np.concatenate([np.tile([[1.0, 0, 0]], (40, 1)), stream.randn(10, 3) * 5])
    features[:40] += stream.randn(40, 3) * 0.001
    return features.astype(np.float32), np.arange(1, 51)


def test_a_batch_is_not_the_same_mistake_many_times(groups):
    features, review = groups
    chosen = choose_batch(review, features, 6)
    assert len(chosen) == len(set(chosen)) == 6
    assert (chosen < 40).sum() == 1  # the list's own first six are all of one kind
    assert chosen[0] == 0  # and of that kind the most doubtful


def test_a_batch_comes_in_the_order_of_the_list():
    stream = np.random.RandomState(1)
    features, review = stream.randn(80, 4).astype(np.float32), stream.permutation(80) + 1
    chosen = choose_batch(review, features, 12)
    assert np.all(np.diff(review[chosen]) > 0)
    assert np.array_equal(chosen, choose_batch(review, features, 12))


def test_only_the_first_of_the_list_are_considered():
    stream = np.random.RandomState(2)
    features, review = stream.randn(500, 4).astype(np.float32), stream.permutation(500) + 1
    assert review[choose_batch(review, features, 3)].max() <= 30


@pytest.mark.parametrize("budget", [5, 50, 51, 1000])
def test_as_many_as_asked_for_or_as_there_are(groups, budget):
    features, review = groups
    chosen = choose_batch(review, features, budget)
    assert len(chosen) == len(set(chosen)) == min(budget, 50)


def test_copies_of_one_image_fill_up_a_batch():
    features, review = np.ones((30, 2), np.float32), np.arange(30)[::-1] + 1
    assert choose_batch(review, features, 4).tolist() == [29, 28, 27, 26]


def test_a_large_budget_takes_turns_among_a_bounded_number_of_groups(monkeypatch):
    monkeypatch.setattr(module, "MOST_GROUPS", 3)
    stream = np.random.RandomState(3)
    group = np.repeat([0, 1, 2], [60, 25, 5])  # the largest heads the list
    features = (np.eye(3)[group] + stream.randn(90, 3) * 0.01).astype(np.float32)
    chosen = choose_batch(np.arange(1, 91), features, 9)
    assert np.bincount(group[chosen]).tolist() == [3, 3, 3]
    assert chosen.tolist() == [0, 1, 2, 60, 61, 62, 85, 86, 87]
