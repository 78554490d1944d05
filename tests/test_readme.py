"""README.md is short, its example runs as it stands, its picture is drawn from records."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image

from concont.cli.app import app
from processes import ENVIRONMENT

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.slow
def test_the_python_example_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\[\d \d \d \d \d\]\n", done.stdout)
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "summary.json").exists()


def test_it_is_short_and_begins_with_the_two_commands():
    text = README.read_text("utf-8")
    assert len(text.splitlines()) < 150
    commands = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    assert [line.split("  ")[0] for line in commands[0].splitlines()] == ["make demo", "make test"]


def test_its_commands_and_options_are_there():
    shell = README.read_text("utf-8").split("## In the shell")[1]
    (lines,) = re.findall(r"```sh\n(.*?)```", shell.split("\n## ")[0], re.DOTALL)
    assert len(lines.splitlines()) == 6
    root = typer.main.get_command(app)
    for line in lines.splitlines():
        name, *words = line.split("#")[0].split()[1:]
        known = {option for param in root.commands[name].params for option in param.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


def test_its_picture_is_what_the_script_draws_and_small(tmp_path, monkeypatch):
    picture = README.parent / "docs" / "overview.png"
    assert f"]({picture.relative_to(README.parent)})" in README.read_text("utf-8")
    assert picture.stat().st_size < 300_000
    script = runpy.run_path(str(README.parent / "benchmarks" / "plot_overview.py"))
    drawn = tmp_path / "overview.png"
    script["main"](drawn)
    with Image.open(drawn) as new, Image.open(picture) as old:
        gap = np.abs(np.asarray(new, dtype=float) - np.asarray(old, dtype=float))
    assert (gap > 64).mean() < 0.01  # other fonts may be drawn a little differently
