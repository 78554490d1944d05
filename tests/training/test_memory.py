import gc
import weakref

import pytest
import torch

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import ConcontError
from concont.runs.folder import RunFolder
from concont.training import memory, pace
from concont.training.memory import explain, find_fitting_batch
from concont.training.prepare import prepare
from concont.training.step import Step

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("most", [0, 1, 2, 3, 7, 8, 30, 100, 200, 255])
@pytest.mark.parametrize("batch_size", [256, 4096])
def test_the_search_ends_near_the_largest_batch_that_fits(most, batch_size):
    tried = []

    def fits(rows):
        tried.append(rows)
        return rows <= most

    found = find_fitting_batch(batch_size, fits)
    assert len(tried) <= 12
    assert all(2 <= rows < batch_size for rows in tried)
    assert found <= most
    assert found == 0 if most < 2 else found >= min(2, most)
    if most >= 30:
        assert found >= 0.7 * most - 8
        assert found % 8 == 0


def test_no_smaller_batch_than_two_rows_is_tried():
    assert find_fitting_batch(2, lambda rows: True) == 0
    assert find_fitting_batch(3, lambda rows: True) == 2


def test_what_the_user_is_told():
    told = explain(GPU, 256, 88)
    assert told.endswith("a batch of 256 rows; about 88 would fit: --set train.batch_size=88")
    assert "or for any: take a smaller model" in explain(GPU, 256, 0)
    assert explain(CPU, 256, None).startswith("there is too little memory for a batch of 256 rows")


@pytest.fixture
def run(tmp_path, toy_arrays, toy_config):
    toy_config["train"]["batch_size"] = 40
    return prepare(resolve(toy_config), RunFolder(tmp_path / "run"), from_arrays(toy_arrays))


@pytest.fixture
def on_gpu(monkeypatch):
    """A batch is searched for as on a GPU; the steps themselves are those of the CPU."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(memory, "is_gpu", lambda device: True)


@pytest.mark.parametrize("where", ["training", "announcing"])
def test_memory_that_runs_out_is_a_line_with_a_batch_of_which_a_step_passes(
    run, on_gpu, monkeypatch, where
):
    """As a GPU would: no step of over 20 rows, nor any while tensors of a failed one are held."""
    held, step = [], Step.learn

    def learn(self, batch):
        rows = torch.empty(0)
        if len(batch.index) > 20 or any(ref() is not None for ref in held):
            held.append(weakref.ref(rows))
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB.\nAdvice")
        return step(self, batch)

    gc.disable()
    monkeypatch.setattr(Step, "learn", learn)
    try:
        with pytest.raises(ConcontError, match="a batch of 40 rows; about 16 would fit") as error:
            list(run.execute()) if where == "training" else pace.announce(run)
    finally:
        gc.enable()
    assert len(held) > 1
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("share", "fewest"), [(None, 8), (0.25, 1), (0.02, 1)])
def test_a_batch_is_tried_with_as_many_partial_rows_in_front_as_it_would_have(
    tmp_path, toy_arrays, toy_config, on_gpu, monkeypatch, share, fewest
):
    toy_config["train"] |= {"batch_size": 40, "partial_share": share}
    toy_config["method"] |= {"teacher": "momentum", "weak_rows": "partial"}
    run = prepare(resolve(toy_config), RunFolder(tmp_path / "run"), from_arrays(toy_arrays))
    tried = {}

    def learn(self, batch):
        tried[len(batch.index)] = batch.n_partial
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Step, "learn", learn)
    with pytest.raises(ConcontError, match="or for any"):
        list(run.execute())
    assert len(tried) > (3 if share != 0.02 else 0)  # no row of a smaller batch would be partial
    for rows, count in tried.items():
        assert min(fewest, rows) <= count <= rows
        assert share is None or count == max(1, round(share * rows))


def fail(*_, **__):
    raise torch.OutOfMemoryError("again")


def test_where_no_batch_fits_that_is_said(run, on_gpu, monkeypatch):
    monkeypatch.setattr(Step, "learn", fail)
    with pytest.raises(ConcontError, match="or for any"):
        list(run.execute())


def test_a_trial_that_fails_in_another_way_is_no_traceback(run, on_gpu, monkeypatch):
    monkeypatch.setattr(Step, "learn", fail)

    def break_down(*_):
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(memory, "_try_step", break_down)
    with pytest.raises(ConcontError, match="40 rows: make train.batch_size smaller"):
        list(run.execute())


def test_an_error_of_another_kind_passes_through(run, monkeypatch):
    def break_down(*_):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(Step, "learn", break_down)
    with pytest.raises(RuntimeError, match="mat1"):
        list(run.execute())


def test_main_memory_that_runs_out_is_a_line(run, monkeypatch):
    monkeypatch.setattr(Step, "learn", lambda *_: torch.empty(2**62, dtype=torch.uint8))
    with pytest.raises(ConcontError, match="there is too little memory for a batch of 40"):
        list(run.execute())
