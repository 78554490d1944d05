import numpy as np
import pytest
import torch

from concont.bench.step_timing import (
    StepRunner,
    make_random_dataset,
    prepare_on_all_rows,
    time_step,
)
from concont.config.resolve import resolve
from concont.methods import method_names

SMALL = {"model": {"name": "small", "width": 4}, "train": {"batch_size": 16, "device": "cpu"}}


@pytest.fixture(scope="module")
def settings():
    return resolve({**SMALL, "data": {"labeled": 0.5, "ambiguity": 0.3}})


def test_random_images_are_the_same_each_time_and_balanced():
    first, again = make_random_dataset(40, 8), make_random_dataset(40, 8)
    assert first.x_train.shape == (40, 8, 8, 3)
    assert first.digest == again.digest
    assert (np.bincount(first.y_train) == 4).all()


@pytest.mark.parametrize("method", method_names())
def test_every_method_sees_all_rows(method):
    config = {**SMALL, "method": {"name": method}, "data": {"labeled": 0.2, "holdout": 0.1}}
    run = prepare_on_all_rows(resolve(config), make_random_dataset(40, 8))
    assert len(run.data.candidates) == len(run.problem.images) == 40
    StepRunner(run)()
    assert all(weight.isfinite().all() for weight in run.state.nets.online.parameters())


def test_a_runner_goes_on_past_the_end_of_an_epoch(settings):
    runner = StepRunner(prepare_on_all_rows(settings, make_random_dataset(40, 8)))
    before = runner.run.state.nets.modules["online"].classifier.weight.clone()
    for _ in range(5):  # two steps an epoch
        runner()
    assert runner.run.state.step == 5
    assert not torch.equal(before, runner.run.state.nets.modules["online"].classifier.weight)


def test_the_timing_of_a_step_holds_what_was_measured(settings, monkeypatch):
    times = iter([20.0, 5.0])
    monkeypatch.setattr("concont.bench.step_timing.time_steady_ms", lambda *_: next(times))
    monkeypatch.setattr("concont.bench.step_timing.count_flops", lambda _: 3_000_000_000)
    found = time_step(settings, make_random_dataset(40, 8), calls=2)
    assert (found.batch, found.step_ms, found.views_ms) == (16, 20.0, 5.0)
    assert found.tflops == pytest.approx(3e9 / 20e-3 / 1e12)
    assert found.first_step_s > 0
    assert (found.warm_cache, found.peak_memory_gb, found.step_memory_gb) == (None, None, None)


def test_views_take_less_than_the_step(settings):
    found = time_step(settings, make_random_dataset(40, 8), calls=2)
    assert 0 < found.views_ms < found.step_ms
