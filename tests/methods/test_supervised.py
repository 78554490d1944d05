from dataclasses import replace

import pytest
import torch

import oracles
from concont.methods.supervised import Supervised
from concont.types import Nets
from toys import B, C, D, LinearNet, problem, scores


def test_the_loss_is_the_cross_entropy_to_the_true_labels():
    net, batch = LinearNet(2), problem()
    out = Supervised().losses(Nets(net, net), {}, batch)
    hard = torch.eye(C)[batch.truth].tolist()
    rows = oracles.soft_cross_entropy(scores(net, batch, "weak"), hard)
    assert out.total.item() == pytest.approx(oracles.mean(rows))


def test_candidate_sets_are_not_read():
    net, batch = LinearNet(2), problem()
    other = replace(batch, candidates=~batch.candidates)
    one, two = (Supervised().losses(Nets(net, net), {}, each).total for each in (batch, other))
    assert torch.equal(one, two)


def test_it_is_a_bound_that_sees_every_image():
    method = Supervised()
    assert method.reads_truth
    assert method.fully_supervised
    assert method.wants_unlabeled
    assert (method.views, method.key_momentum(torch.zeros(()))) == (("weak",), None)
    assert method.init_state(torch.ones(B, C).bool(), D) == {}
