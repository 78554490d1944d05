import json
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load, save_file
from scipy.io import savemat
from sklearn.exceptions import ConvergenceWarning

import concont
from concont import PARMClassifier
from concont.classic.options import Parm
from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import DataError, UsageError
from concont.runs.folder import RunFolder
from concont.training import classic_run
from concont.training.recorder import COLUMNS


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


def features_run(folder, **method):
    return concont.train({"method": method}, data=clusters(), out=folder)


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
    assert set(row) == set(COLUMNS)
    assert row["pseudo_accuracy"] > 0.9
    assert row["loss"] is None

    predicted = run.predict(clusters()["x_test"])
    assert np.mean(predicted == clusters()["y_test"]) == run.summary["accuracy_last"]
    with pytest.raises(UsageError, match=f"{name} gives no probabilities"):
        run.predict_proba(clusters()["x_test"])
    with pytest.raises(DataError, match="the run learned from"):
        run.predict(np.zeros((2, 5)))


def test_where_sets_are_all_there_is_labels_are_held_against_them(tmp_path):
    arrays = {name: clusters()[name] for name in ("x_train", "candidates")}
    np.savez(tmp_path / "sets.npz", **arrays)
    config = {
        "method": {"name": "sspl"},
        "data": {"source": str(tmp_path / "sets.npz"), "holdout": 0.3},
    }
    run = concont.train(config, out=tmp_path / "run")
    assert run.summary.accuracy_last is None
    assert run.summary.evaluated_on == "sets"
    problem = run.read_problem()
    predicted = run.predict(problem.test_images)
    inside = problem.test_candidates[np.arange(20), predicted]  # of 67 with a set
    assert run.summary.share_in_sets == inside.mean() > 0.8
    assert run.summary.probability_on_sets is None
    same = {"share_in_sets": inside.mean(), "probability_on_sets": None}
    assert run.evaluate() == {"on": "sets", "n": 20, **same}


def test_a_run_on_images_can_be_evaluated_again(tmp_path, toy_npz):
    config = {"method": {"name": "sspl"}, "data": {"source": str(toy_npz), "labeled": 0.5}}
    run = concont.train(config, out=tmp_path / "run")
    assert run.summary["accuracy_last"] > 0.9
    figures = concont.load(tmp_path / "run").evaluate()
    assert figures["accuracy"] == run.summary["accuracy_last"]
    assert figures["calibration_error"] is None


@pytest.mark.parametrize(
    "method",
    [{"name": "sspl"}, {"name": "parm"}, {"name": "parm", "lam": "cv"}],
    ids=["sspl", "parm", "parm-cv"],
)
def test_true_labels_are_for_the_log_alone(tmp_path, method):
    data = clusters()
    lies = {**data, "y_train": (data["y_train"] + 1) % 3}
    runs = [
        concont.train({"method": method}, data=d, out=tmp_path / str(n))
        for n, d in enumerate((data, lies))
    ]
    assert runs[0].summary["accuracy_last"] > 0.9
    predicted = [run.predict(data["x_test"]) for run in runs]
    assert np.array_equal(*predicted)


def test_what_cannot_be_learned_is_refused(tmp_path, toy_config):
    folder = RunFolder(tmp_path / "run")
    full = {**clusters(), "candidates": np.ones((90, 3), dtype=bool)}
    with pytest.raises(DataError, match="nothing to learn from"):
        classic_run.prepare(resolve({"method": {"name": "sspl"}}), folder, from_arrays(full))
    with pytest.raises(UsageError, match="holds features, and small learns of images"):
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


