import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import oracles
from concont.config.resolve import resolve
from concont.core.blend import GOLDEN
from concont.errors import UsageError
from concont.methods.concont import ConCont
from concont.types import Nets
from concont_variants import QUEUE, VARIANTS, cast_votes, describe, expected_terms, filled
from toys import B, C, D, LinearNet, N, OnePass, double, near, partial_first, problem


@pytest.mark.parametrize("method", VARIANTS, ids=describe)
@pytest.mark.parametrize("voted", [False, True])
def test_losses_match_the_oracle(method, voted):
    nets, state, batch = Nets(LinearNet(2), LinearNet(3)), filled(method), problem(epoch=4)
    if voted and method.part_loss != "uniform":
        batch = replace(batch, weights=cast_votes(batch.candidates))
    terms, labels, confident = expected_terms(method, nets, state, batch)
    out = method.losses(nets, state, batch)
    found = {name: value.item() for name, value in out.terms.items()}
    assert found == pytest.approx(terms, abs=1e-9)
    total = method.part_weight * terms["loss_part"]
    total += method.label_weight * terms["loss_reg"] + method.repr_weight * terms["loss_contrast"]
    assert out.total.item() == pytest.approx(total, abs=1e-9)
    assert 0 < sum(confident) < B or method.balance == "cpl"  # both kinds of row were there
    assert out.to_commit["verdict_label"].tolist() == labels
    assert out.to_commit["verdict_confident"].tolist() == confident


@pytest.mark.parametrize("part_mean", ["batch", "partial"])
def test_the_online_network_can_do_without_the_weak_view_of_unlabelled_rows(part_mean):
    method = ConCont(queue=QUEUE, teacher="momentum", part_mean=part_mean, partial_soft=True)
    fewer = replace(method, weak_rows="partial")
    batch, n_partial = partial_first(problem())
    batch = replace(batch, n_partial=n_partial + 1)  # room for one row more than there are
    every, few = OnePass(2), OnePass(2)
    whole = method.losses(Nets(every, LinearNet(3)), filled(method), batch)
    found = fewer.losses(Nets(few, LinearNet(3)), filled(fewer), batch)
    assert found.total.item() == pytest.approx(whole.total.item(), abs=1e-12)
    assert (len(every.rows), len(few.rows)) == (2 * B, n_partial + 1 + B)
    for name, value in whole.terms.items():
        assert found.terms[name].item() == pytest.approx(value.item(), abs=1e-12)
    anywhere = replace(batch, n_partial=None)  # an order that promises nothing: all pass
    assert fewer.losses(Nets(few, LinearNet(3)), filled(fewer), anywhere).total == whole.total
    assert len(few.rows) == 2 * B


def test_fewer_weak_rows_need_a_teacher_that_sees_them_all():
    for wrong in ({"teacher": "online"}, {"part_loss": "uniform", "part_rows": "all"}):
        with pytest.raises(ValueError, match="weak_rows partial needs teacher momentum"):
            ConCont(**{"teacher": "momentum", "weak_rows": "partial", **wrong})


@pytest.mark.parametrize("part_mean", ["batch", "partial"])
@pytest.mark.parametrize("tail", [0, 1])  # leading rows that have no set
@pytest.mark.parametrize("kind", ["sets", "votes", "uniform"])
def test_blends_of_weak_views_are_held_against_both_sets(kind, tail, part_mean):
    method = ConCont(queue=QUEUE, teacher="momentum", weak_rows="partial", part_mean=part_mean)
    method = replace(method, part_loss="uniform" if kind == "uniform" else "partial")
    batch, n_partial = partial_first(problem())
    votes, rows = cast_votes(batch.candidates), n_partial + tail
    batch = replace(batch, n_partial=rows, weights=votes if kind == "votes" else None)
    known = oracles.evidence(batch.candidates.tolist(), votes.tolist(), float(kind == "votes"))
    of_rows = oracles.uniform_cross_entropy if kind == "uniform" else oracles.weighed_cross_entropy
    nets, weak, loss = Nets(LinearNet(2), LinearNet(3)), batch.views["weak"].flatten(1), 0.0
    for i in range(rows):
        other, share = rows - 1 - i, 0.4 * math.modf((i + 1) * GOLDEN)[0]
        blended = (1 - share) * weak[i] + share * weak[other]
        first, second = of_rows(
            nets.online.logits(blended[None]).tolist() * 2, [known[i], known[other]]
        )
        loss += (1 - share) * first + share * second
    found = replace(method, part_blend=0.4).losses(nets, filled(method), batch).terms
    loss /= B if part_mean == "batch" else n_partial
    assert found["loss_part"].item() == pytest.approx(loss, abs=1e-12)
    plain = method.losses(nets, filled(method), batch).terms
    assert found["loss_part"] != plain["loss_part"]
    for other in ("loss_reg", "loss_contrast"):
        assert found[other] == plain[other]


