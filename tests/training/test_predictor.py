"""The same questions to a network and to a classifier of features."""

import numpy as np
import pytest
import torch

import concont
from concont.errors import DataError, UsageError
from concont.training.trainers import trainer_of

METHODS = ("concont", "partial", "sspl", "parm")
LABELS_ALONE = ("sspl", "parm")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(params=METHODS)
def run(request, tmp_path, toy_arrays, toy_config):
    toy_config["train"]["epochs"] = 1
    if request.param != "concont":
        toy_config["method"] = {"name": request.param}
    arrays = {**toy_arrays, "classes": np.array(["left", "right"])}
    return concont.train(toy_config, data=arrays, out=tmp_path / "run")


def test_it_knows_what_it_was_made_for(run):
    predictor = run.predictor
    assert predictor.classes == run.classes == ("left", "right")
    assert predictor.shape == (8, 8, 1)
    assert predictor.device == torch.device("cuda" if torch.cuda.is_available() else "cpu")


def test_labels_are_places_among_the_classes(run, toy_arrays):
    labels = run.predictor.predict(toy_arrays["x_test"])
    assert labels.shape == (20,)
    assert set(labels.tolist()) <= {0, 1}
    assert np.mean(labels == toy_arrays["y_test"]) == run.summary.accuracy_last


def test_probabilities_or_a_clear_refusal(run, toy_arrays):
    predictor, images = run.predictor, toy_arrays["x_test"]
    if run.settings.method.name in LABELS_ALONE:
        assert not predictor.gives_probabilities
        with pytest.raises(UsageError, match=r"gives no probabilities; .* Run\.predict gives"):
            predictor.predict_proba(images)
        return
    assert predictor.gives_probabilities
    probs = predictor.predict_proba(images)
    assert probs.sum(axis=1) == pytest.approx(np.ones(20), abs=1e-5)
    assert np.array_equal(probs.argmax(axis=1), predictor.predict(images))


def test_figures_have_the_same_names_whatever_the_method(run, toy_arrays):
    figures = run.predictor.evaluate(toy_arrays["x_test"], toy_arrays["y_test"])
    assert list(figures) == ["n", "accuracy", "per_class", "confusion", "calibration_error"]
    assert figures["accuracy"] == run.summary.accuracy_last
    assert (figures["calibration_error"] is None) is (run.settings.method.name in LABELS_ALONE)


def test_its_weights_make_the_same_predictor_again(run, toy_arrays):
    restore = trainer_of(run.settings).restore
    again = restore(run.settings, run.data, run.predictor.weights(), "cpu")
    images = toy_arrays["x_test"]
    assert np.array_equal(again.predict(images), run.predict(images))
    for name, tensor in again.weights().items():
        assert torch.equal(tensor, run.predictor.weights()[name])


def test_inputs_of_another_shape_are_refused(run):
    with pytest.raises(DataError, match=r"are \(9, 9, 1\); the run learned from \(8, 8, 1\)"):
        run.predictor.predict(np.zeros((1, 9, 9), np.uint8))
    with pytest.raises(DataError, match="it must be uint8"):
        run.predictor.predict(np.zeros((1, 8, 8)))
