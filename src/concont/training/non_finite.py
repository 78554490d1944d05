"""Gradients and weights that are no finite numbers: found, left out where allowed, diagnosed."""

import logging
from collections.abc import Iterable

import torch
from torch import Tensor

from concont.data.order import Order
from concont.errors import NonFiniteLoss
from concont.training.state import TrainState
from concont.types import StepOut

log = logging.getLogger("concont")
SHOWN = 8  # rows of a batch that are named


class GradientGuard:
    """Leaves out a step whose loss or gradients are not finite, at most `limit` times in a row.

    To look at them waits for the device at every step.
    """

    def __init__(self, limit: int, state: TrainState) -> None:
        self.limit, self.state = limit, state
        self.averages: list[Tensor] = []

    def remember(self) -> None:
        """Keep what the passes of the next step change: BatchNorm's averages."""
        self.averages = [buffer.clone() for buffer in self._buffers()]

    @torch.no_grad()
    def allows(self, out: StepOut, index: Tensor) -> bool:
        """Whether the step may be taken; if not, all is as it was before it.

        index (B,): the rows of its batch, for the diagnosis.
        """
        if _all_finite([out.total, *(p.grad for _, p in self._learned() if p.grad is not None)]):
            self.state.skipped = 0
            return True
        self.state.skipped += 1
        what = self._describe(index)
        if self.state.skipped > self.limit:
            raise NonFiniteLoss(f"{what}; {self.state.skipped} steps in a row")
        log.warning("left out: %s", what)
        for buffer, before in zip(self._buffers(), self.averages, strict=True):
            buffer.copy_(before)
        return False

    def _describe(self, index: Tensor) -> str:
        layers = [n for n, p in self._learned() if p.grad is not None and not _all_finite([p.grad])]
        where = f", nearest to the loss in {layers[-1]}" if layers else ""
        step = self.state.step + 1
        return f"no finite loss or gradients at step {step}{where}; {describe_rows(index)}"

    def _learned(self) -> Iterable[tuple[str, Tensor]]:
        return self.state.nets.modules["online"].named_parameters()

    def _buffers(self) -> list[Tensor]:
        return [b for module in self.state.nets.modules.values() for b in module.buffers()]


def refuse_bad_weights(state: TrainState) -> None:
    """A network with weights that are not finite is never saved."""
    if find_bad_weights(state) is not None:
        raise NonFiniteLoss(f"the weights are not finite after step {state.step}", state.step)


def find_bad_weights(state: TrainState) -> str | None:
    """The first layer of the network whose weights or averages are not finite, if any."""
    named = state.nets.modules["online"].state_dict()
    if _all_finite(named.values()):
        return None
    return next(name for name, tensor in named.items() if not _all_finite([tensor]))


def diagnose(error: NonFiniteLoss, state: TrainState, order: Order) -> str:
    """What is known of where training went wrong: the step's rows, and a layer that is lost."""
    found = [str(error)]
    if error.step is not None:
        epoch, position = divmod(error.step - 1, order.steps)
        found.append(describe_rows(order.epoch(epoch)[position]))
        layer = find_bad_weights(state)
        found += [] if layer is None else [f"weights are not finite from {layer} on"]
    return "; ".join(found)


def describe_rows(index: Tensor) -> str:
    """Rows (B,) of the training set, the first few of them."""
    rows = index.tolist()
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return f"its batch: rows {', '.join(map(str, rows[:SHOWN]))}{more} of candidates.npz"


def _all_finite(tensors: Iterable[Tensor]) -> bool:
    """Waits once for the device."""
    return bool(torch.stack([tensor.isfinite().all() for tensor in tensors]).all())