def test_other_data_is_refused_on_resume(tmp_path, toy_npz, toy_arrays):
    config = {"method": {"name": "sspl"}, "data": {"source": str(toy_npz), "labeled": 0.5}}
    folder = RunFolder(concont.train(config, out=tmp_path / "run").path)
    (folder / "summary.json").unlink()
    settings = resolve(config)
    assert classic_run.prepare(settings, folder, resumed=True).resumed
    np.savez(toy_npz, **{**toy_arrays, "x_train": toy_arrays["x_train"] // 2})
    with pytest.raises(DataError, match="trained on other data"):
        classic_run.prepare(settings, folder, resumed=True)


def test_size_and_seed_reach_features_and_classifier(tmp_path, toy_npz, monkeypatch):
    sizes, seeds = [], []

    def describe(rows, size, device):
        sizes.append(size)
        return true_features(rows, size, device)

    def make(options, device, seed):
        seeds.append(seed)
        return true_classifier(options, device, seed)

    true_features, true_classifier = classic_run.compute_features, Parm.make_classifier
    monkeypatch.setattr(classic_run, "compute_features", describe)
    monkeypatch.setattr(Parm, "make_classifier", make)
    config = {"data": {"source": str(toy_npz)}, "method": {"name": "parm", "size": 16}}
    settings = resolve({**config, "train": {"seed": 7}})
    list(classic_run.prepare(settings, RunFolder(tmp_path / "run")).execute())
    assert sizes == [16, 16]  # images to train on, and to test
    assert seeds == [7]


def test_the_summary_says_what_the_classifier_did(tmp_path):
    parm = features_run(tmp_path / "parm", name="parm", lam="cv", mu=0.1, k=4)
    fitted = PARMClassifier(lam="cv", mu=0.1, k=4, random_state=1)
    fitted.fit(clusters()["x_train"], clusters()["candidates"])
    found = [parm.summary[name] for name in ("lam", "mu", "gain", "gap", "steps")]
    assert found == [fitted.lam_, fitted.mu_, fitted.gain_, fitted.gap_, fitted.steps_]
    assert parm.summary["steps"] > 0
    assert parm.summary["rounds"] is None
    sspl = features_run(tmp_path / "sspl", name="sspl", rounds=3, tolerance=0)
    assert sspl.summary["rounds"] == 3
    assert sspl.summary["lam"] is None


def test_a_search_needs_two_partial_rows(tmp_path):
    """Known before anything is written."""
    folder = tmp_path / "run"
    sets = np.ones((90, 3), dtype=bool)
    sets[4] = [True, False, False]
    one = {**clusters(), "candidates": sets}
    for searched in ("lam", "mu"):
        with pytest.raises(DataError, match="cannot be searched with a single partial row"):
            concont.train({"method": {"name": "parm", searched: "cv"}}, data=one, out=folder)
    assert not folder.exists()
    assert concont.train({"method": {"name": "parm"}}, data=one, out=folder).summary["lam"] == 1


@pytest.mark.parametrize("error", [ValueError, torch.linalg.LinAlgError])
def test_what_the_classifier_refuses_is_an_error_in_one_line(tmp_path, monkeypatch, error):
    def fail(self, x, y):
        raise error("no such\n  rows")

    monkeypatch.setattr(PARMClassifier, "fit", fail)
    with pytest.raises(DataError, match="^parm cannot learn from this data: no such rows$"):
        features_run(tmp_path / "run", name="parm")


@pytest.mark.filterwarnings("default")
def test_warnings_go_to_the_log_each_once(tmp_path, monkeypatch, caplog):
    def warn(self, x, y):
        for text in ("one", "two", "one"):
            warnings.warn(text, ConvergenceWarning, stacklevel=1)
        return fit(self, x, y)

    fit = PARMClassifier.fit
    monkeypatch.setattr(PARMClassifier, "fit", warn)
    with warnings.catch_warnings(record=True) as caught:
        features_run(tmp_path / "run", name="parm")
    assert [record.getMessage() for record in caplog.records] == ["one", "two"]
    assert not caught


def test_a_device_that_is_not_there_is_refused(tmp_path, monkeypatch):
    run = features_run(tmp_path / "run", name="sspl")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="no CUDA device"):
        concont.load(run.path, device="cuda")


@pytest.mark.parametrize("name", ["sspl", "parm"])
def test_a_file_without_what_a_prediction_needs_is_refused(tmp_path, name):
    run, x = features_run(tmp_path / "run", name=name), clusters()["x_test"]
    path = run.path / "model.safetensors"
    (run.path / "checksums.json").unlink()  # which would find it first
    whole = load(path.read_bytes())  # not mapped: the file is written anew
    needed = {key: whole[key] for key in run.settings.method.learned}
    save_file(needed, path)
    assert np.array_equal(concont.load(run.path).predict(x), run.predict(x))
    for key in needed:
        save_file({k: v for k, v in needed.items() if k != key}, path)
        with pytest.raises(DataError, match=f"model.safetensors holds no {key}"):
            concont.load(run.path)
