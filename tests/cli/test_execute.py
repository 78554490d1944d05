"""`concont train` on images of one's own: from files and votes to a run."""

import json

import numpy as np
import pytest
import yaml
from PIL import Image

from concont.cli.execute import load_showing_progress
from concont.cli.train import TrainCommand
from concont.runs.settings import Data
from image_tables import TWO_COLUMNS, make_odd_table, write_csv
from processes import concont
from refusals import assert_refused, run_here

QUICK = ("--set", "model.width=4", "--set", "model.hidden=8", "--set", "train.batch_size=16")
N_CPU = ("--device", "cpu")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CONCONT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """Forty images of two kinds in photos/, votes on twenty, ten more images and ten to test."""
    random = np.random.RandomState(0)
    votes, tests = [], []
    for number in range(60):
        dark = number % 2
        pixels = random.randint(0, 100, (12, 10, 3)) + 150 * (1 - dark)
        where = "photos" if number < 40 else "more" if number < 50 else "new"
        path = tmp_path / where / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(path)
        label = ("light", "dark")[dark]
        if number < 20:
            votes += [(path.name, "ann", label), (path.name, "bob", label)]
            votes += [(path.name, "cid", "dark")] if number % 3 == 0 else []
        if where == "new":
            tests.append((f"new/{path.name}", "", label, "test"))
    write_csv(tmp_path / "votes.csv", votes, ("image", "annotator", "label"))
    write_csv(tmp_path / "tests.csv", tests, ("image", "candidates", "label", "split"))
    return tmp_path


