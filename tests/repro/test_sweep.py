"""What is missing is run, and only that; with little time, only what fits into it."""

import subprocess
import time
from itertools import pairwise

import pytest

from concont.repro import sweep
from concont.repro.ledger import Ledger
from concont.repro.plan import BUDGETS, cells_of, plan
from concont.repro.sweep import missing, run, run_within
from concont.repro.work import Outcome, Sweep

JOBS = plan([c for c in cells_of("table4") if c.data == "cifar10"], BUDGETS["short"])


def test_what_is_finished_is_not_missing(tmp_path, made_up):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert missing(JOBS, ledger) == JOBS
    ledger.add([made_up(JOBS[1].cells[0])])
    assert missing(JOBS, ledger) == [JOBS[0], *JOBS[2:]]


def test_a_failure_stops_nothing_and_results_are_kept_at_once(tmp_path, made_up):
    ledger = Ledger(Sweep(tmp_path).ledger)

    def launcher(jobs, folder, parallel):
        assert (folder, parallel) == (tmp_path, 2)
        for n, job in enumerate(jobs):
            record = None if n == 1 else made_up(job.cells[0])
            yield Outcome(job.key, record, "it broke" if n == 1 else None)

    seen = 0
    for outcome in run(JOBS[:3], tmp_path, launcher, 2):
        seen += outcome.record is not None
        assert len(ledger.records()) == seen
    assert seen == 2
    assert missing(JOBS[:3], ledger) == [JOBS[1]]


class Fake:
    """Processes that only sleep, and when each began and ended."""

    def __init__(self, monkeypatch, made_up, takes, start_up):
        self.began, self.ended, self.made_up = {}, {}, made_up
        self.takes = {job.key: seconds for job, seconds in zip(JOBS, takes, strict=False)}
        monkeypatch.setattr(sweep, "START", start_up)
        monkeypatch.setattr(sweep, "POLL", 0.01)
        monkeypatch.setattr(sweep, "seconds", lambda settings, _: self.takes.get(settings.hash()))
        monkeypatch.setattr(sweep, "start", self.start)
        monkeypatch.setattr(sweep, "finish", self.finish)

    def start(self, folder, arguments, key, lock):
        self.began[key] = time.monotonic()
        return subprocess.Popen(["sleep", str(self.takes[key])])

    def finish(self, folder, key, code):
        self.ended[key] = time.monotonic()
        (job,) = (job for job in JOBS if job.key == key)
        return Outcome(key, self.made_up(job.cells[0]))


def test_only_what_fits_is_started(tmp_path, made_up, monkeypatch):
    fake = Fake(monkeypatch, made_up, [0.3, 60.0, 0.3, None, 0.3], start_up=0.0)
    start = time.monotonic()
    done = [outcome.key for outcome in run_within(JOBS, tmp_path, minutes=3 / 60)]
    assert done == [JOBS[0].key, JOBS[2].key, JOBS[4].key]
    assert time.monotonic() - start < 20
    assert len(Ledger(Sweep(tmp_path).ledger).records()) == 3
    assert list(fake.began) == done


def test_the_next_one_starts_up_while_the_last_one_ends(tmp_path, made_up, monkeypatch):
    fake = Fake(monkeypatch, made_up, [1.0, 1.0, 1.0], start_up=0.5)
    done = [outcome.key for outcome in run_within(JOBS[:3], tmp_path, minutes=1)]
    assert done == [job.key for job in JOBS[:3]]
    for last, following in pairwise(JOBS[:3]):
        early = fake.ended[last.key] - fake.began[following.key]
        assert 0.2 < early < 0.9
    third = fake.began[JOBS[2].key]
    assert third >= fake.ended[JOBS[0].key]  # never three at a time


def test_no_time_starts_nothing(tmp_path, made_up, monkeypatch):
    fake = Fake(monkeypatch, made_up, [1.0] * 5, start_up=0.5)
    assert list(run_within(JOBS, tmp_path, minutes=0.5 / 60)) == []
    assert fake.began == {}


def test_the_end_is_read_off_its_own_epochs(tmp_path):
    folder = Sweep(tmp_path).run(JOBS[0].key)
    folder.path.mkdir(parents=True)
    running = sweep.Running(JOBS[0], lambda: None, 123.0)
    assert sweep._ends(Sweep(tmp_path), running) == 123.0
    for epoch in (5, 10):
        folder.append_metrics({"epoch": epoch, "seconds": 50.0 + 2 * epoch})
    left = sweep._ends(Sweep(tmp_path), running) - time.monotonic()
    assert left == pytest.approx(2 * 50, abs=2)
