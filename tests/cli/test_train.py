"""The command line through real processes."""

import json

import numpy as np
import pytest
import yaml

from image_tables import make_images, write_csv
from processes import concont, fresh

pytestmark = pytest.mark.slow


@pytest.fixture
def recipe(tmp_path, toy_config):
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(toy_config))
    return path


@pytest.fixture
def train(tmp_path, toy_npz, recipe):
    """`concont train` on the toy data, into tmp_path."""

    def run(*words):
        return concont("train", "--data", toy_npz, "--recipe", recipe, *words, cwd=tmp_path)

    return run


def test_train_evaluate_and_a_finished_run(train, tmp_path, toy_npz):
    done = train("--out", "run", "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert "epoch 3/3" in done.stdout
    assert "images/s" in done.stdout
    assert "\x1b" not in done.stdout  # plain lines: this is no terminal
    assert "test accuracy" in done.stdout
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["seed"], summary["data_seed"], summary["recipe"]) == (3, 3, "toy")

    evaluated = concont("evaluate", tmp_path / "run", "--json")
    assert json.loads(evaluated.stdout)["accuracy"] == summary["accuracy_last"]
    other = concont("evaluate", tmp_path / "run", "--data", toy_npz)
    assert other.stdout.startswith("accuracy ")

    before = (tmp_path / "run" / "summary.json").stat().st_mtime_ns
    resumed = concont("train", "--resume", tmp_path / "run")
    assert resumed.returncode == 0
    assert "is finished" in resumed.stdout
    assert (tmp_path / "run" / "summary.json").stat().st_mtime_ns == before

    used = train("--out", "run")
    assert used.returncode == 2
    assert "--overwrite" in used.stderr
    assert train("--out", "run", "--overwrite", "--epochs", "1").returncode == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["epochs"] == 1


def test_flags_beat_the_recipe_and_print_config_stops(train, tmp_path):
    done = train(
        *("--labeled", "10", "--ambiguity", "0", "--no-unlabeled", "--method", "partial"),
        *("--epochs", "9", "--set", "optimizer.lr=1e-3", "--set", "data.seed=4", "--print-config"),
    )
    assert done.returncode == 0
    plain = yaml.safe_load(done.stdout)
    assert plain["data"]["labeled"] == 10
    assert plain["data"]["unlabeled"] is False
    assert (plain["data"]["seed"], plain["train"]["seed"]) == (4, 1)
    assert plain["method"]["name"] == "partial"
    assert plain["optimizer"]["lr"] == 1e-3
    assert not (tmp_path / "runs").exists()


def test_exactly_the_settings_of_a_file(train, tmp_path):
    """A run's own config.yaml gives the same run; nothing is laid on it."""
    assert train("--out", "run", "--epochs", "1", "--seed", "3").returncode == 0
    config = tmp_path / "run" / "config.yaml"
    done = concont("train", "--config", config, "--out", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "config.yaml").read_text() == config.read_text()
    one, two = (json.loads((tmp_path / n / "summary.json").read_text()) for n in ("run", "again"))
    assert one["accuracy_last"] == two["accuracy_last"]
    assert one["settings_hash"] == two["settings_hash"]
    assert concont("train", "--config", config, "--out", tmp_path / "again").returncode == 2
    words = ("--config", config, "--out", tmp_path / "again", "--overwrite")
    assert concont("train", *words).returncode == 0


