"""Tiny jobs, who is at work on them, and what a sweep must leave."""

import os
import re
import time
from contextlib import contextmanager
from pathlib import Path

from concont.config.resolve import resolve
from concont.paper.plan import Job, settings_of
from concont.paper.tables import Cell
from concont.sweep.ledger import Ledger
from concont.sweep.process import Sweep, locked

CELL = Cell("table1", "digits", None, None, "ConCont", None, None)
SHORT = ("train.checkpoint_every=0", "train.evaluate_every=1", "train.device=cpu", "model.width=4")


class Tiny(Job):
    @property
    def arguments(self):
        return [*super().arguments, *(word for text in SHORT for word in ("--set", text))]


class Wrong(Tiny):
    """A job that `concont train` refuses."""

    @property
    def arguments(self):
        return ["--data", "nosuch.npz"]


def tiny(seed, epochs, kind=Tiny):
    flags = {"data": {"source": "digits", "seed": seed}, "train": {"seed": seed, "epochs": epochs}}
    return kind((CELL,), seed, epochs, resolve(flags, CELL.recipe, SHORT))


def made_up_record(cell, seed=1, epochs=60, accuracy=0.5, **more):
    """A record as a run of the cell would leave it."""
    settings = settings_of(cell, seed, epochs)
    return {
        "settings_hash": settings.hash(),
        "settings": settings.as_dict(),
        "method": settings.method.name,
        "recipe": settings.recipe,
        "data": cell.data,
        "labeled": settings.data.labeled,
        "ambiguity": settings.data.ambiguity,
        "unlabeled": settings.data.unlabeled,
        "seed": seed,
        "epochs": epochs,
        "accuracy_last": accuracy,
        "accuracy_best": min(1.0, accuracy + 0.04),
        "curve": [[epochs, accuracy]],
        "seconds": 10.0,
        "environment": {"device": "a GPU", "commit": "abc", "clean": True},
        **more,
    }


def ended(job):
    """A record as the job would leave it."""
    return made_up_record(job.cells[0], job.seed, job.epochs) | {
        "settings_hash": job.key,
        "settings": job.settings.as_dict(),
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
    sweep = Sweep(folder)
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
    sweep = Sweep(folder)
    with locked(sweep, lost.key), locked(sweep, left.key):
        sweep.result(broken.key).parent.mkdir()
        sweep.result(broken.key).write_text("{")
        yield lost, broken, left


def assert_told(outcome, job, start):
    """That the job failed, and how its failure is told."""
    assert (outcome.key, outcome.record) == (job.key, None)
    assert re.match(start, outcome.failure)
