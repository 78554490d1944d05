"""A third way of training; the command for one without a network, in real processes.

That for networks is in tests/cli.
"""

import json
import signal
import time
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import pytest
import torch

import concont as package
from concont.answers.predict import predict_files
from concont.classic.options import CLASSICS
from concont.config.resolve import resolve
from concont.data import sources
from concont.data.problem import make_problem
from concont.device import choose_device
from concont.errors import Interrupted, UsageError
from concont.ranks.world import RESTARTS
from concont.runs.folder import RunFolder
from concont.training.classic_run import ClassicRun
from concont.training.loop import Progress
from concont.training.predictor import check_inputs_fit
from concont.training.quality import evaluate_labels
from concont.training.recorder import Recorder
from concont.training.trainers import (
    TRAINERS,
    Trainer,
    is_to_be_resumed,
    reopen_run,
    trainer_of,
)
from processes import concont, start


@dataclass(frozen=True)
class NearestMean:
    """A method with a trainer of its own: the class whose mean image is nearest."""

    name: Literal["nearest-mean"] = "nearest-mean"

    trainer = "mean"
    sections = ("data", "method")
    brings: ClassVar = {}
    wants_unlabeled = False
    reads_truth = False
    fully_supervised = False


class MeanRun:
    epochs = None

    def __init__(self, settings, folder, data=None, model=None, resumed=False):
        self.settings, self.folder = settings, folder
        self.problem = make_problem(data or sources.load(settings.data.source), settings.data)
        self.since = 0 if resumed else None

    def execute(self, stop=lambda: False):
        problem = self.problem
        recorder = Recorder(
            self.folder, self.settings, problem, choose_device("cpu"), since=self.since
        )
        share = problem.candidates / problem.candidates.sum(axis=1, keepdims=True)
        pixels = problem.images.reshape(len(problem.rows), -1)
        means = torch.from_numpy(share.T @ pixels / share.sum(axis=0)[:, None])
        predictor = MeanPredictor(problem.classes, problem.images.shape[1:], means)
        found = predictor.evaluate(problem.test_images, problem.test_labels)["accuracy"]
        row = {"epoch": 1, "step": 1, "seconds": 1.0, "images_per_s": 1.0, "purity": 0.5}
        recorder.add({**row, "accuracy": found, "accuracy_best": found})
        recorder.finish(predictor.weights(), seconds=1.0, seconds_by={}, details={"spread": 2})
        recorder.close()
        yield Progress(1, 1, 1, True, row)


@dataclass(frozen=True)
class MeanPredictor:
    classes: tuple
    shape: tuple
    means: torch.Tensor
    device = torch.device("cpu")
    gives_probabilities = False

    @classmethod
    def restore(cls, settings, described, weights, device="auto", model=None):
        return cls(tuple(described["classes"]), tuple(described["shape"]), weights["means"])

    def predict_proba(self, inputs):
        raise UsageError("nearest-mean gives no probabilities")

    def predict(self, inputs):
        rows = check_inputs_fit(inputs, self.shape).reshape(len(inputs), -1)
        return torch.cdist(torch.from_numpy(rows.astype(float)), self.means).argmin(dim=1).numpy()

    def evaluate(self, inputs, labels):
        return evaluate_labels(self.predict(inputs), labels, self.classes)

    def weights(self):
        return {"means": self.means}


@pytest.fixture
def third_trainer(monkeypatch):
    monkeypatch.setitem(CLASSICS, "nearest-mean", NearestMean)
    monkeypatch.setitem(TRAINERS, "mean", Trainer(MeanRun, MeanPredictor.restore))


