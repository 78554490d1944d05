import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from concont.bench import plain_step
from concont.bench.plain_step import PlainStep, time_plain_step_ms
from concont.bench.plain_views import make_loader
from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.runs.folder import RunFolder
from concont.training.prepare import prepare
from concont.types import Batch


@pytest.fixture
def ready(toy_arrays, toy_config):
    return prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))


def make_step(ready, precision="float32"):
    return PlainStep(ready, precision)


def batches_of(ready, steps=None):
    settings, images = ready.settings, ready.problem.images
    return make_loader(images, settings.views, settings.method.views, 16, 0, False, steps)


def weights(module):
    return torch.cat([weight.detach().flatten() for weight in module.parameters()]).clone()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_step_changes_networks_thresholds_and_queue(ready, precision):
    state = ready.state
    online, key = (state.nets.modules[name] for name in ("online", "key"))
    before, memory = (weights(online), weights(key)), copy.deepcopy(state.method_state)
    loss = make_step(ready, precision)(*next(iter(batches_of(ready))))
    assert loss.isfinite()
    assert not loss.requires_grad
    moved = [(weights(net) - old).norm() for net, old in zip((online, key), before, strict=True)]
    assert moved[0] > 0
    # Momentum 0.9, from the same start: the key network goes a tenth of the way.
    assert moved[1].item() == pytest.approx(0.1 * moved[0].item(), rel=1e-3)
    assert all(weight.grad is None for weight in online.parameters())
    assert not torch.equal(state.method_state["tau"], memory["tau"])
    assert (state.method_state["queue_label"] >= 0).sum() == state.method_state["queue_next"] == 16
    assert state.step == 1


def test_the_plain_step_is_that_of_training_on_the_same_views(ready):
    state, other = ready.state, copy.deepcopy(ready.state.nets)
    before, batch = copy.deepcopy(state.method_state), next(iter(batches_of(ready)))
    index, views = batch
    clock = torch.tensor([0.0, 3.0]).unbind()  # of three epochs the first
    rows = Batch(index, ready.data.candidates[index], views, ready.data.truth[index], *clock)
    out = ready.settings.method.losses(other, before, rows)
    out.total.backward()
    torch.optim.SGD(other.online.parameters(), lr=0.05, weight_decay=1e-3).step()
    loss = make_step(ready)(*batch)
    assert loss.item() == pytest.approx(out.total.item(), rel=1e-5)
    assert torch.allclose(weights(state.nets.online), weights(other.online), atol=1e-6)
    with torch.no_grad():
        ready.settings.method.commit(other, before, rows, out)
    for name, tensor in before.items():
        assert torch.allclose(state.method_state[name], tensor, atol=1e-5)


def test_tf32_is_allowed_for_the_step_alone(ready, monkeypatch):
    seen, losses = [], type(ready.settings.method).losses

    def spy(*args):
        seen.append(torch.get_float32_matmul_precision())
        return losses(*args)

    monkeypatch.setattr(type(ready.settings.method), "losses", spy)
    batch = next(iter(batches_of(ready)))
    before = torch.get_float32_matmul_precision()
    for precision in ("float32", "bfloat16"):
        make_step(ready, precision)(*batch)
    assert seen == ["high", before]
    assert torch.get_float32_matmul_precision() == before


def test_the_loss_of_the_plain_way_falls(ready):
    step = make_step(ready)
    losses = [step(*batch).item() for batch in batches_of(ready, steps=30)]
    assert np.mean(losses[-6:]) < np.mean(losses[:6])


def test_a_method_without_a_key_network_steps_too(toy_arrays, toy_config):
    config = {**toy_config, "method": {"name": "partial"}}
    ready = prepare(resolve(config), RunFolder("unused"), from_arrays(toy_arrays))
    assert make_step(ready)(*next(iter(batches_of(ready)))).isfinite()
    assert ready.state.step == 1


def test_the_precision_is_that_of_both_networks(ready):
    for precision, half in (("float32", False), ("bfloat16", True)):
        make_step(ready, precision)
        assert [net.mixed for net in ready.state.nets.modules.values()] == [half, half]


def test_the_rate_is_set_where_it_is_a_tensor_too(ready):
    (group,) = ready.state.optimizer.param_groups
    group["lr"] = rate = torch.tensor(9.0)
    make_step(ready)(*next(iter(batches_of(ready))))
    assert group["lr"] is rate
    assert rate.item() == pytest.approx(0.05)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still but for what a test adds to it, in seconds."""
    now = [0.0]
    monkeypatch.setattr(plain_step, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


def test_steps_are_timed_with_the_wait_for_their_batch(ready, clock):
    step = make_step(ready)

    def slow(batches):
        for number, batch in enumerate(batches):
            clock[0] += 9.0 if number < 2 else 0.03
            yield batch

    assert time_plain_step_ms(step, slow(batches_of(ready, steps=5)), n_warm_up=2) == pytest.approx(
        30
    )
    assert ready.state.step == 5
