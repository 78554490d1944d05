"""`concont resolve` through real processes."""

import csv
import json

import numpy as np
import pytest

import concont as package
from concont.answers.resolution import resolve
from image_tables import make_images, write_csv
from processes import concont

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path, toy_config, monkeypatch):
    """A run on a table of 24 images, some with two candidates and some with none."""
    monkeypatch.setenv("CONCONT_CACHE", str(tmp_path / "cache"))
    names = [f"{k:02d}.png" for k in range(24)]
    make_images(tmp_path / "photos", names)
    sets = ["a|b", "b", "", "c|a"]
    truth = ["a", "b", "", "c"]
    rows = [(name, sets[k % 4], truth[k % 4]) for k, name in enumerate(names)]
    write_csv(tmp_path / "table.csv", rows, ("image", "candidates", "label"))
    config = {**toy_config, "data": {"source": "table.csv", "images": "photos", "image_size": 8}}
    monkeypatch.chdir(tmp_path)
    return package.train(config, out="run")


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_labels_of_all_images(run, tmp_path):
    done = concont("resolve", "run", "-o", "labels.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found, rows = resolve(run), read(tmp_path / "labels.csv")
    assert [row["image"] for row in rows] == [f"{k:02d}.png" for k in range(24)]
    assert [row["label"] for row in rows] == [found.classes[k] for k in found.label]
    assert [int(row["review"]) for row in rows] == found.review.tolist()
    inside = [r["label"] in r["candidates"].split("|") for r in rows if r["candidates"]]
    assert all(inside) or any(row["overruled"] == "true" for row in rows)
    assert "24 images: 18 with candidate sets, 6 unlabelled" in done.stdout
    assert "of the 18 images whose true label is known" in done.stdout
    assert "of those unlabelled" not in done.stdout  # nothing is known of them
    assert "not calibrated: that takes at least 50 held-out images (give the true" in done.stdout
    first = [r["image"] for r in sorted(rows, key=lambda r: int(r["review"]))[:5]]
    assert f"to look at first: {', '.join(first)}, and on" in done.stdout
    assert done.stdout.endswith("labels.csv: 24 rows\n")


def test_the_figures_as_json_are_those_in_words(run, tmp_path):
    done = concont("resolve", "run", "--json", cwd=tmp_path)
    figures, found = json.loads(done.stdout), resolve(run)
    assert figures["out"] is None
    assert (figures["images"], figures["partial"], figures["unlabeled"]) == (24, 18, 6)
    assert figures["accuracy"] == found.accuracy()
    assert figures["accuracy_unlabeled"] is None
    assert figures["confident"] == int(found.confident.sum())
    words = concont("resolve", "run", cwd=tmp_path).stdout
    assert f"{100 * figures['accuracy']:.2f} %" in words
    assert f"{figures['confident']} confident" in words


def test_a_hold_out_calibrates_and_says_so(tmp_path, toy_config):
    labels = np.arange(400) % 2
    images = np.random.RandomState(0).randint(0, 120, (400, 8, 8)).astype(np.uint8)
    images[labels == 1, :, 4:] += 60
    np.savez(tmp_path / "more.npz", x_train=images, y_train=labels)
    data = {"source": str(tmp_path / "more.npz"), "labeled": 0.5, "ambiguity": 0.3, "holdout": 0.2}
    package.train({**toy_config, "data": data}, out=tmp_path / "run")
    done = concont("resolve", "run", cwd=tmp_path)
    assert "80 images more were held out" in done.stdout
    assert "fitted on 80 held-out images: expected calibration error" in done.stdout
    assert "% before" in done.stdout
    figures = json.loads(concont("resolve", "run", "--json", cwd=tmp_path).stdout)
    assert 0 < figures["calibration"]["error_before"] < 1


def test_a_sheet_of_the_next_images_to_label(run, tmp_path):
    done = concont("resolve", "run", "--budget", 5, "-o", "next.csv", cwd=tmp_path)
    assert done.returncode == 0
    rows = read(tmp_path / "next.csv")
    assert len(rows) == 5
    assert {row["label"] for row in rows} == {""}
    places = [int(row["review"]) for row in rows]
    assert places == sorted(places)


def test_data_that_was_moved_is_found_where_it_lies_now(run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "table.csv").rename(tmp_path / "elsewhere" / "table.csv")
    (tmp_path / "photos").rename(tmp_path / "elsewhere" / "photos")
    done = concont("resolve", "run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "photos: no such folder; if the run's data was moved, say where" in done.stderr
    moved = ["--data", "elsewhere/table.csv", "--images", "elsewhere/photos"]
    done = concont("resolve", "run", *moved, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "-o", "labels.txt"], 2, "must end in .csv or .parquet"),
        (["run", "-o", "table.csv", "--overwrite"], 2, "table.csv is what is read"),
        (["run", "-o", "run/summary.json"], 2, "must end in .csv or .parquet"),
        (["run", "--budget", "5"], 2, "say where, by --out"),
        (["nothing"], 2, "nothing: no such run folder"),
        (["photos"], 2, "it is not a run"),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(words, code, message, run, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    done = concont("resolve", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_labels_that_are_there_are_replaced_only_on_request(run, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    done = concont("resolve", "run", "-o", "labels.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "labels.csv").read_text() == "mine"
    done = concont("resolve", "run", "-o", "labels.csv", "--overwrite", cwd=tmp_path)
    assert done.returncode == 0
    assert len(read(tmp_path / "labels.csv")) == 24