@pytest.mark.slow
def test_from_a_folder_and_votes_to_a_run_and_its_predictions(folder):
    words = ("--data", "photos", "--votes", "votes.csv", "--unlabeled", "more", "--epochs", "2")
    done = concont("train", *words, *QUICK, *N_CPU, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    reading, first, *_, result, place = done.stdout.splitlines()
    assert reading == "reading 50 images"
    assert first.startswith("concont trains small (")
    assert "50 images of 10 x 10, " in first
    assert "2 epochs of 3 steps; about a second" in first
    assert "there is no test set to measure on" in result
    assert place == "Run: run"
    config = yaml.safe_load((folder / "run/config.yaml").read_text())
    assert config["recipe"] == "own-cpu"
    assert config["data"]["source"] == str(folder / "photos")
    assert config["data"]["image_size"] == 10
    described = json.loads((folder / "run/data.json").read_text())
    assert (described["classes"], described["fit"]) == (["dark", "light"], "crop")
    # Four sets hold both classes, but more votes speak for one of them.
    assert (described["n_train"], described["n_partial"]) == (50, 20)

    named = concont("predict", "run", "new", cwd=folder)
    assert named.returncode == 0, named.stderr
    assert len(named.stdout.splitlines()) == 11


@pytest.mark.slow
def test_a_table_is_trained_on_measured_resumed_and_evaluated(folder):
    made = concont(
        "data", "from-votes", "votes.csv", "--images", "photos", "-o", "t.csv", cwd=folder
    )
    assert made.returncode == 0, made.stderr
    rows = [line.split(",") for line in (folder / "t.csv").read_text().splitlines()[1:]]
    merged = [(f"photos/{image}", sets, "", "") for image, sets, _ in rows]
    tests = [line.split(",") for line in (folder / "tests.csv").read_text().splitlines()[1:]]
    write_csv(folder / "all.csv", [*merged, *tests], ("image", "candidates", "label", "split"))
    words = ("--data", "all.csv", "--image-size", "8", "--fit", "stretch", "--minutes", "0.1")
    done = concont("train", *words, *QUICK, *N_CPU, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "images of 8 x 8" in done.stdout
    summary = json.loads((folder / "run/summary.json").read_text())
    assert summary["evaluated_on"] == "test"
    assert summary["seconds"] < 12  # of 6, unless others want the cores, too
    assert summary["epochs"] > 10
    assert summary["accuracy_last"] > 0.8
    evaluated = concont("evaluate", "run", "--json", cwd=folder)
    assert json.loads(evaluated.stdout)["accuracy"] == summary["accuracy_last"]
    again = concont("train", "--resume", "run", cwd=folder)
    assert "is finished" in again.stdout
    rows = [(image.removeprefix("new/"), label) for image, _, label, _ in tests]
    write_csv(folder / "labels.csv", rows, ("image", "label"))
    other = ("--data", "labels.csv", "--images", "new", "--json")
    measured = concont("evaluate", "run", *other, cwd=folder)
    assert json.loads(measured.stdout)["accuracy"] == summary["accuracy_last"], measured.stderr
    write_csv(folder / "labels.csv", [*rows[:3], ("50.png", "drak")], ("image", "label"))
    refused = concont("evaluate", "run", *other, cwd=folder)
    assert refused.returncode == 1
    assert "'drak' is no known class; did you mean 'dark'?" in refused.stderr


ERRORS = [name for name, (_, severity, *_) in TWO_COLUMNS.items() if severity == "error"]


@pytest.mark.parametrize("problem", ERRORS)
def test_a_bad_table_is_one_line_and_no_run(problem, tmp_path, capsys, monkeypatch):
    table = make_odd_table(tmp_path, problem)
    monkeypatch.chdir(tmp_path)
    refused = run_here(capsys, "train", "--data", "photos/table.csv", *N_CPU)
    assert_refused(refused, 1, f"{table} row 5: ", tmp_path)


@pytest.mark.slow
def test_a_process_refuses_it_in_the_same_way(tmp_path):
    table = make_odd_table(tmp_path, "cut short")
    refused = concont("train", "--data", "photos/table.csv", *N_CPU, cwd=tmp_path)
    assert_refused(refused, 1, f"{table} row 5: cut.png: ", tmp_path)


def test_what_is_refused_leaves_the_old_run(toy_npz, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = ("--data", toy_npz, *QUICK, *N_CPU, "--epochs", "1", "--out", "run")
    assert concont("train", *config, cwd=tmp_path).returncode == 0
    before = (tmp_path / "run/summary.json").read_text()
    again = ("train", "--data", toy_npz, *QUICK, *N_CPU, "--out", "run", "--overwrite")
    for words in (("--minutes", "0.0001"), ("--minutes", "1", "--method", "sspl")):
        assert run_here(capsys, *again, *words).returncode == 2
        assert (tmp_path / "run/summary.json").read_text() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--minutes", "0"), "--minutes is 0; it must be above 0"),
        (("--minutes", "nan"), "it must be above 0"),
        (("--minutes", "1", "--epochs", "2"), "--minutes takes the place of --epochs"),
        (("--votes", "v.csv"), "--votes go with a folder of images"),
        (("--images", "nowhere"), "nowhere: no such folder"),
        (("--set", "model.name=timm:test_resent"), "timm has no model 'test_resent'"),
        (("--unlabeled", "nowhere"), "nowhere"),
    ],
)
def test_words_that_do_not_fit_are_refused_before_an_image_is_read(
    words, message, tmp_path, capsys, monkeypatch
):
    make_odd_table(tmp_path, "copy")
    monkeypatch.chdir(tmp_path)
    refused = run_here(capsys, "train", "--data", "photos/table.csv", *words, *N_CPU)
    assert_refused(refused, 2, message, tmp_path)
    assert refused.stdout == ""
    assert not (tmp_path / "cache").exists()


def test_minutes_without_a_schedule_are_refused(toy_npz, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("--data", toy_npz, "--method", "sspl", "--minutes", "1")
    assert_refused(run_here(capsys, "train", *words), 2, "sspl has no schedule to fit", tmp_path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--unlabeled", "more", "--seed", "1"], ["--unlabeled-images", "more", "--seed", "1"]),
        (["--unlabeled=more"], ["--unlabeled-images=more"]),
        (["--unlabeled", "--seed", "1"], ["--unlabeled", "--seed", "1"]),
        (["--seed", "1", "--unlabeled"], ["--seed", "1", "--unlabeled"]),
        (["--no-unlabeled"], ["--no-unlabeled"]),
    ],
)
def test_unlabeled_is_a_switch_or_names_a_folder(words, told, monkeypatch):
    heard = []
    above = TrainCommand.__mro__[1]
    monkeypatch.setattr(above, "parse_args", lambda self, ctx, args: heard.append(args))
    TrainCommand("train").parse_args(None, words)
    assert heard == [told]


def test_arrays_are_loaded_without_a_bar(toy_npz, capsys):
    assert len(load_showing_progress(Data(str(toy_npz))).x_train) == 40
    assert capsys.readouterr().out == ""
