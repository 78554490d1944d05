"""`concont reproduce`, each time as a process."""

import signal
import subprocess
import sys
import time

import pytest

from concont.paper.plan import cells_of
from concont.sweep.ledger import Ledger
from processes import concont
from sweeps import made_up_record


def test_a_plan_is_shown_with_its_hours_and_nothing_is_run(tmp_path):
    shown = concont(
        *("reproduce", "table4", "--dry-run", "--cells", "cifar10", "--folder", tmp_path / "r")
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("5 jobs, 0 done, 5 to run\n")
    assert shown.stdout.endswith("about 12 GPU-minutes\n")
    lines = shown.stdout.splitlines()
    (name,) = (n for n, line in enumerate(lines) if "w/o L_reg, cifar10, 10%, q = 0.5" in line)
    assert lines[name + 1] == "    recipe cifar10+wo-reg, 60 epochs"
    assert not (tmp_path / "r").exists()


@pytest.mark.long
@pytest.mark.slow
def test_a_sweep_goes_on_where_it_was_and_runs_nothing_twice(tmp_path):
    words = ["reproduce", "table1", "--budget", "smoke", "--folder", str(tmp_path)]
    first = concont(*words, "--methods", "SSPL,DPLL")
    assert first.returncode == 0, first.stderr
    assert "2 jobs, 0 done, 2 to run" in first.stdout
    assert "digits stand in" in first.stdout
    assert "digits standing in: not the paper's data" in first.stdout
    again = concont(*words, "--methods", "SSPL,DPLL,PiCO")
    assert again.returncode == 0, again.stderr
    assert "3 jobs, 2 done, 1 to run" in again.stdout
    assert "SSPL, digits, seed 1:" not in again.stdout
    records = Ledger(tmp_path / "ledger.sqlite").records()
    assert [record["method"] for record in records] == ["dpll", "sspl", "pico"]


@pytest.mark.slow
def test_a_failed_job_is_reported_and_the_rest_go_on(tmp_path):
    words = ["reproduce", "table4", "--cells", "cifar10", "--folder", str(tmp_path)]
    (tmp_path / "cifar10.npz").write_text("no data")
    shown = concont(*words, "--methods", "ConCont,w/o L_reg", "--root", str(tmp_path))
    assert shown.returncode == 1
    assert shown.stderr.count("failed: ") == 2
    assert "2 jobs failed" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_missing_data_is_said_once_before_anything_starts(tmp_path):
    shown = concont("reproduce", "table1", "--root", tmp_path, "--folder", tmp_path / "r")
    assert shown.returncode == 2
    assert shown.stderr.startswith(f"error: cifar10 is not under {tmp_path}: ")
    assert shown.stderr.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_the_next_ones_are_those_that_were_timed_on_this_device(tmp_path):
    words = ["reproduce", "next", "--minutes", "4", "--dry-run", "--folder", tmp_path]
    words += ["--root", tmp_path]
    (tmp_path / "cifar10.npz").write_text("there")
    empty = concont(*words)
    assert empty.returncode == 0, empty.stderr
    assert "in 4 minutes: about 0 jobs" in empty.stdout
    assert "some were never timed on cpu" in empty.stdout
    cells = {c.q: c for c in cells_of("table1") if (c.method, c.labeled) == ("SSPL", 0.1)}
    timed = made_up_record(
        cells[0.1], epochs=None, seconds=100.0, environment={"device": "cpu", "clean": True}
    )
    Ledger(tmp_path / "ledger.sqlite").add([timed])
    shown = concont(*words)
    assert shown.stderr.startswith(f"left out: cifar100 is not under {tmp_path}: ")
    assert shown.stderr.count("\n") == 2
    assert "in 4 minutes: about 2 jobs" in shown.stdout
    assert shown.stdout.count("1.9 min  SSPL, cifar10, ") == 2


@pytest.mark.slow
def test_an_interrupt_ends_it_in_one_line(tmp_path):
    words = ["reproduce", "all", "--budget", "smoke", "--folder", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "concont", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not Ledger(tmp_path / "ledger.sqlite").records():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said == "stopped; the same command goes on where it was\n"


WRONG = {
    "no 'table9' in the paper": ["table9"],
    "no budget 'huge'": ["table1", "--budget", "huge"],
    "no row 'Concont'": ["table1", "--methods", "Concont"],
    "write data:share:q": ["table1", "--cells", "cifar10:ten"],
    "write whole numbers": ["table1", "--seeds", "one"],
    "next and --minutes go together": ["next"],
    "no launcher 'moon'": ["table1", "--launcher", "moon", "--dry-run"],
    "no cell in cifr100": ["table1", "--cells", "cifar10,cifr100"],
    "there must be some": ["next", "--minutes", "-5"],
    "--minutes nan": ["next", "--minutes", "nan"],
    "--minutes runs on this machine": ["next", "--minutes", "5", "--launcher", "ray"],
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_use_is_told_in_one_line(message, tmp_path):
    shown = concont("reproduce", *WRONG[message], "--folder", str(tmp_path))
    assert shown.returncode == 2
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr
