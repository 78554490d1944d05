"""One job: in a process of its own, once, whatever is killed on the way."""

import json
import os
import signal
import subprocess
import sys

import pytest

from concont.paper.plan import BUDGETS, cells_of, plan
from concont.sweep.folder import SweepFolder
from concont.sweep.process import run_job, run_job_in_this_process
from concont.sweep.record import RecordSchema, key_of, of_run, read
from sweeps import tiny, wait_until

JOB = tiny(1, 6)


def epochs_of(sweep):
    return [line["epoch"] for line in sweep.run(JOB.key).metrics()]


def call(folder):
    """`run_job` in a process that can be killed."""
    SweepFolder(folder).write_settings(JOB)
    code = "import sys; from concont.sweep.process import run_job; run_job(*sys.argv[1:])"
    return subprocess.Popen([sys.executable, "-c", code, JOB.key, str(folder)])


def test_a_job_is_done_once_and_leaves_a_record(tmp_path):
    job, sweep = tiny(1, 2), SweepFolder(tmp_path)
    sweep.write_settings(job)
    first = run_job(job.key, str(tmp_path))
    assert first.failure is None
    record = first.record
    assert RecordSchema.names() <= set(record)
    assert record["settings"]["train"]["epochs"] == 2
    assert [epoch for epoch, _ in record["curve"]] == [1, 2]
    assert record["curve"][-1][1] == record["accuracy_last"]
    assert len(record["thresholds"]) == 2
    assert record["settings_hash"] == key_of(record) == job.key
    assert str(tmp_path) not in json.dumps(record)
    before = (sweep.run(job.key) / "summary.json").stat().st_mtime_ns
    assert run_job(job.key, str(tmp_path)) == first
    assert (sweep.run(job.key) / "summary.json").stat().st_mtime_ns == before
    assert read(sweep.result(job.key)) == [of_run(sweep.run(job.key))] == [record]


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "is damaged"), ("[]", "is not the record"), ("other", "is not the record")],
)
def test_a_result_that_is_not_the_jobs_is_told(tmp_path, made_up, content, message):
    path = SweepFolder(tmp_path).result(JOB.key)
    path.parent.mkdir()
    path.write_text(json.dumps(made_up(cells_of("table1")[0])) if content == "other" else content)
    outcome = run_job(JOB.key, str(tmp_path))
    assert outcome.record is None
    assert message in outcome.failure


def test_a_job_that_fails_says_why(tmp_path):
    sweep = SweepFolder(tmp_path)
    sweep.write_settings(JOB)
    text = sweep.settings(JOB.key).read_text()
    sweep.settings(JOB.key).write_text(text.replace("batch_size: 64", "batch_size: 0"))
    outcome = run_job(JOB.key, str(tmp_path))
    assert outcome.record is None
    assert "train.batch_size is 0" in outcome.failure
    assert not sweep.result(JOB.key).exists()


@pytest.mark.parametrize("how", ["in a process", "here"])
def test_any_trouble_is_the_jobs_own(tmp_path, how):
    """A file where its folder should be, a folder where its log should be."""
    sweep = SweepFolder(tmp_path)
    if how == "here":
        sweep.run(JOB.key).path.parent.mkdir()
        sweep.run(JOB.key).path.write_text("in the way")
        outcome = run_job_in_this_process(JOB, tmp_path)
    else:
        sweep.log(JOB.key).mkdir(parents=True)
        outcome = run_job(JOB.key, str(tmp_path))
    assert outcome.record is None
    assert "Error: " in outcome.failure
    assert "\n" not in outcome.failure


@pytest.fixture
def begun(tmp_path):
    """The folder of a sweep, the caller of its job, and the training process, well under way."""
    caller = call(tmp_path)
    wait_until(lambda: len(epochs_of(SweepFolder(tmp_path))) >= 2)
    (child,) = children(caller.pid)
    yield SweepFolder(tmp_path), caller, child
    caller.kill()
    caller.wait()


def assert_done_once(sweep):
    outcome = run_job(JOB.key, str(sweep.path))
    assert outcome.record["epochs"] == 6
    assert epochs_of(sweep) == list(range(1, 7))


@pytest.mark.slow
def test_a_killed_training_goes_on(begun):
    sweep, caller, child = begun
    os.kill(child, signal.SIGKILL)
    caller.wait()
    assert not sweep.result(JOB.key).exists()
    assert_done_once(sweep)


@pytest.mark.slow
@pytest.mark.long
def test_a_killed_caller_leaves_no_second_training(begun):
    sweep, caller, child = begun
    caller.kill()
    caller.wait()
    with pytest.raises(BlockingIOError), sweep.lock(JOB.key, wait=False):
        pass
    os.kill(child, 0)  # it goes on, and the lock was its own
    assert_done_once(sweep)
    assert sweep.log(JOB.key).read_text().count("test accuracy") == 1 + found_finished(sweep)


def found_finished(sweep):
    """The second call finds the run finished, which its log says once more."""
    return sweep.log(JOB.key).read_text().count("is finished")


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    with open(path) as file:
        return [int(number) for number in file.read().split()]


def test_the_same_happens_in_this_process(tmp_path):
    cells = [cell for cell in cells_of("table1") if cell.method == "SSPL"]
    (job,) = plan(cells, BUDGETS["smoke"])
    outcome = run_job_in_this_process(job, tmp_path)
    assert outcome.key == key_of(outcome.record) == job.key
    assert outcome.record["data"] == "digits"
    assert run_job_in_this_process(job, tmp_path) == outcome
