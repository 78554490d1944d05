import os
import resource
import subprocess
import sys
from unittest.mock import patch

import pytest

from concont.cli.app import _let_threads_sleep
from concont.version import __version__
from processes import fresh as concont

pytestmark = pytest.mark.slow


HEAVY = {"torch", "torchvision", "sklearn", "scipy", "PIL", "matplotlib", "numpy"}


@pytest.mark.parametrize("words", [("--help",), ("train", "--help"), ("--version",)])
def test_help_answers_at_once(words):
    """It waits for nothing that is slow to import: what is left takes about 0.4 s."""
    command = [sys.executable, "-X", "importtime", "-m", "concont", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    imported = {line.split("|")[-1].split(".")[0].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert imported & HEAVY == set()


def test_help_takes_little_time():
    """Of the processor, since others may be at work on it too."""
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert concont("train", "--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(took) < 0.8, took


def test_the_version_and_all_commands_are_named():
    assert concont("--version").stdout.startswith(f"concont {__version__} (commit ")
    text = concont("--help").stdout
    assert all(
        name in text for name in ("train", "evaluate", "predict", "demo", "datasets", "data")
    )


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ("PASSIVE", "1000")),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, ("ACTIVE", None)),
        ({"GOMP_SPINCOUNT": "7"}, ("PASSIVE", "7")),
    ],
)
def test_threads_that_wait_soon_sleep_unless_the_user_says_otherwise(given, found, monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with patch.dict(os.environ):
        _let_threads_sleep()
        assert (os.environ["OMP_WAIT_POLICY"], os.environ.get("GOMP_SPINCOUNT")) == found


def test_an_error_shows_control_characters_and_keeps_its_lines(tmp_path):
    refused = concont("evaluate", "\x1b[31mno[red]", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr == "error: \\x1b[31mno[red]: no such run folder\n"
    words = ("--set", "train.epochs=0", "--set", "train.batch_size=0")
    assert concont("train", "--data", "digits", *words, cwd=tmp_path).stderr.count("\n") == 2
