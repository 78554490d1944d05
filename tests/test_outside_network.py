"""A network of a user's own, from the command line: `--model FILE.py:make`."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
import yaml
from PIL import Image
from safetensors.torch import load_file

import concont
from concont.config.resolve import read_settings
from concont.errors import UsageError
from concont.runs.folder import RunFolder
from concont.sweep.record import of_run
from processes import begin, fresh
from processes import concont as command

pytestmark = pytest.mark.slow
CODE = """
from torch import nn

class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Dropout(0.2), nn.ReLU())

    def forward(self, images):
        return self.body(images)

def make():
    return Patches()
"""


@pytest.fixture
def code(tmp_path):
    (tmp_path / "net.py").write_text(CODE)
    return "net.py:make"


@pytest.fixture
def recipe(tmp_path, toy_config):
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(toy_config))
    return path


def test_the_command_trains_it_and_every_other_command_opens_the_run(
    tmp_path, toy_npz, toy_arrays, recipe, code
):
    words = ("train", "--data", toy_npz, "--recipe", recipe, "--model", code, "--out", "run")
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a network of your own" in done.stdout
    run = tmp_path / "run"
    settings = read_settings(run / "config.yaml")
    assert settings.model.own == str(tmp_path / "net.py") + ":make"
    assert str(tmp_path) not in json.dumps(of_run(RunFolder(run)))
    image = tmp_path / "image.png"
    Image.fromarray(toy_arrays["x_test"][0]).save(image)
    opening = (
        ("evaluate", run),
        ("predict", run, image),
        ("resolve", run),
        ("export", run, "--format", "safetensors", "--no-card", "-o", "model.safetensors"),
        ("report", run, "-o", "page.html"),
    )
    for words in opening:
        done = command(*words, "--model", code, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    page = (tmp_path / "page.html").read_text()
    assert "only if you name it" not in page
    assert str(tmp_path) not in page
    done = fresh("evaluate", run, "--json", "--model", code, cwd=tmp_path)
    accuracy = json.loads(done.stdout)["accuracy"]
    assert accuracy == json.loads((run / "summary.json").read_text())["accuracy_last"]
    for words in opening[:4]:
        done = command(
            *words, "--overwrite" if words[0] == "export" else "--device=cpu", cwd=tmp_path
        )
        assert done.returncode == 2, words
        assert "net.py:make is a network of your own, which is run only if" in done.stderr
        assert done.stderr.count("\n") == 1


def test_its_code_is_never_written_over(tmp_path, toy_npz, toy_config, code):
    toy_config["model"]["own"] = str(tmp_path / code)
    run = concont.train(toy_config, data=dict(np.load(toy_npz)), out=tmp_path / "run").path
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "image.png")
    for words in (("predict", run, tmp_path / "image.png"), ("export", run, "--no-card")):
        done = command(*words, "--model", code, "-o", "net.py", "--overwrite", cwd=tmp_path)
        assert done.returncode == 2
        assert "net.py is what is read; choose another name" in done.stderr
    assert (tmp_path / "net.py").read_text() == CODE


def test_a_killed_run_goes_on_once_its_code_is_named(tmp_path, toy_npz, recipe, code):
    words = ("train", "--data", toy_npz, "--recipe", recipe, "--model", code, "--epochs", 40)
    assert command(*words, "--out", "whole", cwd=tmp_path).returncode == 0
    process = begin(*words, "--out", "run", cwd=tmp_path, out=tmp_path / "output")
    lines, end = tmp_path / "run" / "metrics.jsonl", time.monotonic() + 60
    while not lines.is_file() or len(lines.read_text().splitlines()) < 4:
        assert time.monotonic() < end, (tmp_path / "output").read_text()
        time.sleep(0.005)
    process.kill()
    process.join()
    assert not (tmp_path / "run" / "summary.json").exists()
    resume = ("train", "--resume", "run")
    refused = command(*resume, cwd=tmp_path)
    assert refused.returncode == 2
    assert "which is run only if you name it: --model FILE.py:make" in refused.stderr
    done = command(*resume, "--model", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found, expected = (load_file(tmp_path / n / "model.safetensors") for n in ("run", "whole"))
    assert [name for name in expected if not found[name].equal(expected[name])] == []


def test_a_run_of_python_is_opened_by_the_command(tmp_path, toy_npz, toy_config, code):
    space = {}
    exec(CODE, space)
    toy_config["data"]["source"] = str(toy_npz)
    run = concont.train(toy_config, model=space["make"](), out=tmp_path / "run")
    assert run.settings.model.own.endswith(":Patches")
    done = command("evaluate", run.path, "--json", "--model", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["accuracy"] == run.summary.accuracy_last
    settings = replace(run.settings, model=replace(run.settings.model, own=None))
    usual = concont.train(settings, out=tmp_path / "usual")
    assert usual.summary.settings_hash != run.summary.settings_hash  # they are not the same


def test_in_python_the_caller_may_name_it(tmp_path, toy_npz, toy_config, code, toy_arrays):
    toy_config["data"]["source"] = str(toy_npz)
    toy_config["model"]["own"] = str(tmp_path / code)
    run = concont.train(toy_config, out=tmp_path / "run")
    assert run.settings.model.own == str(tmp_path / code)
    assert run.predict_proba(toy_arrays["x_test"]).shape == (20, 2)


def test_no_network_that_a_run_folder_or_recipe_names_is_ever_run(
    tmp_path, toy_npz, toy_config, toy_arrays
):
    marker, evil = tmp_path / "marker", tmp_path / "evil.py"
    evil.write_text(f"from pathlib import Path\nPath({str(marker)!r}).write_text('I ran')\n" + CODE)
    toy_config["data"]["source"] = str(toy_npz)
    concont.train(toy_config, out=tmp_path / "run")
    run, config = tmp_path / "run", tmp_path / "run" / "config.yaml"
    plain = yaml.safe_load(config.read_text())
    plain["model"]["own"] = f"{evil}:make"
    config.write_text(yaml.safe_dump(plain))
    (run / "checksums.json").unlink()
    image = tmp_path / "image.png"
    Image.fromarray(toy_arrays["x_test"][0]).save(image)
    for words in (("evaluate", run), ("predict", run, image), ("resolve", run)):
        assert command(*words).returncode == 2
    (run / "summary.json").unlink()
    for words in (
        ("--resume", run),
        ("--config", config, "--out", tmp_path / "two"),
        ("--recipe", config, "--out", tmp_path / "three"),
        ("--data", toy_npz, "--set", f"model.own={evil}:make", "--out", tmp_path / "four"),
    ):
        done = command("train", *words, cwd=tmp_path)
        assert done.returncode == 2, done.stdout
        assert "which is run only if you name it" in done.stderr
    with pytest.raises(UsageError, match="which is run only if you name it"):
        concont.train(str(config), out=tmp_path / "five")
    assert not marker.exists()
    command("train", "--resume", run, "--model", f"{evil}:make")
    assert marker.exists()  # asked for: so this test can fail
