"""`concont export` through real processes, and `concont predict` on what it wrote."""

import csv
import os
import re
import subprocess
import sys

import pytest
from PIL import Image
from torch import nn

import concont as package
from concont.cli import export as command
from concont.deploy.onnx_model import load_onnx
from exports import tiny_onnx, toy_arrays, train_toy, with_text
from processes import ENVIRONMENT, concont

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, and a folder of images beside it."""
    folder = tmp_path_factory.mktemp("trained")
    train_toy(folder)
    (folder / "images").mkdir()
    for k, image in enumerate(toy_arrays()["x_test"]):
        Image.fromarray(image).save(folder / "images" / f"{k:02}.png")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    assert concont("export", "run", "-o", "model.onnx", cwd=folder).returncode == 0
    return folder / "model.onnx"


def test_a_model_does_not_take_the_name_of_its_card(folder, tmp_path):
    """The card would be written over it."""
    done = concont("export", "run", "-o", tmp_path / "MODEL_CARD.md", "--overwrite", cwd=folder)
    assert done.returncode == 2
    assert "is what the card is called" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["onnx", "torchscript", "safetensors"])
def test_a_run_is_exported_and_checked(folder, tmp_path, form):
    out = tmp_path / f"model.{form}"
    done = concont("export", "run", "--format", form, "-o", out, "--licence", "MIT", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    check, where = done.stdout.splitlines()[:2]
    found = re.fullmatch(
        r"answers as the run: largest difference (\S+) on 30 test images in batches of 1, 2 and 7",
        check,
    )
    assert float(found[1]) <= 1e-4
    assert where.startswith(f"{out}: {form}, 0.")


def test_it_is_predicted_without_torch_as_the_run_is(folder, model):
    blocked = (
        "import sys; sys.modules['torch'] = None; from concont.cli import main; "
        "sys.argv = ['concont', *sys.argv[1:]]; main()"
    )
    words = ["images", "--top", "3", "--format", "csv"]
    done = subprocess.run(
        [sys.executable, "-c", blocked, "predict", model, *words],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    own = concont("predict", "run", *words, cwd=folder)
    found, expected = ([*csv.reader(each.stdout.splitlines())] for each in (done, own))
    assert len(found) == 31
    for one, other in zip(found, expected, strict=True):
        assert one[:2] == other[:2]
        if one[0] != "image":
            probs = [[float(cell) for cell in row[2::2]] for row in (one, other)]
            assert probs[0] == pytest.approx(probs[1], abs=1e-4)


def test_eight_bits_stand_beside_floats(folder, tmp_path):
    done = concont("export", "run", "-o", tmp_path / "int8.onnx", "--int8", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[1] == "calibrated on 90 training images; on 30 test images:"
    assert re.fullmatch(r"  float 0\.\d\d MB, accuracy \d+\.\d\d %", lines[2])
    assert re.fullmatch(r"  int8  0\.\d\d MB, accuracy \d+\.\d\d %", lines[3])
    assert re.fullmatch(r"  the same label on \d+\.\d\d %", lines[4])


def test_a_card_lies_beside_the_file_unless_it_is_not_wanted(folder, tmp_path):
    words = ("export", "run", "--format", "safetensors", "-o", tmp_path / "model")
    done = concont(*words, "--no-card", cwd=folder)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert len(done.stdout.splitlines()) == 2
    card = tmp_path / "MODEL_CARD.md"
    done = concont(*words, "--overwrite", cwd=folder)
    assert done.stdout.splitlines()[-1] == f"{card}: what it is, and its limits"
    assert "written by concont export" in card.read_text()
    card.write_text("mine")
    (tmp_path / "model").unlink()
    in_a_line(concont(*words, cwd=folder), 2, "MODEL_CARD.md is there and is not by this command")
    assert card.read_text() == "mine"
    assert not (tmp_path / "model").exists()


def test_many_images_are_announced(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "MANY", 29)
    command.export(folder / "run", tmp_path / "model", command.Form.SAFETENSORS)
    assert capsys.readouterr().err == "measuring 30 images for the card; --no-card writes none\n"


def in_a_line(done, code, message):
    assert (done.returncode, done.stdout) == (code, "")
    (line,) = done.stderr.splitlines()
    assert message in line


def test_a_file_that_is_there_is_kept(folder, tmp_path):
    out = tmp_path / "there.onnx"
    out.write_text("old")
    done = concont("export", "run", "-o", out, cwd=folder)
    in_a_line(done, 2, "there.onnx is there already; --overwrite replaces it")
    assert out.read_text() == "old"
    assert concont("export", "run", "-o", out, "--overwrite", cwd=folder).returncode == 0
    assert load_onnx(out).shape == (8, 8, 3)


def test_what_is_no_run_and_what_has_no_network_are_refused(folder, tmp_path, monkeypatch):
    in_a_line(
        concont("export", tmp_path / "none", "-o", "x", cwd=tmp_path), 2, "no such run folder"
    )
    own = concont("export", "run", "-o", "run/model.safetensors", "--overwrite", cwd=folder)
    in_a_line(own, 2, "is the name of a file of the run itself")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = {"method": {"name": "sspl"}}
    package.train(config, data=toy_arrays(), out=tmp_path / "sspl")
    done = concont("export", "sspl", "-o", "x.onnx", cwd=tmp_path)
    in_a_line(done, 2, "sspl trains no network, so there is nothing to export")
    body = nn.Sequential(nn.Flatten(), nn.Linear(192, 12), nn.ReLU())
    config = {"train": {"epochs": 1, "device": "cpu"}}
    package.train(config, data=toy_arrays(), model=body, out=tmp_path / "own")
    done = concont("export", "own", "-o", "x.onnx", cwd=tmp_path)
    in_a_line(done, 2, "is a network of your own, which is run only if you name it: --model")
    assert not (tmp_path / "x.onnx").exists()


def test_a_hostile_model_is_refused_in_a_line(folder, tmp_path):
    image = next((folder / "images").iterdir())
    (tmp_path / "text.onnx").write_text("no model")
    in_a_line(concont("predict", tmp_path / "text.onnx", image), 1, "is no model that can be read")
    bad = tiny_onnx(tmp_path / "bad.onnx", with_text("classes", [1]))
    in_a_line(concont("predict", bad, image), 1, "its classes cannot be what it says")
    away = tiny_onnx(tmp_path / "away.onnx", external="../../etc/passwd")
    in_a_line(concont("predict", away, image), 1, "is no model that can be read")
    in_a_line(concont("predict", tmp_path / "none.onnx", image), 2, "none.onnx: no such file")
    if not os.environ.get("CUDA_VISIBLE_DEVICES"):
        done = concont("predict", bad, image, "--device", "cuda")
        in_a_line(done, 2, "has no CUDA")


def test_more_classes_than_the_model_has(folder, model):
    done = concont("predict", model, "images", "--top", "4", cwd=folder)
    in_a_line(done, 2, "top is 4; it must be 1 to 3")
