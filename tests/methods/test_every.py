"""What holds for every method alike."""

from dataclasses import fields, is_dataclass, replace

import pytest
import torch
from hypothesis import given, settings

import strategies
from concont.config.recipe_files import recipe_names
from concont.config.resolve import check
from concont.methods import load_method, method_names
from concont.nets.network import build
from concont.runs.model_settings import Model
from concont.types import Method, Nets
from toys import EVERY, B, C, D, LinearNet, N, all_sets, double, row_tables, small_queue, visit


def make(name):
    return check({"method": small_queue(EVERY[name])}).method


def after(method, state, nets, batch):
    """What a step makes of a batch, and the state that it leaves."""
    out = method.losses(nets, state, batch)
    with torch.no_grad():
        method.commit(nets, state, batch, out)
    return out


def test_a_method_is_the_file_of_its_name_and_nothing_else_is():
    assert {"concont", "dpll", "pico", "supervised", "partial", "proden", "lws"} <= set(EVERY)
    for name in method_names():
        assert load_method(name)().name == name
        assert load_method(name).__module__ == f"concont.methods.{name}"


@pytest.mark.parametrize("name", EVERY)
def test_the_contract(name):
    method = make(name)
    assert isinstance(method, Method)
    assert is_dataclass(method)
    assert method.name == EVERY[name]["name"]
    with pytest.raises(AttributeError):
        method.name = "other"  # frozen
    assert {"views", "key_views", "key_momentum", "wants_unlabeled", "reads_truth"}.isdisjoint(
        field.name for field in fields(method)
    )
    state = method.init_state(all_sets(), D)
    assert all(isinstance(tensor, torch.Tensor) for tensor in state.values())
    assert method.reads_truth or not method.fully_supervised
    assert set(method.brings) <= set(recipe_names())


@pytest.mark.parametrize("name", EVERY)
def test_views_of_the_key_network_alone_reach_no_other(name):
    method = make(name)
    assert set(method.key_views) <= set(method.views)
    state, batch = double(method.init_state(all_sets(), D)), visit(all_sets(), 0)
    online, key = LinearNet(0), LinearNet(1)
    seen = {"online": [], "key": []}
    for kind, net in (("online", online), ("key", key)):

        def features(*views, kind=kind, real=net.features):
            seen[kind] += [next(n for n, v in batch.views.items() if v is view) for view in views]
            return real(*views)

        net.features = features
    after(method, state, Nets(online, key), batch)
    assert set(method.key_views) == set(seen["key"]) - set(seen["online"])


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=10)
@given(seed=strategies.seeds)
def test_true_labels_reach_nothing_but_the_log(name, seed):
    method, sets = make(name), all_sets(seed)
    nets, ends = Nets(LinearNet(seed), LinearNet(seed + 1)), []
    for shift in (0, 1):
        state, outs = double(method.init_state(sets, D)), []
        for epoch in range(3):
            batch = visit(sets, seed + epoch, epoch, epochs=4)
            batch = replace(batch, truth=(batch.truth + shift) % C)
            outs.append(after(method, state, nets, batch))
        ends.append((state, outs))
    (one, first), (two, second) = ends
    same = all(
        torch.equal(a.total, b.total)
        and all(torch.equal(a.to_commit[k], b.to_commit[k]) for k in a.to_commit)
        for a, b in zip(first, second, strict=True)
    ) and all(torch.equal(one[k], two[k]) for k in one)
    assert same is not method.reads_truth


@pytest.mark.parametrize("name", EVERY)
def test_losses_write_nothing_and_commit_only_the_rows_of_the_batch(name):
    method, sets = make(name), all_sets()
    nets, state = Nets(LinearNet(0), LinearNet(1)), double(method.init_state(sets, D))
    for epoch in range(3):
        batch = visit(sets, epoch, epoch)
        before = {key: tensor.clone() for key, tensor in state.items()}
        out = method.losses(nets, state, batch)
        assert all(torch.equal(before[key], state[key]) for key in state)
        method.commit(nets, state, batch, out)
        others = torch.ones(N, dtype=torch.bool)
        others[batch.index] = False
        for key in row_tables(method, sets, D):
            assert torch.equal(before[key][others], state[key][others])
    terms = [out.total, *out.terms.values()]
    assert all(term.shape == () for term in terms)
    assert not any(term.requires_grad for term in out.terms.values())


@pytest.mark.parametrize("name", EVERY)
def test_a_step_computes_in_float32_whatever_is_extreme(name):
    method, sets = make(name), all_sets()
    net, key = LinearNet(0), LinearNet(1)
    for each in (net, key):
        each.scores, each.body = 100 * each.scores.float(), each.body.float()
    net.scores.requires_grad_()
    state = method.init_state(sets, D)
    for epoch in range(3):
        batch = visit(sets, epoch, epoch)
        views = {view: pixels.float() for view, pixels in batch.views.items()}
        clock = {"epoch": batch.epoch.float(), "epochs": batch.epochs.float()}
        out = after(method, state, Nets(net, key), replace(batch, views=views, **clock))
        (pull,) = torch.autograd.grad(out.total, net.scores)
        assert out.total.dtype == torch.float32
        assert out.total.isfinite()
        assert pull.isfinite().all()
    for key, tensor in state.items():
        assert tensor.dtype in (torch.float32, torch.int64, torch.bool)
        assert tensor.isfinite().all(), key


@pytest.mark.parametrize(
    "name",
    [n if n in method_names() else pytest.param(n, marks=pytest.mark.long) for n in EVERY],
)
def test_losses_and_commit_are_traced_without_a_break(name):
    method, sets = make(name), all_sets()
    model = Model(name="small", width=2, hidden=3, embedding=D)
    moments = torch.zeros(1), torch.ones(1)
    online, key = (build(model, (1, 4, 4), C, moments, seed) for seed in (1, 2))
    nets, state = Nets(online, key), method.init_state(sets, D)
    expected = {label: tensor.clone() for label, tensor in state.items()}
    plain = Nets(*(build(model, (1, 4, 4), C, moments, seed) for seed in (1, 2)))
    torch.compiler.reset()
    trace = {"fullgraph": True, "backend": "eager", "dynamic": False}
    losses, commit = (torch.compile(part, **trace) for part in (method.losses, method.commit))
    for epoch in range(3):
        batch = visit(sets, epoch, epoch)
        views = {view: torch.rand(B, 1, 4, 4) for view in batch.views}
        clock = {"epoch": batch.epoch.float(), "epochs": batch.epochs.float()}
        batch = replace(batch, views=views, **clock)
        with torch._dynamo.config.patch(error_on_recompile=epoch > 0):
            out = losses(nets, state, batch)
            with torch.no_grad():
                commit(nets, state, batch, out)
        wanted = after(method, expected, plain, batch)
        assert torch.allclose(out.total, wanted.total)
    for label, tensor in expected.items():
        assert torch.allclose(state[label].double(), tensor.double(), atol=1e-6), label
    torch.compiler.reset()
