"""The training step, timed as training runs it."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import torch
from torch import Tensor

from concont.bench.timing import count_flops, time_call_s, time_steady_ms
from concont.data.order import Order
from concont.data.placement import TrainingSet
from concont.data.sources import Dataset, from_arrays
from concont.errors import UsageError
from concont.memory import refuse_beyond_memory
from concont.runs.folder import RunFolder
from concont.runs.settings import Settings
from concont.training.cuda_speed import Captured
from concont.training.network_run import NetworkRun
from concont.training.prepare import prepare
from concont.training.step import Step

N_CLASSES = 10


@dataclass(frozen=True)
class StepTiming:
    """What was measured of the step."""

    batch: int
    first_step_s: float  # compilation included
    warm_cache: bool | None  # whether earlier compilation was found on disk; None: none needed
    step_ms: float
    views_ms: float
    tflops: float
    peak_memory_gb: float | None  # that the process holds; None on a CPU
    step_memory_gb: float | None  # of it, what is neither networks nor data


def make_random_dataset(rows: int, size: int, seed: int = 0) -> Dataset:
    """Random pixels with balanced labels: time does not depend on what is in an image."""
    refuse_beyond_memory(rows * size * size * 3, "so many images take", error=UsageError)
    stream = np.random.RandomState(seed)
    images = stream.randint(0, 256, (rows, size, size, 3), dtype=np.uint8)
    return from_arrays({"x_train": images, "y_train": np.arange(rows) % N_CLASSES})


def prepare_on_all_rows(settings: Settings, data: Dataset) -> NetworkRun:
    """A run that is never written; on all rows, so that every method's steps see the same."""
    all_rows = replace(settings.data, unlabeled=True, holdout=0.0)
    return prepare(replace(settings, data=all_rows), RunFolder("unused"), data)


class StepRunner:
    """Takes step after step of a run, epoch after epoch."""

    def __init__(self, run: NetworkRun, fast: bool | None = None) -> None:
        self.run, self.lr = run, run.settings.optimizer.lr
        self.step = Step(run.settings, run.state, run.data, fast, run.order.leading_partial)
        self.batches = self._iterate_batches()

    def switch_data(self, data: TrainingSet, order: Order) -> None:
        """Go on with other images of the same shape, with what is compiled."""
        self.run = replace(self.run, data=data, order=order)
        self.step.data, self.batches = data, self._iterate_batches()
        self.step.n_partial = order.leading_partial
        if isinstance(self.step.run, Captured):  # a graph reads from the old set's addresses
            self.step.run = Captured(self.step.update)

    def __call__(self) -> None:
        """One step."""
        index, images = next(self.batches)
        self.step(index, images, self.lr)

    def _iterate_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        data, order = self.run.data, self.run.order
        for epoch in count():
            rows = order.epoch(epoch)
            yield from zip(rows.to(data.device), data.batches(rows), strict=True)


def time_step(settings: Settings, data: Dataset, calls: int) -> StepTiming:
    """Time the step on these images; `calls` steps a block."""
    gc.collect()  # what was timed before, and its compiled code
    torch.cuda.empty_cache()
    torch.compiler.reset()
    run = prepare_on_all_rows(settings, data)
    device = run.data.device
    on_gpu = device.type == "cuda"
    held_before = torch.cuda.memory_allocated(device) if on_gpu else 0
    runner = StepRunner(run)
    graphs_before = _count_compiled_graphs()
    first_step_s = time_call_s(runner, device)
    graphs_after = _count_compiled_graphs()
    cached, compiled = (
        after - before for after, before in zip(graphs_after, graphs_before, strict=True)
    )
    for _ in range(Captured.WARM_UP + 1):
        runner()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    step_ms = time_steady_ms(runner, device, calls)
    peak = torch.cuda.max_memory_reserved(device) if on_gpu else 0
    views_ms = time_views_ms(runner, calls)
    # The counter cannot see into compiled code, so one eager step is counted.
    flops = count_flops(StepRunner(run, fast=False))
    return StepTiming(
        batch=run.order.batch_size,
        first_step_s=first_step_s,
        warm_cache=cached > compiled if cached + compiled else None,
        step_ms=step_ms,
        views_ms=views_ms,
        tflops=flops / step_ms / 1e9,
        peak_memory_gb=peak / 1e9 if on_gpu else None,
        step_memory_gb=(peak - held_before) / 1e9 if on_gpu else None,
    )


def _count_compiled_graphs() -> tuple[int, int]:
    """Graphs of this process that were found compiled on disk, and that were not."""
    from torch._dynamo.utils import counters

    hits, misses = (counters["inductor"][f"fxgraph_cache_{kind}"] for kind in ("hit", "miss"))
    return hits + counters["aot_autograd"]["autograd_cache_hit"], misses


def time_views_ms(runner: StepRunner, calls: int) -> float:
    """Milliseconds for the views of a batch, rendered as the step does it."""
    step, device = runner.step, runner.run.data.device
    _, images = next(runner.batches)
    uniforms = step.draw(len(images))

    def render() -> None:
        with torch.no_grad():
            step.render_views(images, uniforms)

    render()
    if not (isinstance(step.run, Captured) and step.run.graph is not None):
        return time_steady_ms(render, device, calls)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        render()
    return time_steady_ms(graph.replay, device, calls)
