"""How long a run will take: from runs in the ledger, else from steps timed on one H200."""

import math
from collections.abc import Iterable

from concont.data.named import NAMED
from concont.repro.record import Record
from concont.settings import Settings
from concont.types import Method

DIGITS = 1_437  # training images of the data set that stands in
# Seconds a step, by method and batch: benchmarks/results/methods-h200.json, and the sixty epochs
# of cifar10-methods-60-epochs.json for DPLL's own batch.
STEP = {
    ("concont", 256): 6.07e-3,
    ("dpll", 256): 8.80e-3,
    ("dpll", 64): 6.2e-3,
    ("pico", 256): 4.90e-3,
    ("lws", 256): 4.80e-3,
    ("partial", 256): 3.65e-3,
    ("proden", 256): 3.65e-3,
    ("supervised", 256): 3.60e-3,
}
START = 75.0  # seconds until the first step is done, with nothing compiled before
EVALUATION = 0.15
FIT = {"sspl": 15.0, "parm": 180.0}  # without a network, start and features included

Rates = dict[tuple[str, int, str], float]


def steps_of(settings: Settings) -> int:
    """Optimiser steps of the whole run."""
    source, known = settings.data.source, settings.data.labeled
    used = NAMED[source].n_train if source in NAMED else DIGITS
    if known is not None and not settings.data.unlabeled:
        used = round(known * used if known <= 1 else known)
    return settings.train.epochs * max(1, used // settings.train.batch_size)


def rates(records: Iterable[Record], device: str) -> Rates:
    """Seconds a step on this device, by method, batch and network: of several runs the fastest.

    What else was on the device can only have made the others slower.
    """
    found: Rates = {}
    for record in records:
        spent = (record.get("seconds_by") or {}).get("steps")
        if record["environment"].get("device") == device and spent and record.get("steps"):
            network = record["settings"]["model"]["name"]
            key = (record["method"], record["batch_size"], network)
            found[key] = min(spent / record["steps"], found.get(key, math.inf))
    return found


def seconds(settings: Settings, measured: Rates | None = None) -> float | None:
    """Of the whole run, its start included; None where nothing like it was ever timed."""
    method, batch = settings.method.name, settings.train.batch_size
    if not isinstance(settings.method, Method):
        return FIT[method]
    own = (measured or {}).get((method, batch, settings.model.name))
    step = own or (STEP.get((method, batch)) if settings.model.name == "resnet18" else None)
    if step is None:
        return None
    evaluations = -(-settings.train.epochs // settings.train.evaluate_every)
    return START + steps_of(settings) * step + evaluations * EVALUATION


def device_name() -> str:
    """What a record made here would call its device."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