@pytest.mark.usefixtures("third_trainer")
def test_a_third_way_of_training_needs_a_line_and_nothing_else(tmp_path, toy_npz):
    data = {"source": str(toy_npz), "labeled": 0.5, "ambiguity": 0.3}
    run = package.train({"method": {"name": "nearest-mean"}, "data": data}, out=tmp_path / "run")
    assert run.summary.accuracy_last == 1.0
    assert run.summary["spread"] == 2
    again = package.load(tmp_path / "run")
    assert again.evaluate() == run.evaluate()
    assert again.evaluate()["accuracy"] == 1.0
    folder = RunFolder(tmp_path / "run")
    (line,) = folder.metrics()
    assert (line["purity"], line["thresholds"]) == (0.5, None)
    (folder / "summary.json").unlink()
    reopened = reopen_run(folder)
    assert isinstance(reopened, MeanRun)
    assert len(list(reopened.execute())) == 1
    assert package.load(tmp_path / "run").summary == run.summary
    with pytest.raises(UsageError, match="gives a label alone"):
        predict_files(run, [], top=2)
    with pytest.raises(UsageError, match="gives no probabilities"):
        run.predict_proba(np.zeros((1, 8, 8), np.uint8))


def test_a_method_that_says_nothing_trains_a_network(toy_config):
    settings = resolve(toy_config)
    assert trainer_of(settings) is TRAINERS["network"]
    assert trainer_of(replace(settings, method=CLASSICS["sspl"]())) is TRAINERS["classic"]


@pytest.mark.slow
def test_train_resume_and_evaluate(tmp_path, toy_npz, monkeypatch):
    monkeypatch.setitem(concont.__globals__["ENVIRONMENT"], "XDG_CACHE_HOME", str(tmp_path))
    words = ("--method", "sspl", "--data", toy_npz, "--labeled", "0.5", "--out", tmp_path / "run")
    done = concont("train", *words)
    assert done.returncode == 0, done.stderr
    assert "test accuracy" in done.stdout
    assert "epoch" not in done.stdout
    summary = json.loads((tmp_path / "run/summary.json").read_text())

    (tmp_path / "run/summary.json").unlink()  # as a kill would have left it
    assert isinstance(reopen_run(RunFolder(tmp_path / "run")), ClassicRun)
    again = concont("train", "--resume", tmp_path / "run")
    assert again.returncode == 0, again.stderr
    resumed = json.loads((tmp_path / "run/summary.json").read_text())
    assert resumed["accuracy_last"] == summary["accuracy_last"]
    assert resumed["settings_hash"] == summary["settings_hash"]
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) == 1
    assert "is finished" in concont("train", "--resume", tmp_path / "run").stdout

    evaluated = concont("evaluate", tmp_path / "run", "--json")
    assert json.loads(evaluated.stdout)["accuracy"] == summary["accuracy_last"]
    assert concont("evaluate", tmp_path / "run").stdout.startswith("accuracy ")
    picture = tmp_path / "one.png"
    from PIL import Image

    Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save(picture)
    said = concont("predict", tmp_path / "run", picture, "--format", "jsonl")
    assert (said.returncode, said.stderr) == (0, "")
    label = json.loads(said.stdout)["label"]
    assert said.stdout.count('"probability": null') == 2
    said = concont("predict", tmp_path / "run", picture)
    assert said.stdout == f"image,label,probability\n{picture},{label},\n"
    refused = concont("predict", tmp_path / "run", picture, "--top", "2")
    in_a_line(refused, 2, "gives a label alone, so it must be 1")