def test_training_goes_on_from_a_finished_run_on_votes_that_came_back(tmp_path):
    names = [f"{k}.png" for k in range(12)]
    make_images(tmp_path / "photos", names)
    votes = [(name, "Ann", "ab"[k % 2]) for k, name in enumerate(names)]
    write_csv(tmp_path / "votes.csv", votes, ("image", "annotator", "label"))
    write_csv(tmp_path / "more.csv", [("0.png", "E", "c")], ("image", "annotator", "label"))

    def run(*words):
        done = concont(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("data", "from-votes", "votes.csv", "--images", "photos", "-o", "one.csv")
    small = ("--set", "model.name=small", "--set", "model.width=4", "--device", "cpu")
    given = ("--images", "photos", "--image-size", "8", "--method", "partial", "--epochs", "2")
    run("train", "--data", "one.csv", *given, *small, "--out", "one")
    run(
        "data", "add-votes", "one.csv", "more.csv", "--replace", "--images", "photos", "-o", "2.csv"
    )
    said = run("train", "--from", "one", "--data", "2.csv", "--epochs", "3", "--out", "two")
    start = tmp_path / "one" / "model.safetensors"
    assert f"starts from {start.parent}: 2 of 3 classes are known there, 1 new" in said
    kept = yaml.safe_load((tmp_path / "two" / "config.yaml").read_text())
    before = yaml.safe_load((tmp_path / "one" / "config.yaml").read_text())
    assert kept["model"].pop("start") == str(start)
    assert len(kept["model"].pop("start_digest")) == 16
    assert kept["data"].pop("source") == str(tmp_path / "2.csv")
    assert {k: before["model"][k] for k in kept["model"]} == kept["model"]
    assert {k: before["data"][k] for k in kept["data"]} == kept["data"]
    for section in ("recipe", "method", "views", "optimizer"):
        assert kept[section] == before[section]
    one, two = (json.loads((tmp_path / k / "summary.json").read_text()) for k in ("one", "two"))
    assert (one["epochs"], two["epochs"]) == (2, 3)
    assert one["settings_hash"] != two["settings_hash"]

    shown = run("train", "--from", "one", "--seed", "9", "--print-config")
    assert yaml.safe_load(shown)["train"]["seed"] == 9
    start.unlink()
    assert "is finished" in run("train", "--resume", "two")


def test_a_folder_of_an_odd_name_is_shown_by_it(train, tmp_path):
    done = train("--out", "[red]a\x1b[31m", "--epochs", "1")
    assert done.stdout.endswith("\nRun: [red]a\\x1b[31m\n")
    again = concont("train", "--resume", tmp_path / "[red]a\x1b[31m")
    assert "[red]a\\x1b[31m is finished" in again.stdout


def test_the_default_folder_is_dated(train, tmp_path):
    assert train("--epochs", "1").returncode == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("-concont")
    assert (folder / "summary.json").exists()


MISTAKES = {
    "no data": (["train"], 2, "say what to train on"),
    "unknown data": (["train", "--data", "mnist"], 2, "no data source 'mnist'"),
    "missing file": (["train", "--data", "none.npz"], 2, "none.npz: no such file"),
    "unknown key": (
        ["train", "--data", "digits", "--set", "train.epoch=1"],
        2,
        "unknown setting train.epoch; did you mean epochs?",
    ),
    "bad value": (["train", "--data", "digits", "--epochs", "0"], 2, "train.epochs is 0"),
    "bad share": (["train", "--data", "digits", "--labeled", "1.5"], 2, "labeled is 1.5"),
    "not a number": (["train", "--data", "digits", "--epochs", "many"], 2, "--epochs"),
    "unknown flag": (["train", "--dta", "digits"], 2, "--dta"),
    "bad device": (["train", "--data", "digits", "--device", "tpu"], 2, "train.device"),
    "no gpu": (["train", "--data", "digits", "--device", "cuda"], 2, "no CUDA device"),
    "resume nothing": (["train", "--resume", "none"], 2, "none: no such run folder"),
    "resume and flags": (["train", "--resume", "x", "--epochs", "3"], 2, "give no other option"),
    "config and flags": (["train", "--config", "x", "--epochs", "3"], 2, "no other option but"),
    "from nothing": (["train", "--from", "none"], 2, "none: no such run folder"),
    "from and recipe": (["train", "--from", "x", "--recipe", "digits"], 2, "leave out --recipe"),
    "from and resume": (["train", "--from", "x", "--resume", "y"], 2, "give no other option"),
    "from and config": (["train", "--from", "x", "--config", "y"], 2, "no other option but"),
    "from itself": (["train", "--from", "x", "--out", "./x"], 2, "is the run to start from"),
    "no config": (["train", "--config", "none.yaml"], 2, "none.yaml cannot be read"),
    "evaluate nothing": (["evaluate", "none"], 2, "none: no such run folder"),
    "broken file": (["train", "--data", "broken.npz"], 1, "broken.npz: not an .npz file"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_clear_line_and_writes_nothing(mistake, tmp_path):
    words, code, message = MISTAKES[mistake]
    (tmp_path / "broken.npz").write_bytes(b"PK not really")
    done = concont(*words, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["broken.npz"]


def test_bad_content_leaves_an_older_run_alone(train, tmp_path, toy_npz, toy_arrays):
    assert train("--out", "run", "--epochs", "1").returncode == 0
    toy_arrays["y_train"] = np.where(np.arange(40) == 7, -5, toy_arrays["y_train"])
    np.savez(toy_npz, **toy_arrays)
    done = train("--out", "run", "--overwrite")
    assert done.returncode == 1
    assert "y_train row 7 is -5" in done.stderr
    assert (tmp_path / "run" / "summary.json").exists()


def test_every_file_of_a_run_may_be_read_by_whom_the_umask_says(recipe, toy_npz, tmp_path):
    asked = ("train", "--data", toy_npz, "--recipe", recipe, "--epochs", "1", "--out", "run")
    done = fresh(*asked, cwd=tmp_path, umask=0o027)
    assert done.returncode == 0, done.stderr
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "run").iterdir()}
    assert "model.safetensors" in modes
    assert set(modes.values()) == {0o640}, modes
