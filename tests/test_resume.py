"""Runs that are killed for real go on to the very same weights."""

import json
import random
import signal
import time

import pytest

from processes import concont, start

pytestmark = pytest.mark.slow
SHORT = (
    *("--data", "digits", "--epochs", "6", "--set", "train.checkpoint_every=0"),
    *("--set", "train.evaluate_every=2", "--set", "model.width=4"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that was left alone."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    began = time.perf_counter()
    done = concont("train", *SHORT, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder, time.perf_counter() - began


def timeless(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in r.items() if k not in ("seconds", "images_per_s")} for r in lines]


def assert_same_end(folder, whole):
    found, expected = (p / "model.safetensors" for p in (folder, whole))
    assert found.read_bytes() == expected.read_bytes()
    assert timeless(folder) == timeless(whole)
    found, expected = (json.loads((p / "summary.json").read_text()) for p in (folder, whole))
    for summary in (found, expected):
        assert sum(summary.pop("seconds_by").values()) == pytest.approx(summary.pop("seconds"))
    assert found == expected


def written(folder):
    """When a start of the run last wrote its settings, which is when training begins."""
    path = folder / "config.yaml"
    return path.stat().st_mtime_ns if path.exists() else 0


def wait_for(condition, process, seconds=60):
    end = time.perf_counter() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.perf_counter() < end
        time.sleep(0.005)


def test_sigkill_at_any_moment(tmp_path, whole):
    folder, kills = tmp_path / "run", 0
    moments = random.Random(7)
    words = ("train", *SHORT, "--out", folder)
    while not (folder / "summary.json").exists():
        before = written(folder)
        process = start(*words)
        if kills == 0:  # as soon as there is anything at all
            wait_for(lambda: folder.exists() and any(folder.iterdir()), process)
            process.kill()
        elif kills < 3:
            wait_for(lambda since=before: written(folder) > since, process)
            time.sleep(moments.uniform(0.0, 0.4))
            process.kill()
        output = process.communicate()
        kills += process.returncode == -signal.SIGKILL
        assert process.returncode in (0, -signal.SIGKILL), output
        words = ("train", "--resume", folder) if written(folder) else words
    assert kills >= 2
    assert_same_end(folder, whole[0])


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_polite_stop_finishes_the_step_and_says_how_to_go_on(tmp_path, whole, number):
    folder = tmp_path / "run"
    process = start("train", *SHORT, "--out", folder)
    wait_for(lambda: (folder / "checkpoint.pt").exists(), process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"go on with: concont train --resume {folder}" in errors
    assert "Traceback" not in errors
    assert not (folder / "summary.json").exists()
    done = concont("train", "--resume", folder)
    assert done.returncode == 0, done.stderr
    assert_same_end(folder, whole[0])
