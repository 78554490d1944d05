import numpy as np
import pytest

from concont.answers.review import choose_batch, rank_for_review


def test_the_most_doubtful_image_is_the_first():
    probability = np.array([0.9, 0.2, 0.99, 0.6], np.float32)
    disagreement = np.array([0.0, 0.1, 0.0, 0.9], np.float32)  # doubts 0.1, 0.9, 0.01, 1.3
    assert rank_for_review(probability, disagreement).tolist() == [3, 2, 4, 1]


def test_equally_doubtful_images_keep_their_order():
    same = np.zeros(5, np.float32)
    assert rank_for_review(same, same).tolist() == [1, 2, 3, 4, 5]


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
