import numpy as np
import pytest

from concont.bench.scaling import time_by_rows, time_from_disk
from concont.config.resolve import resolve
from concont.data import mapped_arrays

SETTINGS = {
    "data": {"labeled": 0.5, "ambiguity": 0.3},
    "model": {"name": "small", "width": 4},
    "train": {"batch_size": 16, "device": "cpu"},
}


def test_each_number_of_images_is_timed_with_its_own_rows():
    found = time_by_rows(resolve(SETTINGS), (32, 64), 8, calls=1)
    assert [(row["images"], row["streamed"], row["on_disk"]) for row in found] == [
        (32, False, False),
        (64, False, False),
    ]
    for row in found:
        assert row["us_per_image"] == pytest.approx(row["step_ms"] / 16 * 1000)


def test_each_number_of_images_is_timed_with_all_of_them(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "concont.bench.scaling._time_record",
        lambda runner, *_: seen.append(len(runner.run.data.candidates)),
    )
    time_by_rows(resolve({**SETTINGS, "method": {"name": "partial"}}), (32, 64), 8, calls=1)
    assert seen == [32, 64]


def test_images_are_read_from_disk(monkeypatch):
    monkeypatch.setattr(mapped_arrays, "LARGE", 1)
    row, beside = time_from_disk(resolve(SETTINGS), ((8, 40, 4),), calls=1)
    assert (row["streamed"], row["on_disk"], row["batch"], row["image_size"]) == (True, True, 4, 8)
    assert (beside["streamed"], beside["on_disk"], beside["images"]) == (False, False, 40)
    assert np.isfinite([row["step_ms"], beside["step_ms"]]).all()
