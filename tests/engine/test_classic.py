import json

import numpy as np
import pytest
from scipy.io import savemat

import concont
from concont.config import resolve
from concont.data.sources import from_arrays
from concont.engine import classic
from concont.engine.record import LINE
from concont.errors import DataError, UsageError
from concont.runs import RunFolder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def clusters(rows=90, seed=0):
    """Three round clusters of features; two candidates each, a quarter without a set."""
    stream = np.random.RandomState(seed)
    labels = np.arange(rows) % 3
    x = np.eye(3)[labels] * 4 + stream.randn(rows, 3) * 0.4
    sets = np.eye(3, dtype=bool)[labels]
    sets[np.arange(rows), (labels + 1 + stream.randint(0, 2, rows)) % 3] = True
    sets[::4] = True
    test = np.arange(30) % 3
    return {
        "x_train": x,
        "y_train": labels,
        "candidates": sets,
        "x_test": np.eye(3)[test] * 4 + stream.randn(30, 3) * 0.4,
        "y_test": test,
    }


@pytest.mark.parametrize("name", ["sspl", "parm"])
def test_a_run_on_features(tmp_path, name):
    run = concont.train({"method": {"name": name}}, data=clusters(), out=tmp_path / "run")
    assert run.summary["accuracy_last"] > 0.9
    assert run.summary["method"] == name
    assert run.summary["epochs"] is None
    assert set(run.summary["seconds_by"]) == {"features", "fit", "evaluation"}
    names = {path.name for path in (tmp_path / "run").iterdir()}
    whole = {"config.yaml", "environment.json", "data.json", "candidates.npz", "metrics.jsonl"}
    assert names >= whole | {"model.safetensors", "summary.json"}
    assert any(name.startswith("events.out") for name in names)
    (row,) = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert set(row) == set(LINE)
    assert row["pseudo_accuracy"] > 0.9
    assert row["loss"] is None

    predicted = run.predict(clusters()["x_test"])
    assert np.mean(predicted == clusters()["y_test"]) == run.summary["accuracy_last"]
    with pytest.raises(UsageError, match=f"{name} gives no probabilities"):
        run.predict_proba(clusters()["x_test"])
    with pytest.raises(DataError, match="the run learned from"):
        run.predict(np.zeros((2, 5)))


def test_a_run_on_images_can_be_evaluated_again(tmp_path, toy_npz):
    config = {"method": {"name": "sspl"}, "data": {"source": str(toy_npz), "labeled": 0.5}}
    run = concont.train(config, out=tmp_path / "run")
    assert run.summary["accuracy_last"] > 0.9
    figures = concont.load(tmp_path / "run").evaluate()
    assert figures["accuracy"] == run.summary["accuracy_last"]
    assert figures["calibration_error"] is None


def test_true_labels_are_for_the_log_alone(tmp_path):
    data = clusters()
    lies = {**data, "y_train": (data["y_train"] + 1) % 3}
    runs = [
        concont.train({"method": {"name": "sspl"}}, data=d, out=tmp_path / str(n))
        for n, d in enumerate((data, lies))
    ]
    predicted = [run.predict(data["x_test"]) for run in runs]
    assert np.array_equal(*predicted)


def test_what_cannot_be_learned_is_refused(tmp_path, toy_config):
    folder = RunFolder(tmp_path / "run")
    full = {**clusters(), "candidates": np.ones((90, 3), dtype=bool)}
    with pytest.raises(DataError, match="nothing to learn from"):
        classic.prepare(resolve({"method": {"name": "sspl"}}), folder, from_arrays(full))
    with pytest.raises(UsageError, match="this data holds features, no images"):
        toy_config["data"] = {}
        concont.train(toy_config, data=clusters(), out=folder.path)
    with pytest.raises(UsageError, match="sspl trains no network; leave the model out"):
        concont.train(
            {"method": {"name": "sspl"}}, data=clusters(), model=object(), out=folder.path
        )
    assert not folder.path.exists()


def test_a_matlab_file_is_trained_on(tmp_path):
    data = clusters()
    truth = np.eye(3)[data["y_train"]]
    path = tmp_path / "made-up.mat"
    content = {"data": data["x_train"], "partial_target": data["candidates"].T, "target": truth.T}
    savemat(path, {**content, "partial_target": content["partial_target"].astype(np.uint8)})
    config = {"method": {"name": "sspl"}, "data": {"source": str(path), "holdout": 0.2}}
    run = concont.train(config, out=tmp_path / "run")
    assert run.summary["evaluated_on"] == "holdout"
    assert run.summary["accuracy_last"] > 0.9
