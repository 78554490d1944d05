import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from torch import nn

import concont
from concont.errors import DataError, UsageError


def test_train_load_and_predict_on_own_arrays(tmp_path, toy_arrays, toy_config):
    run = concont.train(toy_config, data=toy_arrays, out=tmp_path / "run")
    probs = run.predict_proba(toy_arrays["x_test"])
    assert probs.shape == (20, 2)
    assert probs.sum(axis=1) == pytest.approx(np.ones(20), abs=1e-5)
    right = probs.argmax(axis=1) == toy_arrays["y_test"]
    assert right.mean() == run.summary["accuracy_last"]
    again = concont.load(tmp_path / "run")
    assert np.array_equal(again.predict_proba(toy_arrays["x_test"]), probs)
    assert again.classes == ("0", "1")
    with pytest.raises(
        DataError, match=r"the images are \(9, 9, 1\); the run learned from \(8, 8, 1\)"
    ):
        run.predict_proba(np.zeros((1, 9, 9), np.uint8))


def test_an_own_network(tmp_path, toy_arrays, toy_config):
    def body():
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.BatchNorm1d(12), nn.ReLU())

    run = concont.train(toy_config, data=toy_arrays, model=body(), out=tmp_path / "run")
    again = concont.load(tmp_path / "run", model=body())
    images = toy_arrays["x_test"]
    assert np.array_equal(run.predict_proba(images), again.predict_proba(images))


def test_a_run_of_an_own_network_cannot_be_loaded_without_it(tmp_path, toy_arrays, toy_config):
    body = nn.Sequential(nn.Flatten(), nn.Linear(64, 12))
    concont.train(toy_config, data=toy_arrays, model=body, out=tmp_path / "run")
    with pytest.raises(UsageError, match="if it is one of your own"):
        concont.load(tmp_path / "run")


def test_a_file_a_recipe_and_evaluation(tmp_path, toy_npz, toy_config):
    toy_config["data"]["source"] = str(toy_npz)
    run = concont.train(toy_config, out=tmp_path / "run")
    figures = run.evaluate()
    assert figures["accuracy"] == run.summary["accuracy_last"]
    assert (figures["n"], figures["on"]) == (20, "test")
    settings = concont.load(tmp_path / "run").settings
    rerun = concont.train(settings, out=tmp_path / "rerun")
    assert rerun.summary["settings_hash"] == run.summary["settings_hash"]
    assert rerun.evaluate() == figures
    with pytest.raises(UsageError, match="not empty"):
        concont.train(settings, out=tmp_path / "run")


def test_own_arrays_are_never_called_by_a_recipes_name(tmp_path, toy_arrays, toy_config):
    run = concont.train({**toy_config, "recipe": "digits"}, data=toy_arrays, out=tmp_path / "run")
    assert run.summary["recipe"] == "digits"
    assert len(run.summary["data"]) == 64  # a digest


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


def test_two_threads_train_and_load_as_one_alone_would(tmp_path, toy_arrays, toy_config):
    """In the same folder of dated runs, from seeds of their own."""

    def train(job):
        seed, where = job
        config = {**toy_config, "train": {**toy_config["train"], "seed": seed}}
        run = concont.train(config, data=toy_arrays, out=where)
        return concont.load(run.path).predict_proba(toy_arrays["x_test"])

    alone = [train((seed, tmp_path / f"alone-{seed}")) for seed in (1, 2)]
    for attempt in range(3):
        with ThreadPoolExecutor(2) as threads:
            jobs = [(seed, tmp_path / f"{attempt}-{seed}") for seed in (1, 2)]
            together = list(threads.map(train, jobs))
        assert all(map(np.array_equal, alone, together))


def test_two_runs_at_the_same_moment_have_a_folder_each(
    tmp_path, toy_arrays, toy_config, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("concont.runs.folder.time.strftime", lambda form: "20260101-000000")
    with ThreadPoolExecutor(3) as threads:
        runs = threads.map(lambda _: concont.train(toy_config, data=toy_arrays), range(3))
    names = sorted(run.path.name for run in runs)
    assert names == [f"20260101-000000-concont{end}" for end in ("", "-2", "-3")]
    for name in names:
        lines = (tmp_path / "runs" / name / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3]
