"""Data that was moved since a run, and files that no output may replace, through real processes."""

import json
from dataclasses import replace

import numpy as np
import pytest

import concont as package
from concont.cli.run_data import list_run_inputs
from processes import concont

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path, toy_npz, toy_config):
    toy_config["data"]["source"] = str(toy_npz)
    return package.train(toy_config, out=tmp_path / "run")


def test_data_that_was_moved_is_named(run, toy_npz, tmp_path):
    toy_npz.rename(tmp_path / "moved.npz")
    done = concont("resolve", "run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such file; if the run's data was moved, say where it lies now: --data" in done.stderr
    for words in (
        ["resolve", "run", "-o", "labels.csv"],
        ["report", "run", "-o", "page.html"],
        ["export", "run", "-o", "model.onnx"],
    ):
        done = concont(*words, "--data", "moved.npz", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert "test images" in done.stdout  # checked on them, not on random ones


def test_other_data_is_refused_with_the_same_advice(run, toy_npz, toy_arrays, tmp_path):
    np.savez(tmp_path / "other.npz", **{**toy_arrays, "x_train": toy_arrays["x_train"][::-1]})
    done = concont("resolve", "run", "--data", "other.npz", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "was trained on other data" in done.stderr
    assert "say where it lies now" in done.stderr


def test_an_export_never_replaces_what_the_run_learned_from(run, toy_npz, tmp_path):
    before = toy_npz.read_bytes()
    done = concont("export", "run", "-o", toy_npz.name, "--overwrite", cwd=tmp_path)
    assert done.returncode == 2
    assert "is what is read" in done.stderr
    assert toy_npz.read_bytes() == before
    assert json.loads((run.path / "summary.json").read_text())


def test_the_files_of_a_run_and_of_its_data_are_its_inputs(run, toy_npz):
    found = list_run_inputs(run, "now.npz")
    assert {"now.npz", str(toy_npz), run.path / "summary.json"} <= set(found)
    model = replace(run.settings.model, start="earlier/model.safetensors")
    settings = replace(run.settings, model=model)
    found = list_run_inputs(replace(run, settings=settings), None, "code/net.py:make")
    assert {"code/net.py", "earlier/model.safetensors"} <= set(found)
    assert "package.module" not in list_run_inputs(run, None, "package.module:make")