@pytest.fixture
def rows(tmp_path):
    """A file of features, with a test set."""
    x, y = np.random.RandomState(0).randn(60, 4), np.arange(60) % 3
    path = tmp_path / "rows.npz"
    np.savez(path, x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    return path


def in_a_line(done, code, message, said=""):
    assert (done.returncode, done.stdout) == (code, said)
    (line,) = done.stderr.splitlines()
    assert message in line


@pytest.mark.slow
def test_a_run_of_features(tmp_path, rows):
    words = ("--method", "parm", "--set", "method.max_steps=1", "--labeled", "0.5")
    done = concont("train", "--data", rows, *words, "--epochs", "3", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    unused, warning = done.stderr.splitlines()
    assert unused == "parm trains no network: --epochs is not used"
    assert warning.startswith("after 1 steps the machine can still be")
    assert "epoch" not in done.stdout

    (tmp_path / "one.png").write_bytes(b"")
    refused = concont("predict", tmp_path / "run", tmp_path / "one.png")
    in_a_line(refused, 2, "error: the run learned from rows of features")
    in_a_line(concont("evaluate", tmp_path / "run", "--device", "cuda"), 2, "no CUDA device")


MISTAKES = {
    "one partial row": (
        ("--method", "parm", "--labeled", "0.025", "--set", "method.lam=cv"),
        1,
        "cannot be searched with a single partial row",
    ),
    "a union": (
        ("--method", "parm", "--set", "method.lam=-1"),
        2,
        "method.lam is -1: input should be greater than 0, or 'cv'",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_clear_line_and_writes_nothing(tmp_path, rows, mistake):
    words, code, message = MISTAKES[mistake]
    in_a_line(concont("train", "--data", rows, *words, "--out", tmp_path / "run"), code, message)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_numbers_too_large_to_compute_with(tmp_path):
    x = np.random.RandomState(0).randn(40, 3) * 1e300
    np.savez(tmp_path / "large.npz", x_train=x, y_train=np.arange(40) % 3)
    words = ("--method", "parm", "--labeled", "0.5", "--out", tmp_path / "run")
    done = concont("train", "--data", tmp_path / "large.npz", *words)
    said = "parm learns from 40 rows of features, 20 with candidate sets\n"
    in_a_line(done, 1, "error: parm cannot learn from this data: ", said)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_request_to_stop_ends_a_fit(tmp_path, rows, number):
    run = tmp_path / "run"
    endless = ("--set", "method.rounds=1000000000", "--set", "method.tolerance=0")
    process = start("train", "--method", "sspl", "--data", rows, *endless, "--out", run)
    try:
        while not list(run.glob("events.out*")):  # the fit is next
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    said = "sspl learns from 40 rows of features, 40 with candidate sets\n"
    assert (process.returncode, output) == (1, said)
    assert errors == f"stopped; go on with: concont train --resume {run}\n"

    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("1000000000", "3"))
    (run / "checksums.json").unlink()  # by which it is known that this is another run
    done = concont("train", "--resume", run)
    assert done.returncode == 0, done.stderr
    assert json.loads((run / "summary.json").read_text())["rounds"] == 3


@pytest.mark.slow
def test_a_network_of_images_on_features_is_refused_in_a_line(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, x_train=np.random.rand(20, 3), y_train=np.arange(20) % 2)
    done = concont("train", "--data", path, "--recipe", "own-cpu", "--out", tmp_path / "run")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "this data holds features, and small learns of images" in line
    assert "Traceback" not in done.stderr


def test_only_a_command_that_is_started_again_takes_up_what_it_began(
    tmp_path, toy_npz, toy_config, monkeypatch
):
    toy_config["data"]["source"] = str(toy_npz)
    settings, folder = resolve(toy_config), RunFolder(tmp_path / "run")
    monkeypatch.delenv(RESTARTS, raising=False)
    begun = TRAINERS["network"].prepare(settings, folder)
    assert not is_to_be_resumed(folder, settings)
    with pytest.raises(Interrupted):
        for _ in begun.execute(stop=lambda: True):
            pass
    assert not is_to_be_resumed(folder, settings)
    monkeypatch.setenv(RESTARTS, "1")
    assert is_to_be_resumed(folder, settings)
    longer = replace(settings, train=replace(settings.train, epochs=9))
    assert not is_to_be_resumed(folder, longer)
    assert is_to_be_resumed(folder, longer, minutes=1.0)  # which chose the epochs
    assert not is_to_be_resumed(RunFolder(tmp_path / "none"), settings)
