"""What is missing is run, and only that; with little time, only what fits into it."""

import os
import subprocess
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from concont.paper.plan import BUDGETS, cells_of, plan
from concont.sweep import launch_local, schedule
from concont.sweep.estimate import LOAD, kind_of
from concont.sweep.folder import SweepFolder
from concont.sweep.ledger import Ledger
from concont.sweep.process import Outcome, TrainingProcess
from concont.sweep.schedule import Clock, find_missing, jobs_that_fit, run, run_within
from metrics_lines import metrics_line
from sweeps import at_work, record_of, tiny

JOBS = list(plan([c for c in cells_of("table4") if c.data == "cifar10"], BUDGETS["short"]))


def test_what_is_finished_is_not_missing(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert find_missing(JOBS, ledger) == JOBS
    ledger.add([record_of(JOBS[1].settings)])
    assert find_missing(JOBS, ledger) == [JOBS[0], *JOBS[2:]]


def test_a_failure_stops_nothing_and_results_are_kept_at_once(tmp_path):
    ledger = Ledger(SweepFolder(tmp_path).ledger)

    def launcher(jobs, folder, parallel):
        assert (folder, parallel) == (tmp_path, 2)
        for n, job in enumerate(jobs):
            record = None if n == 1 else record_of(job.settings)
            yield Outcome(job.key, record, "it broke" if n == 1 else None)

    seen = 0
    for outcome in run(JOBS[:3], tmp_path, launcher, 2):
        seen += outcome.record is not None
        assert len(ledger.records()) == seen
    assert seen == 2
    assert find_missing(JOBS[:3], ledger) == [JOBS[1]]


class Fake:
    """Processes that only sleep, and when each began and ended."""

    def __init__(self, monkeypatch, takes, start_up):
        self.began, self.ended = {}, {}
        self.takes = {job.key: seconds for job, seconds in zip(JOBS, takes, strict=False)}
        fake = self

        class Sleeping(TrainingProcess):
            def __init__(self, folder, job):
                with folder.lock(job.key, wait=False):  # as if it were held to the end
                    self.sweep, self.job = folder, job
                fake.began[job.key] = time.monotonic()
                self.process = subprocess.Popen(["sleep", str(fake.takes[job.key])])

            def poll(self):
                if self.process.poll() is None:
                    return None
                fake.ended[self.job.key] = time.monotonic()
                return Outcome(self.job.key, record_of(self.job.settings))

            def close(self):
                self.process.wait()

        monkeypatch.setattr(schedule, "start_seconds", lambda: start_up)
        monkeypatch.setattr(launch_local, "POLL", 0.01)
        monkeypatch.setattr(schedule, "estimate_seconds", self.seconds)
        monkeypatch.setattr(launch_local, "TrainingProcess", Sleeping)

    def seconds(self, settings, timed, done, start):
        return self.takes.get(settings.hash())


def test_only_what_fits_is_started(tmp_path, monkeypatch):
    fake = Fake(monkeypatch, [0.3, 60.0, 0.3, None, 0.3], start_up=0.0)
    start = time.monotonic()
    done = [outcome.key for outcome in run_within(JOBS, tmp_path, 3 / 60, {})]
    assert done == [JOBS[0].key, JOBS[2].key, JOBS[4].key]
    assert time.monotonic() - start < 20
    assert len(Ledger(SweepFolder(tmp_path).ledger).records()) == 3
    assert list(fake.began) == done


def test_the_next_one_starts_up_while_the_last_one_ends(tmp_path, monkeypatch):
    fake = Fake(monkeypatch, [1.0, 1.0, 1.0], start_up=0.5)
    done = [outcome.key for outcome in run_within(JOBS[:3], tmp_path, 1, {})]
    assert done == [job.key for job in JOBS[:3]]
    for last, following in pairwise(JOBS[:3]):
        early = fake.ended[last.key] - fake.began[following.key]
        assert 0.2 < early < 0.9
    third = fake.began[JOBS[2].key]
    assert third >= fake.ended[JOBS[0].key]  # never three at a time


def test_no_time_starts_nothing(tmp_path, monkeypatch):
    fake = Fake(monkeypatch, [1.0] * 5, start_up=0.5)
    assert list(run_within(JOBS, tmp_path, 0.5 / 60, {})) == []
    assert fake.began == {}


def test_what_another_does_is_left_to_it_and_the_deadline_stands(tmp_path, monkeypatch):
    fake = Fake(monkeypatch, [0.3, 0.3, 0.3], start_up=0.0)
    start = time.monotonic()
    with SweepFolder(tmp_path).lock(JOBS[0].key):
        done = [outcome.key for outcome in run_within(JOBS[:3], tmp_path, 2 / 60, {})]
    assert done == [JOBS[1].key, JOBS[2].key]
    assert JOBS[0].key not in fake.began
    assert time.monotonic() - start < 20


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """A clock of ten minutes at 1,000 s, for jobs of 100 s, of which 40 to start up."""
    monkeypatch.setattr(schedule.time, "monotonic", lambda: 1000.0)
    monkeypatch.setattr(schedule, "start_seconds", lambda: 40.0)
    monkeypatch.setattr(
        schedule, "estimate_seconds", lambda settings, rates, done, start: 60 - done + start
    )
    return Clock(SweepFolder(tmp_path), 10, {})


def beside(job, ends):
    return SimpleNamespace(job=job, ends=ends)


def test_when_it_is_time(clock, monkeypatch):
    monkeypatch.setattr(clock, "end_of", lambda running: running.ends)
    one, two, three = JOBS[:3]
    assert clock.choose([two, three], []) is two
    assert clock.choose([two], [beside(one, 1041.0)]) is None  # too early
    assert clock.choose([two], [beside(one, 1040.0)]) is two
    assert clock.choose([three], [beside(one, 1001.0), beside(two, 1001.0)]) is None
    clock.starts[kind_of(two.settings)] = 10.0  # compiled by now
    assert clock.choose([two], [beside(one, 1040.0)]) is None
    assert clock.choose([two], [beside(one, 1010.0)]) is two


def test_the_deadline_counts_from_when_it_would_start(clock, monkeypatch):
    """A job beside another starts up to 40 s before that one ends."""
    monkeypatch.setattr(clock, "end_of", lambda running: running.ends)
    clock.deadline = 1135.0
    assert clock.choose([JOBS[1]], [beside(JOBS[0], 1076.0)]) is None
    assert clock.choose([JOBS[1]], [beside(JOBS[0], 1040.0)]) is JOBS[1]
    (other,) = plan([c for c in cells_of("table1") if c.method == "DPLL"][:1], BUDGETS["short"])
    clock.starts[kind_of(other.settings)] = 76.0  # it has to start earlier: now
    assert clock.choose([JOBS[1], other], [beside(JOBS[0], 1076.0)]) is None
    lines(clock, other, 10)
    assert clock.choose([JOBS[1], other], [beside(JOBS[0], 1076.0)]) is other
    clock.deadline = 1099.0
    assert clock.choose([JOBS[1]], []) is None
    assert clock.choose([JOBS[1]], [beside(JOBS[0], 1040.0)]) is None


def lines(clock, job, *epochs):
    folder = clock.sweep.run(job.key)
    folder.path.mkdir(parents=True, exist_ok=True)
    for epoch in epochs:
        folder.append_metrics(metrics_line(epoch, epoch, 50.0 + 2 * epoch))


def test_a_job_that_was_begun_needs_less(clock):
    assert clock.seconds_left(JOBS[0]) == 100
    lines(clock, JOBS[0], 5, 50)
    assert clock.seconds_left(JOBS[0]) == 50
    clock.deadline = 1060.0
    assert clock.choose([JOBS[1], JOBS[0]], []) is JOBS[0]


def test_the_end_is_read_off_its_own_epochs(clock, monkeypatch):
    job, running = JOBS[0], beside(JOBS[0], None)
    assert clock.choose([job], []) is job
    assert clock.end_of(running) == 1100.0  # as it was thought
    lines(clock, job, 5)
    assert clock.end_of(running) == 1100.0
    lines(clock, job, 10)
    assert clock.end_of(running) == pytest.approx(1000 + 2 * 50)
    monkeypatch.setattr(schedule.time, "monotonic", lambda: 1004.0)
    assert clock.end_of(running) == pytest.approx(1000 + 2 * 50)
    os.utime(clock.sweep.run(job.key) / "metrics.jsonl", (0, 0))  # as after the clock was set
    assert clock.end_of(running) == pytest.approx(1000 + 2 * 50)


def test_the_epochs_of_an_earlier_start_say_nothing_of_this_one(clock):
    job = JOBS[0]
    lines(clock, job, 5, 30)
    assert clock.choose([job], []) is job
    running = beside(job, None)
    assert clock.end_of(running) == 1070.0  # half of it is done, and it starts up again
    lines(clock, job, 35)
    assert clock.end_of(running) == 1070.0
    lines(clock, job, 40)
    assert clock.end_of(running) == pytest.approx(1000 + 2 * 20, abs=1)
    record = record_of(job.settings, seconds_by={"first_step": 70.0})
    clock.learn(JOBS, Outcome(job.key, record))
    assert clock.start_of(job) == 40  # what two starts took says nothing of one


def test_what_cannot_be_read_counts_as_nothing(clock):
    lines(clock, JOBS[0], 5)
    (clock.sweep.run(JOBS[0].key) / "metrics.jsonl").write_text("no metrics\n")
    assert clock.seconds_left(JOBS[0]) == 100


def test_starts_are_learned_from_the_last_one(clock):
    record = record_of(JOBS[0].settings, seconds_by={"first_step": 8.0})
    clock.learn(JOBS, Outcome(JOBS[1].key, failure="it broke"))
    clock.learn(JOBS, Outcome(JOBS[1].key, record_of(JOBS[1].settings)))
    assert clock.start_of(JOBS[0]) == 40
    clock.learn(JOBS, Outcome(JOBS[0].key, record))
    assert clock.start_of(JOBS[1]) == LOAD + 8
    assert clock.seconds_left(JOBS[1]) == 60 + LOAD + 8


def test_steps_are_learned_where_they_take_longer_here(clock):
    kind = kind_of(JOBS[0].settings)
    for spent, expected in ((2.0, 0.02), (1.0, 0.02), (3.0, 0.03)):
        record = record_of(JOBS[0].settings, steps=100, seconds_by={"steps": spent})
        clock.learn(JOBS, Outcome(JOBS[0].key, record))
        assert clock.rates[kind] == pytest.approx(expected)


def test_what_was_never_timed_is_left_alone_or_tried_by_itself(clock, monkeypatch):
    monkeypatch.setattr(schedule, "estimate_seconds", lambda settings, rates, done, start: None)
    assert clock.choose(JOBS, []) is None
    clock.try_untimed = True
    assert clock.choose([JOBS[1]], [beside(JOBS[0], None)] * 2) is None
    assert clock.choose(JOBS, []) is JOBS[0]
    under_way = [beside(JOBS[0], None)]
    assert clock.choose([JOBS[1]], under_way) is None
    assert not clock.is_time_up(under_way)
    clock.deadline = 1000.0
    assert clock.is_time_up(under_way)
    assert not clock.is_time_up([])
    assert clock.choose(JOBS, []) is None
    clock.expected[JOBS[0].key] = 1001.0  # one that was timed may end a little late
    assert not clock.is_time_up(under_way)


def test_a_fit_without_a_network_times_the_next_one(clock):
    (job,) = plan([c for c in cells_of("table1") if c.method == "SSPL"][:1], BUDGETS["short"])
    clock.learn([job], Outcome(job.key, record_of(job.settings, seconds=30.0)))
    assert clock.rates == {kind_of(job.settings): 30.0}


@pytest.mark.slow
def test_what_was_never_timed_is_stopped_when_the_time_is_up_and_goes_on(tmp_path, monkeypatch):
    job, sweep, now = tiny(1, 400), SweepFolder(tmp_path), time.monotonic

    def clock():  # an hour later, as soon as it has trained for an epoch
        return now() + 3600 * bool(sweep.run(job.key).metrics())

    monkeypatch.setattr(schedule.time, "monotonic", clock)
    assert list(run_within([job], tmp_path, 30, {}, try_untimed=True)) == []
    assert at_work(tmp_path, job.key) == {}
    assert "go on with: concont train --resume" in sweep.log(job.key).read_text()
    assert 0 < len(sweep.run(job.key).metrics()) < 400


def test_what_would_fit(clock, tmp_path):
    assert jobs_that_fit(JOBS, tmp_path, 1, {}) == []
    assert jobs_that_fit(JOBS, tmp_path, 100 / 60, {}) == JOBS[:1]
    assert (
        jobs_that_fit(JOBS, tmp_path, 160 / 60, {}) == JOBS[:2]
    )  # the second one's start is hidden
    lines(clock, JOBS[3], 50)
    assert jobs_that_fit(JOBS, tmp_path, 1, {}) == [JOBS[3]]
