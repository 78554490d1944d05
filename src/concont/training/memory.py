"""A GPU with too little memory: one line, with the batch that would have fitted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from concont.data.order import Order
from concont.data.placement import TrainingSet
from concont.errors import ConcontError
from concont.runs.settings import Settings
from concont.training.state import TrainState
from concont.training.step import Step

PROBED = 16  # rows of the step that is measured
SAFE = 0.9  # of what is left, since memory is given out in pieces


@dataclass(frozen=True)
class Measured:
    """What a small step took, in bytes."""

    rows: int
    step: int  # beyond what is there between steps
    room: int  # that there is for a step


@contextmanager
def full_memory_in_words(
    settings: Settings, state: TrainState, data: TrainingSet, order: Order
) -> Iterator[None]:
    """Where the GPU's memory runs out in here, a ConcontError says which batch would fit."""
    try:
        yield
        return
    except torch.OutOfMemoryError:
        pass  # and with it go the tensors of the step that failed
    try:
        measured = _measure(settings, state, data, order)
    except (torch.OutOfMemoryError, RuntimeError):
        measured = None
    raise ConcontError(explain(order.batch_size, measured))


def explain(batch_size: int, measured: Measured | None) -> str:
    """What to tell the user."""
    told = f"the GPU has too little memory for a batch of {batch_size} rows"
    fits = None if measured is None else min(batch_size - 1, fitting_batch(measured))
    if fits is None or fits < 2:
        return f"{told}, or for any: take a smaller model or smaller images, or another GPU"
    return f"{told}; about {fits} would fit: --set train.batch_size={fits}"


def fitting_batch(measured: Measured) -> int:
    """The rows of the largest step that there is room for; from 8 on a multiple of 8."""
    fits = int(SAFE * measured.room * measured.rows / max(1, measured.step))
    return fits // 8 * 8 if fits >= 8 else fits


def _measure(
    settings: Settings, state: TrainState, data: TrainingSet, order: Order
) -> Measured | None:
    """Take a small step, which changes the state: the run has ended."""
    if data.device.type != "cuda":
        return None
    state.optimizer.zero_grad()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(data.device)
    fixed, rows = torch.cuda.memory_allocated(data.device), order.epoch(0)[:1, :PROBED]
    free, _ = torch.cuda.mem_get_info(data.device)
    room = free + torch.cuda.memory_reserved(data.device) - fixed
    step = Step(settings, state, data, fast=False)
    step(rows[0].to(data.device), next(data.images.batches(rows)), lr=0.0)
    torch.cuda.synchronize(data.device)
    return Measured(rows.shape[1], torch.cuda.max_memory_allocated(data.device) - fixed, room)
