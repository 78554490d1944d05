"""Too little memory for a step: one line, with the batch that fits where that can be tried."""

import gc
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import torch

from concont.data.order import Order
from concont.data.placement import TrainingSet
from concont.errors import ConcontError
from concont.memory import tells_of_full_memory
from concont.ranks import world as ranks
from concont.runs.settings import Settings
from concont.training.cuda_speed import Captured
from concont.training.state import TrainState
from concont.training.step import Step

SMALLEST = 2  # rows of a batch: BatchNorm needs as many
NEAR = 16  # the largest batch is searched for up to such a part of it
SAFE = 0.9  # of it, since a later step may take a little more


@contextmanager
def full_memory_in_words(
    settings: Settings, state: TrainState, data: TrainingSet, order: Order
) -> Iterator[None]:
    """Where memory runs out in here, a ConcontError says which batch fits."""
    try:
        yield
        return
    except RuntimeError as error:
        if not tells_of_full_memory(error):
            raise
        release_tensors(error)

    def fits(rows: int) -> bool:
        count, share = order.n_partial, settings.train.partial_share or 0
        if count:
            count = round(share * rows)
            if count == 0:  # such a run is refused: it would learn nothing
                return False
        return _try_step(settings, state, data, replace(order, batch_size=rows, n_partial=count))

    found = None
    if is_gpu(data.device) and ranks.size() == 1:  # the others would have to try, too
        with suppress(RuntimeError):  # of a device that fails in another way now
            found = find_fitting_batch(order.batch_size, fits)
    raise ConcontError(explain(data.device, order.batch_size, found))


def explain(device: torch.device, batch_size: int, fits: int | None) -> str:
    """What to tell the user; fits: rows that a batch may have, None where it was not tried."""
    where = "the GPU has" if is_gpu(device) else "there is"
    lacking = f"{where} too little memory for a batch of {batch_size} rows"
    if fits is None:
        return f"{lacking}: make train.batch_size smaller, or the model, or the images"
    if fits < SMALLEST:
        return f"{lacking}, or for any: take a smaller model or smaller images, or another GPU"
    return f"{lacking}; about {fits} would fit: --set train.batch_size={fits}"


def find_fitting_batch(batch_size: int, fits: Callable[[int], bool]) -> int:
    """A batch below one that does not fit, not far below the largest that does; 0: none fits.

    fits: whether a step on so many rows does. From 8 on it is a multiple of 8.
    """
    most, too_many = SMALLEST - 1, batch_size
    while too_many - most > max(1, too_many // NEAR):
        rows = (most + too_many) // 2
        if fits(rows):
            most = rows
        else:
            too_many = rows
    if most < SMALLEST:
        return 0
    rows = max(SMALLEST, int(SAFE * most))
    return rows // 8 * 8 if rows >= 8 else rows


def release_tensors(error: BaseException | None) -> None:
    """Let go of what an error's frames hold: as long as it is handled, they keep their tensors."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def is_gpu(device: torch.device) -> bool:
    """Whether a batch that does not fit can be followed by a smaller one."""
    return device.type == "cuda"


def _try_step(settings: Settings, state: TrainState, data: TrainingSet, order: Order) -> bool:
    """Whether steps in this order fit; they change the state: the run has ended.

    Taken as the run takes them, on the same kinds of streams, but not compiled: that would take
    half a minute, and seldom needs more memory.
    """
    state.optimizer.zero_grad()
    _release_memory()
    unguarded = replace(settings, train=replace(settings.train, skip_nonfinite=0))
    plan = order.epoch(0)[:1]
    try:
        step = Step(unguarded, state, data, n_partial=order.leading_partial)
        (images,) = data.batches(plan)
        with torch.compiler.set_stance("force_eager"):
            for _ in range(Captured.WARM_UP):
                step(plan[0].to(data.device), images, lr=0.0)
        torch.cuda.synchronize(data.device)
    except RuntimeError as error:
        if not tells_of_full_memory(error):
            raise
        release_tensors(error)
        return False
    return True


def _release_memory() -> None:
    """Give back what a step that is over holds: it names itself, and each stream had workspaces."""
    gc.collect()
    if torch.cuda.is_available():
        torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
