import itertools
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import oracles
from concont.methods.concont import ConCont
from concont.types import Nets
from toys import B, C, D, LinearNet, OnePass, partial_last, problem

QUEUE = 7


def filled(method, seed=1):
    """A state in mid-run: other thresholds, four of seven slots filled."""
    generator = torch.Generator().manual_seed(seed)
    state = method.init_state(B, C, D)
    state = {k: v.double() if v.is_floating_point() else v for k, v in state.items()}
    state["tau"] += torch.tensor([-0.1, 0.1, -0.2, 0.05], dtype=torch.float64)
    z = F.normalize(torch.randn(4, D, generator=generator, dtype=torch.float64), dim=1)
    state["queue_z"][:4] = z
    state["queue_label"][:4] = torch.tensor([0, 1, 2, 2])
    state["queue_confident"][:4] = torch.tensor([True, False, True, True])
    state["queue_next"].fill_(4)
    return state


def expected_terms(method, nets, state, batch):
    """Eqs. 1-4 by the loop-written oracles."""
    key_view = "strong2" if method.branches == "three" else "weak"
    flat = {name: view.flatten(1) for name, view in batch.views.items()}
    teacher = nets.key if method.teacher == "momentum" else nets.online
    weak = nets.online.logits(flat["weak"]).tolist()
    probs = [oracles.softmax(row) for row in teacher.logits(flat["weak"]).tolist()]
    candidates, tau = batch.candidates.tolist(), state["tau"].tolist()
    scores, labels = oracles.partial_confidence(probs, candidates, method.score_weights)
    confident = [s >= tau[j] for s, j in zip(scores, labels, strict=True)]

    rows = {
        "partial": oracles.partial_cross_entropy,
        "uniform": oracles.uniform_cross_entropy,
        "none": lambda *_: [0.0] * B,
    }[method.part_loss](weak, candidates)
    n_partial = sum(not all(row) for row in candidates)
    part = sum(rows) / (n_partial if method.part_mean == "partial" else B)

    targets = []
    for p, members, label in zip(probs, candidates, labels, strict=True):
        inside = [x * m for x, m in zip(p, members, strict=True)]
        hard = [float(j == label) for j in range(C)]
        targets.append(hard if method.pseudo == "hard" else [x / sum(inside) for x in inside])
    strong = nets.online.logits(flat["strong"]).tolist()
    reg = sum(oracles.consistency(strong, targets, confident)) / B

    anchors = batch.truth.tolist() if method.selection == "true" else labels
    keys = nets.key.embed(flat[key_view]).tolist() + state["queue_z"].tolist()
    key_labels = anchors + state["queue_label"].tolist()
    key_confident = confident + state["queue_confident"].tolist()
    valid = [label != -1 for label in key_labels]
    positive, negative = oracles.contrast(
        method.selection, anchors, confident, key_labels, key_confident, valid, range(B)
    )
    masks = [
        [[k in row for k in range(len(keys))] for row in chosen] for chosen in (positive, negative)
    ]
    queries = nets.online.embed(flat["strong"]).tolist()
    contrast = sum(oracles.contrastive(queries, keys, *masks, method.temperature)) / B
    return {"loss_part": part, "loss_reg": reg, "loss_contrast": contrast}, labels, confident


VARIANTS = [
    ConCont(queue=QUEUE, branches=branches, teacher=teacher, pseudo=pseudo)
    for branches, teacher, pseudo in itertools.product(
        ("three", "two"), ("online", "momentum"), ("hard", "soft")
    )
]
VARIANTS += [
    replace(VARIANTS[0], selection=s) for s in ("hcp", "hcpn", "supcon", "unsupcon", "true")
]
VARIANTS += [replace(VARIANTS[0], part_loss=p) for p in ("uniform", "none")]
VARIANTS += [replace(VARIANTS[0], part_mean="partial", label_weight=0.5, repr_weight=2.0)]
VARIANTS += [replace(VARIANTS[0], score_weights=(0.0, 1.0, 0.5), temperature=0.5)]


