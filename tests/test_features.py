"""Rows of features in place of images, from the command to every answer."""

import csv
import json
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import concont
from concont.config.registry import load_registered, registered_names
from concont.config.resolve import resolve
from concont.config.start import resolve_start
from concont.data.sources import from_arrays
from concont.deploy.onnx_model import load_onnx
from concont.errors import Interrupted, UsageError
from concont.runs.folder import RunFolder
from concont.training.pace import announce
from concont.training.prepare import prepare
from concont.training.trainers import reopen_run
from processes import begin
from processes import concont as command

NETWORKS = [name for name in registered_names() if load_registered(name).trainer == "network"]
SMALL = {
    "data": {"labeled": 0.5, "ambiguity": 0.3},
    "model": {"width": 16, "hidden": 16, "embedding": 8},
    "train": {"epochs": 6, "batch_size": 32, "device": "cpu", "checkpoint_every": 0},
}


def clusters(kind=np.float32, size=12, n=240):
    """Three classes far apart, and a column that never varies."""
    stream = np.random.RandomState(0)
    labels = np.arange(n) % 3
    rows = stream.randn(n, size) * 3 + 100
    for k in range(3):
        rows[np.arange(n), 3 * labels + k] += 12
    rows[:, -1] = 7
    rows, half = rows.astype(kind), n * 3 // 4
    return {
        "x_train": rows[:half],
        "y_train": labels[:half],
        "x_test": rows[half:],
        "y_test": labels[half:],
        "classes": np.array(["ant", "bee", "cow"]),
    }


@pytest.fixture
def npz(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, **clusters())
    return path


@pytest.mark.parametrize("name", NETWORKS)
def test_every_method_of_networks_learns_of_features(tmp_path, name):
    config = {**SMALL, "method": {"name": name}, "train": {**SMALL["train"], "epochs": 20}}
    run = concont.train(config, data=clusters(), out=tmp_path / "run")
    assert (run.settings.recipe, run.settings.model.name) == ("features", "mlp")
    assert run.summary["accuracy_last"] > 0.7, name
    assert run.shape == (12,)


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_the_precision_that_features_are_given_in_makes_no_difference(tmp_path, kind):
    rows = clusters()
    same = {**rows, **{k: rows[k].round().astype(kind) for k in ("x_train", "x_test")}}
    plain = {**rows, **{k: rows[k].round() for k in ("x_train", "x_test")}}
    runs = [
        concont.train(SMALL, data=data, out=tmp_path / str(n))
        for n, data in enumerate((same, plain))
    ]
    first, second = (load_file(run.path / "model.safetensors") for run in runs)
    assert all(torch.equal(first[name], second[name]) for name in first)
    probs = [
        run.predict_proba(data["x_test"]) for run, data in zip(runs, (same, plain), strict=True)
    ]
    assert np.array_equal(*probs)


def test_a_column_that_never_varied_is_not_looked_at(tmp_path):
    data = clusters()
    run = concont.train(SMALL, data=data, out=tmp_path / "run")
    other = data["x_test"].copy()
    other[:, -1] = -1e6
    assert np.allclose(run.predict_proba(other), run.predict_proba(data["x_test"]), atol=1e-6)


def test_votes_hold_outs_and_trust_work_on_features(tmp_path):
    data = clusters()
    del data["x_test"], data["y_test"]
    sets = np.eye(3, dtype=bool)[data["y_train"]] | (np.random.RandomState(1).rand(180, 3) < 0.3)
    data |= {"candidates": sets, "candidate_weights": sets * np.array([1.0, 2.0, 3.0])}
    config = {**SMALL, "data": {"holdout": 0.2}, "method": {"name": "concont", "trust": 0.9}}
    config["train"] = {**SMALL["train"], "epochs": 20}
    run = concont.train(config, data=data, out=tmp_path / "run")
    assert run.summary.evaluated_on == "holdout"
    assert run.summary["accuracy_last"] > 0.8


def test_a_run_that_was_stopped_ends_in_the_very_same_weights(tmp_path, npz):
    settings = resolve({**SMALL, "data": {"source": str(npz), "labeled": 0.5, "ambiguity": 0.3}})
    for _ in prepare(settings, RunFolder(tmp_path / "whole")).execute():
        pass
    done = iter([False] * 7 + [True] + [False] * 100)  # in the middle of an epoch
    with pytest.raises(Interrupted):
        for _ in prepare(settings, RunFolder(tmp_path / "cut")).execute(lambda: next(done)):
            pass
    for _ in reopen_run(RunFolder(tmp_path / "cut")).execute():
        pass
    first, second = (tmp_path / name / "model.safetensors" for name in ("whole", "cut"))
    assert first.read_bytes() == second.read_bytes()


def test_networks_of_images_and_of_features_are_told_apart(tmp_path, toy_arrays):
    folder = RunFolder(tmp_path / "run")
    for recipe, arrays, said in (
        ("own-cpu", clusters(), "holds features, and small learns of images"),
        ("features", toy_arrays, "holds images, and mlp learns of features"),
    ):
        with pytest.raises(UsageError, match=said):
            prepare(resolve({}, recipe), folder, from_arrays(arrays))
    with pytest.raises(UsageError, match=r"views\.weak\.crop has no effect with model\.name mlp"):
        concont.train({**SMALL, "views": {"weak": {"crop": [0.8, 1]}}}, data=clusters())
    assert not folder.path.exists()


