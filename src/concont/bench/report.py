"""The figures of `concont bench`: the step, the plain way beside it, the machine's own rate."""

import os
from dataclasses import replace
from typing import Any

import torch

from concont.bench.clock import matmul_tflops
from concont.bench.plain import (
    PREFETCH,
    PlainStep,
    Precision,
    loader,
    plain_step_ms,
    plain_views_ms,
)
from concont.bench.product import make_job, random_images, time_step
from concont.data.sources import Dataset
from concont.engine.record import environment
from concont.engine.setup import choose_device
from concont.settings import Settings

EPOCH = 50_000  # images of a CIFAR-10 epoch


def bench(settings: Settings, rows: int, size: int, calls: int, plain: bool) -> dict[str, Any]:
    """Time the step on random images, and the plain way on the same ones."""
    device = choose_device(settings.train.device)
    data = random_images(rows, size)
    found = time_step(settings, data, calls)
    figures = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "batch": found.batch,
        "step_ms": found.step_ms,
        "plain_step_ms": None,
        "views_ms": found.views_ms,
        "plain_views_ms": None,
        "tflops": found.tflops,
        "matmul_tflops": matmul_tflops(device),
        "first_step_s": found.first_step_s,
        "warm_cache": found.warm_cache,
        "peak_memory_gb": found.peak_memory_gb,
        "images_per_s": found.batch / found.step_ms * 1000,
        "epoch_s": EPOCH // found.batch * found.step_ms / 1000,
        "image_size": size,
        "method": settings.method.name,
        "network": settings.model.name,
        "skip_idle": settings.train.skip_idle,
        "environment": environment(device),
    }
    return figures | (time_plain(settings, data, calls) if plain else {})


def time_plain(settings: Settings, data: Dataset, calls: int) -> dict[str, Any]:
    """The plain way on the same images, in each precision that the device has."""
    settings = replace(settings, train=replace(settings.train, skip_idle=False))
    device = choose_device(settings.train.device)
    precisions: tuple[Precision, ...] = ("float32",)
    if device.type == "cuda":
        precisions = ("float32", "bfloat16")
    workers = min(os.cpu_count() or 1, 16)
    times = {}
    for precision in precisions:
        job = make_job(settings, data)
        step = PlainStep(settings, job.state, job.data.candidates, job.data.truth, precision)
        # until what the workers made ahead during the slow first steps is used up
        warm = 4 * PREFETCH * workers if device.type == "cuda" else 1
        batches = loader(
            data.x_train,
            settings.views,
            settings.method.views,
            job.order.batch_size,
            workers,
            pin=device.type == "cuda",
            steps=warm + calls,
        )
        times[f"plain_{precision}_step_ms"] = plain_step_ms(step, batches, warm)
    size = job.order.batch_size
    return {
        **times,
        "plain_step_ms": min(times.values()),
        "plain_views_ms": plain_views_ms(data.x_train, settings, size, workers, calls),
        "plain_workers": workers,
    }
