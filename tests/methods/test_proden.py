import pytest
import torch

import oracles
from concont.methods.proden import Proden
from concont.types import Nets
from toys import B, D, LinearNet, all_sets, double, near, scores, uniform, visit


def test_losses_and_weights_follow_the_oracle_from_visit_to_visit():
    method, sets = Proden(), all_sets()
    state, weights = double(method.init_state(sets, D)), uniform(sets)
    assert near(state["weights"], weights, 1e-7)
    state["weights"].copy_(torch.tensor(weights, dtype=torch.float64))  # not float32's thirds
    for seed in range(6):
        net, batch = LinearNet(seed), visit(sets, seed)
        logits, rows = scores(net, batch, "weak"), batch.index.tolist()
        out = method.losses(Nets(net, net), state, batch)
        losses = oracles.soft_cross_entropy(logits, [weights[row] for row in rows])
        assert out.total.item() == pytest.approx(oracles.mean(losses), abs=1e-9)
        assert out.terms["loss_part"].item() == out.total.item()
        assert near(state["weights"], weights)  # nothing is written before the step

        moved = LinearNet(99)  # by the step; the weights are those of the pass before it
        method.commit(Nets(moved, moved), state, batch, out)
        new = oracles.inside_softmax(logits, batch.candidates.tolist())
        for row, own in zip(rows, new, strict=True):
            weights[row] = own
        assert near(state["weights"], weights)
        assert moved.passes == []


def test_a_weight_that_underflowed_can_return():
    method, batch = Proden(), visit(torch.ones(B, 4).bool())
    state, net = double(method.init_state(batch.candidates, D)), LinearNet(0)
    net.scores *= 1e6
    method.commit(Nets(net, net), state, batch, method.losses(Nets(net, net), state, batch))
    assert (state["weights"] == 0).sum() == 3 * B  # one-hot
    net.scores *= 1e-6
    method.commit(Nets(net, net), state, batch, method.losses(Nets(net, net), state, batch))
    assert (state["weights"] > 0).all()
    assert torch.allclose(state["weights"].sum(dim=1), torch.ones(B).double())


def test_the_weights_carry_no_gradient():
    method, net, sets = Proden(), LinearNet(0), all_sets()
    batch = visit(sets)
    batch.views["weak"].requires_grad_()
    state = double(method.init_state(sets, D))
    out = method.losses(Nets(net, net), state, batch)
    assert not out.to_commit["weights"].requires_grad
    (found,) = torch.autograd.grad(out.total, batch.views["weak"])
    probs = (batch.views["weak"].flatten(1) @ net.scores).softmax(dim=1)
    pull = (probs - state["weights"][batch.index]) @ net.scores.T / B  # of a plain cross-entropy
    assert torch.allclose(found.flatten(1), pull)


def test_it_needs_one_view_and_no_key_network():
    method = Proden()
    assert (method.views, method.wants_unlabeled) == (("weak",), False)
    assert method.key_momentum(torch.zeros(())) is None
