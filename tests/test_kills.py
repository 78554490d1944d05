"""Runs and sweeps killed at random moments, again and again: nothing lost, nothing twice.

`tests/test_resume.py` is the short one.
"""

import json
import os
import random
import signal
import time
from contextlib import suppress

import pytest

from concont.runs.folder import RunFolder
from concont.sweep.folder import SweepFolder
from concont.sweep.ledger import Ledger
from processes import SECONDS, begin, concont
from sweeps import at_work

pytestmark = [pytest.mark.slow]
SHORT = (
    *("--data", "digits", "--epochs", "6", "--set", "train.checkpoint_every=0"),
    *("--set", "train.evaluate_every=1", "--set", "model.width=4"),
)
SWEEP = """
base:
  recipe: digits
  model: {width: 4}
  train: {epochs: 2, device: cpu, checkpoint_every: 0, evaluate_every: 1}
axes: {method.threshold: [0.8, 0.9]}
seeds: [1, 2]
"""
JOBS = 4
KILLS = 50
KILLS_OF_SWEEPS = 50  # processes, for one sweep and again for two
KILLING = 120  # seconds, at most
VICTIMS = (("sweep", "training"), ("sweep", "training"), ("sweep",), ("training",))


def timeless(folder):
    unlike = ("seconds", "images_per_s")
    return [{k: v for k, v in row.items() if k not in unlike} for row in folder.metrics()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that was left alone, and how long it took."""
    folder = RunFolder(tmp_path_factory.mktemp("whole") / "run")
    began = time.monotonic()
    done = concont("train", *SHORT, "--out", folder.path)
    assert done.returncode == 0, done.stderr
    return folder, time.monotonic() - began


def kill_after(process, seconds):
    """Whether it was still alive to be killed; a process that ended by itself ended well."""
    process.join(seconds)
    killed = process.is_alive()
    process.kill()
    process.join(SECONDS)
    assert killed or process.exitcode == 0
    return killed


def refuse_torn(folder):
    """What a kill leaves: whole files that fit their checksums, and no step lost but an epoch's."""
    for path in folder.path.iterdir():
        if not path.name.startswith(".") and path.name not in ("checksums.json", "metrics.jsonl"):
            assert folder.checksums.fits(path.name), path
    assert folder.metrics() is not None


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_run_killed_at_fifty_moments_ends_in_the_very_same_weights(tmp_path, whole):
    """Each of the kills is in a run of its own or in one that was killed before."""
    moments, done, number = random.Random(7), 0, 0
    while done < KILLS:
        folder, number = RunFolder(tmp_path / str(number)), number + 1
        while not folder.finished:
            begun = (folder / "config.yaml").exists()
            words = ("--resume", folder.path) if begun else (*SHORT, "--out", folder.path)
            process = begin("train", *words, out=tmp_path / "log")
            if done < KILLS:
                done += kill_after(process, moments.uniform(0, whole[1]))
            else:
                process.join(SECONDS)
                assert process.exitcode == 0, (tmp_path / "log").read_text()
            if (folder / "config.yaml").exists():
                refuse_torn(folder)
                steps = [line["step"] for line in folder.metrics()]
                assert steps == sorted(set(steps))
        expected = (whole[0] / "model.safetensors").read_bytes()
        assert (folder / "model.safetensors").read_bytes() == expected
        assert timeless(folder) == timeless(whole[0])
        summaries = [each.read_json("summary.json") for each in (folder, whole[0])]
        for summary in summaries:
            summary.pop("seconds"), summary.pop("seconds_by")
        assert summaries[0] == summaries[1]


def kill_some(process, folder, victims):
    """Kill a sweep, or the trainings that it has begun, or both; how many processes that were."""
    killed = 0
    if "sweep" in victims and process.is_alive():
        process.kill()
        process.join(SECONDS)
        killed += 1
    for log in (folder / "runs").glob("*.yaml") if "training" in victims else ():
        for number, name in at_work(folder, log.stem).items():
            if name == "train":
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
                    killed += 1
    return killed


def assert_nothing_lost_or_twice(folder):
    records = Ledger(folder.ledger).records()
    assert len(records) == len(list(folder.results.glob("*.json"))) == JOBS
    for record in records:
        key = record["settings_hash"]
        assert json.loads(folder.result(key).read_text()) == record
        assert [line["epoch"] for line in folder.run(key).metrics()] == [1, 2]
        assert folder.log(key).read_text().count("\nRun: ") <= 1


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("sweeps", [1, 2])
def test_a_sweep_killed_again_and_again_loses_nothing_and_does_nothing_twice(tmp_path, sweeps):
    """One, or two at once on one folder; each folder's kills end when all of its jobs are done."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    moments, kills, tries, end = random.Random(seed), 0, 0, time.monotonic() + KILLING
    while kills < KILLS_OF_SWEEPS and time.monotonic() < end:
        folder, seen, tries = SweepFolder(tmp_path / str(tries)), dict[str, str](), tries + 1
        words = ("sweep", tmp_path / "sweep.yaml", "--folder", folder.path)
        while kills < KILLS_OF_SWEEPS and time.monotonic() < end and len(seen) < JOBS:
            alive = [begin(*words, out=tmp_path / f"log{n}") for n in range(sweeps)]
            for process in alive:
                process.join(moments.uniform(0, moments.choice((1, 4, 16))))
                kills += kill_some(process, folder.path, moments.choice(VICTIMS))
            for process in alive:  # one whose training alone was killed goes on, and says so
                process.kill()
                process.join(SECONDS)
            for path in folder.results.glob("*.json") if folder.results.is_dir() else ():
                assert seen.setdefault(path.stem, path.read_text()) == path.read_text()
        done = concont(*words)
        assert done.returncode == 0, done.stderr
        assert_nothing_lost_or_twice(folder)
        assert all(folder.result(key).read_text() == text for key, text in seen.items())
    print(f"{kills} kills, {tries} folders")
    assert kills > KILLS_OF_SWEEPS / 5  # on a slow machine fewer, so that it ends


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_two_thousand_epochs_take_no_more_memory_and_no_more_files_than_two_hundred(
    tmp_path, toy_npz, toy_config
):
    import concont as package

    toy_config["data"]["source"] = str(toy_npz)
    toy_config["train"] |= {"epochs": 2000, "evaluate_every": 1, "checkpoint_every": 0.5}
    from concont.config.resolve import resolve
    from concont.training.prepare import prepare

    used = []
    run = prepare(resolve(toy_config), RunFolder(tmp_path / "run"))
    for progress in run.execute():
        if progress.epoch_end and progress.epoch in (200, 2000):
            with open("/proc/self/statm") as file:
                pages = int(file.read().split()[1])
            used.append((pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd"))))
    (early, files), (late, files_late) = used
    assert files_late <= files
    assert late - early < 20e6, (early, late)
    assert package.load(tmp_path / "run").summary.epochs == 2000
