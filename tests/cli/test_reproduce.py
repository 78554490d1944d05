"""`concont reproduce`, each time as a process."""

import signal
import subprocess
import sys
import time

import pytest

from concont.repro.ledger import Ledger
from processes import concont


def test_a_plan_is_shown_with_its_hours_and_nothing_is_run(tmp_path):
    shown = concont(
        *("reproduce", "table4", "--dry-run", "--cells", "cifar10", "--folder", tmp_path / "r")
    )
    assert shown.returncode == 0, shown.stderr
    assert "5 jobs, 0 done, 5 to run: about 0.2 GPU-hours" in shown.stdout
    assert (
        "concont train --data cifar10 --recipe cifar10+wo-reg --labeled 0.1 --ambiguity 0.5 "
        "--seed 1 --epochs 60" in shown.stdout
    )
    assert not (tmp_path / "r").exists()


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
    shown = concont(*words, "--methods", "ConCont,w/o L_reg", "--root", str(tmp_path))
    assert shown.returncode == 1
    assert shown.stderr.count("failed: ") == 2
    assert "2 of 2 jobs failed" in shown.stderr
    assert "Traceback" not in shown.stderr


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
    while not list(tmp_path.glob("results/*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in said
    assert len(Ledger(tmp_path / "ledger.sqlite").records()) >= 1


WRONG = {
    "no 'table9' in the paper": ["table9"],
    "no budget 'huge'": ["table1", "--budget", "huge"],
    "no row 'Concont'": ["table1", "--methods", "Concont"],
    "write data:share:q": ["table1", "--cells", "cifar10:ten"],
    "write whole numbers": ["table1", "--seeds", "one"],
    "next and --minutes go together": ["next"],
    "no launcher 'moon'": ["table1", "--launcher", "moon"],
    "next runs on this machine": ["next", "--minutes", "5", "--launcher", "ray"],
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_use_is_told_in_one_line(message, tmp_path):
    shown = concont("reproduce", *WRONG[message], "--folder", str(tmp_path))
    assert shown.returncode == 2
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr
