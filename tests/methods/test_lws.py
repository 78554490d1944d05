import pytest
import torch

import oracles
from concont.methods.lws import Lws
from concont.types import Nets
from toys import B, C, D, LinearNet, N, all_sets, double, near, scores, visit


@pytest.mark.parametrize("beta", [1.0, 0.0, 2.5])
def test_losses_and_weights_follow_the_oracle_from_visit_to_visit(beta):
    method, sets = Lws(leverage=beta), all_sets()
    state, weights = double(method.init_state(sets, D)), [[1 / C] * C for _ in range(N)]
    assert near(state["weights"], weights)
    for seed in range(6):
        net, batch = LinearNet(seed), visit(sets, seed)
        rows, members = batch.index.tolist(), batch.candidates.tolist()
        own = [weights[row] for row in rows]
        out = method.losses(Nets(net, net), state, batch)
        losses = oracles.lws_loss(scores(net, batch, "weak"), own, members, beta)
        assert out.total.item() == pytest.approx(oracles.mean(losses), abs=1e-9)
        assert out.terms["loss_part"].item() == out.total.item()
        assert near(state["weights"], weights)  # nothing is written before the step

        moved = LinearNet(seed + 50)  # by the step; the second pass is its
        method.commit(Nets(moved, moved), state, batch, out)
        partial = [row for row, y in zip(rows, members, strict=True) if not all(y)]
        new = oracles.lws_weights(scores(moved, batch, "weak"), members)
        for row, fresh in zip(rows, new, strict=True):
            weights[row] = fresh
        assert near(state["weights"], weights)
        for row in partial:
            inside = state["weights"][row][sets[row]].sum().item()
            outside = state["weights"][row][~sets[row]].sum().item()
            assert (inside, outside) == pytest.approx((1, 1))
        assert moved.passes == [1]
        assert partial


def test_a_row_with_all_candidates_has_no_second_term():
    sets = torch.ones(B, C).bool()
    batch, net = visit(sets), LinearNet(0)
    weights = torch.rand(B, C, dtype=torch.float64)
    one, two = (
        Lws(leverage=beta).losses(Nets(net, net), {"weights": weights}, batch).total
        for beta in (0.0, 100.0)
    )
    assert torch.equal(one, two)
    state = double(Lws().init_state(sets, D))
    Lws().commit(Nets(net, net), state, batch, None)
    assert torch.allclose(state["weights"].sum(dim=1), torch.ones(B).double())


def test_extreme_scores_leave_weights_that_sum_to_one():
    sets = all_sets()
    batch, net = visit(sets), LinearNet(0)
    net.scores *= 1e5
    state = double(Lws().init_state(sets, D))
    Lws().commit(Nets(net, net), state, batch, None)
    found = state["weights"][batch.index]
    assert found.isfinite().all()
    inside = (found * batch.candidates).sum(dim=1)
    assert torch.allclose(inside, torch.ones_like(inside))
    partial = ~batch.candidates.all(dim=1)
    outside = (found * ~batch.candidates).sum(dim=1)[partial]
    assert torch.allclose(outside, torch.ones_like(outside))
    assert Lws().losses(Nets(net, net), state, batch).total.isfinite()


def test_the_weights_carry_no_gradient():
    sets = all_sets()
    batch, net = visit(sets), LinearNet(0)
    for tensor in (net.scores, batch.views["weak"]):
        tensor.requires_grad_()
    state = double(Lws().init_state(sets, D))
    with torch.no_grad():  # as the engine does after a step
        Lws().commit(Nets(net, net), state, batch, None)
    assert not state["weights"].requires_grad
    logits = net.logits(batch.views["weak"].flatten(1))
    sigma = torch.sigmoid(logits)
    sign = torch.where(batch.candidates, -1.0, 1.0)
    pull = sign * state["weights"][batch.index] * sigma * (1 - sigma) / B
    total = Lws().losses(Nets(net, net), state, batch).total
    (found,) = torch.autograd.grad(total, net.scores)
    assert torch.allclose(found, batch.views["weak"].flatten(1).T @ pull)


def test_it_needs_one_view_and_no_key_network():
    method = Lws()
    assert (method.views, method.wants_unlabeled) == (("weak",), False)
    assert method.key_momentum(torch.zeros(())) is None
