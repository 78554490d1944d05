import pytest
import torch

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import ConcontError
from concont.runs.folder import RunFolder
from concont.training import memory, pace
from concont.training.memory import Measured, explain, fitting_batch
from concont.training.prepare import prepare
from concont.training.step import Step


@pytest.mark.parametrize(
    ("measured", "fits"),
    [
        (Measured(rows=16, step=1600, room=10_000), 88),  # 90 of 100 bytes each
        (Measured(rows=16, step=16_000, room=5_000), 4),
        (Measured(rows=16, step=0, room=1), 8),
        (Measured(rows=16, step=1600, room=-5), 0),
    ],
)
def test_the_batch_that_fits_follows_from_a_small_step(measured, fits):
    assert fitting_batch(measured) == fits


def test_what_the_user_is_told():
    told = explain(256, Measured(16, 1600, 10_000))
    assert told.endswith("a batch of 256 rows; about 88 would fit: --set train.batch_size=88")
    assert "about 63 would fit" in explain(64, Measured(16, 1600, 10_000))  # for it did not
    for measured in (None, Measured(16, 1600, 0)):
        assert "or for any: take a smaller model" in explain(256, measured)


@pytest.fixture
def run(tmp_path, toy_arrays, toy_config):
    return prepare(resolve(toy_config), RunFolder(tmp_path / "run"), from_arrays(toy_arrays))


@pytest.mark.parametrize("where", ["training", "announcing"])
def test_memory_that_runs_out_is_a_line(run, monkeypatch, where):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB.\nAdvice")

    monkeypatch.setattr(Step, "__call__", fail)
    monkeypatch.setattr(memory, "_measure", lambda *_: Measured(16, 1600, 1000))
    with pytest.raises(ConcontError, match="a batch of 16 rows; about 8 would fit") as error:
        list(run.execute()) if where == "training" else pace.announce(run)
    assert "\n" not in str(error.value)


def test_a_trial_that_fails_as_well_is_no_traceback(run, monkeypatch):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("again")

    monkeypatch.setattr(Step, "__call__", fail)
    monkeypatch.setattr(memory, "_measure", fail)
    with pytest.raises(ConcontError, match="or for any"):
        list(run.execute())
