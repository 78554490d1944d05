"""How the time for an image grows with the number of images, and with their size."""

import mmap
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.bench.clock import steady_ms
from concont.bench.product import CLASSES, Runner, make_job
from concont.data.mapped_arrays import mapping
from concont.data.order import Order
from concont.data.placement import Resident, Streamed, TrainingSet
from concont.data.problem import pose
from concont.data.sources import from_arrays, load
from concont.device import choose_device
from concont.runs.settings import Settings
from concont.training.cuda_speed import Captured
from concont.training.recorder import describe_environment

ROWS = (10_000, 100_000, 1_000_000)
# side, images, rows of a batch: more than 256 MB, which stays on disk
ON_DISK = ((64, 30_000, 256), (224, 2_000, 32))
BLOCK = 1_000  # random images, repeated


def by_rows(settings: Settings, rows: tuple[int, ...], size: int, calls: int) -> list[Any]:
    """The same step on ever larger sets of images that lie on the device."""
    runner: Runner | None = None
    found = []
    for count in rows:
        data = from_arrays(_arrays(count, size))
        if runner is None:
            runner = Runner(make_job(settings, data))
        else:
            problem, train = pose(data, runner.job.settings.data), settings.train
            device = runner.job.data.device
            runner.move(
                TrainingSet.of(problem, device, train.memory_share),
                Order.of(problem, train, runner.job.order.partial_first),
            )
        found.append(_row(runner, count, size, calls))
    return found


def from_disk(
    settings: Settings, shapes: tuple[tuple[int, int, int], ...], calls: int
) -> list[Any]:
    """The step on images that are read from disk while it runs; then on the device, beside it."""
    found = []
    for size, rows, batch in shapes:
        train = replace(settings.train, memory_share=0.0, batch_size=batch)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "images.npz"
            np.savez(path, **_arrays(rows, size))
            runner = Runner(make_job(replace(settings, train=train), load(str(path))))
            _forget(path, runner.job.problem.images)
            found.append(_row(runner, rows, size, calls))
            job = runner.job
            resident = Resident(job.problem.images, job.data.device)
            runner.move(replace(job.data, images=resident), job.order)
            found.append(_row(runner, rows, size, calls))
    return found


def _forget(path: Path, images: NDArray[np.uint8]) -> None:
    """Let the system drop what it holds of a file in memory, so that it is read again."""
    file = mapping(images)
    if file is None or not hasattr(os, "posix_fadvise"):
        return
    file.madvise(mmap.MADV_DONTNEED)
    with open(path, "rb") as whole:
        os.fsync(whole.fileno())
        os.posix_fadvise(whole.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _arrays(rows: int, size: int) -> dict[str, Any]:
    stream = np.random.RandomState(0)
    block = stream.randint(0, 256, (min(rows, BLOCK), size, size, 3), dtype=np.uint8)
    images = np.resize(block, (rows, size, size, 3))
    return {"x_train": images, "y_train": np.arange(rows) % CLASSES}


def _row(runner: Runner, rows: int, size: int, calls: int) -> dict[str, Any]:
    job = runner.job
    for _ in range(Captured.WARM_UP + 2):
        runner()
    ms = steady_ms(runner, job.data.device, calls)
    streamed = isinstance(job.data.images, Streamed)
    return {
        "images": rows,
        "image_size": size,
        "batch": job.order.batch_size,
        "streamed": streamed,
        "on_disk": streamed and mapping(job.problem.images) is not None,
        "step_ms": ms,
        "us_per_image": ms / job.order.batch_size * 1000,
    }


def scaling(settings: Settings, calls: int) -> dict[str, Any]:
    """All of it, one record a data set."""
    rows = by_rows(settings, ROWS, 32, calls) + from_disk(settings, ON_DISK, calls)
    return {"rows": rows, "environment": describe_environment(choose_device(settings.train.device))}
