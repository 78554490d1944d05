"""What `sweep` and `reproduce` share: what is stopped, what is left, and what is said of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from concont.cli.run_jobs import RunOptions, follow, refuse_beside_minutes, report_failed, run_jobs
from concont.errors import ConcontError, UsageError
from concont.sweep.folder import SweepFolder
from concont.sweep.launch_local import on_this_machine
from concont.sweep.ledger import Ledger
from concont.sweep.process import Outcome
from sweeps import at_work, record_of, tiny, wait_until


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_sweep_that_is_told_to_end_takes_its_training_along(tmp_path, number):
    """Told so itself, or with all of its group, as by a terminal that is closed."""
    code = (
        "from pathlib import Path; from sweeps import tiny\n"
        "from concont.cli import app, run_jobs\n"
        "from concont.sweep.launch_local import on_this_machine\n"
        "from concont.sweep.schedule import run\n"
        f"folder, jobs = Path({str(tmp_path)!r}), [tiny(1, 60)]\n"
        "app.app = lambda: run_jobs.follow(jobs, run(jobs, folder, on_this_machine))\n"
        "app.main()"
    )
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    sweep, job = SweepFolder(tmp_path), tiny(1, 60)
    wait_until(lambda: len(sweep.run(job.key).metrics()) > 1)
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (1, "stopped; the same command goes on where it was\n")
    assert at_work(tmp_path, job.key) == {}
    assert "go on with: concont train --resume" in sweep.log(job.key).read_text()


def test_what_is_in_the_ledger_is_not_run(tmp_path, capsys):
    jobs = [tiny(seed, 1) for seed in (1, 2, 3)]
    Ledger(SweepFolder(tmp_path).ledger).add([record_of(jobs[1].settings)])

    def launcher(left, folder, parallel):
        assert (list(left), folder, parallel) == ([jobs[0], jobs[2]], tmp_path, 2)
        yield Outcome(jobs[0].key, failure="it broke")
        yield Outcome(jobs[2].key, record_of(jobs[2].settings, 0.75))

    (failed,) = run_jobs(jobs, RunOptions(tmp_path, launcher, parallel=2))
    assert failed.key == jobs[0].key
    said, errors = capsys.readouterr()
    assert said == "3 jobs, 1 done, 2 to run\ndigits, seed 3: 75.00 %, 10 s\n"
    assert errors == "failed: digits, seed 1: it broke\n"
    with pytest.raises(ConcontError, match=f"1 job failed; their output is under {tmp_path}"):
        report_failed([failed], tmp_path)
    report_failed([], tmp_path)


def test_what_is_left_when_the_time_is_up_is_said(capsys):
    jobs = [tiny(seed, 1) for seed in (1, 2, 3)]
    follow(jobs, (Outcome(job.key, record_of(job.settings)) for job in jobs[:1]))
    assert capsys.readouterr().out.endswith("2 jobs left; the same command goes on where it was\n")


def test_a_dry_run_runs_nothing(tmp_path, capsys):
    options = RunOptions(
        tmp_path / "r", on_this_machine, minutes=5.0, try_untimed=True, dry_run=True
    )
    assert run_jobs([tiny(1, 1)], options) == []
    said = capsys.readouterr().out
    assert "in 5 minutes: about 0 jobs" in said
    assert "the first is tried, and times them" in said
    assert not (tmp_path / "r").exists()


def test_the_clock_watches_this_machine_alone():
    refuse_beside_minutes(None, "ray", 4)
    refuse_beside_minutes(5.0, "local", 1)
    for minutes, launcher, parallel in ((5.0, "ray", 1), (5.0, "local", 2)):
        with pytest.raises(UsageError, match="--minutes runs on this machine"):
            refuse_beside_minutes(minutes, launcher, parallel)
    for minutes in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="there must be some"):
            refuse_beside_minutes(minutes, "local", 1)
