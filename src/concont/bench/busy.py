"""How busy the device is kept where images have to be fetched for each step."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor

from concont.bench.step_timing import StepRunner, prepare_on_all_rows
from concont.bench.timing import time_steady_ms
from concont.data.placement import Resident
from concont.data.sources import Dataset
from concont.runs.settings import Settings
from concont.training.cuda_speed import Captured

N_BATCHES = 8  # that lie on the device: more would take the same time


class FewResident(Resident):
    """A few images on the device that stand for all, which may be too many for it."""

    def batches(self, rows: Tensor) -> Iterator[Tensor]:
        """As many images as are asked for."""
        return super().batches(rows % len(self.images))


def time_busy(settings: Settings, data: Dataset, calls: int) -> dict[str, Any]:
    """The step with images fetched as training fetches them, against images on the device.

    `busy` is the share of a step in which the device does not wait for its images.
    """
    fetched = replace(settings, train=replace(settings.train, memory_share=0.0))
    run = prepare_on_all_rows(fetched, data)
    runner = StepRunner(run)
    streamed_ms = _time_ms(runner, calls)
    few = run.problem.images[: N_BATCHES * run.order.batch_size]
    runner.switch_data(
        replace(run.data, images=FewResident(few.copy(), run.data.device)), run.order
    )
    resident_ms = _time_ms(runner, calls)
    return {
        "streamed_step_ms": streamed_ms,
        "resident_step_ms": resident_ms,
        "busy": min(1.0, resident_ms / streamed_ms),
    }


def _time_ms(runner: StepRunner, calls: int) -> float:
    for _ in range(Captured.WARM_UP + 2):
        runner()
    return time_steady_ms(runner, runner.run.data.device, calls)
