"""The figures of `concont bench`: the step, the plain way beside it, the machine's own rate."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

import torch

from concont.bench.busy import time_busy
from concont.bench.plain_step import PlainStep, Precision, time_plain_step_ms
from concont.bench.plain_views import PREFETCH, make_loader, time_plain_views_ms
from concont.bench.step_timing import make_random_dataset, prepare_on_all_rows, time_step
from concont.bench.timing import count_flops, time_matmul_tflops
from concont.config.layers import merge
from concont.config.registry import is_reference
from concont.config.resolve import resolve
from concont.cores import count_cores
from concont.data.sources import Dataset
from concont.device import choose_device
from concont.errors import UsageError
from concont.methods import method_names
from concont.runs.settings import Settings
from concont.training.recorder import describe_environment

log = logging.getLogger("concont")
CIFAR10_IMAGES = 50_000  # of an epoch


def time_method(
    settings: Settings, rows: int, size: int, calls: int, plain: bool
) -> dict[str, Any]:
    """Time the step on random images, and the plain way on the same ones."""
    data, (settings,) = make_random_dataset(rows, size), _limit_batches([settings], rows)
    figures = _time_step(settings, data, calls) | _describe_machine(settings)
    return figures | (_time_plain_way(settings, data, calls) if plain else {})


def time_on_data(settings: Settings, data: Dataset, calls: int) -> dict[str, Any]:
    """Time the step on given images, and how busy the device is where they are fetched."""
    if data.candidates is not None:  # no others are drawn
        settings = replace(settings, data=replace(settings.data, ambiguity=None, labeled=None))
    (settings,) = _limit_batches([settings], len(data.x_train))
    figures = _time_step(settings, data, calls) | time_busy(settings, data, calls)
    return figures | _describe_machine(settings)


def time_methods(
    methods: Sequence[Settings], rows: int, size: int, calls: int
) -> list[dict[str, Any]]:
    """Time the step of several methods, each with its own views, on the same images."""
    data, methods = make_random_dataset(rows, size), _limit_batches(methods, rows)
    figures = [_time_step(settings, data, calls) for settings in methods]
    machine = _describe_machine(methods[0])
    return [row | machine for row in figures]


def resolve_methods(
    names: str, flags: Mapping[str, Any], recipe: str, assignments: Sequence[str]
) -> list[Settings]:
    """The settings of the methods in a list with commas, or of `all`; each with the same batch.

    That is the recipe's own, or what was asked for, whatever batch a method has in its paper.
    """
    chosen = [name.strip() for name in names.split(",")]
    chosen = method_names() if chosen == ["all"] else chosen
    unknown = [repr(n) for n in chosen if n not in method_names() and not is_reference(n)]
    if unknown:
        raise UsageError(f"no method {', '.join(unknown)}; there are {', '.join(method_names())}")
    batch = resolve(flags, recipe, assignments).train.batch_size
    sized = [*assignments, f"train.batch_size={batch}"]
    return [
        resolve(merge(flags, {"method": {"name": name}}), recipe, sized, code=name)
        for name in dict.fromkeys(chosen)
    ]


def _limit_batches(methods: Sequence[Settings], rows: int) -> list[Settings]:
    """The same with batches of no more than the rows, which is said once."""
    largest = max(settings.train.batch_size for settings in methods)
    if largest > rows:
        log.warning("a batch holds %d rows, not %d: there are no more images", rows, largest)
    return [
        replace(s, train=replace(s.train, batch_size=min(s.train.batch_size, rows)))
        for s in methods
    ]


def _describe_machine(settings: Settings) -> dict[str, Any]:
    """What is the same for all methods; measured last, since a GPU keeps the memory it takes."""
    device = choose_device(settings.train.device)
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "matmul_tflops": time_matmul_tflops(device),
        "environment": describe_environment(device),
    }


def _time_step(settings: Settings, data: Dataset, calls: int) -> dict[str, Any]:
    timing = time_step(settings, data, calls)
    return {
        "batch": timing.batch,
        "step_ms": timing.step_ms,
        "plain_step_ms": None,
        "views_ms": timing.views_ms,
        "plain_views_ms": None,
        "tflops": timing.tflops,
        "first_step_s": timing.first_step_s,
        "warm_cache": timing.warm_cache,
        "peak_memory_gb": timing.peak_memory_gb,
        "step_memory_gb": timing.step_memory_gb,
        "busy": None,
        "images_per_s": timing.batch / timing.step_ms * 1000,
        "epoch_s": CIFAR10_IMAGES // timing.batch * timing.step_ms / 1000,
        "image_size": data.x_train.shape[1],
        "method": settings.method.name,
        "network": settings.model.name,
    }


def _time_plain_way(settings: Settings, data: Dataset, calls: int) -> dict[str, Any]:
    """The plain way on the same images, in each precision that the device has.

    `network` is the step on one batch again and again, without waiting for its views.
    """
    on_gpu = choose_device(settings.train.device).type == "cuda"
    precisions: tuple[Precision, ...] = ("float32", "bfloat16") if on_gpu else ("float32",)
    workers = min(count_cores(), 16)
    # Until what the workers made ahead during the slow first steps is used up.
    n_warm_up = 4 * PREFETCH * workers
    views, names = settings.views, settings.network_method.views
    figures: dict[str, Any] = {"plain_workers": workers}
    for precision in precisions:
        step = PlainStep(prepare_on_all_rows(settings, data), precision)
        size = step.run.order.batch_size
        load = partial(make_loader, data.x_train, views, names, size, workers, on_gpu)
        first = next(iter(load(steps=1)))
        figures["plain_flops"] = count_flops(partial(step, *first))
        key = f"plain_{precision}"
        figures[f"{key}_network_ms"] = time_plain_step_ms(step, repeat(first, 3 + calls), 3)
        batches = load(steps=n_warm_up + calls)
        figures[f"{key}_step_ms"] = time_plain_step_ms(step, batches, n_warm_up)
    figures["plain_step_ms"] = min(figures[f"plain_{name}_step_ms"] for name in precisions)
    figures["plain_views_ms"] = time_plain_views_ms(data.x_train, settings, size, workers, calls)
    return figures
