import time

import numpy as np
import pytest
import torch

from concont.bench.busy import FewResident, time_busy
from concont.bench.report import time_on_data
from concont.bench.step_timing import make_random_dataset
from concont.config.resolve import resolve
from concont.data.placement import Streamed
from concont.data.sources import from_arrays
from concont.errors import UsageError

FLAGS = {
    "data": {"labeled": 0.5, "ambiguity": 0.3},
    "model": {"name": "small", "width": 4},
    "train": {"batch_size": 16, "device": "cpu"},
}


@pytest.fixture
def settings():
    return resolve(FLAGS)


def test_a_device_that_waits_for_its_images_is_less_busy(settings, monkeypatch):
    fetch = Streamed._fetch

    def slow(self, batch):
        time.sleep(0.4)  # two threads: at best five batches a second
        return fetch(self, batch)

    quick = time_busy(settings, make_random_dataset(48, 8), calls=1)
    assert 0 < quick["busy"] <= 1
    assert quick["busy"] == min(1.0, quick["resident_step_ms"] / quick["streamed_step_ms"])
    monkeypatch.setattr(Streamed, "_fetch", slow)
    monkeypatch.setattr("concont.bench.timing.N_BLOCKS", 1)
    monkeypatch.setattr("concont.bench.busy.Captured.WARM_UP", 0)
    waiting = time_busy(settings, make_random_dataset(48, 8), calls=2)
    assert waiting["streamed_step_ms"] > waiting["resident_step_ms"]
    assert waiting["busy"] < 1


def test_a_few_images_on_the_device_stand_for_all():
    few = FewResident(np.arange(12, dtype=np.uint8).reshape(3, 2, 2, 1), torch.device("cpu"))
    (batch,) = few.batches(torch.tensor([[0, 4, 8, 3]]))
    assert batch[:, 0, 0, 0].tolist() == [0, 4, 8, 0]


def test_data_may_have_candidate_sets_of_its_own(settings, toy_arrays):
    sets = np.ones((40, 2), dtype=bool)
    sets[:20, 0] = False
    data = from_arrays({**toy_arrays, "y_train": None, "candidates": sets})
    figures = time_on_data(settings, data, calls=1)
    assert 0 < figures["busy"] <= 1
    assert (figures["image_size"], figures["plain_step_ms"]) == (8, None)


def test_a_network_of_images_learns_of_no_features(settings):
    data = from_arrays({"x_train": np.eye(4), "y_train": np.arange(4) % 2})
    with pytest.raises(UsageError, match="small learns of images"):
        time_on_data(settings, data, calls=1)