@pytest.mark.parametrize("method", VARIANTS, ids=lambda m: f"{m.branches}-{m.teacher}-{m.pseudo}")
def test_losses_match_the_oracle(method):
    nets, state, batch = Nets(LinearNet(2), LinearNet(3)), filled(method), problem()
    terms, labels, confident = expected_terms(method, nets, state, batch)
    out = method.losses(nets, state, batch)
    found = {name: value.item() for name, value in out.terms.items()}
    assert found == pytest.approx(terms, abs=1e-9)
    total = terms["loss_part"]
    total += method.label_weight * terms["loss_reg"] + method.repr_weight * terms["loss_contrast"]
    assert out.total.item() == pytest.approx(total, abs=1e-9)
    assert 0 < sum(confident) < B  # both kinds of row were there
    assert out.memory["pseudo"].tolist() == labels
    assert out.memory["confident"].tolist() == confident


def test_losses_write_nothing_and_commit_moves_thresholds_and_queue():
    method = VARIANTS[0]
    nets, state, batch = Nets(LinearNet(2), LinearNet(3)), filled(method), problem()
    before = {name: tensor.clone() for name, tensor in state.items()}
    out = method.losses(nets, state, batch)
    assert all(torch.equal(state[name], before[name]) for name in state)

    method.commit(state, out)
    labels, confident = out.memory["pseudo"].tolist(), out.memory["confident"].tolist()
    tau = oracles.thresholds(before["tau"].tolist(), labels, confident, 0.5, 0.95, 1.0)
    assert state["tau"].tolist() == pytest.approx(tau)
    newest = [4, 5, 6, 0, 1, 2]  # slots, from queue_next on and around
    assert state["queue_label"][newest].tolist() == labels
    assert torch.equal(state["queue_z"][newest], out.memory["keys"])
    assert torch.equal(state["queue_z"][3], before["queue_z"][3])
    assert state["queue_next"].item() == (4 + B) % QUEUE


def test_true_labels_drive_the_masks_and_never_the_thresholds():
    method = replace(VARIANTS[0], selection="true")
    nets, state, batch = Nets(LinearNet(2), LinearNet(3)), filled(method), problem()
    before = state["tau"].tolist()
    out = method.losses(nets, state, batch)
    assert out.memory["pseudo"].tolist() != batch.truth.tolist()
    method.commit(state, out)
    pseudo, confident = out.memory["pseudo"].tolist(), out.memory["confident"].tolist()
    expected = oracles.thresholds(before, pseudo, confident, 0.5, 0.95, 1.0)
    assert state["tau"].tolist() == pytest.approx(expected)
    assert state["queue_label"][[4, 5, 6, 0, 1, 2]].tolist() == batch.truth.tolist()


def test_fixed_balance_leaves_the_thresholds():
    method = replace(VARIANTS[0], balance="fixed")
    state = filled(method)
    before = state["tau"].clone()
    method.commit(state, method.losses(Nets(LinearNet(2), LinearNet(3)), state, problem()))
    assert torch.equal(before, state["tau"])


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


@pytest.mark.parametrize("method", VARIANTS, ids=lambda m: f"{m.branches}-{m.teacher}-{m.pseudo}")
def test_the_pass_begins_with_the_rows_that_carry_no_loss(method):
    nets, (batch, partial) = Nets(OnePass(2), LinearNet(3)), partial_last(problem())
    idle = method.idle(B, partial)
    assert idle == (B if method.part_loss == "none" else B - partial) > 0
    method.losses(nets, filled(method), batch).total.backward()
    carries = nets.online.rows.grad.flatten(1).any(dim=1)
    assert not carries[:idle].any()
    assert carries[idle:B].all()  # every partial row of the weak view
    assert carries[B:].any()


def test_metrics_count_what_is_known():
    method = VARIANTS[0]
    batch = problem()
    batch.truth[:3] = -1
    out = method.losses(Nets(LinearNet(2), LinearNet(3)), filled(method), batch)
    label, confident = out.memory["pseudo"], out.memory["confident"]
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
    assert all(torch.equal(one.memory[k], two.memory[k]) for k in one.memory)


def test_a_threshold_outside_its_bounds_is_refused():
    with pytest.raises(ValueError, match=r"threshold 0\.3 must lie in"):
        ConCont(threshold=0.3)
