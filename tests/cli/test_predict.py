"""`concont predict` through real processes; what needs none is called."""

import csv
import json
import os
import pty
import subprocess

import numpy as np
import pytest
from PIL import Image
from torch import nn

import concont as package
from concont.answers import predict as module
from concont.cli.predict import predict
from concont.errors import UsageError
from processes import COMMAND, ENVIRONMENT, SECONDS, concont

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path, toy_arrays, toy_config):
    arrays = {**toy_arrays, "classes": np.array(["left", "right"])}
    return package.train(toy_config, data=arrays, out=tmp_path / "run")


@pytest.fixture
def probs(run, tmp_path, toy_arrays):
    """Six images in a folder and one below it; returns their probabilities."""
    (tmp_path / "images" / "more").mkdir(parents=True)
    for k, name in enumerate(("0", "1", "2", "3", "4", "more/5")):
        Image.fromarray(toy_arrays["x_test"][k]).save(tmp_path / "images" / f"{name}.png")
    return run.predict_proba(toy_arrays["x_test"][:6])


NAMES = [f"images/{name}.png" for name in ("0", "1", "2", "3", "4", "more/5")]


def labels(probs):
    return [("left", "right")[k] for k in probs.argmax(axis=1)]


def test_a_folder_as_csv(probs, tmp_path):
    done = concont("predict", "run", "images", "--top", "2", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "image,label,probability,label_2,probability_2"
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["image"] for row in rows] == NAMES
    assert [row["label"] for row in rows] == labels(probs)
    assert [float(row["probability"]) for row in rows] == pytest.approx(
        probs.max(axis=1).tolist(), abs=1e-5
    )
    assert [float(row["probability_2"]) for row in rows] == pytest.approx(
        probs.min(axis=1).tolist(), abs=1e-5
    )
    assert all({row["label"], row["label_2"]} == {"left", "right"} for row in rows)


def test_json_lines_into_a_file(probs, tmp_path):
    (tmp_path / "labels.jsonl").write_text("old")
    words = ("--format", "jsonl", "--out", "labels.jsonl", "--overwrite", "--device", "cpu")
    done = concont("predict", "run", *NAMES[::-1], *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    assert [row["image"] for row in rows] == NAMES[::-1]
    assert [row["label"] for row in rows] == labels(probs)[::-1]
    assert all(row["top"] == [{k: row[k] for k in ("label", "probability")}] for row in rows)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_cannot_be_read_is_told_and_the_rest_predicted(probs, tmp_path):
    images = tmp_path / "images"
    (images / "1.png").write_text("no image")
    (images / "2.png").rename(images / "2\n.png")
    whole = (images / "3.png").read_bytes()
    (images / "3.png").unlink()
    (images / "bad\n.png").write_bytes(whole[:-30])
    (tmp_path / os.fsdecode(b"images/\xff.png")).write_bytes(whole)
    done = concont("predict", "run", "images", "none.png", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "skipped images/1.png: not an image that can be read"
    assert lines[1].startswith(r"skipped images/bad\n.png: ")
    assert "truncated" in lines[1]
    assert lines[2:] == [
        "skipped none.png: No such file or directory",
        "error: 3 of 8 images could not be read",
    ]
    rows = list(csv.DictReader(done.stdout.splitlines(keepends=True)))
    names = ["images/0.png", "images/2\n.png", "images/4.png", "images/more/5.png"]
    assert [row["image"] for row in rows] == [*names, r"images/\udcff.png"]
    assert [row["label"] for row in rows] == [labels(probs)[k] for k in (0, 2, 4, 5, 3)]


def test_more_classes_than_there_are(probs, tmp_path):
    done = concont("predict", "run", "images", "--top", "3", "--out", "x.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: top is 3; it must be 1 to 2, the run's classes\n"
    assert not (tmp_path / "x.csv").exists()


def test_a_folder_that_is_no_run(tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "image.png")
    done = concont("predict", tmp_path, tmp_path / "image.png")
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds no summary.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_cannot_be_written_is_refused_first(tmp_path):
    with pytest.raises(UsageError, match="is there and is not a file"):
        predict(tmp_path / "none", [tmp_path], out=tmp_path)
    with pytest.raises(UsageError, match="there is no folder .*nowhere"):
        predict(tmp_path / "none", [tmp_path], out=tmp_path / "nowhere" / "x.csv")


@pytest.mark.parametrize("name", ["images/a.png", "run/model.safetensors", "run/summary.json"])
def test_what_is_read_is_never_written_over(name, tmp_path):
    for path in ("images/a.png", "run/model.safetensors", "run/summary.json"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("old")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="is what is read"):
            out = tmp_path / name
            predict(tmp_path / "run", [tmp_path / "images"], out=out, overwrite=overwrite)
    (tmp_path / "labels.csv").write_text("old")
    with pytest.raises(UsageError, match="--overwrite replaces it"):
        predict(tmp_path / "run", [tmp_path / "images"], out=tmp_path / "labels.csv")


def test_a_failure_leaves_the_old_file_and_no_other(run, probs, tmp_path, monkeypatch):
    def fail(predictions, file, top):
        file.write("half")
        raise OSError("disk full")

    monkeypatch.setitem(module.WRITERS, "csv", fail)
    out = tmp_path / "results" / "x.csv"
    out.parent.mkdir()
    out.write_text("old")
    with pytest.raises(OSError, match="disk full"):
        predict(run.path, [tmp_path / "images"], out=out, overwrite=True)
    assert [path.name for path in out.parent.iterdir()] == ["x.csv"]
    assert out.read_text() == "old"


def test_an_own_network_is_named(tmp_path, toy_arrays, toy_config):
    body = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU())
    run = package.train(toy_config, data=toy_arrays, model=body, out=tmp_path / "run")
    with pytest.raises(UsageError, match=r"run only if you name it: --model FILE\.py:make"):
        predict(run.path, [tmp_path / "image.png"])


def test_names_on_a_terminal_are_no_commands_and_in_a_pipe_what_they_are(run, tmp_path):
    (tmp_path / "odd").mkdir()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "odd" / "\x1b[31mred.png")
    assert "odd/\x1b[31mred.png," in concont("predict", "run", "odd", cwd=tmp_path).stdout
    controller, screen = pty.openpty()
    words = [*COMMAND, "predict", "run", "odd"]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, stdout=screen, timeout=SECONDS)
    os.close(screen)
    shown = os.read(controller, 10_000).decode()
    os.close(controller)
    assert done.returncode == 0
    assert "\x1b" not in shown
    assert "odd/\\x1b[31mred.png," in shown
