import os
import re
import resource
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from unittest.mock import patch

import pytest

from concont.cli.app import EXTRAS, _let_threads_sleep, _name_extra
from concont.version import __version__
from processes import ENVIRONMENT
from processes import fresh as concont

ROOT = Path(__file__).parent.parent.parent

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


WITHOUT = """
import sys
for name in sys.argv[1].split():
    sys.modules[name] = None
sys.argv = ["concont", *sys.argv[2:]]
from concont.cli import main
main()
"""


def run_without(modules, *words):
    """The command where these modules are not installed."""
    command = [sys.executable, "-c", WITHOUT, " ".join(modules), *map(str, words)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("modules", "words", "message"),
    [
        (["torch", "yaml"], ["train", "--data", "digits"], "train needs torch: {}train]'"),
        (["yaml"], ["train", "--data", "digits"], "train needs yaml: {}train]'"),
        (["torch"], ["predict", ".", "x.png"], "predict needs torch: {}train]'"),
        (["numpy"], ["predict", ".", "x.png"], "predict needs numpy: {}predict]'"),
        (["onnxruntime"], ["predict", "x.onnx", __file__], "needs onnxruntime: {}predict]'"),
        (["torch"], ["export", ".", "-o", "x"], "export needs torch: {}export]'"),
        (["fastapi"], ["serve", __file__], "concont serve needs fastapi: {}serve]'"),
        (["pyarrow"], ["data", "check", "x.csv"], "data needs pyarrow: {}train]'"),
    ],
)
def test_what_is_not_installed_is_named_in_a_line(modules, words, message):
    done = run_without(modules, *words)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: concont ")
    assert line.endswith(message.format("pip install 'concont["))


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("export", "--help")])
def test_help_needs_no_extra(words):
    typers_own = {"pydantic"}
    done = run_without(sorted(set().union(*EXTRAS.values()) - typers_own), *words)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_the_package_asks_for_is_what_a_line_can_name():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = pyproject["project"]["optional-dependencies"]
    distributions = packages_distributions()
    for extra, modules in EXTRAS.items():
        own = [re.split("[<>=]", each)[0] for each in asked[extra] if "concont" not in each]
        named = {normalise(distributions[name][0]) for name in modules}
        assert set(map(normalise, own)) <= named, extra


def normalise(name):
    return name.lower().replace("_", "-")


def test_another_module_that_is_missing_is_a_fault_of_ours():
    error = ModuleNotFoundError("No module named 'concont.nosuch'", name="concont.nosuch")
    with pytest.raises(ModuleNotFoundError):
        _name_extra(error)


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


@pytest.mark.parametrize("error", ["MemoryError", "RuntimeError('CUDA out of memory. Tried')"])
def test_memory_that_runs_out_anywhere_is_a_line(error):
    code = f"import concont.cli.app as a\ndef app(): raise {error}\na.app = app\na.main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is too little memory: ")
    assert len(done.stderr.splitlines()) == 1
