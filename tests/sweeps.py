"""Tiny jobs, who is at work on them, and what a sweep must leave."""

import os
import re
import time
from contextlib import contextmanager
from pathlib import Path

from concont.config.resolve import resolve
from concont.paper.plan import settings_of
from concont.sweep.folder import SweepFolder
from concont.sweep.job import Job
from concont.sweep.ledger import Ledger

SHORT = ("train.checkpoint_every=0", "train.evaluate_every=1", "train.device=cpu", "model.width=4")


def tiny(seed, epochs, source="digits", root=None):
    data = {"source": source, "root": root, "seed": seed}
    settings = resolve({"data": data, "train": {"seed": seed, "epochs": epochs}}, "digits", SHORT)
    return Job(settings, f"{source}, seed {seed}")


def wrong():
    """A job that `concont train` refuses: its data is not there."""
    return tiny(1, 1, "cifar10", "nosuch")


def made_up_record(cell, seed=1, epochs=60, accuracy=0.5, **more):
    """A record as a run of the paper's cell would leave it."""
    return record_of(settings_of(cell, seed, epochs), accuracy) | {"epochs": epochs} | more


def record_of(settings, accuracy=0.5, **more):
    """A record as a run with these settings would leave it."""
    epochs = settings.train.epochs
    return {
        "settings_hash": settings.hash(),
        "settings": settings.as_dict(),
        "method": settings.method.name,
        "recipe": settings.recipe,
        "data": settings.data.source,
        "labeled": settings.data.labeled,
        "ambiguity": settings.data.ambiguity,
        "unlabeled": settings.data.unlabeled,
        "seed": settings.train.seed,
        "epochs": epochs,
        "evaluated_on": "holdout" if settings.data.holdout else "test",
        "accuracy_last": accuracy,
        "accuracy_best": min(1.0, accuracy + 0.04),
        "curve": [[epochs, accuracy]],
        "seconds": 10.0,
        "environment": {"device": "a GPU", "commit": "abc", "clean": True},
        **more,
    }


def at_work(folder, key):
    """The processes that hold the job's lock, as the first word of each by its id."""
    found, path = {}, str(folder / "runs" / f".{key}.lock")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            held = any(os.readlink(handle) == path for handle in (process / "fd").iterdir())
            if held and int(process.name) != os.getpid():
                words = (process / "cmdline").read_bytes().split(b"\0")
                found[int(process.name)] = "train" if b"train" in words else words[0].decode()
        except OSError:  # it has ended
            continue
    return found


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def assert_done_once(folder, jobs):
    """One result and one row a job, every epoch once, and one end of training."""
    sweep = SweepFolder(folder)
    assert {path.stem for path in (folder / "results").iterdir()} == {job.key for job in jobs}
    rows = [record["settings_hash"] for record in Ledger(sweep.ledger).records()]
    assert sorted(rows) == sorted(job.key for job in jobs)
    for job in jobs:
        epochs = [line["epoch"] for line in sweep.run(job.key).metrics()]
        assert epochs == list(range(1, job.settings.train.epochs + 1))
        assert sweep.log(job.key).read_text().count("\nRun: ") == 1


@contextmanager
def lost_broken_left(folder):
    """Three jobs: two that wait for their lock as long as this lasts, one with a damaged result."""
    lost, broken, left = (tiny(seed, 1) for seed in (1, 2, 3))
    sweep = SweepFolder(folder)
    with sweep.lock(lost.key), sweep.lock(left.key):
        sweep.result(broken.key).parent.mkdir()
        sweep.result(broken.key).write_text("{")
        yield lost, broken, left


def assert_failed(outcome, job, start):
    """That the job did, and how its failure is told."""
    assert (outcome.key, outcome.record) == (job.key, None)
    assert re.match(start, outcome.failure)
