"""The command for a run without a network, in real processes; the other kind is in tests/cli."""

import json

import numpy as np
import pytest

from concont.engine import either
from concont.engine.classic import Fit
from concont.runs import RunFolder
from processes import concont

pytestmark = pytest.mark.slow


def test_train_resume_and_evaluate(tmp_path, toy_npz, monkeypatch):
    monkeypatch.setitem(concont.__globals__["ENVIRONMENT"], "XDG_CACHE_HOME", str(tmp_path))
    words = ("--method", "sspl", "--data", toy_npz, "--labeled", "0.5", "--out", tmp_path / "run")
    done = concont("train", *words)
    assert done.returncode == 0, done.stderr
    assert "test accuracy" in done.stdout
    summary = json.loads((tmp_path / "run/summary.json").read_text())

    (tmp_path / "run/summary.json").unlink()  # as a kill would have left it
    assert isinstance(either.reopen(RunFolder(tmp_path / "run")), Fit)
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
    refused = concont("predict", tmp_path / "run", picture)
    assert refused.returncode == 2
    assert "gives no probabilities" in refused.stderr


def test_a_network_on_features_is_refused_in_a_line(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, x_train=np.random.rand(20, 3), y_train=np.arange(20) % 2)
    done = concont("train", "--data", path, "--out", tmp_path / "run")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "this data holds features, no images" in line
    assert "Traceback" not in done.stderr
