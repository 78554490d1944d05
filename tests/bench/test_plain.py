import copy
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bench.test_plain_views import NAMES, random_images
from concont.bench import plain
from concont.bench.plain import (
    PlainStep,
    loader,
    plain_step_ms,
    plain_views_ms,
)
from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.runs.folder import RunFolder
from concont.runs.settings import Views
from concont.training.prepare import prepare
from concont.types import Batch


@pytest.fixture
def ready(toy_arrays, toy_config):
    return prepare(resolve(toy_config), RunFolder("unused"), from_arrays(toy_arrays))


def plain_step(ready, precision="float32"):
    return PlainStep(ready, precision)


def batches_of(ready, steps=None):
    settings, images = ready.settings, ready.problem.images
    return loader(images, settings.views, settings.method.views, 16, 0, False, steps)


def weights(module):
    return torch.cat([weight.detach().flatten() for weight in module.parameters()]).clone()


def test_an_epoch_holds_each_row_once_in_an_order_of_its_own():
    batches = loader(random_images(24), Views(), ("weak",), 8, 0, False)
    epochs = [torch.cat([index for index, _ in batches]).tolist() for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(24))
    assert epochs[0] != epochs[1]


def test_a_last_short_batch_is_dropped_and_steps_go_beyond_an_epoch():
    images = random_images(10)
    assert [len(index) for index, _ in loader(images, Views(), ("weak",), 4, 0, False)] == [4, 4]
    many = list(loader(images, Views(), ("weak",), 4, 0, False, steps=5))
    assert len(many) == 5
    assert sorted(torch.cat([index for index, _ in many])[:10].tolist()) == list(range(10))


def test_workers_serve_the_rows_with_draws_of_their_own():
    images = np.repeat(random_images(1), 8, axis=0)
    index, views = zip(*loader(images, Views(), ("weak",), 4, 2, False), strict=True)
    assert sorted(torch.cat(index).tolist()) == list(range(8))
    drawn = torch.cat([batch["weak"] for batch in views])
    pairs = itertools.combinations(drawn, 2)
    assert not any(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_step_moves_all_that_outlives_it(ready, precision):
    state = ready.state
    online, key = (state.nets.modules[name] for name in ("online", "key"))
    before, memory = (weights(online), weights(key)), copy.deepcopy(state.memory)
    loss = plain_step(ready, precision)(*next(iter(batches_of(ready))))
    assert loss.isfinite()
    assert not loss.requires_grad
    moved = [(weights(net) - old).norm() for net, old in zip((online, key), before, strict=True)]
    assert moved[0] > 0
    # Momentum 0.9, from the same start: the key network goes a tenth of the way.
    assert moved[1].item() == pytest.approx(0.1 * moved[0].item(), rel=1e-3)
    assert all(weight.grad is None for weight in online.parameters())
    assert not torch.equal(state.memory["tau"], memory["tau"])
    assert (state.memory["queue_label"] >= 0).sum() == state.memory["queue_next"] == 16
    assert state.step == 1


def test_it_is_the_step_of_training_on_the_same_views(ready):
    state, other = ready.state, copy.deepcopy(ready.state.nets)
    before, batch = copy.deepcopy(state.memory), next(iter(batches_of(ready)))
    index, views = batch
    clock = torch.tensor([0.0, 3.0]).unbind()  # of three epochs the first
    rows = Batch(index, ready.data.candidates[index], views, ready.data.truth[index], *clock)
    out = ready.settings.method.losses(other, before, rows)
    out.total.backward()
    torch.optim.SGD(other.online.parameters(), lr=0.05, weight_decay=1e-3).step()
    loss = plain_step(ready)(*batch)
    assert loss.item() == pytest.approx(out.total.item(), rel=1e-5)
    assert torch.allclose(weights(state.nets.online), weights(other.online), atol=1e-6)
    with torch.no_grad():
        ready.settings.method.commit(other, before, rows, out)
    for name, tensor in before.items():
        assert torch.allclose(state.memory[name], tensor, atol=1e-5)


def test_tf32_is_allowed_for_the_step_alone(ready, monkeypatch):
    seen, losses = [], type(ready.settings.method).losses

    def spy(*args):
        seen.append(torch.get_float32_matmul_precision())
        return losses(*args)

    monkeypatch.setattr(type(ready.settings.method), "losses", spy)
    batch = next(iter(batches_of(ready)))
    before = torch.get_float32_matmul_precision()
    for precision in ("float32", "bfloat16"):
        plain_step(ready, precision)(*batch)
    assert seen == ["high", before]
    assert torch.get_float32_matmul_precision() == before


def test_the_plain_way_learns(ready):
    step = plain_step(ready)
    losses = [step(*batch).item() for batch in batches_of(ready, steps=30)]
    assert np.mean(losses[-6:]) < np.mean(losses[:6])


def test_a_method_without_a_key_network_steps_too(toy_arrays, toy_config):
    config = {**toy_config, "method": {"name": "partial"}}
    ready = prepare(resolve(config), RunFolder("unused"), from_arrays(toy_arrays))
    assert plain_step(ready)(*next(iter(batches_of(ready)))).isfinite()
    assert ready.state.step == 1


def test_the_precision_is_that_of_both_networks(ready):
    for precision, half in (("float32", False), ("bfloat16", True)):
        plain_step(ready, precision)
        assert [net.mixed for net in ready.state.nets.modules.values()] == [half, half]


def test_the_rate_is_set_where_it_is_a_tensor_too(ready):
    (group,) = ready.state.optimizer.param_groups
    group["lr"] = rate = torch.tensor(9.0)
    plain_step(ready)(*next(iter(batches_of(ready))))
    assert group["lr"] is rate
    assert rate.item() == pytest.approx(0.05)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still but for what a test adds to it, in seconds."""
    now = [0.0]
    monkeypatch.setattr(plain, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


@pytest.mark.parametrize("workers", [0, 1])
def test_the_loader_is_timed(ready, workers):
    assert 0 < plain_views_ms(ready.problem.images, ready.settings, 16, workers, 2) < 10_000


@pytest.mark.parametrize(("workers", "batches", "made"), [(0, 4, 3 + 4), (4, 10, 12 + 12)])
def test_views_are_timed_in_whole_rounds_after_the_first(
    ready, clock, monkeypatch, workers, batches, made
):
    asked = []

    def slow_at_first(*args, pin, steps):
        asked.append((*args, steps))
        for number in range(steps):
            clock[0] += 9.0 if number < 3 * max(workers, 1) else 0.02
            yield None

    monkeypatch.setattr(plain, "loader", slow_at_first)
    images, settings = ready.problem.images, ready.settings
    assert plain_views_ms(images, settings, 16, workers, batches) == pytest.approx(20)
    assert asked == [(images, settings.views, NAMES, 16, workers, made)]


def test_steps_are_timed_with_the_wait_for_their_batch(ready, clock):
    step = plain_step(ready)

    def slow(batches):
        for number, batch in enumerate(batches):
            clock[0] += 9.0 if number < 2 else 0.03
            yield batch

    assert plain_step_ms(step, slow(batches_of(ready, steps=5)), warm=2) == pytest.approx(30)
    assert ready.state.step == 5
