"""How the time for an image grows with the number of images, and with their size."""

import mmap
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.bench.step_timing import N_CLASSES, StepRunner, prepare_on_all_rows
from concont.bench.timing import time_steady_ms
from concont.data.mapped_arrays import RowsOf, find_mapped_file
from concont.data.order import Order
from concont.data.placement import Resident, Streamed, TrainingSet
from concont.data.problem import make_problem
from concont.data.sources import from_arrays, load
from concont.device import choose_device
from concont.ranks import world
from concont.runs.settings import Settings
from concont.training.cuda_speed import Captured
from concont.training.recorder import describe_environment

ROW_COUNTS = (10_000, 100_000, 1_000_000)
# Side, images and rows of a batch: more than 256 MB, which stays on disk.
SHAPES_ON_DISK = ((64, 30_000, 256), (224, 2_000, 32))
N_DISTINCT = 1_000  # random images, which are repeated


def time_scaling(settings: Settings, calls: int) -> dict[str, Any]:
    """All of it, one record a data set."""
    rows = time_by_rows(settings, ROW_COUNTS, 32, calls)
    rows += time_from_disk(settings, SHAPES_ON_DISK, calls)
    device = choose_device(settings.train.device)
    return {"rows": rows, "ranks": world.size(), "environment": describe_environment(device)}


def time_by_rows(
    settings: Settings, row_counts: tuple[int, ...], size: int, calls: int
) -> list[Any]:
    """The same step on ever larger sets of images that lie on the device."""
    runner: StepRunner | None = None
    records = []
    for count in row_counts:
        data = from_arrays(_make_arrays(count, size))
        if runner is None:
            runner = StepRunner(prepare_on_all_rows(settings, data))
        else:  # what is compiled stays: only the data differ
            problem, train = make_problem(data, runner.run.settings.data), settings.train
            device = runner.run.data.device
            runner.switch_data(
                TrainingSet.of(problem, device, train.memory_share),
                Order.of(problem, train, runner.run.order.partial_first),
            )
        records.append(_time_record(runner, count, size, calls))
    return records


def time_from_disk(
    settings: Settings, shapes: tuple[tuple[int, int, int], ...], calls: int
) -> list[Any]:
    """The step on images that are read from disk while it runs; then on the device, beside it."""
    records = []
    for size, rows, batch in shapes:
        train = replace(settings.train, memory_share=0.0, batch_size=batch)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "images.npz"
            np.savez(path, **_make_arrays(rows, size))
            run = prepare_on_all_rows(replace(settings, train=train), load(str(path)))
            runner = StepRunner(run)
            _drop_from_memory(path, run.problem.images)
            records.append(_time_record(runner, rows, size, calls))
            resident = Resident(run.problem.images, run.data.device)
            runner.switch_data(replace(run.data, images=resident), run.order)
            records.append(_time_record(runner, rows, size, calls))
    return records


def _drop_from_memory(path: Path, images: NDArray[np.uint8] | RowsOf) -> None:
    """Let the system drop what it holds of a file in memory, so that it is read again."""
    mapped = find_mapped_file(images)
    if mapped is None or not hasattr(os, "posix_fadvise"):
        return
    mapped.madvise(mmap.MADV_DONTNEED)
    with open(path, "rb") as file:
        os.fsync(file.fileno())  # what is not yet written cannot be dropped
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _make_arrays(rows: int, size: int) -> dict[str, Any]:
    stream = np.random.RandomState(0)
    distinct = stream.randint(0, 256, (min(rows, N_DISTINCT), size, size, 3), dtype=np.uint8)
    images = np.resize(distinct, (rows, size, size, 3))
    return {"x_train": images, "y_train": np.arange(rows) % N_CLASSES}


def _time_record(runner: StepRunner, rows: int, size: int, calls: int) -> dict[str, Any]:
    run = runner.run
    for _ in range(Captured.WARM_UP + 2):
        runner()
    ms = time_steady_ms(runner, run.data.device, calls)
    streamed = isinstance(run.data.images, Streamed)
    return {
        "images": rows,
        "image_size": size,
        "batch": run.order.batch_size,
        "streamed": streamed,
        "on_disk": streamed and find_mapped_file(run.problem.images) is not None,
        "step_ms": ms,
        "us_per_image": ms / run.order.batch_size * 1000,
    }
