import numpy as np
import pytest

from concont.answers.votes import combine, fit_both, score_hidden_votes

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


def majority(votes, truth):
    """The share of right labels by the most votes, ties by lot."""
    most = votes == votes.max(axis=1, keepdims=True)
    return (most[np.arange(len(truth)), truth] / most.sum(axis=1)).mean()


def test_together_they_are_better_than_either(images):
    truth, votes, stream = images
    found = combine(votes, predict(truth, 0.85, stream))
    assert found.network_helps
    assert found.gain > 0.05
    assert accuracy(found.label, truth) > max(majority(votes, truth), 0.89) + 0.03
    assert found.label.tolist() == found.fit.posterior.argmax(axis=1).tolist()
    assert found.probability.tolist() == found.fit.posterior.max(axis=1).tolist()
    assert np.diag(found.fit.confusion) == pytest.approx([0.7] * C, abs=0.04)


def test_a_network_that_guesses_is_not_listened_to(images):
    truth, votes, stream = images
    alone = combine(votes, np.zeros((len(truth), C)))
    guess = combine(votes, predict(truth, 0.0, stream, sure=0.999))
    for found in (alone, guess):
        assert found.gain == pytest.approx(0, abs=0.02)
        assert accuracy(found.label, truth) > majority(votes, truth) - 0.01
        assert not found.network_helps


def test_where_the_network_does_not_help_the_most_votes_decide():
    votes = np.array([[2.0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 3, 0]] * 40)
    wrong = np.log(np.tile([0.01, 0.97, 0.01, 0.01], (120, 1)))
    found = combine(votes, wrong)
    assert not found.network_helps
    assert found.label[[0, 2]].tolist() == [0, 2]
    assert found.label[1] in (0, 3)  # a tie
    assert (found.probability > 0).all()


def turned(truth, stream):
    """A network that takes most images for the next class, and is sure of it."""
    return predict((truth + 1) % C, 0.9, stream, sure=0.99)


def one_sided(truth, stream):
    return predict(np.where(truth % 2, truth - 1, truth), 0.95, stream, sure=0.99)


USELESS = {
    "guesses": lambda truth, stream: predict(truth, 0.0, stream, sure=0.99),
    "weak": lambda truth, stream: predict(truth, 0.4, stream, sure=0.99),
    "always one class": lambda truth, stream: predict(0 * truth, 1.0, stream),
    "turned": turned,
    "two classes for one": one_sided,
    "has underflowed": lambda truth, stream: 100 * turned(truth, stream),
}


@pytest.mark.parametrize("network", USELESS)
@pytest.mark.parametrize("voters", [1, 2, 3])
@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.long)])
def test_a_useless_network_makes_labels_no_worse_than_the_most_votes(network, voters, count):
    gains = []
    for seed in range(6):
        stream = np.random.RandomState(seed)
        truth = stream.randint(C, size=count)
        votes = cast(truth, 0.85, voters, stream)
        found = combine(votes, USELESS[network](truth, stream))
        gains.append(accuracy(found.label, truth) - majority(votes, truth))
    assert np.mean(gains) > -0.02  # ties fall now and then to the wrong one


def test_single_votes_are_kept(images):
    """One vote an image says nothing of how good votes are, so no network is weighed by them."""
    truth, _, stream = images
    votes = cast(truth, 0.8, 1, stream)
    found = combine(votes, predict(truth, 0.99, stream, sure=0.99))
    assert not found.network_helps
    assert found.gain == 0
    assert found.label.tolist() == votes.argmax(axis=1).tolist()


def test_shares_of_votes_are_no_counts(images):
    truth, votes, stream = images
    found = combine(votes / votes.sum(axis=1, keepdims=True), predict(truth, 0.9, stream))
    assert not found.network_helps


def test_rows_with_any_share_are_no_counts(images):
    """A whole vote beside two halves is a row of shares."""
    truth, votes, stream = images
    votes[::2] = [1, 0.5, 0.5, 0]
    network = predict(truth, 0.9, stream)
    _, alone = fit_both(votes, 0 * network)
    _, both = fit_both(votes, network)
    assert len(score_hidden_votes(votes, network, alone, both)) == len(votes) / 2
    votes[:, 0] += 0.25
    assert combine(votes, network).gain == 0


@pytest.mark.parametrize(("count", "helps"), [(2, False), (5, False), (6, True), (12, True)])
def test_a_few_equal_gains_prove_nothing(count, helps):
    """Two people contradict each other on every image, and the network is of one's opinion."""
    votes = np.tile([1.0, 1, 0, 0], (count, 1))
    found = combine(votes, np.log(np.tile([0.97, 0.01, 0.01, 0.01], (count, 1))))
    assert found.gain == pytest.approx(0.5)
    assert found.network_helps == helps


def test_an_annotator_who_is_always_wrong(images):
    truth, votes, stream = images
    votes[np.arange(len(truth)), (truth + 1) % C] += 1
    network = predict(truth, 0.85, stream)
    found = combine(votes, network)
    assert found.network_helps
    assert accuracy(found.label, truth) > majority(votes, truth) + 0.05


def test_hidden_votes_are_named_from_the_others():
    votes = np.array([[2.0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 3, 0]])
    network = np.log([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.8, 0.1, 0.1]])
    _, both = fit_both(votes, network)
    _, alone = fit_both(votes, np.zeros((4, 3)))
    apart, together = np.log(alone.confusion), np.log(both.confusion)
    expected = []
    for row in (0, 1, 3):  # those with two votes or more
        gain = 0.0
        for k in range(3):
            others = votes[row] - np.eye(3)[k]
            if votes[row, k]:
                says = both.strength * network[row] + np.array([others @ row for row in together])
                most = [c for c in range(3) if others[c] == others.max()]
                most.sort(key=lambda c: -others @ apart[c])
                gain += votes[row, k] * (int(np.argmax(says) == k) - int(most[0] == k))
        expected.append(gain / votes[row].sum())
    assert score_hidden_votes(votes, network, alone, both) == pytest.approx(expected)


def test_probabilities_mean_what_they_say(images):
    truth, votes, stream = images
    found = combine(votes, predict(truth, 0.6, stream, sure=0.99))  # far too sure of itself
    assert found.network_helps
    assert found.fit.strength < 0.5
    sure = found.probability
    right = found.label == truth
    assert sure.mean() == pytest.approx(right.mean(), abs=0.03)


def test_it_is_the_plain_estimate_written_as_loops():
    """One round of the two steps by hand, from where it has converged."""
    stream = np.random.RandomState(1)
    truth = stream.randint(C, size=60)
    votes, network = cast(truth, 0.8, 2, stream), predict(truth, 0.7, stream)
    _, found = fit_both(votes, network)
    for row in range(60):
        weights = []
        for c in range(C):
            prior = np.exp(network[row, c]) ** found.strength
            weights.append(
                prior * np.prod([found.confusion[c, k] ** votes[row, k] for k in range(C)])
            )
        assert found.posterior[row] == pytest.approx(np.array(weights) / sum(weights), abs=1e-3)
    assert found.confusion.sum(axis=1) == pytest.approx([1] * C)
