"""What only a GPU can show; skipped without one. Run from the bare tree: `pytest -m gpu`."""

import copy
import gc
import math
import re
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from concont.augment.views import draw_uniforms
from concont.config.resolve import resolve
from concont.core.balance import AdaptiveThresholds
from concont.data.placement import Streamed
from concont.data.sources import from_arrays
from concont.errors import ConcontError, Interrupted, NonFiniteLoss
from concont.methods.partial import Partial
from concont.runs.folder import RunFolder
from concont.training.cuda_speed import Captured
from concont.training.loop import fit
from concont.training.pace import announce, measure_pace
from concont.training.prepare import prepare
from concont.training.step import Step
from concont.training.trainers import reopen_run
from toys import EVERY, small_queue

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),  # torch's own, of itself
    pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype"),
]
GPU = torch.device("cuda")


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


def job(config, arrays, folder="unused", model=None, **train):
    config = {**config, "train": {**config["train"], "device": "cuda", "compile": False, **train}}
    return prepare(resolve(config), RunFolder(folder), from_arrays(arrays), model)


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "concont"]


@pytest.fixture
def uncompiled(monkeypatch):
    """A fast step that is captured and, to save time, not compiled."""
    for module in ("step", "cuda_speed"):
        monkeypatch.setattr(f"concont.training.{module}.compiled", lambda part, *rest: part)


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


def stripes(rows, size):
    labels = np.arange(rows) % 2
    images = np.random.RandomState(0).randint(0, 60, (rows, size, size)).astype(np.uint8)
    images[labels == 1, :, size // 2 :] += 150
    return {"x_train": images, "y_train": labels}


def online_weights(ready):
    return torch.cat([p.detach().flatten() for p in ready.state.nets.online.parameters()])


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


def test_thresholds_take_labels_from_the_device():
    thresholds = AdaptiveThresholds(2, 0.8, 0.5, 0.95, 1.0)
    thresholds.update(torch.tensor([0, 0], device=GPU), torch.tensor([True, True], device=GPU))
    assert thresholds.values.tolist() == pytest.approx([0.95, 0.5])


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


class BadEpoch(Partial):
    """Has no finite loss in the second epoch; only the device knows, as with real data."""

    def losses(self, nets, state, batch):
        out = super().losses(nets, state, batch)
        factor = torch.where(batch.epoch == 1, math.inf, 1.0)
        return replace(out, total=out.total * factor)


def bad_epoch_job(config, arrays, folder="unused", **train):
    ready = job({**config, "method": {"name": "partial"}}, arrays, folder, **train)
    return replace(ready, settings=replace(ready.settings, method=BadEpoch()))


def copy_learned(state):
    """Weights, averages and momentum, as they are now."""
    tensors = [t for module in state.nets.modules.values() for t in module.state_dict().values()]
    moving = [t for each in state.optimizer.state.values() for t in each.values()]
    return [t.clone() for t in [*tensors, *moving] if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_that_is_left_out_changes_nothing(toy_arrays, toy_config, caplog, compiled):
    ready = bad_epoch_job(toy_config, toy_arrays, compile=compiled, skip_nonfinite=2)
    step, state = Step(ready.settings, ready.state, ready.data), ready.state
    assert not isinstance(step.run, Captured)  # to look at the gradients waits for the device
    rows = ready.order.epoch(0)[:1]
    (images,) = ready.data.images.batches(rows)
    changed = []
    for epoch in (0, 1, 1, 2):
        before = copy_learned(state)
        step(rows[0].to(GPU), images, 0.01, epoch)
        after = copy_learned(state)
        same = len(before) == len(after) and all(map(torch.equal, before, after))
        changed.append(not same)
    assert changed == [True, False, False, True]
    assert (state.step, int(state.steps_on_device), state.skipped) == (4, 4, 0)
    state.meter.check()
    assert math.isfinite(state.meter.read()["loss"])
    left_out = [line for line in warnings_of(caplog) if line.startswith("left out: ")]
    assert [line.split(", ")[0][-6:] for line in left_out] == ["step 2", "step 3"]
    assert all("nearest to the loss in classifier.bias; its batch: rows" in x for x in left_out)


def test_too_many_bad_steps_in_a_row_end_the_run(tmp_path, toy_arrays, toy_config):
    ready = bad_epoch_job(toy_config, toy_arrays, tmp_path / "run", skip_nonfinite=1, batch_size=8)
    with pytest.raises(NonFiniteLoss, match=r"at step 4, .*; 2 steps in a row") as caught:
        list(ready.execute())
    assert "\n" not in str(caught.value)


def test_a_captured_run_that_goes_wrong_is_diagnosed(
    tmp_path, toy_arrays, toy_config, uncompiled, caplog
):
    ready = bad_epoch_job(toy_config, toy_arrays, tmp_path / "run", batch_size=4, compile=True)
    assert ready.order.steps == 5 > Captured.WARM_UP  # so the bad steps are replayed
    with pytest.raises(NonFiniteLoss) as caught:
        list(ready.execute())
    assert warnings_of(caplog) == []
    message = str(caught.value)
    assert message.startswith("the loss is not finite at step 6: ")
    rows = ", ".join(map(str, ready.order.epoch(1)[0].tolist()))
    assert f"its batch: rows {rows} of candidates.npz" in message
    assert "weights are not finite from " in message
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.fixture
def limit_memory():
    """Leave so many bytes of the GPU beyond what is held now."""

    def limit(more):
        gc.collect()
        torch.cuda.empty_cache()
        _, total = torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + more) / total)

    yield limit
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


def measure_step(ready):
    """The most bytes that a step holds beyond what is there before it."""
    rows = ready.order.epoch(0)[:1]
    (images,) = ready.data.images.batches(rows)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    Step(ready.settings, ready.state, ready.data, fast=False)(rows[0].to(GPU), images, 0.0)
    return torch.cuda.max_memory_allocated() - before


def told_of_full_memory(ready, when):
    with pytest.raises(ConcontError) as error:
        list(ready.execute()) if when == "training" else announce(ready)
    return str(error.value)


@pytest.mark.parametrize(
    ("when", "captured"), [("training", False), ("training", True), ("announcing", True)]
)
def test_a_batch_that_does_not_fit_is_told_with_one_that_does(
    tmp_path, toy_config, uncompiled, limit_memory, when, captured
):
    toy_config["model"] |= {"name": "small", "width": 32}
    arrays = stripes(2048, 32)

    def make(batch_size):
        folder = tmp_path / f"of-{batch_size}"
        return job(toy_config, arrays, folder, batch_size=batch_size, compile=captured, epochs=1)

    measure_step(make(256))  # what is made once, such as workspaces, is there from then on
    step = measure_step(make(256))
    assert step > 50 * 2**20  # else what follows is about the allocator's pieces
    ready = make(2048)
    limit_memory(step)
    message = told_of_full_memory(ready, when)
    found = re.fullmatch(
        r"the GPU has too little memory for a batch of 2048 rows; about (\d+) would fit: "
        r"--set train.batch_size=\1",
        message,
    )
    assert found, message
    fits = int(found[1])
    assert 64 <= fits <= 512
    del ready
    gc.collect()
    torch.cuda.empty_cache()
    assert [p.step for p in make(fits).execute()][-1] == 2048 // fits
