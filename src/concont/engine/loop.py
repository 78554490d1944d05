"""THE training loop, the same for every method: a generator of progress."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from concont.augment.views import render
from concont.data.batches import Order, TrainingSet
from concont.engine.evaluate import TestSet, accuracy
from concont.engine.speed import Losses, losses_of
from concont.engine.state import TrainState
from concont.memory import average_
from concont.settings import Settings
from concont.types import Batch

Row = dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a step."""

    step: int
    total: int  # steps of the whole run
    epoch: int  # epochs begun, from 1
    epoch_end: bool
    row: Row | None = None  # the line of metrics, where the run was evaluated


def cosine(step: int, total: int) -> float:
    """The learning rate's factor at a step: from 1 to 0 over the run, whatever its length."""
    return 0.5 * (1 + math.cos(math.pi * step / total))


def fit(
    settings: Settings,
    state: TrainState,
    data: TrainingSet,
    order: Order,
    test: TestSet | None,
) -> Iterator[Progress]:
    """Train from where `state` stands to the end; between two yields `state` is whole."""
    train, device = settings.train, data.device
    total, losses = train.epochs * order.steps, losses_of(settings, device)
    rows: Tensor | None = None
    images: Iterator[Tensor] = iter(())
    clock = time.perf_counter()
    last_step, stepping = state.step, 0.0  # seconds in steps since the last row

    while state.step < total:
        epoch, position = divmod(state.step, order.steps)
        if rows is None or position == 0:
            plan = order.epoch(epoch)
            rows, images = plan.to(device), data.images.batches(plan[position:])
        lr, began = settings.optimizer.lr * cosine(state.step, total), time.perf_counter()
        train_step(settings, losses, state, data, rows[position], next(images), lr)

        epoch_end = position == order.steps - 1
        if device.type == "cpu" or epoch_end:
            state.meter.check()  # waits for the device, so not at every step of a GPU
        now = time.perf_counter()
        state.seconds, clock = state.seconds + now - clock, now
        stepping += now - began

        row = None
        if epoch_end and ((epoch + 1) % train.evaluate_every == 0 or state.step == total):
            seen = order.batch_size * (state.step - last_step)
            row = {
                "epoch": epoch + 1,
                "step": state.step,
                "seconds": state.seconds,
                "images_per_s": seen / stepping,
                **evaluate(state, test),
            }
            last_step, stepping = state.step, 0.0
        yield Progress(state.step, total, epoch + 1, epoch_end, row)


def train_step(
    settings: Settings,
    losses: Losses,
    state: TrainState,
    data: TrainingSet,
    index: Tensor,
    images: Tensor,
    lr: float,
) -> None:
    """One optimiser step on the rows `index` (B,) and their uint8 images."""
    method, nets = settings.method, state.nets
    with torch.no_grad():
        views = render(images, settings.views, method.views, state.views)
    batch = Batch(index, data.candidates[index], views, data.truth[index])

    out = losses(nets, state.memory, batch)
    out.total.backward()  # type: ignore[no-untyped-call]
    for group in state.optimizer.param_groups:
        group["lr"] = lr
    state.optimizer.step()
    state.optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        if method.key_momentum is not None:
            modules = nets.modules
            average_(modules["key"], modules["online"], method.key_momentum)
        method.commit(state.memory, out)
        state.step += 1
        state.meter.add(out, state.step)


def evaluate(state: TrainState, test: TestSet | None) -> Row:
    """The figures of a line of metrics: means since the last one, and accuracies now."""
    means = state.meter.read()
    online = momentum = None
    if test is not None:
        modules = state.nets.modules
        online = accuracy(modules["online"], test)
        momentum = accuracy(modules["key"], test) if "key" in modules else None
        state.best = online if state.best is None else max(state.best, online)
    tau = state.memory.get("tau")
    return {
        **means,
        "thresholds": None if tau is None else tau.tolist(),
        "accuracy": online,
        "accuracy_best": state.best,
        "accuracy_momentum": momentum,
    }
