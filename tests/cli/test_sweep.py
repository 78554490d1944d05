"""`concont sweep`, each time as a process that starts others."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from concont.config.resolve import read_settings
from concont.sweep.folder import SweepFolder
from concont.sweep.sweep_file import read_jobs
from processes import concont, start
from sweeps import assert_done_once, at_work, wait_until

GRID = """\
base:
  recipe: digits
  model: {width: 4}
  train: {epochs: 1, evaluate_every: 1, checkpoint_every: 0, device: cpu}
axes: {method.threshold: [0.9, 1.0], train.partial_share: [null, 0.25]}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(GRID)
    return path


def test_a_plan_is_shown_and_nothing_is_run(file, tmp_path):
    shown = concont("sweep", file, "--folder", tmp_path / "s", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("4 jobs, 0 done, 4 to run\n")
    assert shown.stdout.count("not timed yet") == 4
    for job in read_jobs(file):
        assert f"{job.key}  not timed yet  {job.name}\n    recipe digits, 1 epoch\n" in shown.stdout
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
def test_a_grid_is_run_once_and_compared(file, tmp_path):
    """The sweep of the guide: 2 x 2 settings, then a seed more, then means by a setting."""
    folder = tmp_path / "s"
    words = ["sweep", file, "--folder", folder, "--parallel", "2"]
    first = concont(*words)
    assert first.returncode == 0, first.stderr
    jobs, sweep = read_jobs(file), SweepFolder(folder)
    assert_done_once(folder, jobs)
    for job in jobs:
        assert read_settings(sweep.settings(job.key)) == job.settings
        assert read_settings(sweep.run(job.key) / "config.yaml") == job.settings
        assert f"{job.name}: " in first.stdout
    again = concont(*words)
    assert again.stdout == "4 jobs, 4 done, 0 to run\n"
    by = ("results", "--folder", folder, "--by", "method.threshold")
    shown = concont(*by, "--json")
    rows = json.loads(shown.stdout)
    assert shown.stderr == "also differing inside the groups: train.partial_share\n"
    assert [(row["method.threshold"], row["n"]) for row in rows] == [(0.9, 2), (1.0, 2)]
    records = json.loads(concont("results", "--folder", folder, "--json").stdout)
    found = [r["accuracy_last"] for r in records if r["settings"]["method"]["threshold"] == 0.9]
    assert rows[0]["accuracy_mean"] == pytest.approx(sum(found) / 2, abs=1e-6)
    assert rows[0]["accuracy_std"] == pytest.approx(abs(found[0] - found[1]) / 2**0.5, abs=1e-6)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("victim", ["sweep", "training"])
def test_what_is_killed_goes_on_and_nothing_runs_twice(file, tmp_path, victim):
    file.write_text(GRID.replace("epochs: 1,", "epochs: 4,").replace("[null, 0.25]", "[null]"))
    folder = tmp_path / "s"
    words = ["sweep", str(file), "--folder", str(folder)]
    jobs, sweep = read_jobs(file), SweepFolder(folder)
    process = start(*words)
    run = sweep.run(jobs[0].key)
    wait_until(lambda: len(run.metrics()) > 1)
    first = run.metrics()[0]
    if victim == "sweep":
        process.kill()
        process.communicate()
    else:
        (training,) = (n for n, name in at_work(folder, jobs[0].key).items() if name == "train")
        os.kill(training, signal.SIGKILL)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 1
        assert said.startswith(f"failed: {jobs[0].name}: ")
        assert "error: 1 job failed; their output is under" in said
    again = concont(*words)
    assert again.returncode == 0, again.stderr
    assert f"2 jobs, {0 if victim == 'sweep' else 1} done" in again.stdout
    assert run.metrics()[0] == first  # not begun anew
    assert {path.stem for path in sweep.results.iterdir()} == {job.key for job in jobs}
    for job in jobs:
        assert [line["epoch"] for line in sweep.run(job.key).metrics()] == list(range(1, 5))


@pytest.mark.slow
@pytest.mark.long
def test_within_minutes_what_was_never_timed_is_tried(file, tmp_path):
    shown = concont("sweep", file, "--folder", tmp_path / "s", "--minutes", "4")
    assert shown.returncode == 0, shown.stderr
    assert "in 4 minutes: about 0 jobs\nsome were never timed on cpu: the first" in shown.stdout
    assert len(list((tmp_path / "s" / "results").iterdir())) >= 1


def test_missing_data_is_said_once_before_anything_starts(file, tmp_path):
    file.write_text("base: {data: {source: cifar10}}\nseeds: [1, 2]\n")
    shown = concont("sweep", file, "--folder", tmp_path / "s", "--root", tmp_path)
    assert shown.returncode == 2
    assert shown.stderr.startswith(f"error: cifar10 is not under {tmp_path}: ")
    assert not (tmp_path / "s").exists()


WRONG = {
    "unknown setting method.treshold; did you mean threshold?": "axes: {method.treshold: [1]}",
    "axes.train.epochs is 3; it must be a list of values": "axes: {train.epochs: 3}",
    "unknown key grid; a sweep holds base, axes, runs, seeds": "grid: {}",
    "is not valid YAML": "base: [",
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_file_is_told_in_one_line(message, tmp_path):
    (tmp_path / "wrong.yaml").write_text(WRONG[message])
    shown = concont("sweep", "wrong.yaml", "--folder", "s", cwd=tmp_path)
    assert shown.returncode == 2
    assert shown.stderr.startswith("error: wrong.yaml")
    assert message in shown.stderr
    assert not (tmp_path / "s").exists()


def test_the_sweep_of_the_guide_is_what_it_says(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.M)
    (tmp_path / "thresholds.yaml").write_text(text)
    jobs = read_jobs(tmp_path / "thresholds.yaml")
    assert len(jobs) == 8
    assert {job.settings.train.epochs for job in jobs} == {3}
    commands = re.findall(r"^concont sweep (.*?)(?: +#.*)?$", page, re.M)
    assert len(commands) >= 2
    for words in commands:
        shown = concont("sweep", *words.split(), "--dry-run", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.startswith("8 jobs, 0 done, 8 to run\n")
