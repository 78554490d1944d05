"""Sweeps by submitit, with its executor for this machine in the place of Slurm."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import submitit
from submitit.core.utils import FailedJobError

from concont.errors import UsageError
from concont.sweep import launch_slurm
from concont.sweep.folder import SweepFolder
from concont.sweep.launch_slurm import TIMEOUT, on_slurm
from concont.sweep.schedule import run
from sweeps import (
    assert_done_once,
    assert_failed,
    at_work,
    lost_broken_left,
    tiny,
    wait_until,
    wrong,
)

on_local = partial(on_slurm, cluster="local")


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(launch_slurm, "POLL", 0.1)
    monkeypatch.setattr(submitit.Job, "_results_timeout_s", 1)  # for a result that is late


def stop(folder, job):
    """Tell a job that trains what Slurm tells one that is out of time, or in another's way."""
    wait_until(lambda: SweepFolder(folder).run(job.key).metrics())
    (waiting,) = (n for n, name in at_work(folder, job.key).items() if name != "train")
    os.kill(waiting, signal.SIGUSR2)


@pytest.mark.long
@pytest.mark.slow
def test_a_sweep_with_a_job_that_fails_and_one_that_is_stopped(tmp_path):
    failing, long = wrong(), tiny(2, 6)
    with ThreadPoolExecutor(1) as other:
        stopped = other.submit(stop, tmp_path, long)
        outcomes = {o.key: o for o in run([failing, long], tmp_path, on_local, 2)}
    stopped.result()
    assert "nosuch" in outcomes[failing.key].failure
    assert outcomes[long.key].failure is None
    assert_done_once(tmp_path, [long])
    logs = "".join(path.read_text() for path in (tmp_path / "slurm").glob("*_log.err"))
    assert "Caught signal SIGUSR2" in logs


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.slow
def test_what_is_lost_is_a_failed_job_and_what_is_left_is_cancelled(tmp_path, monkeypatch):
    cancelled = []  # submitit's own way is an interrupt, which a job in the background ignores
    monkeypatch.setattr(submitit.LocalJob, "cancel", lambda task: cancelled.append(task.job_id))
    with lost_broken_left(tmp_path) as (lost, broken, left):
        outcomes = on_local([lost, broken, left], tmp_path, 3)
        assert_failed(next(outcomes), broken, ".* is damaged")
        (waiting,) = wait_until(lambda: at_work(tmp_path, lost.key))
        os.kill(waiting, signal.SIGKILL)
        assert_failed(next(outcomes), lost, r"lost by Slurm \(FINISHED\); see ")
        (waiting,) = wait_until(lambda: at_work(tmp_path, left.key))
        assert cancelled == []
        outcomes.close()
        assert len(cancelled) == 1
        os.kill(waiting, signal.SIGKILL)


def test_what_slurm_is_asked_for(tmp_path, monkeypatch):
    class Asked(Exception):
        pass

    class Executor:
        def __init__(self, folder, cluster):
            self.made = (folder, cluster)

        def update_parameters(self, **given):
            raise Asked(self.made, given)

    monkeypatch.setattr(submitit, "AutoExecutor", Executor)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Asked) as found:
        next(on_slurm([tiny(1, 1)], Path("."), 4, slurm_partition="gpu", timeout_min=60))
    made, given = found.value.args
    assert made == (tmp_path.resolve() / "slurm", "slurm")
    assert given == {
        "name": "concont",
        "timeout_min": 60,
        "gpus_per_node": 1,
        "slurm_array_parallelism": 4,
        "slurm_partition": "gpu",
    }
    assert TIMEOUT > 60


def refuse(*words):
    """What submitit raises where sbatch refuses."""
    raise FailedJobError("sbatch: error: invalid partition\nand more")


def test_wrong_use_is_refused(tmp_path, monkeypatch):
    assert list(on_slurm([], tmp_path)) == []
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="--launcher slurm: .*srun"):
        next(on_slurm([tiny(1, 1)], tmp_path))
    with pytest.raises(UsageError, match="--launcher slurm: .*'nosuch'"):
        next(on_local([tiny(1, 1)], tmp_path, 1, nosuch=1))
    monkeypatch.setattr(submitit.AutoExecutor, "map_array", refuse)
    with pytest.raises(UsageError, match="--launcher slurm: sbatch: error: invalid partition$"):
        next(on_local([tiny(1, 1)], tmp_path))
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(UsageError, match=r"needs submitit: pip install 'concont\[slurm\]'"):
        next(on_slurm([tiny(1, 1)], tmp_path))
