import copy
import functools
import shutil
import warnings

import pytest
import torch

from concont.augment.views import draw_uniforms, render_views
from concont.config.layers import merge
from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.runs.folder import RunFolder
from concont.training.cuda_speed import CompiledNet
from concont.training.prepare import prepare
from concont.training.step import Step
from concont.types import Batch, Nets
from toys import EVERY, small_queue

TOLERANCE = 1e-5  # compiled kernels round differently, and twenty steps carry that on
needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)


def job(arrays, config, **sections):
    settings = resolve(merge(config, sections))
    return prepare(settings, RunFolder("unused"), from_arrays(arrays))


def go(ready, fast=False, steps=4, lr=0.05):
    """The losses of some steps, and the step that made them."""
    step, losses = Step(ready.settings, ready.state, ready.data, fast), []
    plan = torch.cat([ready.order.epoch(epoch) for epoch in range(steps)])[:steps]
    for rows, images in zip(plan, ready.data.images.batches(plan), strict=True):
        step(rows, images, lr)
        losses.append([value or 0.0 for value in ready.state.meter.read().values()])
    return torch.tensor(losses), step


def contents(state):
    """Every tensor that a step may change, by name."""
    found = {name: tensor.clone() for name, tensor in state.method_state.items()}
    for name, module in state.nets.modules.items():
        found.update({f"{name}.{key}": t.clone() for key, t in module.state_dict().items()})
    saved = state.meter.state_dict()
    found.update({f"meter.{key}": saved[key].clone() for key in ("sums", "counts", "bad")})
    found["steps"] = state.steps_on_device.clone()
    return found


class ByHand:
    """A step in plain torch, optimiser and average spelled out."""

    def __init__(self, ready):
        self.job, self.speed, self.steps = ready, {}, 0

    def __call__(self, rows, images, lr, epoch):
        settings, state, data = self.job.settings, self.job.state, self.job.data
        method, options, modules = settings.method, settings.optimizer, state.nets.modules
        draws = draw_uniforms(settings.views, method.views, len(rows), state.views)
        views = render_views(images, settings.views, draws)
        clock = torch.tensor(float(epoch)), torch.tensor(float(settings.train.epochs))
        batch = Batch(rows, data.candidates[rows], views, data.truth[rows], *clock)
        out = method.losses(state.nets, state.method_state, batch)
        weights = list(modules["online"].parameters())
        names = [name for name, _ in modules["online"].named_parameters()]
        rates = [options.backbone_rate if "backbone." in name else 1.0 for name in names]
        for place, pull in enumerate(torch.autograd.grad(out.total, weights, allow_unused=True)):
            if pull is None:  # a head that the method does not use
                continue
            with torch.no_grad():
                pull = pull.add(weights[place], alpha=options.weight_decay)
                before = self.speed.get(place)
                now = pull if before is None else before.mul_(options.momentum).add_(pull)
                self.speed[place] = now
                weights[place].add_(now, alpha=-lr * rates[place])
        with torch.no_grad():
            if method.key_momentum(state.steps_on_device) is not None:
                self.average(zip(modules["key"].parameters(), weights, strict=True), method)
            method.commit(state.nets, state.method_state, batch, out)
            state.meter.match_columns(out)
            state.steps_on_device += 1
            state.meter.add(out, state.steps_on_device)
        self.steps += 1

    def average(self, pairs, method):
        rises = (self.steps + 1) / (self.steps + 10)
        for key, weight in pairs:
            if getattr(method, "momentum_rises", False):
                key.add_((weight - key) * (1 - min(method.momentum, rises)))
            else:
                key.lerp_(weight, 1 - method.momentum)


METHODS = {
    **{name: small_queue(method) for name, method in EVERY.items()},
    "rising": {"name": "concont", "queue": 24, "momentum": 0.2, "momentum_rises": True},
}