def test_an_own_network_takes_features(tmp_path):
    own, data = torch.nn.Sequential(torch.nn.Linear(12, 9), torch.nn.Tanh()), clusters()
    run = concont.train(SMALL, data=data, model=own, out=tmp_path / "run")
    again = concont.load(run.path, model=own)
    assert np.array_equal(run.predict_proba(data["x_test"]), again.predict_proba(data["x_test"]))


@pytest.mark.parametrize("form", ["onnx", "torchscript", "safetensors"])
def test_a_run_is_exported_to_a_file_that_takes_features(tmp_path, npz, form):
    from concont.deploy.export import export_run

    config = {**SMALL, "data": {**SMALL["data"], "source": str(npz)}}
    run = concont.train(config, out=tmp_path / "run")
    exported = export_run(run, tmp_path / "model", form)
    assert exported.description.shape == (12,)
    assert (exported.checked.kind, exported.checked.images) == ("test", 42)
    with pytest.raises(UsageError, match="--int8 is for networks of images"):
        export_run(run, tmp_path / "small", "onnx", int8=True)
    if form == "onnx":
        rows, model = clusters()["x_test"], load_onnx(tmp_path / "model", "cpu")
        assert np.allclose(model.predict_proba(rows), run.predict_proba(rows), atol=1e-5)
        assert model.session.get_inputs()[0].name == "features"


@pytest.mark.slow
def test_the_commands_answer_for_features_as_for_images(tmp_path, npz):
    words = [f"--set={s}.{k}={v}" for s in ("model",) for k, v in SMALL[s].items()]
    words += ["--labeled=0.5", "--ambiguity=0.3", "--epochs=12", "--set=train.batch_size=32"]
    done = command("train", "--data", npz, *words, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "180 rows of 12 features, " in " ".join(done.stdout.split())

    figures = json.loads(command("evaluate", tmp_path / "run", "--json").stdout)
    assert figures["n"] == 60
    done = command("export", tmp_path / "run", "-o", tmp_path / "model.onnx")
    assert done.returncode == 0, done.stderr
    card = (tmp_path / "MODEL_CARD.md").read_text()
    assert "| features | 12 in a row |" in card
    assert "image" not in card.split("## Check of the export")[0]

    answers = [command("predict", tmp_path / m, npz, "--top", "2") for m in ("run", "model.onnx")]
    assert answers[0].returncode == answers[1].returncode == 0
    first, second = (list(csv.DictReader(each.stdout.splitlines())) for each in answers)
    assert [row["image"] for row in first] == [str(k) for k in range(60)]
    assert [row["label"] for row in first] == [row["label"] for row in second]
    assert np.mean([row["label"] == k for row, k in zip(first, truth(), strict=True)]) > 0.8

    done = command("resolve", tmp_path / "run", "-o", tmp_path / "labels.csv")
    assert done.returncode == 0, done.stderr
    labels = list(csv.DictReader((tmp_path / "labels.csv").read_text().splitlines()))
    assert sorted(int(row["review"]) for row in labels) == list(range(1, 181))
    done = command("report", tmp_path / "run", "-o", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    assert "data:image" not in (tmp_path / "report.html").read_text().split("<body", 1)[1][:200_000]
    done = command("data", "views", "--data", npz, "--out", tmp_path / "views.png")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    done = command("serve", tmp_path / "model.onnx")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "labels rows of features, not image files" in done.stderr


def truth():
    return [("ant", "bee", "cow")[k] for k in clusters()["y_test"]]


def test_a_length_in_minutes_and_a_start_from_another_run(tmp_path, npz):
    config = {**SMALL, "data": {"source": str(npz), "labeled": 0.5, "ambiguity": 0.3}}
    run, line = announce(prepare(resolve(config), RunFolder(tmp_path / "timed")), minutes=5)
    assert run.epochs > 6
    assert "180 rows of 12 features" in line
    first = concont.train(config, out=tmp_path / "first")
    settings = resolve_start(first.path, {"train": {"epochs": 1}})
    assert settings.views == first.settings.views
    following = concont.train(settings, out=tmp_path / "next")
    assert following.data["normalisation"] == first.data["normalisation"]


@pytest.mark.slow
def test_a_killed_run_resumes_bit_for_bit(tmp_path, npz):
    words = ["train", "--data", npz, "--labeled=0.5", "--ambiguity=0.3", "--epochs=15"]
    words += ["--set=model.width=16", "--set=train.batch_size=32", "--set=train.checkpoint_every=0"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert command(*words, "--out", whole).returncode == 0
    process = begin(*words, "--out", cut, out=tmp_path / "log")
    end = time.monotonic() + 60
    while not (cut / "checkpoint.pt").exists() and time.monotonic() < end:
        time.sleep(0.01)
    process.kill()
    process.join()
    assert (cut / "checkpoint.pt").exists()
    assert not (cut / "summary.json").exists()
    done = command("train", "--resume", cut)
    assert done.returncode == 0, done.stderr
    first, second = (folder / "model.safetensors" for folder in (whole, cut))
    assert first.read_bytes() == second.read_bytes()
