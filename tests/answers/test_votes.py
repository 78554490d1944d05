import numpy as np
import pytest

from concont.answers.votes import choose_by_votes, combine

C = 4


def cast(truth, right, voters, stream):
    """Votes (M, C) of annotators who are right with this chance and else say anything else."""
    votes = np.zeros((len(truth), C))
    for row, label in enumerate(truth):
        for _ in range(voters):
            wrong = (label + 1 + stream.randint(C - 1)) % C
            votes[row, label if stream.rand() < right else wrong] += 1
    return votes


def predict(truth, right, stream, sure=0.9):
    """Log-probabilities of a network that is right with this chance, and always as sure."""
    likeliest = np.where(stream.rand(len(truth)) < right, truth, stream.randint(C, size=len(truth)))
    probs = np.full((len(truth), C), (1 - sure) / (C - 1))
    probs[np.arange(len(truth)), likeliest] = sure
    return np.log(probs)


def accuracy(labels, truth):
    return (labels == truth).mean()


@pytest.fixture
def images():
    stream = np.random.RandomState(0)
    truth = stream.randint(C, size=2_000)
    return truth, cast(truth, 0.7, 3, stream), stream


def test_together_they_are_better_than_either(images):
    truth, votes, stream = images
    network = predict(truth, 0.85, stream)
    found = combine(votes, network)
    alone = accuracy(choose_by_votes(votes, combine(votes, np.zeros_like(network))), truth)
    assert found.network_helps
    assert accuracy(found.posterior.argmax(axis=1), truth) > max(alone, 0.89) + 0.03
    assert np.diag(found.confusion) == pytest.approx([0.7] * C, abs=0.04)


def test_a_network_that_guesses_is_not_listened_to(images):
    truth, votes, stream = images
    for guess in (predict(truth, 0.0, stream, sure=0.999), np.zeros((len(truth), C))):
        found = combine(votes, guess)
        assert not found.network_helps
        assert found.gain == pytest.approx(0, abs=0.02)


def test_where_the_network_does_not_help_the_most_votes_decide():
    votes = np.array([[2.0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 3, 0]] * 40)
    found = combine(votes, np.zeros((120, C)))
    labels = choose_by_votes(votes, found)
    assert labels[[0, 2]].tolist() == [0, 2]
    assert labels[1] in (0, 3)  # a tie


def test_probabilities_mean_what_they_say(images):
    truth, votes, stream = images
    found = combine(votes, predict(truth, 0.6, stream, sure=0.99))  # far too sure of itself
    assert found.network_helps
    assert found.strength < 0.5
    sure = found.posterior.max(axis=1)
    right = found.posterior.argmax(axis=1) == truth
    assert sure.mean() == pytest.approx(right.mean(), abs=0.03)


def test_it_is_the_plain_estimate_written_as_loops():
    """One round of the two steps by hand, from where it has converged."""
    stream = np.random.RandomState(1)
    truth = stream.randint(C, size=60)
    votes, network = cast(truth, 0.8, 2, stream), predict(truth, 0.7, stream)
    found = combine(votes, network)
    for row in range(60):
        weights = []
        for c in range(C):
            prior = np.exp(network[row, c]) ** found.strength
            weights.append(
                prior * np.prod([found.confusion[c, k] ** votes[row, k] for k in range(C)])
            )
        assert found.posterior[row] == pytest.approx(np.array(weights) / sum(weights), abs=1e-3)
    assert found.confusion.sum(axis=1) == pytest.approx([1] * C)
