import json
import os
import pty
import select
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch import nn

import concont
from concont.errors import DataError, UsageError
from processes import WARM, own_body, train_at_a_terminal, train_own


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


def test_settings_may_be_a_file_by_its_path(tmp_path, toy_arrays, toy_config):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(toy_config))
    for number, config in enumerate((path, str(path))):
        run = concont.train(config, data=toy_arrays, out=tmp_path / f"{number}")
        assert run.settings.train.epochs == toy_config["train"]["epochs"]
        assert run.settings.train.device == "cpu"


def test_the_run_predicts_where_it_was_trained(tmp_path, toy_arrays, toy_config, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    run = concont.train(toy_config, data=toy_arrays, out=tmp_path / "run")
    assert (toy_config["train"]["device"], run.predictor.device.type) == ("cpu", "cpu")


def test_own_arrays_are_never_called_by_a_recipes_name(tmp_path, toy_arrays, toy_config):
    run = concont.train({**toy_config, "recipe": "digits"}, data=toy_arrays, out=tmp_path / "run")
    assert run.summary["recipe"] == "digits"
    assert len(run.summary["data"]) == 64  # a digest


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


def test_config_and_arrays_as_people_have_them(tmp_path, toy_arrays, toy_config):
    """Other forms of the same settings and data give the same run."""
    whole = concont.train(toy_config, data=toy_arrays, out=tmp_path / "plain")
    toy_config["train"] |= {"epochs": np.int64(3), "batch_size": torch.tensor(16)}
    toy_config["optimizer.lr"] = np.float64(toy_config.pop("optimizer")["lr"])
    lists = {name: values.tolist() for name, values in toy_arrays.items()}
    tensors = {name: torch.from_numpy(values) for name, values in toy_arrays.items()}
    for number, data in enumerate((lists, tensors)):
        run = concont.train(toy_config, data=data, out=tmp_path / str(number))
        assert run.summary["settings_hash"] == whole.summary["settings_hash"]
        images = toy_arrays["x_test"]
        assert np.array_equal(run.predict_proba(images), whole.predict_proba(images))


def test_sets_of_names(tmp_path, toy_arrays, toy_config):
    toy_config["data"] = {}
    names = np.array(["dark", "light"])[toy_arrays["y_train"]]
    sets = [{name} if row % 3 else None for row, name in enumerate(names)]
    data = {"x_train": toy_arrays["x_train"], "candidates": sets}
    run = concont.train(toy_config, data=data, out=tmp_path / "run")
    assert run.classes == ("dark", "light")
    assert run.data["n_partial"] == sum(each is not None for each in sets)


def test_progress_goes_to_standard_error_where_it_is_wanted(
    tmp_path, toy_arrays, toy_config, capsys
):
    concont.train(toy_config, data=toy_arrays, out=tmp_path / "quiet")
    assert capsys.readouterr().err == ""  # nobody watches
    concont.train(toy_config, data=toy_arrays, out=tmp_path / "shown", progress=True)
    shown = capsys.readouterr()
    assert "concont  epoch 3/3" in shown.err
    assert shown.out == ""


@pytest.mark.slow
def test_a_person_at_a_terminal_sees_progress(tmp_path, toy_npz, toy_config):
    toy_config["data"]["source"] = str(toy_npz)
    here, there = pty.openpty()
    words = (os.ttyname(there), toy_config, tmp_path / "run")
    process = WARM.Process(target=train_at_a_terminal, args=words)
    process.start()
    shown = read_while_alive(here, process)
    os.close(there)
    os.close(here)
    assert process.exitcode == 0, shown
    assert "epoch 3/3" in shown


def read_while_alive(handle, process):
    """What it writes to a terminal."""
    shown = b""
    while process.is_alive() or select.select([handle], [], [], 0)[0]:
        if select.select([handle], [], [], 0.1)[0]:
            shown += os.read(handle, 4096)
    process.join()
    return shown.decode(errors="replace")


@pytest.mark.slow
def test_a_killed_run_goes_on_in_python(tmp_path, toy_arrays, toy_config):
    toy_config["train"] |= {"epochs": 30}
    whole = concont.train(toy_config, data=toy_arrays, model=own_body(), out=tmp_path / "whole")
    process = WARM.Process(target=train_own, args=(toy_config, toy_arrays, tmp_path / "run"))
    process.start()
    wait_for_lines(tmp_path / "run" / "metrics.jsonl", 5, process)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "run" / "summary.json").exists()
    given = {"data": toy_arrays, "resume": tmp_path / "run"}
    run = concont.train(**given, model=own_body(seed=5))  # its own weights are of no account
    name = "model.safetensors"
    assert (run.path / name).read_bytes() == (whole.path / name).read_bytes()
    assert len((run.path / "metrics.jsonl").read_text().splitlines()) == 30
    again = concont.train(**given, model=own_body())  # finished: loaded
    assert again.summary == run.summary


def wait_for_lines(path, count, process):
    end = time.monotonic() + 60
    while not path.is_file() or len(path.read_text().splitlines()) < count:
        assert process.is_alive()
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize(
    "more", [{"config": {"train": {"epochs": 5}}}, {"config": "digits"}, {"out": "other"}]
)
def test_a_resumed_run_takes_no_other_settings(tmp_path, more):
    with pytest.raises(UsageError, match="resume takes the settings and the folder of its run"):
        concont.train(**more, resume=tmp_path / "run")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"config": 3}, "settings are given by name, as a dict, and not as int"),
        ({"config": [{"train.epochs": 1}]}, "settings are given by name"),
        ({"config": {}}, "there is no data"),
        ({"config": Path("nosuch.yaml")}, "no recipe 'nosuch.yaml'"),
        ({"data": "mine.npz"}, "A file is named in the settings: data.source"),
        ({"data": [1, 2]}, "this is list"),
    ],
)
def test_what_is_no_settings_or_no_data_is_refused(tmp_path, monkeypatch, words, message):
    (tmp_path / "class").mkdir()  # a folder of images is not taken because it is there
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        concont.train(**words)
    assert [path.name for path in tmp_path.iterdir()] == ["class"]


def test_training_in_a_block_without_gradients(tmp_path, toy_arrays, toy_config):
    whole = concont.train(toy_config, data=toy_arrays, out=tmp_path / "plain")
    for number, block in enumerate((torch.no_grad(), torch.inference_mode())):
        with block:
            run = concont.train(toy_config, data=toy_arrays, out=tmp_path / str(number))
            assert not torch.is_grad_enabled()
        weights = [(each.path / "model.safetensors").read_bytes() for each in (whole, run)]
        assert weights[0] == weights[1]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Conv2d(1, 4, 3), "must return features"),
        (nn.Linear(3, 4), "fails on a batch"),
        (nn.Flatten, "is a class"),
        (lambda images: images, "must be a torch.nn.Module"),
    ],
)
def test_a_model_that_does_the_wrong_thing_is_refused_before_anything_is_written(
    tmp_path, toy_arrays, toy_config, model, message
):
    with pytest.raises(UsageError, match=message):
        concont.train(toy_config, data=toy_arrays, model=model, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
