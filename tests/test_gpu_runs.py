"""Whole runs on a GPU: streamed, stopped and resumed, deterministic, timed; skipped without one."""

import pytest
import torch

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.errors import Interrupted
from concont.runs.folder import RunFolder
from concont.training.cuda_speed import Captured
from concont.training.loop import fit
from concont.training.pace import measure_pace
from concont.training.prepare import prepare
from concont.training.trainers import reopen_run
from gpu import NEEDS_GPU, job, online_weights, warnings_of

pytestmark = NEEDS_GPU


def test_streamed_images_give_the_same_run(toy_arrays, toy_config):
    ends = []
    try:
        for share in (1.0, 0.0):
            ready = job(toy_config, toy_arrays, memory_share=share, deterministic=True)
            *_, last = fit(ready.settings, ready.state, ready.data, ready.order, ready.test)
            ends.append((type(ready.data.images), last.row["loss"], last.row["accuracy"]))
    finally:
        torch.use_deterministic_algorithms(False)
    assert ends[0][0] is not ends[1][0]
    assert ends[0][1:] == ends[1][1:]


def stopped_after(ready, steps):
    answers = iter([False] * (steps - 1) + [True])
    with pytest.raises(Interrupted):
        for _ in ready.execute(stop=lambda: next(answers)):
            pass


@pytest.mark.parametrize(("began", "goes_on"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_a_run_is_resumed_on_either_kind_of_device(
    tmp_path, toy_arrays, toy_config, began, goes_on
):
    ready = job(toy_config, toy_arrays, tmp_path / "run", device=began)
    stopped_after(ready, 3)
    path = tmp_path / "run" / "config.yaml"
    path.write_text(path.read_text().replace(f"device: {began}", f"device: {goes_on}"))
    again = reopen_run(RunFolder(tmp_path / "run"), from_arrays(toy_arrays))
    assert (again.state.step, again.data.device.type) == (3, goes_on)
    for _ in again.execute():
        pass
    assert again.folder.finished


def test_a_captured_run_goes_on_from_its_checkpoint(tmp_path, toy_arrays, toy_config, caplog):
    ready = job(toy_config, toy_arrays, tmp_path / "run", epochs=5, compile=True)
    stopped_after(ready, Captured.WARM_UP + 2)
    again = reopen_run(RunFolder(tmp_path / "run"), from_arrays(toy_arrays))
    assert (again.state.step, again.settings.train.compile) == (Captured.WARM_UP + 2, True)
    assert torch.equal(online_weights(again), online_weights(ready))
    (group,) = again.state.optimizer.param_groups
    assert group["lr"].is_cuda
    for _ in again.execute():
        pass
    assert again.folder.finished
    assert again.state.step == 10
    assert warnings_of(caplog) == []
    assert not torch.equal(online_weights(again), online_weights(ready))


def test_deterministic_runs_are_equal(toy_arrays, toy_config):
    ends = []
    try:
        for _ in range(2):
            ready = job(toy_config, toy_arrays, deterministic=True)
            for _ in fit(ready.settings, ready.state, ready.data, ready.order, ready.test):
                pass
            state = ready.state.nets.modules["online"].state_dict()
            ends.append(torch.cat([tensor.flatten().float() for tensor in state.values()]))
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(*ends)


def test_a_timed_run_ends_as_an_untimed_one(tmp_path):
    """Compiled and captured: what was timed is captured once, and goes on from the start."""
    ends = []
    for timed in (False, True):
        flags = {"train": {"epochs": 2, "device": "cuda", "batch_size": 64}}
        ready = prepare(resolve(flags, "digits"), RunFolder(tmp_path / str(timed)))
        if timed:
            ready, pace = measure_pace(ready)
            assert 0 < pace.step < 1
            assert ready.state.step == 0
        for _ in ready.execute():
            pass
        state = ready.state
        assert state.step == ready.total_steps == int(state.steps_on_device)
        ends.append((ready.folder.metrics()[-1], online_weights(ready)))
    (plain, first), (timed, second) = ends
    assert timed["loss"] == pytest.approx(plain["loss"], rel=0.05)  # a GPU's sums differ in order
    assert torch.nn.functional.cosine_similarity(first, second, dim=0) > 0.99
