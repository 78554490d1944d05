"""The product's own step, timed as training runs it."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import torch
from torch import Tensor

from concont.augment.views import draw_uniforms
from concont.bench.clock import count_flops, seconds, steady_ms
from concont.data.order import Order
from concont.data.placement import TrainingSet
from concont.data.sources import Dataset, from_arrays
from concont.runs.folder import RunFolder
from concont.runs.settings import Settings
from concont.training.cuda_speed import Captured
from concont.training.prepare import Job, prepare
from concont.training.step import Step

CLASSES = 10


@dataclass(frozen=True)
class Timing:
    """What was measured of the step."""

    batch: int
    first_step_s: float  # compilation included
    warm_cache: bool | None  # whether earlier compilation was found on disk; None: none needed
    step_ms: float
    views_ms: float
    tflops: float
    peak_memory_gb: float | None  # that the process holds; None on a CPU
    step_memory_gb: float | None  # of it, what is neither networks nor data


def random_images(rows: int, size: int, seed: int = 0) -> Dataset:
    """Random pixels with balanced labels: time does not depend on what is in an image."""
    stream = np.random.RandomState(seed)
    images = stream.randint(0, 256, (rows, size, size, 3), dtype=np.uint8)
    return from_arrays({"x_train": images, "y_train": np.arange(rows) % CLASSES})


def make_job(settings: Settings, data: Dataset) -> Job:
    """A run that is never written; on all rows, so that every method's steps see the same."""
    everything = replace(settings.data, unlabeled=True, holdout=0.0)
    return prepare(replace(settings, data=everything), RunFolder("unused"), data)


class Runner:
    """Takes step after step of a job, epoch after epoch."""

    def __init__(self, job: Job, fast: bool | None = None) -> None:
        self.job, self.lr = job, job.settings.optimizer.lr
        self.step = Step(job.settings, job.state, job.data, fast)
        self.feed = self._batches()

    def move(self, data: TrainingSet, order: Order) -> None:
        """Go on with other images of the same shape, with what is compiled."""
        self.job = replace(self.job, data=data, order=order)
        self.step.data, self.feed = data, self._batches()
        if isinstance(self.step.run, Captured):
            self.step.run = Captured(self.step.update)

    def __call__(self) -> None:
        """One step."""
        index, images = next(self.feed)
        self.step(index, images, self.lr)

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        job = self.job
        for epoch in count():
            plan = job.order.epoch(epoch)
            yield from zip(plan.to(job.data.device), job.data.images.batches(plan), strict=True)


def time_step(settings: Settings, data: Dataset, calls: int) -> Timing:
    """Time the step on these images; `calls` steps a block."""
    gc.collect()  # what was timed before, and its compiled code
    torch.cuda.empty_cache()
    torch.compiler.reset()
    job = make_job(settings, data)
    device = job.data.device
    on_gpu = device.type == "cuda"
    held = torch.cuda.memory_allocated(device) if on_gpu else 0
    runner = Runner(job)
    before = _compilations()
    first = seconds(runner, device)
    found, made = (now - then for now, then in zip(_compilations(), before, strict=True))
    warm = found > made if found + made else None
    for _ in range(Captured.WARM_UP + 1):
        runner()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    step_ms = steady_ms(runner, device, calls)
    peak = torch.cuda.max_memory_reserved(device) if on_gpu else 0
    views_ms = time_views(runner, calls)
    flops = count_flops(Runner(job, fast=False))
    return Timing(
        batch=job.order.batch_size,
        first_step_s=first,
        warm_cache=warm,
        step_ms=step_ms,
        views_ms=views_ms,
        tflops=flops / step_ms / 1e9,
        peak_memory_gb=peak / 1e9 if on_gpu else None,
        step_memory_gb=(peak - held) / 1e9 if on_gpu else None,
    )


def _compilations() -> tuple[int, int]:
    """Graphs of this process that were found compiled on disk, and that were not."""
    from torch._dynamo.utils import counters

    hits, misses = (counters["inductor"][f"fxgraph_cache_{kind}"] for kind in ("hit", "miss"))
    return hits + counters["aot_autograd"]["autograd_cache_hit"], misses


def time_views(runner: Runner, calls: int) -> float:
    """Milliseconds for the views of a batch, rendered as the step does it."""
    step, job = runner.step, runner.job
    settings, device = job.settings, job.data.device
    _, images = next(runner.feed)
    draws = draw_uniforms(settings.views, settings.deep.views, len(images), job.state.views)

    def see() -> None:
        with torch.no_grad():
            step.see(images, draws)

    see()
    if not (isinstance(step.run, Captured) and step.run.graph is not None):
        return steady_ms(see, device, calls)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        see()
    return steady_ms(graph.replay, device, calls)
