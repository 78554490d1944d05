"""Sweeps on a real Ray that loses workers: nothing is lost and nothing runs twice."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

import concont
from concont.errors import ConcontError, UsageError
from concont.sweep import launch_ray
from concont.sweep.folder import SweepFolder
from concont.sweep.launch_ray import on_ray, share_resources, worker_environment
from concont.sweep.record import write
from concont.sweep.schedule import run
from sweeps import (
    assert_done_once,
    assert_failed,
    at_work,
    lost_broken_left,
    record_of,
    tiny,
    wait_until,
)


@pytest.fixture(scope="module")
def cluster():
    """A cluster that was there before, with two CPUs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        two = {"num_cpus": 2, "include_dashboard": False}
        head = Cluster(initialize_head=True, head_node_args=two)
        patch.setenv("RAY_ADDRESS", head.address)
        yield head
        head.shutdown()


def kill(folder, job, trainer_too):
    """End the worker of a job that trains; returns the first line that the job had written."""
    run = SweepFolder(folder).run(job.key)
    wait_until(lambda: len(run.metrics()) > 1)  # so that the first is in a checkpoint
    found = {name: number for number, name in at_work(folder, job.key).items()}
    assert set(found) == {"ray::run_job", "train"}
    os.kill(found["ray::run_job"], signal.SIGKILL)
    if trainer_too:
        with suppress(ProcessLookupError):  # Ray was faster
            os.kill(found["train"], signal.SIGKILL)
    return run.metrics()[0]


@pytest.mark.slow
@pytest.mark.parametrize(("trainer_too", "others"), [(False, 2), (True, 1)])
@pytest.mark.long
def test_a_worker_is_killed_during_the_sweep(tmp_path, cluster, trainer_too, others):
    jobs = [tiny(1, 6), *(tiny(seed, 1) for seed in range(2, 2 + others))]
    with ThreadPoolExecutor(1) as killer:
        killed = killer.submit(kill, tmp_path, jobs[0], trainer_too)
        outcomes = list(run(jobs, tmp_path, on_ray, 2))
    assert {outcome.key: outcome.failure for outcome in outcomes} == {j.key: None for j in jobs}
    assert_done_once(tmp_path, jobs)
    assert SweepFolder(tmp_path).run(jobs[0].key).metrics()[0] == killed.result()  # not begun anew
    assert not ray.is_initialized()


@pytest.mark.slow
def test_what_ray_gives_up_is_a_failed_job_and_what_is_left_is_ended(tmp_path, cluster):
    with lost_broken_left(tmp_path) as (lost, broken, left):
        outcomes = on_ray([lost, broken, left], tmp_path, 2, max_retries=0)
        assert_failed(next(outcomes), broken, ".* is damaged")
        (worker,) = wait_until(lambda: at_work(tmp_path, lost.key))
        os.kill(worker, signal.SIGKILL)
        assert_failed(next(outcomes), lost, "WorkerCrashedError: ")
        wait_until(lambda: at_work(tmp_path, left.key))
        outcomes.close()
        wait_until(lambda: not at_work(tmp_path, left.key))


@pytest.mark.slow
@pytest.mark.long
def test_one_is_started_where_there_is_none(tmp_path, monkeypatch):
    job = tiny(1, 1)
    write(SweepFolder(tmp_path).result(job.key), record_of(job.settings))
    monkeypatch.setenv("RAY_ADDRESS", "local")
    monkeypatch.chdir(tmp_path)
    (outcome,) = on_ray([job], Path("."), 1)
    assert outcome.record == record_of(job.settings)
    assert not ray.is_initialized()


def test_nothing_is_started_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert list(on_ray([], tmp_path)) == []


@pytest.mark.slow
def test_wrong_use_is_refused(tmp_path, cluster, monkeypatch):
    with pytest.raises(UsageError, match="--launcher ray: .* nosuch"):
        next(on_ray([tiny(1, 1)], tmp_path, 1, nosuch=1))
    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    with pytest.raises(ConcontError, match="no Ray cluster: .*nonsense"):
        next(on_ray([tiny(1, 1)], tmp_path))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"needs Ray: pip install 'concont\[ray\]'"):
        next(on_ray([tiny(1, 1)], tmp_path))


def test_a_worker_knows_the_source_tree_and_our_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("CONCONT_DATA", "somewhere")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    tree = str(Path(concont.__file__).parents[1])
    assert worker_environment() == {"CONCONT_DATA": "somewhere", "PYTHONPATH": tree}
    monkeypatch.setenv("PYTHONPATH", "more")
    assert worker_environment()["PYTHONPATH"] == f"{tree}{os.pathsep}more"
    monkeypatch.setattr(launch_ray.sysconfig, "get_path", lambda name: tree)
    assert worker_environment() == {"CONCONT_DATA": "somewhere"}


def test_a_gpu_a_job_and_a_fair_share_of_the_cpus():
    def nodes(*have):
        return [{"Alive": True, "Resources": {"CPU": cpus, "GPU": gpus}} for cpus, gpus in have]

    assert share_resources(nodes((8.0, 0)), 3) == {"num_cpus": 2, "num_gpus": 0}
    assert share_resources(nodes((2.0, 0)), 5) == {"num_cpus": 1, "num_gpus": 0}
    assert share_resources(nodes((8.0, 0), (8.0, 0)), 1) == {"num_cpus": 8, "num_gpus": 0}
    assert share_resources(nodes((8.0, 0), (8.0, 0), (8.0, 0)), 4) == {"num_cpus": 4, "num_gpus": 0}
    assert share_resources(nodes((64.0, 0), (16.0, 4.0)), 4) == {"num_cpus": 4, "num_gpus": 1}
    assert share_resources([{"Alive": False, "Resources": {"CPU": 9.0}}], 1)["num_cpus"] == 1
