import numpy as np
import pytest
import torch

from concont.data.batches import Order, Resident, Streamed, TrainingSet, place, to_images
from concont.data.partial import pose
from concont.data.sources import from_arrays
from concont.settings import Data, Train

CPU = torch.device("cpu")


@pytest.fixture
def problem(toy_arrays):
    return pose(from_arrays(toy_arrays), Data(labeled=10, ambiguity=0.0, unlabeled=True))


def test_an_epoch_visits_rows_once_and_drops_the_short_batch(problem):
    order = Order.of(problem, Train(batch_size=16))
    assert order.steps == 2
    rows = order.epoch(0)
    assert rows.shape == (2, 16)
    assert len(rows.unique()) == 32


def test_the_order_depends_on_seed_and_epoch_alone(problem):
    order = Order.of(problem, Train(batch_size=16))
    assert torch.equal(order.epoch(3), Order.of(problem, Train(batch_size=16)).epoch(3))
    assert not torch.equal(order.epoch(3), order.epoch(4))
    assert not torch.equal(order.epoch(3), Order.of(problem, Train(batch_size=16, seed=2)).epoch(3))


def test_a_share_of_each_batch_is_partial(problem):
    order = Order.of(problem, Train(batch_size=16, partial_share=0.75))
    partial = torch.from_numpy(~problem.candidates.all(axis=1))
    rows = order.epoch(0)
    assert partial[rows].sum(dim=1).tolist() == [12, 12]
    visits = torch.bincount(rows[partial[rows]], minlength=40)[partial]
    assert visits.min() >= 2  # 24 visits to 10 rows: two whole passes and a part
    assert visits.max() <= 3


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_ends_of_the_share(problem, share):
    order = Order.of(problem, Train(batch_size=8, partial_share=share))
    partial = torch.from_numpy(~problem.candidates.all(axis=1))
    assert (partial[order.epoch(1)] == bool(share)).all()


def test_a_batch_is_never_larger_than_the_data(problem):
    order = Order.of(problem, Train(batch_size=256))
    assert (order.batch_size, order.steps) == (40, 1)


def test_images_keep_their_pixels_and_lie_channels_last():
    images = np.arange(2 * 3 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 3)
    tensor = to_images(images, torch.device("cpu"))
    assert tensor.shape == (2, 3, 3, 4)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    assert np.array_equal(tensor.permute(0, 2, 3, 1).numpy(), images)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 9])
def test_streamed_images_are_the_resident_ones_in_the_same_order(problem, steps):
    rows = torch.randint(40, (steps, 5), generator=torch.Generator().manual_seed(0))
    resident, streamed = (kind(problem.images, CPU) for kind in (Resident, Streamed))
    expected, found = list(resident.batches(rows)), list(streamed.batches(rows))
    assert len(found) == steps
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_streaming_stays_a_few_batches_ahead(problem):
    streamed = Streamed(problem.images, CPU)
    fetched = []
    fetch = streamed._fetch
    streamed._fetch = lambda batch: fetched.append(1) or fetch(batch)
    batches = streamed.batches(torch.zeros(20, 2, dtype=torch.long))
    next(batches)
    batches.close()
    assert 1 <= len(fetched) <= Streamed.AHEAD + 1


def test_images_stream_where_they_take_more_than_their_share(problem, monkeypatch):
    assert isinstance(place(problem.images, CPU, 0.5), Resident)
    assert isinstance(place(problem.images, CPU, 0.0), Streamed)
    size = problem.images.nbytes
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * size, 8 * size))
    monkeypatch.setattr("concont.data.batches.to_images", lambda images, device: None)
    gpu = torch.device("cuda")
    assert isinstance(place(problem.images, gpu, 0.5), Resident)
    assert isinstance(place(problem.images, gpu, 0.49), Streamed)


def test_the_training_set_holds_the_problem(problem):
    data = TrainingSet.of(problem, CPU, 0.5)
    assert data.images.images.shape == (40, 1, 8, 8)
    assert torch.equal(data.candidates, torch.from_numpy(problem.candidates))
