"""Jobs on this machine, and launchers by name."""

import time

import pytest

from concont.errors import UsageError
from concont.repro import launch
from concont.repro.launch import LAUNCHERS, chosen, here, local
from concont.repro.sweep import run
from concont.repro.work import Outcome
from sweeps import Wrong, assert_done_once, tiny


@pytest.mark.slow
def test_a_job_that_fails_is_told_and_the_rest_go_on(tmp_path):
    wrong, right = tiny(1, 1, Wrong), tiny(2, 1)
    outcomes = list(run([wrong, right], tmp_path, local, 2))
    failed, done = sorted(outcomes, key=lambda outcome: outcome.failure is None)
    assert (failed.key, failed.record) == (wrong.key, None)
    assert "nosuch.npz" in failed.failure
    assert (done.key, done.failure) == (right.key, None)
    assert_done_once(tmp_path, [right])


@pytest.mark.parametrize("parallel", [1, 2])
def test_so_many_at_a_time(tmp_path, monkeypatch, parallel):
    under_way, most, jobs = [], [], [tiny(seed, 1) for seed in range(4)]

    def pretend(arguments, key, folder):
        under_way.append(key)
        most.append(len(under_way))
        time.sleep(0.05)
        under_way.remove(key)
        return Outcome(key, failure=folder)

    monkeypatch.setattr(launch, "perform", pretend)
    outcomes = list(local(jobs, tmp_path, parallel))
    assert max(most) == parallel
    assert {(o.key, o.failure) for o in outcomes} == {(job.key, str(tmp_path)) for job in jobs}
    if parallel == 1:
        assert [outcome.key for outcome in outcomes] == [job.key for job in jobs]


def test_in_this_process(tmp_path):
    job = tiny(1, 1)
    (outcome,) = here([job], tmp_path)
    assert outcome.record["settings_hash"] == job.key
    assert [again.record for again in here([job], tmp_path)] == [outcome.record]


def test_a_launcher_by_name_with_options(monkeypatch):
    def fake(jobs, folder, parallel, /, **options):
        return iter([jobs, folder, parallel, options])

    monkeypatch.setitem(LAUNCHERS, "slurm", fake)
    options = ["slurm_partition=gpu", "timeout_min=60", "folder=x"]
    found = list(chosen("slurm", options)([], "somewhere", 2))
    given = {"slurm_partition": "gpu", "timeout_min": 60, "folder": "x"}
    assert found == [[], "somewhere", 2, given]
    assert chosen("local")([], "somewhere", 1) is not None
    with pytest.raises(UsageError, match="no launcher 'pbs'; there are local, ray, slurm"):
        chosen("pbs")
    with pytest.raises(UsageError, match="takes no --launcher-options"):
        chosen("local", ["num_cpus=1"])
    for wrong in ("num_cpus", "=1", "a b=1"):
        with pytest.raises(UsageError, match="write key=value"):
            chosen("ray", [wrong])
