"""What only a GPU can show; skipped without one. Run from the bare tree: `pytest -m gpu`."""

import copy
import math
import subprocess
import sys
import time

import pytest
import torch
from torch import nn

from concont.augment.views import draw_uniforms
from concont.core.balance import AdaptiveThresholds
from concont.data.placement import Streamed
from concont.training.cuda_speed import Captured
from concont.training.loop import fit
from concont.training.step import Step
from gpu import GPU, NEEDS_GPU, job, online_weights, stripes, warnings_of
from toys import EVERY, small_queue

pytestmark = NEEDS_GPU


AFTERWARDS = """
import torch
from concont.global_state import kept_global_state
torch.manual_seed(3)
if {first}:
    torch.rand(1, device="cuda")
with {kept}:
    torch.zeros(1, device="cuda")
    if {change}:
        torch.cuda.manual_seed(5)
print(torch.rand(1, device="cuda").item())
"""


@pytest.mark.parametrize("first", [False, True])
def test_random_streams_of_the_gpu_are_afterwards_as_they_were(first):
    """Also of one that nobody has used before."""
    kinds = {"kept_global_state()": True, "torch.enable_grad()": False}
    numbers = []
    for kept, change in kinds.items():
        code = AFTERWARDS.format(first=first, kept=kept, change=change)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        numbers.append(float(done.stdout))
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("compiled", [False, True])
def test_it_learns(toy_arrays, toy_config, compiled):
    ready = job(toy_config, toy_arrays, epochs=30, compile=compiled)
    *_, last = fit(ready.settings, ready.state, ready.data, ready.order, ready.test)
    assert last.row["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("name", "captured"), [("concont", False), *((name, True) for name in EVERY)]
)
def test_a_step_waits_for_nothing_on_the_device(
    toy_arrays, toy_config, uncompiled, caplog, name, captured
):
    toy_config["method"] = small_queue(EVERY[name])
    ready = job(toy_config, toy_arrays, batch_size=8)
    rows = ready.order.epoch(0).to(GPU)
    images = list(ready.data.images.batches(rows.cpu()))
    step = Step(ready.settings, ready.state, ready.data, fast=captured)
    for _ in range(Captured.WARM_UP + 1):
        step(rows[0], images[0], 0.01)
    assert warnings_of(caplog) == []
    assert (getattr(step.run, "graph", None) is not None) == captured
    try:
        torch.cuda.set_sync_debug_mode("error")
        for epoch in range(5):
            step(rows[1], images[1], 0.01, epoch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    ready.state.meter.check()


def test_a_captured_step_sees_the_epoch_change(toy_arrays, toy_config, uncompiled):
    toy_config["method"] = small_queue(EVERY["pico"])
    ready = job(toy_config, toy_arrays)
    rows = ready.order.epoch(0)
    (images,) = ready.data.images.batches(rows[:1])
    step = Step(ready.settings, ready.state, ready.data, fast=True)
    table = ready.state.method_state["confidence"]
    start = table.clone()
    for _ in range(Captured.WARM_UP + 3):
        step(rows[0].to(GPU), images, 0.01, epoch=0)
    assert step.run.graph is not None
    assert torch.equal(table, start)  # PiCO's first epoch
    step(rows[0].to(GPU), images, 0.01, epoch=1)
    assert not torch.equal(table, start)


@pytest.fixture
def resnet_config(toy_config, monkeypatch):
    """ResNet, float32, and pseudo-labels that decide nothing, since they amplify rounding."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    toy_config["model"] = {"name": "resnet18", "hidden": 8, "embedding": 8}
    toy_config["data"]["labeled"] = 8
    never = {"threshold": 5.0, "balance": "fixed", "selection": "unsupcon"}
    toy_config["method"] |= {**never, "temperature": 0.5}
    return toy_config


def resnet_job(config):
    ready = job(config, stripes(64, 16), batch_size=32)
    for network in ready.state.nets.modules.values():
        network.mixed = False
    return ready


@pytest.mark.parametrize("backbone_rate", [1.0, 0.5])
def test_captured_steps_learn_what_eager_ones_learn(
    resnet_config, uncompiled, caplog, backbone_rate
):
    resnet_config["optimizer"]["backbone_rate"] = backbone_rate
    losses, moves = [], []
    for fast in (False, True):
        ready = resnet_job(resnet_config)
        step, start = Step(ready.settings, ready.state, ready.data, fast), online_weights(ready)
        plan = torch.cat([ready.order.epoch(epoch) for epoch in range(10)])
        sums = []
        for n, images in enumerate(ready.data.images.batches(plan)):
            step(plan[n].to(GPU), images, 1e-5 * (1 + n % 3))
            sums.append(ready.state.meter.sums.clone())
        losses.append(torch.stack(sums).diff(dim=0))
        moves.append(online_weights(ready) - start)
    assert warnings_of(caplog) == []
    assert step.run.graph is not None
    assert torch.allclose(losses[1], losses[0], rtol=1e-3, atol=1e-3)
    assert (moves[1] - moves[0]).norm() < 0.05 * moves[0].norm()  # about 0.01 of it is rounding


def gradient(step, batch, dtype):
    """Of the online network, computed in this precision; `step.state` stays as it was."""
    modules = step.state.nets.modules
    kept = {name: copy.deepcopy(module.state_dict()) for name, module in modules.items()}
    for module in modules.values():
        module.to(dtype)
    step.compute_losses(batch).total.backward()
    found = torch.cat([p.grad.double().flatten() for p in modules["online"].parameters()])
    for name, module in modules.items():
        module.zero_grad()
        module.float().load_state_dict(kept[name])
    return found


@pytest.mark.filterwarnings("ignore::UserWarning:torch._inductor")  # a step hides them
def test_the_compiled_gradient_is_as_near_to_float64_as_the_eager_one(resnet_config, caplog):
    ready = resnet_job(resnet_config)
    eager, fast = (Step(ready.settings, ready.state, ready.data, fast) for fast in (False, True))
    plan = ready.order.epoch(0)
    index, (images,) = plan[0].to(GPU), list(ready.data.images.batches(plan[:1]))
    settings = ready.settings
    draws = draw_uniforms(
        settings.views, settings.network_method.views, len(index), ready.state.views
    )
    batch = eager.batch(index, eager.render_views(images, draws))
    exact = gradient(eager, batch, torch.float64)
    ways = [gradient(step, batch, torch.float32) for step in (eager, fast)]
    plain, compiled = ((way - exact).norm() / exact.norm() for way in ways)
    assert warnings_of(caplog) == []
    assert plain < 0.05
    assert compiled < max(3 * plain, 0.02)  # a ReLU that turns over at its edge moves it so far


def test_images_are_fetched_while_a_step_is_captured(
    toy_arrays, toy_config, uncompiled, caplog, monkeypatch
):
    fetch = Streamed._fetch

    def late(self, batch):
        time.sleep(0.01)  # so that it falls into the capture
        return fetch(self, batch)

    monkeypatch.setattr(Streamed, "_fetch", late)
    ready = job(toy_config, toy_arrays, memory_share=0.0, batch_size=4, compile=True)
    *_, last = fit(ready.settings, ready.state, ready.data, ready.order, ready.test)
    assert isinstance(ready.data.images, Streamed)
    assert warnings_of(caplog) == []
    assert math.isfinite(last.row["loss"])


class Waiting(nn.Module):
    """A network of a user's own that looks at values, for which the device has to be waited."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Dropout(0.1))

    def forward(self, images):
        if (images > 1e6).any():
            images = images.clamp(max=1e6)
        return self.body(images)


def test_an_own_network_that_waits_for_the_device_trains_all_the_same(
    toy_arrays, toy_config, caplog
):
    ready = job(toy_config, toy_arrays, model=Waiting(), compile=True)
    *_, last = fit(ready.settings, ready.state, ready.data, ready.order, ready.test)
    assert ready.state.step == 6 > Captured.WARM_UP
    (line,) = warnings_of(caplog)
    assert line.startswith("not captured as a CUDA graph, so slower: ")
    assert math.isfinite(last.row["loss"])


def test_networks_run_in_bfloat16_and_losses_in_float32(toy_arrays, toy_config):
    ready = job(toy_config, toy_arrays)
    network = ready.state.nets.online
    (features,) = network.features(torch.rand(4, 1, 8, 8, device=GPU))
    assert features.dtype == torch.bfloat16
    assert network.logits(features).dtype == network.embed(features).dtype == torch.float32
    network.mixed = False
    assert network.features(torch.rand(4, 1, 8, 8, device=GPU))[0].dtype == torch.float32


def test_thresholds_take_labels_from_the_device():
    thresholds = AdaptiveThresholds(2, 0.8, 0.5, 0.95, 1.0)
    thresholds.update(torch.tensor([0, 0], device=GPU), torch.tensor([True, True], device=GPU))
    assert thresholds.values.tolist() == pytest.approx([0.95, 0.5])
