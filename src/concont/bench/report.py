"""The figures of `concont bench`: the step, the plain way beside it, the machine's own rate."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

import torch

from concont.bench.clock import count_flops, matmul_tflops
from concont.bench.plain import (
    PREFETCH,
    PlainStep,
    Precision,
    loader,
    plain_step_ms,
    plain_views_ms,
)
from concont.bench.product import make_job, random_images, time_step
from concont.config.layers import merge
from concont.config.registry import is_reference
from concont.config.resolve import resolve
from concont.data.sources import Dataset
from concont.device import choose_device
from concont.errors import UsageError
from concont.methods import method_names
from concont.runs.settings import Settings
from concont.training.recorder import describe_environment

log = logging.getLogger("concont")
EPOCH = 50_000  # images of a CIFAR-10 epoch


def bench(settings: Settings, rows: int, size: int, calls: int, plain: bool) -> dict[str, Any]:
    """Time the step on random images, and the plain way on the same ones."""
    data, (settings,) = random_images(rows, size), _fitting([settings], rows)
    figures = _figures(settings, data, calls) | _machine(settings)
    return figures | (time_plain(settings, data, calls) if plain else {})


def compare(each: Sequence[Settings], rows: int, size: int, calls: int) -> list[dict[str, Any]]:
    """The step of several methods, each with its own views, on the same images."""
    data, each = random_images(rows, size), _fitting(each, rows)
    figures = [_figures(settings, data, calls) for settings in each]
    machine = _machine(each[0])
    return [row | machine for row in figures]


def each_method(
    words: str, flags: Mapping[str, Any], recipe: str, assignments: Sequence[str]
) -> list[Settings]:
    """The settings of the methods in a list with commas, or of `all`; each with the same batch.

    That is the recipe's own, or what was asked for, whatever batch a method has in its paper.
    """
    names = [word.strip() for word in words.split(",")]
    names = method_names() if names == ["all"] else names
    unknown = [repr(n) for n in names if n not in method_names() and not is_reference(n)]
    if unknown:
        raise UsageError(f"no method {', '.join(unknown)}; there are {', '.join(method_names())}")
    batch = resolve(flags, recipe, assignments).train.batch_size
    sized = [*assignments, f"train.batch_size={batch}"]
    return [
        resolve(merge(flags, {"method": {"name": name}}), recipe, sized, code=name)
        for name in dict.fromkeys(names)
    ]


def _fitting(each: Sequence[Settings], rows: int) -> list[Settings]:
    """The same with batches of no more than the rows, which is said once."""
    asked = max(settings.train.batch_size for settings in each)
    if asked > rows:
        log.warning("a batch holds %d rows, not %d: there are no more images", rows, asked)
    sizes = [min(settings.train.batch_size, rows) for settings in each]
    return [
        replace(settings, train=replace(settings.train, batch_size=size))
        for settings, size in zip(each, sizes, strict=True)
    ]


def _machine(settings: Settings) -> dict[str, Any]:
    """What is the same for all methods; measured last, since a GPU keeps the memory it takes."""
    device = choose_device(settings.train.device)
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "matmul_tflops": matmul_tflops(device),
        "environment": describe_environment(device),
    }


def _figures(settings: Settings, data: Dataset, calls: int) -> dict[str, Any]:
    found = time_step(settings, data, calls)
    return {
        "batch": found.batch,
        "step_ms": found.step_ms,
        "plain_step_ms": None,
        "views_ms": found.views_ms,
        "plain_views_ms": None,
        "tflops": found.tflops,
        "first_step_s": found.first_step_s,
        "warm_cache": found.warm_cache,
        "peak_memory_gb": found.peak_memory_gb,
        "step_memory_gb": found.step_memory_gb,
        "images_per_s": found.batch / found.step_ms * 1000,
        "epoch_s": EPOCH // found.batch * found.step_ms / 1000,
        "image_size": data.x_train.shape[1],
        "method": settings.method.name,
        "network": settings.model.name,
    }


def time_plain(settings: Settings, data: Dataset, calls: int) -> dict[str, Any]:
    """The plain way on the same images, in each precision that the device has.

    `network` is the step on one batch again and again, without waiting for its views.
    """
    on_gpu = choose_device(settings.train.device).type == "cuda"
    precisions: tuple[Precision, ...] = ("float32", "bfloat16") if on_gpu else ("float32",)
    workers = min(len(os.sched_getaffinity(0)), 16)
    warm = 4 * PREFETCH * workers  # until what they made ahead in the slow first steps is used up
    views, names = settings.views, settings.deep.views
    found: dict[str, Any] = {"plain_workers": workers}
    for precision in precisions:
        step = PlainStep(make_job(settings, data), precision)
        size = step.job.order.batch_size
        load = partial(loader, data.x_train, views, names, size, workers, on_gpu)
        first = next(iter(load(steps=1)))
        found["plain_flops"] = count_flops(partial(step, *first))
        found[f"plain_{precision}_network_ms"] = plain_step_ms(step, repeat(first, 3 + calls), 3)
        found[f"plain_{precision}_step_ms"] = plain_step_ms(step, load(steps=warm + calls), warm)
    found["plain_step_ms"] = min(found[f"plain_{precision}_step_ms"] for precision in precisions)
    found["plain_views_ms"] = plain_views_ms(data.x_train, settings, size, workers, calls)
    return found
