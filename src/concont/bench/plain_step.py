"""The plain way to take the same step: an eager network on the views of `plain_views`.

The yardstick of `concont bench`.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Literal, cast

import torch
from torch import Tensor

from concont.bench.timing import wait_for_device
from concont.nets.network import Network
from concont.training.network_run import NetworkRun
from concont.training.step import Step
from concont.types import Batch

Precision = Literal["float32", "bfloat16"]


class PlainStep:
    """One whole step of the plain way.

    float32 allows TF32; bfloat16 is autocast inside the networks, on a GPU only, as in training.
    The precision is set on the run's networks, so each PlainStep needs a run of its own.
    """

    def __init__(self, run: NetworkRun, precision: Precision) -> None:
        self.run, self.precision = run, precision
        self.step = Step(run.settings, run.state, run.data, fast=False)
        for network in run.state.nets.modules.values():
            cast(Network, network).mixed = precision == "bfloat16"

    @property
    def device(self) -> torch.device:
        """Where the step happens."""
        return self.run.data.device

    def __call__(self, index: Tensor, views: Mapping[str, Tensor]) -> Tensor:
        """Learn from a batch of the loader; its loss stays on the device, so nothing waits."""
        settings, state = self.run.settings, self.run.state
        with _allow_tf32(self.precision == "float32"):
            self.step.set_rate(settings.optimizer.lr)
            batch = self._move_to_device(index, views)
            out = self.step.learn(batch)
            assert out is not None  # the guard is off
            with torch.no_grad():
                settings.network_method.commit(state.nets, state.method_state, batch, out)
        state.step += 1
        return out.total.detach()

    def _move_to_device(self, index: Tensor, views: Mapping[str, Tensor]) -> Batch:
        rows = index.to(self.device, non_blocking=True)
        moved = {
            name: view.to(self.device, non_blocking=True).contiguous(
                memory_format=torch.channels_last
            )
            for name, view in views.items()
        }
        return self.step.batch(rows, moved)


def time_plain_step_ms(
    step: PlainStep, batches: Iterable[tuple[Tensor, Mapping[str, Tensor]]], n_warm_up: int
) -> float:
    """Milliseconds for a step, waiting for its batch included; the mean over all after `n_warm_up`.

    A loader's workers are PREFETCH batches each ahead after a slow first step: the warm-up must
    use these up. A list of one batch, repeated, times the step without its views.
    """
    remaining = iter(batches)
    for batch in islice(remaining, n_warm_up):
        step(*batch)
    wait_for_device(step.device)
    began, n_timed = time.perf_counter(), 0
    for batch in remaining:
        step(*batch)
        n_timed += 1
    wait_for_device(step.device)
    return (time.perf_counter() - began) / n_timed * 1000


@contextmanager
def _allow_tf32(allowed: bool) -> Iterator[None]:
    """Let float32 products of matrices use TF32, which convolutions may by default."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if allowed else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
