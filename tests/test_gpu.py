"""What only a GPU can show; skipped without one. Run from the bare tree: `pytest -m gpu`."""

import pytest
import torch

from concont.balance import AdaptiveThresholds
from concont.config import resolve
from concont.data.sources import from_arrays
from concont.engine.loop import fit, train_step
from concont.engine.run import execute
from concont.engine.setup import prepare, reopen
from concont.engine.speed import losses_of
from concont.errors import Interrupted
from concont.runs import RunFolder

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GPU = torch.device("cuda")


def job(config, arrays, folder="unused", **train):
    config = {**config, "train": {**config["train"], "device": "cuda", "compile": False, **train}}
    return prepare(resolve(config), RunFolder(folder), from_arrays(arrays))


@pytest.mark.parametrize("compiled", [False, True])
def test_it_learns(toy_arrays, toy_config, compiled):
    ready = job(toy_config, toy_arrays, epochs=30, compile=compiled)
    *_, last = fit(ready.settings, ready.state, ready.data, ready.order, ready.test)
    assert last.row["accuracy"] == 1.0


def test_a_step_waits_for_nothing_on_the_device(toy_arrays, toy_config):
    ready = job(toy_config, toy_arrays)
    rows = ready.order.epoch(0).to(GPU)
    images = list(ready.data.images.batches(rows.cpu()))
    losses = losses_of(ready.settings, GPU)
    train_step(ready.settings, losses, ready.state, ready.data, rows[0], images[0], 0.01)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            train_step(ready.settings, losses, ready.state, ready.data, rows[1], images[1], 0.01)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_networks_run_in_bfloat16_and_losses_in_float32(toy_arrays, toy_config):
    ready = job(toy_config, toy_arrays)
    network = ready.state.nets.online
    (features,) = network.features(torch.rand(4, 1, 8, 8, device=GPU))
    assert features.dtype == torch.bfloat16
    assert network.logits(features).dtype == network.embed(features).dtype == torch.float32


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
        for _ in execute(ready, stop=lambda: next(answers)):
            pass


@pytest.mark.parametrize(("began", "goes_on"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_a_run_is_resumed_on_either_kind_of_device(
    tmp_path, toy_arrays, toy_config, began, goes_on
):
    ready = job(toy_config, toy_arrays, tmp_path / "run", device=began)
    stopped_after(ready, 3)
    path = tmp_path / "run" / "config.yaml"
    path.write_text(path.read_text().replace(f"device: {began}", f"device: {goes_on}"))
    again = reopen(RunFolder(tmp_path / "run"), from_arrays(toy_arrays))
    assert (again.state.step, again.data.device.type) == (3, goes_on)
    for _ in execute(again):
        pass
    assert again.folder.finished


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


def test_thresholds_take_labels_from_the_device():
    thresholds = AdaptiveThresholds(2, 0.8, 0.5, 0.95, 1.0)
    thresholds.update(torch.tensor([0, 0], device=GPU), torch.tensor([True, True], device=GPU))
    assert thresholds.values.tolist() == pytest.approx([0.95, 0.5])