def test_blends_need_a_weak_view_that_serves_the_partial_loss_alone(toy_config):
    toy_config["method"] |= {"name": "concont", "part_blend": 0.5}
    with pytest.raises(UsageError, match="method.part_blend"):
        resolve(toy_config)


def test_losses_write_nothing_and_commit_moves_thresholds_and_queue():
    method = VARIANTS[0]
    nets, state, batch = Nets(LinearNet(2), LinearNet(3)), filled(method), problem()
    before = {name: tensor.clone() for name, tensor in state.items()}
    out = method.losses(nets, state, batch)
    assert all(torch.equal(state[name], before[name]) for name in state)

    method.commit(nets, state, batch, out)
    labels, confident = (
        out.to_commit["verdict_label"].tolist(),
        out.to_commit["verdict_confident"].tolist(),
    )
    tau = oracles.thresholds(before["tau"].tolist(), labels, confident, 0.5, 0.95, 1.0)
    assert state["tau"].tolist() == pytest.approx(tau)
    newest = [4, 5, 6, 0, 1, 2]  # slots, from queue_next on and around
    assert state["queue_label"][newest].tolist() == labels
    assert torch.equal(state["queue_z"][newest], out.to_commit["keys"])
    assert torch.equal(state["queue_z"][3], before["queue_z"][3])
    assert state["queue_next"].item() == (4 + B) % QUEUE


def test_true_labels_drive_the_masks_and_never_the_thresholds():
    method = replace(VARIANTS[0], selection="true")
    nets, state, batch = Nets(LinearNet(2), LinearNet(3)), filled(method), problem()
    before = state["tau"].tolist()
    out = method.losses(nets, state, batch)
    assert out.to_commit["verdict_label"].tolist() != batch.truth.tolist()
    method.commit(nets, state, batch, out)
    pseudo, confident = (
        out.to_commit["verdict_label"].tolist(),
        out.to_commit["verdict_confident"].tolist(),
    )
    expected = oracles.thresholds(before, pseudo, confident, 0.5, 0.95, 1.0)
    assert state["tau"].tolist() == pytest.approx(expected)
    assert state["queue_label"][[4, 5, 6, 0, 1, 2]].tolist() == batch.truth.tolist()


def test_fixed_balance_leaves_the_thresholds():
    method = replace(VARIANTS[0], balance="fixed")
    state = filled(method)
    before = state["tau"].clone()
    nets, batch = Nets(LinearNet(2), LinearNet(3)), problem()
    method.commit(nets, state, batch, method.losses(nets, state, batch))
    assert torch.equal(before, state["tau"])


@pytest.mark.parametrize("pseudo", ["hard", "soft"])
def test_aligned_probabilities_give_the_pseudo_labels_and_the_targets(pseudo):
    """A lean that the alignment takes away turns labels over, and the strong view follows."""
    method = ConCont(queue=QUEUE, balance="da", pseudo=pseudo, threshold=0.5)
    nets, batch = Nets(LinearNet(2), LinearNet(3)), problem()
    state = filled(method)
    state["means"][:] = torch.tensor([0.9, 0.09, 0.009, 0.001], dtype=torch.float64)
    state["tau"].zero_()  # every row counts
    out = method.losses(nets, state, batch)
    given = nets.online.logits(batch.views["weak"].flatten(1)).softmax(dim=1)
    aligned = given / state["means"][0]
    inside = aligned / aligned.sum(dim=1, keepdim=True) * batch.candidates
    label = inside.argmax(dim=1)
    assert out.to_commit["verdict_label"].tolist() == label.tolist()
    assert label.tolist() != (given * batch.candidates).argmax(dim=1).tolist()
    soft = inside / inside.sum(dim=1, keepdim=True)
    target = soft if pseudo == "soft" else F.one_hot(label, C).double()
    strong = nets.online.logits(batch.views["strong"].flatten(1)).log_softmax(dim=1)
    expected = F.kl_div(strong, target, reduction="batchmean")
    assert out.terms["loss_reg"].item() == pytest.approx(expected.item())
    before = state["means"].clone()
    method.commit(nets, state, batch, out)
    assert torch.allclose(state["means"][0], given.mean(dim=0))  # not the aligned ones
    assert torch.equal(state["means"][1:], before[1:])
    assert state["means_next"] == 1


def test_a_curriculum_takes_in_every_row_at_first_and_remembers_those_that_passed():
    method = ConCont(queue=QUEUE, balance="cpl")
    nets, batch = Nets(LinearNet(2), LinearNet(3)), problem()
    batch = replace(batch, index=torch.tensor([9, 3, 5, 0, 1, 7]))
    state = double(method.init_state(torch.ones(N, C).bool(), D))
    out = method.losses(nets, state, batch)
    assert out.to_commit["verdict_confident"].all()
    method.commit(nets, state, batch, out)
    score, label = out.to_commit["verdict_score"], out.to_commit["verdict_label"]
    passed = torch.full((N,), -1)
    passed[batch.index[score >= 0.8]] = label[score >= 0.8]
    assert 0 < (passed >= 0).sum() < B
    assert torch.equal(state["passed"], passed)
    kept = {row: j for row, j in enumerate(passed.tolist()) if j >= 0}
    assert near(state["tau"], oracles.curriculum(0.8, kept, N, C), 1e-6)


