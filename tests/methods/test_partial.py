import pytest
import torch

import oracles
from concont.methods.partial import Partial
from concont.types import Nets
from toys import B, LinearNet, OnePass, partial_first, problem


@pytest.mark.parametrize("mean", ["batch", "partial"])
def test_the_loss_is_the_mean_of_eq_1_on_the_weak_view(mean):
    net, batch = LinearNet(2), problem()
    out = Partial(part_mean=mean).losses(Nets(net, net), {}, batch)
    logits = net.logits(batch.views["weak"].flatten(1)).tolist()
    rows = oracles.partial_cross_entropy(logits, batch.candidates.tolist())
    n_partial = sum(not all(row) for row in batch.candidates.tolist())
    expected = sum(rows) / (n_partial if mean == "partial" else len(rows))
    assert out.total.item() == pytest.approx(expected)
    assert out.terms["loss_part"].item() == pytest.approx(expected)


def test_it_needs_one_view_and_no_memory():
    method = Partial()
    assert method.views == ("weak",)
    assert method.init_state(problem().candidates, 4) == {}
    assert method.key_momentum(torch.zeros(())) is None


def test_only_partial_rows_carry_a_loss():
    net, (batch, partial) = OnePass(2), partial_first(problem())
    Partial().losses(Nets(net, net), {}, batch).total.backward()
    rest = B - partial
    assert net.rows.grad.flatten(1).any(dim=1).tolist() == [True] * partial + [False] * rest
