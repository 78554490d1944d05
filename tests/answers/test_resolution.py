from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.random import RandomState
from scipy.special import softmax

import concont
import oracles
from concont.answers.resolution import choose_labels, resolve
from concont.data.sources import digits
from concont.errors import DataError, UsageError
from concont.methods.concont import ConCont
from concont.runs.folder import RunFolder
from concont.training import checkpoint


def train(npz, config, out, **settings):
    """A run on a file, so that its data can be read again."""
    config = {**config, "data": {**config["data"], "source": str(npz)}}
    for name, value in settings.items():
        config[name] = {**config.get(name, {}), **value}
    return concont.train(config, out=out)


@pytest.fixture
def run(toy_npz, toy_config, tmp_path):
    return train(toy_npz, toy_config, tmp_path / "run", data={"holdout": 0.0})


def draw(n=30, classes=5, seed=0):
    stream = RandomState(seed)
    probs = softmax(stream.randn(n, classes) * 4, axis=1).astype(np.float32)
    sets = stream.rand(n, classes) < 0.5
    sets[np.arange(n), stream.randint(classes, size=n)] = True
    sets[:4] = True
    return probs, sets


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("overrules", [0.5, 0.8, 1.1])
def test_labels_are_chosen_as_plain_loops_choose_them(seed, overrules):
    probs, sets = draw(seed=seed)
    found = choose_labels(probs, sets, overrules)
    for i, (row, own) in enumerate(zip(probs.tolist(), sets.tolist(), strict=True)):
        inside = {k: p for k, p in enumerate(row) if own[k]}
        best, top = max(inside, key=inside.get), max(range(5), key=row.__getitem__)
        overruled = not own[top] and row[top] >= overrules
        assert found.overruled[i] == overruled
        assert found.label[i] == (top if overruled else best)
        share = row[top] if overruled else inside[best] / sum(inside.values())
        assert found.probability[i] == pytest.approx(share, rel=1e-5)
        outside = sum(p for k, p in enumerate(row) if not own[k])
        assert found.outside[i] == pytest.approx(outside, abs=1e-6)
    assert not found.overruled[:4].any()  # nothing is outside an unlabelled row's set


def test_where_the_run_doubted_a_set_the_likeliest_class_is_taken():
    probs = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.3, 0.5, 0.2]], np.float32)
    sets = np.array([[False, True, True]] * 3)
    found = choose_labels(probs, sets, doubted=np.array([True, False, True]))
    assert found.label.tolist() == [0, 1, 1]
    assert found.overruled.tolist() == [True, False, False]
    assert found.probability == pytest.approx([0.5, 0.6, 5 / 7])


def test_a_set_without_any_mass_still_gives_one_of_its_classes():
    probs = np.array([[1, 0, 0]], np.float32)
    found = choose_labels(probs, np.array([[False, True, True]]), 1.1)
    assert found.label.tolist() == [1]
    assert found.probability.tolist() == [0.5]
    assert found.outside.tolist() == [1]


