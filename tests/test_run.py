import numpy as np
import pytest
from torch import nn

import concont
from concont.errors import DataError, UsageError


def test_a_run_of_an_own_network_cannot_be_loaded_without_it(tmp_path, toy_arrays, toy_config):
    body = nn.Sequential(nn.Flatten(), nn.Linear(64, 12))
    concont.train(toy_config, data=toy_arrays, model=body, out=tmp_path / "run")
    with pytest.raises(
        UsageError, match="is a network of your own, which is run only if you name it"
    ):
        concont.load(tmp_path / "run")


def test_evaluation_on_other_classes_is_refused(tmp_path, toy_arrays, toy_config):
    run = concont.train(toy_config, data=toy_arrays, out=tmp_path / "run")
    with pytest.raises(DataError, match="digits has other classes"):
        run.evaluate("digits")


@pytest.fixture
def run(tmp_path, toy_arrays, toy_config):
    return concont.train(toy_config, data=toy_arrays, out=tmp_path / "run")


def test_evaluation_on_own_arrays(tmp_path, run, toy_arrays, toy_npz):
    images, labels = toy_arrays["x_test"], toy_arrays["y_test"]
    figures = run.evaluate(images, labels)
    assert figures == {**run.evaluate(toy_npz), "on": "given"}
    assert figures["accuracy"] == run.summary.accuracy_last
    part = run.evaluate(images[:7], labels[:7].tolist())
    assert (part["n"], part["on"]) == (7, "given")
    assert part["accuracy"] == np.mean(run.predict(images[:7]) == labels[:7])


def test_evaluation_of_features_on_own_arrays(tmp_path):
    x, y = np.random.RandomState(0).randn(60, 4), np.arange(60) % 3
    x[np.arange(60), y] += 5
    arrays = {"x_train": x[:40], "y_train": y[:40]}
    run = concont.train({"method": {"name": "sspl"}}, data=arrays, out=tmp_path / "run")
    figures = run.evaluate(x[40:], y[40:])
    assert figures["accuracy"] == np.mean(run.predict(x[40:]) == y[40:]) > 0.8
    assert (figures["n"], figures["calibration_error"]) == (20, None)


BAD = {
    "give the true labels": lambda x, y: (x,),
    "the run learned from arrays; give some": lambda x, y: (),
    "images is int64 of shape": lambda x, y: (5, y),
    "labels go with images of your own": lambda x, y: ("digits", y),
    "labels has 19 rows, its images 20": lambda x, y: (x, y[:19]),
    "labels row 3 has no label": lambda x, y: (x, np.where(np.arange(20) == 3, -1, y)),
    "labels row 1 is 2; it must be 0 to 1": lambda x, y: (x, y * 2),
    "labels is float64": lambda x, y: (x, y * 1.0),
    "the images are \\(4, 8, 1\\); the run": lambda x, y: (x[:, 4:], y),
    "evaluate: images is float64": lambda x, y: (x / 255, y),
}


@pytest.mark.parametrize("message", BAD)
def test_arrays_that_cannot_be_measured_are_refused(run, toy_arrays, message):
    arguments = BAD[message](toy_arrays["x_test"], toy_arrays["y_test"])
    with pytest.raises((DataError, UsageError), match=message):
        run.evaluate(*arguments)


def test_a_damaged_network_is_named(tmp_path, toy_arrays, toy_config):
    concont.train(toy_config, data=toy_arrays, out=tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"model\.safetensors is damaged"):
        concont.load(tmp_path / "run")


def test_data_that_changed_is_not_measured(tmp_path, toy_npz, toy_arrays, toy_config):
    toy_config["data"]["source"] = str(toy_npz)
    run = concont.train(toy_config, out=tmp_path / "run")
    np.savez(toy_npz, **{**toy_arrays, "x_test": toy_arrays["x_test"] // 2})
    with pytest.raises(DataError, match="other data"):
        run.evaluate()
    arrays = {k: v for k, v in toy_arrays.items() if "test" not in k}
    np.savez(toy_npz, **arrays)
    with pytest.raises(DataError, match="no test set"):
        run.evaluate(str(toy_npz))


def test_predictions_leave_nothing_in_the_cache(tmp_path, toy_npz, toy_arrays, monkeypatch):
    """Training and measuring keep the features of whole data sets; a batch comes once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = {"method": {"name": "sspl", "size": 16}, "data": {"source": str(toy_npz)}}
    run = concont.train(config, out=tmp_path / "run")
    kept = sorted((tmp_path / "cache").rglob("*.npy"))
    assert len(kept) == 2  # images to train on, and to test
    predicted = [run.predict(toy_arrays["x_test"][k : k + 10]) for k in (0, 10)]
    assert sorted((tmp_path / "cache").rglob("*.npy")) == kept
    found = np.mean(np.concatenate(predicted) == toy_arrays["y_test"])
    assert found == run.summary["accuracy_last"]
    for path in kept:
        path.unlink()
    assert run.evaluate()["accuracy"] == found
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == 1


def own_body():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12))


def test_a_second_load_with_the_same_module_leaves_the_first_alone(
    tmp_path, toy_arrays, toy_config
):
    for seed in (1, 2):
        toy_config["train"] |= {"seed": seed, "epochs": 1}
        concont.train(toy_config, data=toy_arrays, model=own_body(), out=tmp_path / str(seed))
    body, images = own_body(), toy_arrays["x_test"]
    before = {name: tensor.clone() for name, tensor in body.state_dict().items()}
    first = concont.load(tmp_path / "1", model=body)
    expected = first.predict_proba(images)
    second = concont.load(tmp_path / "2", model=body)
    assert not np.array_equal(second.predict_proba(images), expected)
    assert np.array_equal(first.predict_proba(images), expected)
    assert all(tensor.equal(before[name]) for name, tensor in body.state_dict().items())
