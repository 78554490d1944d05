"""Jobs as processes of this machine: so many at a time, each once, and none left behind."""

import time

import pytest

from concont.sweep import launch_local as module
from concont.sweep.folder import SweepFolder
from concont.sweep.launch_local import on_this_machine, run_processes
from concont.sweep.process import Outcome
from concont.sweep.record import write
from concont.sweep.schedule import run
from sweeps import assert_done_once, at_work, record_of, tiny, wrong


@pytest.mark.slow
def test_a_job_that_fails_is_told_and_the_rest_go_on(tmp_path):
    failing, right = wrong(), tiny(2, 1)
    outcomes = list(run([failing, right], tmp_path, on_this_machine, 2))
    failed, done = sorted(outcomes, key=lambda outcome: outcome.failure is None)
    assert (failed.key, failed.record) == (failing.key, None)
    assert "nosuch" in failed.failure
    assert (done.key, done.failure) == (right.key, None)
    assert_done_once(tmp_path, [right])


def test_one_that_cannot_be_started_is_told(tmp_path):
    job = tiny(1, 1)
    SweepFolder(tmp_path).log(job.key).mkdir(parents=True)
    (outcome,) = on_this_machine([job], tmp_path)
    assert "Is a directory" in outcome.failure
    with SweepFolder(tmp_path).lock(job.key, wait=False):
        pass  # it was let go
    (tmp_path / "runs" / f".{job.key}.lock").unlink()
    (tmp_path / "runs" / f".{job.key}.lock").mkdir()
    (outcome,) = on_this_machine([job], tmp_path)
    assert "Is a directory" in outcome.failure


@pytest.mark.slow
@pytest.mark.long
def test_what_is_under_way_saves_where_it_is_when_the_sweep_is_stopped(tmp_path):
    job, sweep = tiny(1, 6), SweepFolder(tmp_path)
    outcomes = run_processes([job], tmp_path, lambda left, under_way: left[0] if left else None)
    with pytest.raises(TimeoutError), Alarm(lambda: len(sweep.run(job.key).metrics()) > 1):
        next(outcomes)
    assert at_work(tmp_path, job.key) == {}
    assert "go on with: concont train --resume" in sweep.log(job.key).read_text()
    assert not sweep.result(job.key).exists()
    assert [outcome.failure for outcome in on_this_machine([job], tmp_path)] == [None]
    assert [line["epoch"] for line in sweep.run(job.key).metrics()] == list(range(1, 7))


class Alarm:
    """A TimeoutError inside of what the sweep waits in, once a condition holds."""

    def __init__(self, condition):
        self.condition, self.sleep = condition, time.sleep

    def __enter__(self):
        def sleep(seconds):
            if self.condition():
                raise TimeoutError
            self.sleep(seconds)

        module.time.sleep = sleep

    def __exit__(self, *error):
        module.time.sleep = self.sleep


class Fake:
    """A job that takes a moment and does nothing; how many there are at once."""

    now, most = 0, 0

    def __init__(self, sweep, job):
        self.job, self.ends = job, time.monotonic() + 0.05
        Fake.now += 1
        Fake.most = max(Fake.most, Fake.now)

    def poll(self):
        if time.monotonic() < self.ends:
            return None
        Fake.now -= 1
        return Outcome(self.job.key, failure="nothing")


@pytest.mark.parametrize("parallel", [1, 2])
def test_so_many_at_a_time(tmp_path, monkeypatch, parallel):
    monkeypatch.setattr(module, "TrainingProcess", Fake)
    monkeypatch.setattr(module, "POLL", 0.01)
    monkeypatch.setattr(Fake, "most", 0)
    jobs = [tiny(seed, 1) for seed in range(4)]
    outcomes = list(on_this_machine(jobs, tmp_path, parallel))
    assert Fake.most == parallel
    assert {outcome.key for outcome in outcomes} == {job.key for job in jobs}
    if parallel == 1:
        assert [outcome.key for outcome in outcomes] == [job.key for job in jobs]


def test_one_that_is_under_way_elsewhere_is_put_off_and_its_result_taken(
    tmp_path, monkeypatch, caplog
):
    jobs = [tiny(1, 1), tiny(2, 1)]
    sweep = SweepFolder(tmp_path)
    monkeypatch.setattr(module, "POLL", 0.01)
    for job in jobs:  # as if each had ended before
        write(sweep.result(job.key), record_of(job.settings))
    with sweep.lock(jobs[0].key):
        outcomes = on_this_machine(jobs, tmp_path)
        assert next(outcomes).key == jobs[1].key
    (last,) = outcomes
    assert last.record == record_of(jobs[0].settings)
    assert caplog.text.count("under way elsewhere") == 1
