"""Labels of images that were voted on, as `resolve` names them."""

import numpy as np
import pytest

import concont
from concont.answers.resolution import choose_labels, resolve
from concont.cli.resolve import _tell, describe


@pytest.fixture
def voted(toy_arrays, toy_config, tmp_path):
    """Trains on the toys with these votes on 30 of 40, for so many epochs."""
    truth = toy_arrays["y_train"]

    def train_on(votes, epochs, sets=None, **more):
        if sets is None:
            votes = np.where(np.arange(40)[:, None] < 30, votes, 0)
            sets = np.where(votes.any(axis=1, keepdims=True), votes > 0, True)
        path, arrays = tmp_path / "voted.npz", {"y_train": truth, "candidate_weights": votes}
        np.savez(path, x_train=toy_arrays["x_train"], candidates=sets, **arrays)
        config = {**toy_config, "data": {"labeled": None, "ambiguity": None, "holdout": 0.0}}
        config["data"]["source"] = str(path)
        config["train"] = {**toy_config["train"], "epochs": epochs}
        return concont.train({**config, **more}, out=tmp_path / "run")

    return train_on


def cast_votes(truth, wrong):
    """Two votes for the truth and one that is wrong now and then, in the rows `wrong` two."""
    votes = np.eye(2)[truth] * 2 + np.eye(2)[(truth + np.arange(len(truth)) // 2) % 2]
    votes[wrong] = (np.eye(2)[1 - truth] * 2 + np.eye(2)[truth])[wrong]
    return votes.astype(np.float32)


def test_votes_and_a_network_that_knows_the_classes_name_labels_together(voted, toy_arrays):
    truth, wrong = toy_arrays["y_train"], [3, 8, 14]
    run = voted(cast_votes(truth, wrong), 15)
    found = resolve(run)
    assert found.votes.network_helps
    assert found.accuracy(found.partial) > 27 / 30  # what the most votes say
    assert found.partial.sum() == 30
    assert found.overruled[:30].tolist() == [
        not own[label] for own, label in zip(found.candidates, found.label[:30], strict=False)
    ]


@pytest.mark.parametrize("single", [False, True])
def test_an_untrained_network_leaves_the_labels_to_the_votes(voted, toy_arrays, single):
    votes = cast_votes(toy_arrays["y_train"], [3, 8, 14])
    votes = (votes == votes.max(axis=1, keepdims=True)).astype(np.float32) if single else votes
    run = voted(votes, 1, optimizer={"lr": 1e-6})
    found = resolve(run)
    assert not found.votes.network_helps
    assert found.label[:30].tolist() == votes[:30].argmax(axis=1).tolist()
    assert ": most of them decide the labels of 30 images" in "\n".join(_tell(found, 0))
    assert describe(found)["network_adds_to_votes"] is False


def test_sets_without_votes_are_no_votes(voted, toy_arrays):
    """Two candidates that nobody counted do not say that two people contradicted each other."""
    truth = toy_arrays["y_train"]
    votes = np.eye(3)[truth].astype(np.float32)
    votes[5:] = 0
    sets = np.where(votes.any(axis=1, keepdims=True), votes > 0, np.arange(3) != 2)
    run = voted(votes, 15, sets)
    found, problem = resolve(run), run.read_problem()
    assert problem.voted.tolist() == [True] * 5 + [False] * 35
    assert problem.weights[5:].tolist() == [[1, 1, 0]] * 35  # in training they count alike
    assert len(found.votes.label) == 5
    assert not found.votes.network_helps
    assert ": most of them decide the labels of 5 images" in "\n".join(_tell(found, 0))
    chosen = choose_labels(run.predict_proba(np.asarray(problem.images)), problem.candidates)
    assert found.label[5:].tolist() == chosen.label[5:].tolist()
    assert found.probability[5:] == pytest.approx(chosen.probability[5:])


def test_weights_without_any_vote_are_no_votes(voted):
    sets = np.tile([True, True, False], (40, 1))
    run = voted(np.zeros((40, 3), np.float32), 1, sets)
    assert resolve(run).votes is None


def test_votes_that_training_did_not_count_are_read(voted, toy_arrays):
    votes = cast_votes(toy_arrays["y_train"], [3, 8, 14])
    blind = {"name": "concont", "queue": 32, "vote_strength": 0}
    found = resolve(voted(votes, 1, optimizer={"lr": 1e-6}, method=blind))
    assert found.label[:30].tolist() == votes[:30].argmax(axis=1).tolist()
