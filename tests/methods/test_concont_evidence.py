"""ConCont with votes, and with sets that it does not believe."""

from dataclasses import replace

import pytest
import torch

from concont.methods.concont import ConCont
from concont.types import Nets
from concont_variants import QUEUE, VARIANTS, cast_votes, filled
from toys import B, C, LinearNet, problem


def test_overruled_rows_learn_like_unlabelled_ones():
    method = replace(VARIANTS[2], trust=0.5, partial_soft=True)
    nets, state = Nets(LinearNet(2), LinearNet(3)), filled(method)
    batch = replace(problem(epoch=6), weights=cast_votes(problem().candidates))
    state["outside_limit"].fill_(0.5)
    state["outside"][4] = 0.6
    assert not batch.candidates[4].all()
    out = method.losses(nets, state, batch)
    believed, weights = batch.candidates.clone(), batch.weights.clone()
    believed[4], weights[4] = True, 1
    full = replace(method, trust=1.0)
    plain = replace(batch, candidates=believed, weights=weights)
    expected = full.losses(nets, filled(full), plain)
    assert out.total.item() == pytest.approx(expected.total.item(), abs=1e-12)
    assert torch.equal(out.to_commit["verdict_label"], expected.to_commit["verdict_label"])
    n_partial = (~batch.candidates.all(dim=1)).sum().item()
    assert [x.item() for x in out.metrics["overruled"]] == [1, n_partial]
    early = method.losses(nets, state, replace(batch, epoch=torch.tensor(3.0).double()))
    assert early.metrics["overruled"][0] == 0  # the network knows too little to contradict anybody
    late = replace(batch, epoch=torch.tensor(9.0).double())
    assert method.losses(nets, state, late).metrics["overruled"][0] == 0  # it is not sure enough
    state["outside"][4] = 0.95
    assert method.losses(nets, state, late).metrics["overruled"][0] == 1


def test_with_full_trust_nothing_is_doubted_nor_remembered():
    nets, batch = Nets(LinearNet(2), LinearNet(3)), problem()
    out = VARIANTS[0].losses(nets, filled(VARIANTS[0]), batch)
    assert "overruled" not in out.metrics
    assert "outside" not in out.to_commit
    assert "outside" not in filled(VARIANTS[0])


def test_votes_on_every_class_make_a_row_partial():
    method = ConCont(queue=QUEUE, part_mean="partial", partial_soft=True, threshold=5.0)
    nets, batch = Nets(LinearNet(2), LinearNet(3)), problem()
    batch = replace(batch, candidates=torch.ones(B, C).bool())
    assert method.losses(nets, filled(method), batch).terms["loss_part"] == 0
    weights = torch.ones(B, C, dtype=torch.float64)
    weights[0] = torch.tensor([1.0, 0.5, 0.25, 0.5])
    out = method.losses(nets, filled(method), replace(batch, weights=weights))
    weak = nets.online.logits(batch.views["weak"].flatten(1)).softmax(dim=1)
    assert out.terms["loss_part"].item() == pytest.approx(-(weak[0] * weights[0]).sum().log())
    assert out.terms["loss_reg"] > 0  # that row alone: nobody is confident
    assert [x.item() for x in out.metrics["pseudo_accuracy_partial"]][1] == 1


def test_the_verdict_at_the_end_has_votes_as_strong_as_at_the_end():
    method = ConCont(queue=QUEUE, vote_strength=0.0, vote_strength_end=3.0)
    batch = problem()
    votes, state = cast_votes(batch.candidates), filled(method)
    probs = torch.full((B, C), 1 / C, dtype=torch.float64)
    verdict = method.judge(probs, batch.candidates, state, votes)
    assert verdict.label.tolist() == votes.argmax(dim=1).tolist()
    assert method.judge(probs, batch.candidates, state).label.tolist() != verdict.label.tolist()


def test_sets_that_are_doubted_at_the_end_bind_the_verdict_no_more():
    method = ConCont(queue=QUEUE, trust=0.5)
    batch, state = problem(), filled(method)
    partial = ~batch.candidates.all(dim=1)
    rows = len(batch.candidates)
    state["outside"] = torch.zeros(rows)
    state["outside_limit"] = torch.full_like(state["outside_limit"], 0.5)
    chosen = partial.nonzero()[0, 0]
    state["outside"][chosen] = 0.9
    overruled = method.overruled(batch.candidates, state)
    assert overruled.nonzero()[:, 0].tolist() == [chosen]
    probs = torch.where(batch.candidates, 0.1, 1.0).double()  # all of it is outside
    probs[batch.candidates.all(dim=1)] = 1.0
    probs /= probs.sum(dim=1, keepdim=True)
    verdict = method.judge(probs, batch.candidates, state)
    inside = batch.candidates.gather(1, verdict.label[:, None])[:, 0]
    assert inside.tolist() == (torch.arange(rows) != chosen).tolist()
    assert replace(method, trust=1.0).overruled(batch.candidates, state) is None
