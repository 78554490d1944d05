"""One job: in a process of its own, once, whatever is killed on the way."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from concont.repro.plan import BUDGETS, cells_of, plan
from concont.repro.record import NEEDED, key_of, read
from concont.repro.work import Sweep, perform, perform_here

SETTINGS = ["--set", "train.checkpoint_every=0", "--set", "train.evaluate_every=1"]
SETTINGS += ["--set", "model.width=4", "--device", "cpu"]
EPOCHS = 6


def words(epochs, *more):
    return ["--data", "digits", "--epochs", str(epochs), *SETTINGS, *more]


def epochs_of(sweep, key):
    return [line["epoch"] for line in sweep.run(key).metrics()]


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def call(epochs, key, folder):
    """`perform` in a process that can be killed."""
    code = "import sys, json; from concont.repro.work import perform\n"
    code += "perform(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3])"
    arguments = [json.dumps(words(epochs)), key, str(folder)]
    return subprocess.Popen([sys.executable, "-c", code, *arguments])


def test_a_job_is_done_once_and_leaves_a_record(tmp_path):
    first = perform(words(2), "job", str(tmp_path))
    assert first.failure is None
    record = first.record
    assert set(NEEDED) <= set(record)
    assert record["settings"]["train"]["epochs"] == 2
    assert [epoch for epoch, _ in record["curve"]] == [1, 2]
    assert record["curve"][-1][1] == record["accuracy_last"]
    assert len(record["thresholds"]) == 2
    assert record["settings_hash"] == key_of(record)
    assert str(tmp_path) not in json.dumps(record)
    sweep = Sweep(tmp_path)
    before = (sweep.run("job") / "summary.json").stat().st_mtime_ns
    assert perform(words(2), "job", str(tmp_path)) == first
    assert (sweep.run("job") / "summary.json").stat().st_mtime_ns == before
    assert read(sweep.result("job")) == read(sweep.run("job").path) == [record]
    sweep.result("job").write_text("{")
    assert "cannot be read" in perform(words(2), "job", str(tmp_path)).failure


def test_a_job_that_fails_says_why(tmp_path):
    outcome = perform(words(1, "--set", "train.batch_size=0"), "job", str(tmp_path))
    assert outcome.record is None
    assert "train.batch_size is 0" in outcome.failure
    assert not Sweep(tmp_path).result("job").exists()


@pytest.fixture
def begun(tmp_path):
    """The folder of a sweep, the caller of its job, and the training process, well under way."""
    caller = call(EPOCHS, "job", tmp_path)
    wait_until(lambda: len(epochs_of(Sweep(tmp_path), "job")) >= 2)
    (child,) = children(caller.pid)
    yield Sweep(tmp_path), caller, child
    caller.kill()
    caller.wait()


def assert_done_once(sweep):
    outcome = perform(words(EPOCHS), "job", str(sweep.folder))
    assert outcome.record["epochs"] == EPOCHS
    assert epochs_of(sweep, "job") == list(range(1, EPOCHS + 1))


@pytest.mark.slow
def test_a_killed_training_goes_on(begun):
    sweep, caller, child = begun
    os.kill(child, signal.SIGKILL)
    caller.wait()
    assert not sweep.result("job").exists()
    assert_done_once(sweep)


@pytest.mark.slow
def test_a_killed_caller_leaves_no_second_training(begun):
    sweep, caller, child = begun
    caller.kill()
    caller.wait()
    os.kill(child, 0)  # it goes on
    assert_done_once(sweep)
    assert sweep.log("job").read_text().count("test accuracy") == 1 + ended(sweep)


def ended(sweep):
    """The second call finds the run finished, which its log says once more."""
    return sweep.log("job").read_text().count("is finished")


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    with open(path) as file:
        return [int(number) for number in file.read().split()]


def test_the_same_happens_in_this_process(tmp_path):
    cells = [cell for cell in cells_of("table1") if cell.method == "SSPL"]
    (job,) = plan(cells, BUDGETS["smoke"])
    outcome = perform_here(job, tmp_path)
    assert outcome.key == key_of(outcome.record) == job.key
    assert outcome.record["data"] == "digits"
    assert perform_here(job, tmp_path) == outcome