@pytest.mark.parametrize(
    ("name", "backbone_rate"), [*((name, 1.0) for name in METHODS), ("concont", 0.3), ("lws", 3.0)]
)
def test_a_step_is_the_one_written_by_hand_bit_for_bit(toy_arrays, toy_config, name, backbone_rate):
    toy_config["method"] = METHODS[name]
    toy_config["optimizer"]["backbone_rate"] = backbone_rate
    one, two = job(toy_arrays, toy_config), job(toy_arrays, toy_config)
    step, by_hand = Step(one.settings, one.state, one.data, fast=False), ByHand(two)
    plan = torch.cat([one.order.epoch(0), one.order.epoch(1)])
    start = contents(one.state)
    for number, (rows, images) in enumerate(zip(plan, one.data.images.batches(plan), strict=True)):
        for each in (step, by_hand):
            each(rows, images, 0.1 / (number + 1), epoch=number // one.order.steps)
    found, expected = contents(one.state), contents(two.state)
    assert [name for name in found if not torch.equal(found[name], expected[name])] == []
    assert not torch.equal(start["online.classifier.weight"], found["online.classifier.weight"])
    assert torch.equal(one.state.views.get_state(), two.state.views.get_state())
    assert one.state.step == len(plan)


def test_the_rate_is_set_as_a_number_or_where_a_captured_step_reads_it(toy_arrays, toy_config):
    plain, tensor = job(toy_arrays, toy_config), job(toy_arrays, toy_config)
    (group,) = tensor.state.optimizer.param_groups
    place = group["lr"] = torch.tensor(9.0)
    go(plain, steps=2, lr=0.25), go(tensor, steps=2, lr=0.25)
    assert plain.state.optimizer.param_groups[0]["lr"] == 0.25
    assert group["lr"] is place
    assert place.item() == 0.25
    found, expected = contents(tensor.state), contents(plain.state)
    assert all(torch.allclose(found[n], expected[n], atol=1e-6) for n in expected)


def test_the_backbones_rate_is_set_where_a_captured_step_reads_it(toy_arrays, toy_config):
    slow = {"backbone_rate": 0.1}
    plain = job(toy_arrays, toy_config, optimizer=slow)
    tensor = job(toy_arrays, toy_config, optimizer=slow)
    places = [torch.tensor(9.0), torch.tensor(9.0)]
    for group, place in zip(tensor.state.optimizer.param_groups, places, strict=True):
        group["lr"] = place
    go(plain, steps=2, lr=0.25), go(tensor, steps=2, lr=0.25)
    assert [group["lr"] for group in plain.state.optimizer.param_groups] == [0.025, 0.25]
    for group, place in zip(tensor.state.optimizer.param_groups, places, strict=True):
        assert group["lr"] is place
    assert [place.item() for place in places] == pytest.approx([0.025, 0.25])
    found, expected = contents(tensor.state), contents(plain.state)
    assert all(torch.allclose(found[n], expected[n], atol=1e-6) for n in expected)


def test_gradients_do_not_outlive_a_step(toy_arrays, toy_config):
    ready = job(toy_arrays, toy_config)
    go(ready, steps=1)
    assert all(p.grad is None for p in ready.state.nets.online.parameters())


def test_on_a_cpu_nothing_is_compiled_unless_asked_for(toy_arrays, toy_config, monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "compile", lambda part, **options: asked.append(part) or part)
    go(job(toy_arrays, toy_config), fast=None, steps=1)
    assert asked == []
    go(job(toy_arrays, toy_config, train={"compile": True}), fast=None, steps=1)
    assert len(asked) == 6  # four stages of the views, the losses, what is kept


@pytest.mark.parametrize(("fast", "steps_before_a_warning"), [(True, 1), (False, 0)])
def test_hints_while_the_backward_pass_is_compiled_are_not_shown(
    toy_arrays, toy_config, monkeypatch, fast, steps_before_a_warning
):
    monkeypatch.setattr(torch, "compile", lambda part, **options: part)
    ready = job(toy_arrays, toy_config)
    weight = ready.state.nets.modules["online"].classifier.weight
    weight.register_hook(lambda gradient: warnings.warn("a hint", stacklevel=1))
    with pytest.raises(UserWarning, match="a hint"):
        go(ready, fast, steps=3)
    assert ready.state.step == steps_before_a_warning


def fallen_back(caplog):
    own = [record for record in caplog.records if record.name == "concont"]
    return [record for record in own if "frozen" not in record.getMessage()]


@pytest.fixture
def traced(monkeypatch):
    """Compilation without code generation, which refuses whatever breaks a graph."""
    torch.compiler.reset()
    real = torch.compile
    trace = functools.partial(real, backend="eager", fullgraph=True)
    monkeypatch.setattr(torch, "compile", trace)
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("name", ["concont", "dpll-controlled", "pico", "lws"])
def test_no_part_of_a_step_breaks_the_graph_or_is_compiled_twice(
    toy_arrays, toy_config, traced, caplog, name
):
    toy_config["method"] = METHODS[name]
    sizes = {"pico": {"cutout": [0.25, 0.5]}}.get(name, {"cutout": [2, 3]})
    rate = {"backbone_rate": 0.0 if name == "lws" else 1.0}
    ready = job(toy_arrays, toy_config, views={"strong": sizes}, optimizer=rate)
    _, step = go(ready, fast=True, steps=1)
    assert fallen_back(caplog) == []
    rows = ready.order.epoch(1)[:1]
    (images,) = ready.data.images.batches(rows)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for epoch, lr in enumerate((0.04, 0.03)):
            step(rows[0], images, lr, epoch + 1)


@needs_compiler
@pytest.mark.slow
def test_compiled_steps_learn_what_eager_ones_learn(toy_arrays, toy_config, caplog):
    toy_config["method"] |= {"threshold": 0.95, "balance": "fixed"}  # so no pseudo-label flips
    eager, fast = (job(toy_arrays, toy_config) for _ in range(2))
    fast.state.load_state_dict(copy.deepcopy(eager.state.state_dict()))
    start = contents(eager.state)
    expected, _ = go(eager, fast=False, steps=20, lr=1e-3)
    found, _ = go(fast, fast=True, steps=20, lr=1e-3)
    assert fallen_back(caplog) == []
    near = {"rtol": TOLERANCE, "atol": TOLERANCE}
    assert torch.allclose(found, expected, **near)
    assert (expected[:, :4] > 100 * TOLERANCE).all()  # every term takes part
    end = contents(eager.state)
    for name, tensor in contents(fast.state).items():
        assert torch.allclose(tensor.double(), end[name].double(), **near), name
    name = "online.backbone.0.weight"
    assert (end[name] - start[name]).abs().max() > 100 * TOLERANCE


@pytest.mark.parametrize("name", ["concont", "pico"])
def test_views_made_beside_the_others_are_the_same_views(toy_arrays, toy_config, name):
    toy_config["method"] = METHODS[name]
    ready = job(toy_arrays, toy_config)
    step = Step(ready.settings, ready.state, ready.data, fast=False)
    plan = ready.order.epoch(0)
    (images,) = ready.data.images.batches(plan[:1])
    draws = draw_uniforms(
        ready.settings.views, ready.settings.method.views, len(images), ready.state.views
    )
    expected, made = step.render_views(images, draws), []

    class Key(CompiledNet):
        def __init__(self):
            pass

        def run_on_stream(self, make):
            made.append(make())
            return made[-1]

    step.nets = Nets(step.nets.online, Key())
    found = step.render_for_both(images, draws)
    assert set(made[0]) == set(ready.settings.method.key_views) != set()
    assert set(found) == set(expected)
    assert all(torch.allclose(found[view], expected[view], atol=1e-6) for view in expected)