def test_queries_as_keys_learn_too():
    method = replace(VARIANTS[0], contrast_set="queries", selection="unsupcon", part_loss="none")
    method = replace(method, label_weight=0.0, repr_weight=1.0)
    nets, batch, state = Nets(LinearNet(2), LinearNet(3)), problem(), filled(method)
    batch.views["strong"].requires_grad_()
    (found,) = torch.autograd.grad(method.losses(nets, state, batch).total, batch.views["strong"])
    queries = nets.online.embed(batch.views["strong"].flatten(1))
    keys = nets.key.embed(batch.views["strong2"].flatten(1))
    every = torch.cat([keys, state["queue_z"][:4], queries])
    score = queries @ every.T / method.temperature
    itself = torch.zeros(B, len(every)).bool()
    itself[torch.arange(B), torch.arange(B) + B + 4] = True
    loss = F.cross_entropy(score.masked_fill(itself, -torch.inf), torch.arange(B))
    (expected,) = torch.autograd.grad(loss, batch.views["strong"])
    assert torch.allclose(found, expected)


def test_both_online_views_pass_as_one_batch():
    nets = Nets(LinearNet(2), LinearNet(3))
    method = ConCont(queue=QUEUE)
    method.losses(nets, filled(method), problem())
    assert nets.online.passes == [2]
    assert nets.key.passes == [1]
    teacher = replace(method, teacher="momentum")
    teacher.losses(nets, filled(teacher), problem())
    assert nets.key.passes == [1, 2]  # weak and second strong together


def test_no_gradient_flows_through_pseudo_labels_or_keys():
    method = replace(VARIANTS[1], part_loss="none")  # soft targets
    nets = Nets(LinearNet(2), LinearNet(3))
    batch = problem()
    for view in batch.views.values():
        view.requires_grad_()
    method.losses(nets, filled(method), batch).total.backward()
    assert batch.views["strong"].grad.abs().sum() > 0
    assert batch.views["weak"].grad is None  # only the partial loss learns from it
    assert batch.views["strong2"].grad is None


@pytest.mark.parametrize("method", VARIANTS, ids=describe)
def test_of_the_weak_view_only_the_rows_that_eq_1_holds_carry_a_loss(method):
    nets, (batch, partial) = Nets(OnePass(2), LinearNet(3)), partial_first(problem())
    method.losses(nets, filled(method), batch).total.backward()
    carries = nets.online.rows.grad.flatten(1).any(dim=1)
    held = 0 if method.part_loss == "none" else B if method.part_rows == "all" else partial
    assert carries[:held].all()
    assert not carries[held:B].any()
    assert carries[B:].any()


def test_metrics_count_what_is_known():
    method = VARIANTS[0]
    batch = problem()
    batch.truth[:3] = -1
    out = method.losses(Nets(LinearNet(2), LinearNet(3)), filled(method), batch)
    label, confident = out.to_commit["verdict_label"], out.to_commit["verdict_confident"]
    right = (label == batch.truth) & (batch.truth >= 0)
    assert [x.item() for x in out.metrics["confident"]] == [confident.sum().item(), B]
    assert [x.item() for x in out.metrics["pseudo_accuracy"]] == [right.sum().item(), 3]
    sure = confident & (batch.truth >= 0)
    expected = [(right & sure).sum().item(), sure.sum().item()]
    assert [x.item() for x in out.metrics["confident_precision"]] == expected


def test_true_labels_reach_nothing_but_the_log():
    method, nets = VARIANTS[0], Nets(LinearNet(2), LinearNet(3))
    batch = problem()
    other = replace(batch, truth=(batch.truth + 1) % C)
    one, two = (method.losses(nets, filled(method), b) for b in (batch, other))
    assert torch.equal(one.total, two.total)
    assert all(torch.equal(one.to_commit[k], two.to_commit[k]) for k in one.to_commit)


def test_bounds_widen_to_hold_the_threshold_and_may_not_cross():
    for threshold, lower, upper in ((0.3, 0.3, 0.95), (0.8, 0.5, 0.95), (1.2, 0.5, 1.2)):
        balance = ConCont(threshold=threshold).controller.balance
        assert (balance.threshold, balance.lower, balance.upper) == (threshold, lower, upper)
    with pytest.raises(ValueError, match=r"threshold_lower 0\.99 is above threshold_upper 0\.95"):
        ConCont(threshold_lower=0.99)