def test_every_training_image_is_resolved_as_the_paper_has_it(run):
    found, problem = resolve(run), run.read_problem()
    assert len(found) == len(problem.rows) == 40
    assert found.images == tuple(str(row) for row in range(40))
    assert np.array_equal(found.candidates, problem.candidates)
    probs = run.predict_proba(np.asarray(problem.images))
    sets = problem.candidates.tolist()
    scores, labels = oracles.partial_confidence(probs.tolist(), sets, (1, 1, 1))
    assert found.score == pytest.approx(scores, abs=1e-5)
    assert [label for label, o in zip(found.label, found.overruled, strict=True) if not o] == [
        label for label, o in zip(labels, found.overruled, strict=True) if not o
    ]
    tau = RunFolder(run.path).metrics()[-1]["thresholds"]
    sure = [score >= tau[label] for score, label in zip(scores, labels, strict=True)]
    assert found.confident.tolist() == sure
    assert np.array_equal(found.predicted, probs.argmax(axis=1))
    assert sorted(found.review) == list(range(1, 41))
    assert np.linalg.norm(found.features, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(found.partial, ~problem.candidates.all(axis=1))
    assert found.calibration is None


def test_the_accuracy_of_labels_is_of_those_whose_truth_is_known(run):
    found = resolve(run)
    truth = found.truth.copy()
    right = found.label == truth
    assert found.accuracy() == right.mean()
    assert found.accuracy(found.partial) == right[found.partial].mean()
    truth[:10] = -1
    assert replace(found, truth=truth).accuracy() == right[10:].mean()
    assert replace(found, truth=np.full(40, -1)).accuracy() is None


def test_true_labels_change_nothing_but_the_figures(run):
    problem = run.read_problem()
    blind = replace(problem, truth=np.full(40, -1))
    found, unseen = resolve(run, problem), resolve(run, blind)
    for name in ("label", "probability", "score", "review", "confident", "overruled"):
        assert np.array_equal(getattr(found, name), getattr(unseen, name))


def test_a_hold_out_calibrates_the_probabilities_and_not_the_scores(tmp_path, toy_config):
    labels = np.arange(400) % 2
    images = RandomState(0).randint(0, 120, (400, 8, 8)).astype(np.uint8)
    images[labels == 1, :, 4:] += 60
    path = tmp_path / "more.npz"
    np.savez(path, x_train=images, y_train=labels)
    held = {"labeled": 0.5, "ambiguity": 0.3, "holdout": 0.2}
    run = train(path, toy_config, tmp_path / "held", data=held)
    problem, found = run.read_problem(), resolve(run)
    assert found.calibration.n == 80
    scores, _ = run.predictor.scores_and_features(problem.images)
    probs = softmax(scores / found.calibration.temperature, axis=1)
    expected = choose_labels(probs, problem.candidates)
    assert np.array_equal(found.probability, expected.probability)
    plain, _ = oracles.partial_confidence(
        softmax(scores, axis=1).tolist(), problem.candidates.tolist(), (1, 1, 1)
    )
    assert found.score == pytest.approx(plain, abs=1e-5)


def test_a_test_set_calibrates_nothing(run):
    assert run.read_problem().evaluated_on == "test"
    assert resolve(run).calibration is None


def test_the_thresholds_are_those_of_the_run_whatever_they_look_back_on(
    toy_npz, toy_config, tmp_path
):
    method = {"name": "concont", "balance": "da", "threshold": 0.9}
    run = train(toy_npz, toy_config, tmp_path / "da", method=method)
    found = resolve(run)
    state = checkpoint.load(RunFolder(run.path), torch.device("cpu"))["memory"]
    probs = torch.from_numpy(run.predict_proba(np.asarray(run.read_problem().images)))
    verdict = run.settings.method.judge(probs, torch.from_numpy(found.candidates), state)
    assert found.score == pytest.approx(verdict.score.numpy(), abs=1e-5)
    assert np.array_equal(found.confident, verdict.confident.numpy())


def test_methods_without_thresholds_are_confident_of_nothing(toy_npz, toy_config, tmp_path):
    config = {**toy_config, "method": {"name": "proden"}}
    found = resolve(train(toy_npz, config, tmp_path / "proden"))
    assert found.confident is None
    assert found.score.min() > 0


def test_a_run_whose_checkpoint_is_gone_is_resolved_without_thresholds(run, caplog):
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        (run.path / name).unlink(missing_ok=True)
    found = resolve(run)
    assert found.confident is None
    assert "no checkpoint" in caplog.text


def test_methods_without_probabilities_are_refused(toy_npz, toy_config, tmp_path):
    config = {"data": toy_config["data"], "method": {"name": "parm"}}
    run = train(toy_npz, config, tmp_path / "parm")
    with pytest.raises(UsageError, match="parm gives no probabilities"):
        resolve(run)


def test_other_data_is_refused_and_moved_data_found(run, toy_npz, toy_arrays, tmp_path):
    moved = tmp_path / "moved.npz"
    toy_npz.rename(moved)
    with pytest.raises(UsageError, match="no such file"):
        resolve(run)
    assert len(resolve(run, run.read_problem(str(moved)))) == 40
    np.savez(toy_npz, **{**toy_arrays, "x_train": toy_arrays["x_train"][::-1]})
    with pytest.raises(DataError, match="trained on other data"):
        resolve(run)


def test_a_run_on_arrays_takes_what_it_learned_from(toy_arrays, toy_config, run, tmp_path):
    arrays = concont.train(toy_config, data=toy_arrays, out=tmp_path / "arrays")
    with pytest.raises(UsageError, match="learned from arrays"):
        resolve(arrays)
    assert len(resolve(arrays, run.read_problem())) == 40


def test_nothing_is_written_to_the_run(run):
    before = {path.name: path.stat().st_mtime_ns for path in run.path.iterdir()}
    resolve(run)
    assert before == {path.name: path.stat().st_mtime_ns for path in run.path.iterdir()}


@pytest.mark.slow
def test_the_head_of_the_review_list_holds_three_times_as_many_wrong_labels(tmp_path):
    """Digits, a seventh of them with the votes of three annotators who err."""
    from concont.cli.demo_votes import ALIKE, ANNOTATORS

    data, stream = digits(), RandomState(3)
    sets = np.ones((len(data.x_train), 10), bool)
    for row, digit in enumerate(data.y_train[:200]):
        sets[row] = False
        for skill in ANNOTATORS.values():
            wrong = ALIKE[int(digit)] if stream.rand() < 0.7 else stream.randint(10)
            sets[row, digit if stream.rand() < skill else wrong] = True
    path = tmp_path / "voted.npz"
    np.savez(path, x_train=data.x_train, y_train=data.y_train, candidates=sets)
    config = {"recipe": "digits", "train": {"epochs": 6, "device": "cpu"}}
    config["data"] = {"source": str(path), "labeled": None, "ambiguity": None}
    found = resolve(concont.train(config, out=tmp_path / "run"))
    wrong = found.label != found.truth
    first = found.review <= len(found) // 10
    assert wrong.sum() > 50  # there is something to find
    assert wrong[first].mean() >= 3 * wrong.mean()


def test_sets_that_a_run_overruled_are_listed(toy_npz, toy_config, tmp_path, monkeypatch):
    untrained = {"method": {"trust": 0.5}, "optimizer": {"lr": 1e-6}}
    run = train(toy_npz, toy_config, tmp_path / "run", **untrained)
    doubted = torch.zeros(40, dtype=torch.bool)
    monkeypatch.setattr(ConCont, "overruled", lambda *_: doubted)
    before = resolve(run)
    rows = np.arange(40)
    outside = before.partial & ~before.candidates[rows, before.predicted] & ~before.overruled
    assert outside.sum() > 2  # where the network contradicts the set and is not certain
    row = np.flatnonzero(outside)[0]
    doubted[row] = True
    found = resolve(run)
    assert found.label[row] == found.predicted[row] != before.label[row]
    assert np.flatnonzero(found.overruled != before.overruled).tolist() == [row]
