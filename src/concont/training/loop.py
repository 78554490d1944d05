"""THE training loop, the same for every method: a generator of progress."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from concont.data.order import Order
from concont.data.placement import TrainingSet
from concont.ranks import world
from concont.runs.settings import Optimizer, Settings
from concont.training.evaluate import TestSet, accuracy, measure_on_sets
from concont.training.state import TrainState
from concont.training.step import Step
from concont.types import Method

Row = dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a step."""

    step: int
    total: int  # steps of the whole run
    epoch: int  # epochs begun, from 1
    epoch_end: bool
    row: Row | None = None  # the line of metrics, where the run was evaluated


SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
    "steps": lambda done: 0.1 ** ((done >= 0.5) + (done >= 0.75)),
    "halving": lambda done: 0.5 ** (5 * done),
    "constant": lambda done: 1.0,
}


def rate(optimizer: Optimizer, done: float) -> float:
    """The learning rate when this share of the run is done, whatever its length."""
    risen = min(1.0, done / optimizer.warmup) if optimizer.warmup else 1.0
    return optimizer.lr * risen * SCHEDULES[optimizer.schedule](done)


def fit(
    settings: Settings,
    state: TrainState,
    data: TrainingSet,
    order: Order,
    test: TestSet | None,
    step: Step | None = None,
) -> Iterator[Progress]:
    """Train from where `state` stands to the end; between two yields `state` is whole.

    step: one that was made for the same state before, and is warm.
    """
    train, device = settings.train, data.device
    total = train.epochs * order.steps
    step = step or Step(settings, state, data, n_partial=order.leading_partial)
    step.set_length(train.epochs)
    rows: Tensor | None = None
    images: Iterator[Tensor] = iter(())
    clock = time.perf_counter()
    last_step, stepping = state.step, 0.0  # seconds in steps since the last row
    phase = "first_step"  # of this start, which compiles

    while state.step < total:
        epoch, position = divmod(state.step, order.steps)
        if rows is None or position == 0:
            plan = order.epoch(epoch)
            rows, images = plan.to(device), data.batches(plan[position:])
        lr, began = rate(settings.optimizer, state.step / total), time.perf_counter()
        step(rows[position], next(images), lr, epoch)

        epoch_end = position == order.steps - 1
        if device.type == "cpu" or epoch_end or phase == "first_step":
            world.wait_for_all()
            state.meter.check()  # waits for the device, so not at every step of a GPU
        now = time.perf_counter()
        state.seconds, clock = state.seconds + now - clock, now
        state.spent[phase] += now - began
        if phase == "first_step":
            last_step, phase = state.step, "steps"  # compilation is no part of the speed
        else:
            stepping += now - began

        row = None
        if epoch_end and ((epoch + 1) % train.evaluate_every == 0 or state.step == total):
            seen = order.batch_size * (state.step - last_step)
            row = {
                "epoch": epoch + 1,
                "step": state.step,
                "seconds": state.seconds,
                "images_per_s": seen / stepping if seen else order.batch_size / (now - began),
                **evaluate(settings.network_method, state, test),
            }
            clock = time.perf_counter()
            state.spent["evaluation"] += clock - now
            state.seconds += clock - now
            last_step, stepping = state.step, 0.0
        yield Progress(state.step, total, epoch + 1, epoch_end, row)


def evaluate(method: Method, state: TrainState, test: TestSet | None) -> Row:
    """The figures of a line of metrics: means since the last one, and accuracies now."""
    means = state.meter.read()
    online = momentum = in_set = None
    on_sets: Row = {"probability_on_sets": None, "share_in_sets": None}
    modules = state.nets.modules
    if test is not None and test.labels is None:
        on_sets = measure_on_sets(modules["online"], test)
    elif test is not None:
        online, in_set = accuracy(modules["online"], test)
        momentum = accuracy(modules["key"], test)[0] if "key" in modules else None
        state.best = online if state.best is None else max(state.best, online)
    thresholds = method.thresholds(state.method_state)
    return {
        **means,
        "thresholds": None if thresholds is None else thresholds.tolist(),
        "accuracy": online,
        "accuracy_best": state.best,
        "accuracy_momentum": momentum,
        "accuracy_in_set": in_set,
        **on_sets,
    }
