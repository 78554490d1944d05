"""`concont datasets` and `concont data` through real processes."""

import json
import re

import numpy as np
import pytest
import yaml
from PIL import Image

from processes import concont
from refusals import run_here

pytestmark = pytest.mark.slow


def test_datasets_are_listed_with_where_they_are(tmp_path, capsys):
    np.savez(tmp_path / "svhn.npz", x=1)
    listed = json.loads(concont("datasets", "--root", tmp_path, "--json").stdout)
    assert listed["root"] == str(tmp_path)
    rows = {row["name"]: row for row in listed["sources"]}
    assert list(rows) == ["digits", "cifar10", "cifar100", "svhn", "fashion-mnist"]
    assert rows["svhn"]["found"] == str(tmp_path / "svhn.npz")
    assert rows["cifar10"]["found"] is None
    assert rows["cifar10"]["train"] == 50_000
    table = run_here(capsys, "datasets", "--root", tmp_path)
    assert table.returncode == 0
    assert "73,257" in table.stdout
    for columns in (30, 40, 60, 100):
        shown = concont("datasets", "--root", tmp_path, columns=columns).stdout
        for row in rows.values():
            for size in (f"{row['train']:,}", f"{row['test']:,}"):
                assert re.search(rf"[│:] +{size}( |$)", shown, re.MULTILINE)
            assert " x ".join(map(str, row["shape"])) in shown


def test_candidate_sets_go_to_a_file_and_come_back(tmp_path, toy_config, capsys):
    path = tmp_path / "sets.npz"
    words = ("--data", "digits", "--labeled", "0.2", "--ambiguity", "0.5", "--seed", "7")
    written = concont("data", "candidates", *words, "--out", path)
    assert written.returncode == 0, written.stderr
    read = run_here(capsys, "data", "candidates", "--read", path)
    assert read.returncode == 0, read.stderr
    assert read.stdout == written.stdout
    assert "287 of 1437 rows keep a set" in read.stdout
    expected = read.stdout.split()[1]

    del toy_config["data"]
    toy_config["train"]["batch_size"] = 512  # three steps: that the sets are used shows in one
    (tmp_path / "toy.yaml").write_text(yaml.safe_dump(toy_config))
    trained = concont(
        *("train", "--data", "digits", "--recipe", tmp_path / "toy.yaml", "--epochs", "1"),
        *("--set", f"data.candidates={path}", "--out", tmp_path / "run"),
    )
    assert trained.returncode == 0, trained.stderr
    assert json.loads((tmp_path / "run" / "data.json").read_text())["sets_hash"] == expected

    neither = run_here(capsys, "data", "candidates", "--data", "digits")
    assert neither.returncode == 2
    assert "give either --out FILE to write, or --read FILE" in neither.stderr


def test_views_become_a_picture(tmp_path):
    done = concont(
        "data", "views", "--data", "digits", "--images", "5", "--out", tmp_path / "v.png"
    )
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "v.png") as picture:
        assert picture.size == (190 + 5 * 100, 13 * 100)
