"""When a network is said to help the votes: how often that is wrong, and how often it is found."""

import numpy as np
import pytest
from scipy import stats

from concont.answers.votes import combine, is_surely_gained

C = 4
NOMINAL = stats.norm.sf(2)  # how often two standard errors err in a large sample
IMAGES = (5, 20, 200)


def is_few(errors, trials, rate=NOMINAL):
    """Whether as many errors are no surprise at this rate."""
    return stats.binom.sf(errors - 1, trials, rate) > 0.001


NO_GAINS = {
    "of any size": lambda stream, n: stream.uniform(-1, 1, n),
    "half of the votes": lambda stream, n: stream.choice([-0.5, 0.5], n),
    "mostly none": lambda stream, n: stream.choice([-1 / 3, 0, 0, 0, 1 / 3], n),
}


@pytest.mark.parametrize("draw", NO_GAINS)
@pytest.mark.parametrize("count", IMAGES)
def test_gains_of_0_on_average_are_seldom_taken_for_more(draw, count):
    stream = np.random.RandomState(0)
    errors = sum(is_surely_gained(NO_GAINS[draw](stream, count)) for _ in range(3_000))
    assert is_few(errors, 3_000)


@pytest.mark.parametrize("count", IMAGES)
def test_rare_losses_of_whole_images_at_most_double_the_error(count):
    """Gains that are no more on average, but skewed."""
    stream, skewed = np.random.RandomState(0), [-1, 0, 0, 0.5, 0.5]
    errors = sum(is_surely_gained(stream.choice(skewed, count)) for _ in range(3_000))
    assert is_few(errors, 3_000, 2 * NOMINAL)


@pytest.mark.parametrize("count", IMAGES)
def test_it_is_student_s_test(count):
    """Of gains that deviate by more than the least that is assumed."""
    stream, verdicts = np.random.RandomState(1), set()
    for mean in np.linspace(0, 2, 200):
        gains = mean + stream.standard_normal(count)
        if gains.std(ddof=1) > count**-0.5:
            p = stats.ttest_1samp(gains, 0, alternative="greater").pvalue
            assert is_surely_gained(gains) == (p < NOMINAL)
            verdicts.add(is_surely_gained(gains))
    assert verdicts == {True, False}


def test_no_gains_and_a_single_one_prove_nothing():
    assert not is_surely_gained(np.array([]))
    assert not is_surely_gained(np.array([1.0]))


def ask(count, right, network_right, stream):
    """Two votes an image, each right with this chance; and a network that is, or else guesses."""
    truth = stream.randint(C, size=count)
    said = np.where(stream.rand(2, count) < right, truth, stream.randint(C, size=(2, count)))
    named = np.where(stream.rand(count) < network_right, truth, stream.randint(C, size=count))
    return combine(np.eye(C)[said].sum(axis=0), np.log(0.01 + 0.96 * np.eye(C)[named]))


@pytest.mark.parametrize("count", [5, 20, pytest.param(200, marks=pytest.mark.long)])
def test_a_network_that_is_pure_noise_is_seldom_said_to_help(count):
    """Annotators are so bad that a guess of one of two votes is often as good as theirs."""
    stream = np.random.RandomState(2)
    errors = sum(ask(count, 0.4, 0, stream).network_helps for _ in range(60))
    assert is_few(errors, 60)


@pytest.mark.parametrize(("count", "least"), [(60, 16), (200, 20)])
def test_a_good_network_is_found_to_help(count, least):
    stream = np.random.RandomState(3)
    assert sum(ask(count, 0.4, 0.95, stream).network_helps for _ in range(20)) >= least
