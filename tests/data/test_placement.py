import numpy as np
import pytest
import torch

from concont.data.mapped_arrays import RowsOf
from concont.data.placement import (
    Resident,
    Streamed,
    TrainingSet,
    channels_first,
    place_images,
    to_floats,
    to_images,
)
from concont.data.problem import make_problem
from concont.data.sources import from_arrays, read_npz
from concont.errors import DataError
from concont.ranks.world import World
from concont.runs.settings import Data

CPU = torch.device("cpu")


@pytest.fixture
def problem(toy_arrays):
    return make_problem(from_arrays(toy_arrays), Data(labeled=10, ambiguity=0.0, unlabeled=True))


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
    assert all(images.is_contiguous(memory_format=torch.channels_last) for images in found)


@pytest.mark.parametrize("size", [1, 7, 40, 100])
def test_all_images_come_in_order_a_part_at_a_time(problem, size):
    for kind in (Resident, Streamed):
        placed = kind(problem.images, CPU)
        assert placed.shape == (40, 1, 8, 8)
        parts = list(placed.split(size))
        assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
        whole = torch.cat(parts).permute(0, 2, 3, 1).numpy()
        assert np.array_equal(whole, problem.images)


def test_chosen_rows_are_placed_like_a_copy_of_them(mapped, monkeypatch):
    monkeypatch.setattr("concont.data.placement.AT_ONCE", 4)
    chosen = RowsOf(mapped, np.array([3, 4, 9, 12, 20, 21, 39]))
    copy = mapped[chosen.rows]
    rows = torch.tensor([[6, 0], [2, 2], [5, 3]])
    expected = list(Resident(copy, CPU).batches(rows))
    for kind in (Resident, Streamed):
        placed = kind(chosen, CPU)
        assert placed.shape == (7, 1, 8, 8)
        found = list(placed.batches(rows))
        assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
        assert torch.equal(torch.cat(list(placed.split(3))), to_images(copy, CPU))
    assert isinstance(place_images(chosen, CPU, 0.5), Streamed)


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
    assert isinstance(place_images(problem.images, CPU, 0.5), Resident)
    assert isinstance(place_images(problem.images, CPU, 0.0), Streamed)
    size = problem.images.nbytes
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * size, 8 * size))
    monkeypatch.setattr("concont.data.placement.to_images", lambda images, device: torch.empty(0))
    gpu = torch.device("cuda")
    assert isinstance(place_images(problem.images, gpu, 0.5), Resident)
    assert isinstance(place_images(problem.images, gpu, 0.49), Streamed)


@pytest.fixture
def mapped(toy_npz, monkeypatch):
    """The images of the problem, as a mapped file has them."""
    monkeypatch.setattr("concont.data.mapped_arrays.LARGE", 0)
    return make_problem(read_npz(toy_npz), Data(labeled=10, ambiguity=0.0, unlabeled=True)).images


def test_a_mapped_file_streams_the_same_batches(problem, mapped, monkeypatch):
    asked = []
    monkeypatch.setattr("concont.data.placement.read_ahead", lambda array, rows: asked.append(rows))
    rows = torch.randint(40, (6, 5), generator=torch.Generator().manual_seed(0))
    expected = list(Resident(problem.images, CPU).batches(rows))
    found = list(Streamed(mapped, CPU).batches(rows))
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert sorted(map(list, asked)) == sorted(rows.tolist())


@pytest.mark.parametrize("kind", [Resident, Streamed])
def test_a_mapped_file_is_not_copied_into_memory(mapped, kind):
    placed = kind(mapped, CPU)
    assert np.shares_memory(placed.images.numpy() if kind is Resident else placed.pixels, mapped)


def test_a_mapped_file_is_fetched_ahead_whatever_its_share(mapped):
    assert isinstance(place_images(mapped, CPU, 0.5), Streamed)


def test_the_training_set_holds_the_rows_of_the_problem(problem):
    data = TrainingSet.of(problem, CPU, 0.5)
    assert data.images.images.shape == (40, 1, 8, 8)
    assert torch.equal(data.candidates, torch.from_numpy(problem.candidates))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, ">f8"])
def test_features_are_float32_wherever_they_lie(tmp_path, kind):
    rows = np.random.RandomState(0).randn(50, 6).astype(kind)
    expected = torch.from_numpy(rows.astype(np.float32))
    plan = torch.randperm(50, generator=torch.Generator().manual_seed(0)).view(5, 10)
    chosen = RowsOf(rows, np.arange(50))
    for placed in (Resident(rows, CPU), Resident(chosen, CPU), Streamed(rows, CPU)):
        assert placed.shape == (50, 6)
        batches = list(placed.batches(plan))
        assert all(torch.equal(b, expected[r]) for b, r in zip(batches, plan, strict=True))
        assert torch.equal(torch.cat(list(placed.split(7))), expected)
        assert batches[0].dtype == torch.float32


def test_features_of_float32_are_not_copied():
    rows = np.zeros((4, 3), np.float32)
    placed = Resident(rows, CPU)
    rows[2, 1] = 5
    assert placed.images[2, 1] == 5


def test_features_beyond_float32_are_refused():
    rows = np.ones((4, 3))
    rows[1, 2] = 1e300
    for place in (Resident, lambda r, d: next(Streamed(r, d).batches(torch.arange(4).view(1, 4)))):
        with pytest.raises(DataError, match="beyond the range of float32"):
            place(rows, CPU)


def test_only_images_are_scaled_and_reordered():
    images, rows = torch.full((2, 4, 5, 3), 255, dtype=torch.uint8), torch.full((2, 4), 255.0)
    assert channels_first(images).shape == (2, 3, 4, 5)
    assert to_floats(images).max() == 1
    assert channels_first(rows) is rows
    assert to_floats(rows) is rows


@pytest.mark.parametrize("rank", [0, 1])
def test_of_two_ranks_each_reads_its_own_rows_alone(problem, monkeypatch, rank):
    monkeypatch.setattr("concont.ranks.tensors.WORLD", World(size=2, rank=rank))
    data, plan = TrainingSet.of(problem, CPU, memory_share=0.0), torch.arange(40).view(5, 8)
    read, fetch = [], data.images._fetch
    monkeypatch.setattr(data.images, "_fetch", lambda rows: (read.append(rows), fetch(rows))[1])
    found = list(data.batches(plan))
    assert torch.equal(torch.cat(read).sort()[0], torch.arange(rank, 40, 2))
    for batch, images in zip(plan, found, strict=True):
        assert torch.equal(images, Resident(problem.images, CPU).images[batch[rank::2]])
