"""How long a run will take: from runs in the ledger, else from steps timed on one H200."""

import math
from collections.abc import Iterable

from concont.data.named import NAMED
from concont.runs.settings import Data, Settings, code_name
from concont.sweep.job import read_data_file
from concont.sweep.record import Record, settings_in

Kind = tuple[str, int, str]  # method, batch, network; of a method without one: its name, 0, data
Rates = dict[Kind, float]  # seconds a step; without a network, of the whole fit

DIGITS = 1_437  # training images
H200 = "NVIDIA H200"
# benchmarks/results/methods-h200.json, and the sixty epochs of cifar10-methods-60-epochs.json for
# DPLL's own batch; ledger.json for what has no network.
H200_RATES: Rates = {
    ("concont", 256, "resnet18"): 6.07e-3,
    ("dpll", 256, "resnet18"): 8.80e-3,
    ("dpll", 64, "resnet18"): 6.2e-3,
    ("pico", 256, "resnet18"): 4.90e-3,
    ("lws", 256, "resnet18"): 4.80e-3,
    ("partial", 256, "resnet18"): 3.65e-3,
    ("proden", 256, "resnet18"): 3.65e-3,
    ("supervised", 256, "resnet18"): 3.60e-3,
    ("sspl", 0, "cifar10"): 7.0,
    ("sspl", 0, "cifar100"): 7.0,
    ("parm", 0, "cifar10"): 39.0,
    ("parm", 0, "cifar100"): 129.0,
}
LOAD = 15.0  # seconds until a process has the data and begins
START = 75.0  # seconds until its first step is done, with nothing compiled before
EVALUATION = 0.15


def kind_of(settings: Settings) -> Kind:
    """Runs of a kind take the same time for a step, and share what was compiled for it."""
    source = settings.method_source  # of a method of the user's own, whose record names its file
    name = settings.method.name if source is None else code_name(source.reference)
    if not settings.has_epochs:
        return name, 0, settings.data.source
    return name, settings.train.batch_size, settings.model.name


def count_steps(settings: Settings, epochs_done: int = 0) -> int:
    """Optimiser steps of the whole run, or of what is left when so many epochs are done."""
    data = settings.data
    used: float = _count_images(data) * (1 - data.holdout)
    if data.labeled is not None and not data.unlabeled:
        used = data.labeled * used if data.labeled <= 1 else data.labeled
    return (settings.train.epochs - epochs_done) * max(1, round(used) // settings.train.batch_size)


def _count_images(data: Data) -> int:
    if data.source in NAMED:
        return NAMED[data.source].n_train
    return DIGITS if data.source == "digits" else read_data_file(data).n_train


def measure_rates(records: Iterable[Record], device: str) -> Rates:
    """What was timed on this device: of several runs the fastest, or without a network the slowest.

    What else was on the device can only have made a step slower; a fit depends on the data.
    """
    found: Rates = dict(H200_RATES) if device == H200 else {}
    for record in records:
        settings = settings_in(record)
        if settings is None or record["environment"].get("device") != device:
            continue
        kind, step = kind_of(settings), seconds_per_step(record)
        if not settings.has_epochs:
            found[kind] = max(record["seconds"], found.get(kind, 0.0))
        elif step is not None:
            found[kind] = min(step, found.get(kind, math.inf))
    return found


def seconds_per_step(record: Record) -> float | None:
    """What a step of the run took, without its first one."""
    spent, steps = (record.get("seconds_by") or {}).get("steps"), record.get("steps")
    return spent / steps if spent and steps else None


def estimate_seconds(
    settings: Settings, rates: Rates, epochs_done: int = 0, start: float = START
) -> float | None:
    """Of what is left of a run, with its start; None where nothing like it was timed.

    start: seconds until the first step is done.
    """
    rate = rates.get(kind_of(settings))
    if rate is None:
        return None
    if not settings.has_epochs:
        return LOAD + rate
    evaluations = -(-(settings.train.epochs - epochs_done) // settings.train.evaluate_every)
    return start + count_steps(settings, epochs_done) * rate + evaluations * EVALUATION


def start_seconds() -> float:
    """What the first start of a network takes here: nothing is compiled on a CPU."""
    return LOAD if device_name() == "cpu" else START


def device_name() -> str:
    """What a record made here would call its device."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
