"""ConCont in every variant, a state in mid-run, and what slow loops make of a batch."""

import itertools
from dataclasses import fields, replace

import torch
import torch.nn.functional as F

import oracles
from concont.methods.concont import ConCont
from toys import B, C, D, double

QUEUE = 7


def filled(method, seed=1):
    """A state in mid-run: other thresholds, four of seven slots filled."""
    generator = torch.Generator().manual_seed(seed)
    state = double(method.init_state(torch.ones(B, C).bool(), D))
    state["tau"] += torch.tensor([-0.1, 0.1, -0.2, 0.05], dtype=torch.float64)
    z = F.normalize(torch.randn(4, D, generator=generator, dtype=torch.float64), dim=1)
    state["queue_z"][:4] = z
    state["queue_label"][:4] = torch.tensor([0, 1, 2, 2])
    state["queue_confident"][:4] = torch.tensor([True, False, True, True])
    state["queue_next"].fill_(4)
    if method.balance == "da":  # predictions have leaned to the first classes
        lean = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
        state["means"][:100] = lean
    return state


def expected_terms(method, nets, state, batch):
    """Eqs. 1-4 by the loop-written oracles."""
    key_view = "strong2" if method.branches == "three" else "weak"
    flat = {name: view.flatten(1) for name, view in batch.views.items()}
    teacher = nets.key if method.teacher == "momentum" else nets.online
    weak = nets.online.logits(flat["weak"]).tolist()
    probs = [oracles.softmax(row) for row in teacher.logits(flat["weak"]).tolist()]
    if method.balance == "da":
        probs = oracles.alignment(probs, state["means"].tolist())
    candidates, tau = batch.candidates.tolist(), state["tau"].tolist()
    votes = batch.candidates.double() if batch.weights is None else batch.weights
    u = oracles.evidence(candidates, votes.tolist(), strength_of(method, batch))
    scores, labels = oracles.weighed_confidence(probs, candidates, method.score_weights, u)
    confident = [s >= tau[j] for s, j in zip(scores, labels, strict=True)]

    everything = method.part_loss == "uniform" and method.part_rows == "all"
    rows = {
        "partial": lambda logits, _: oracles.weighed_cross_entropy(logits, u),
        "uniform": oracles.uniform_cross_entropy,
        "none": lambda *_: [0.0] * B,
    }[method.part_loss](weak, candidates)
    if everything:
        uniform = [[m / sum(row) for m in row] for row in candidates]
        rows = oracles.soft_cross_entropy(weak, uniform)
    n_partial = sum(not all(row) for row in candidates)
    part = sum(rows) / (n_partial if method.part_mean == "partial" else B)

    targets = []
    for p, members, likely, label in zip(probs, candidates, u, labels, strict=True):
        inside = [x * m for x, m in zip(p, likely, strict=True)]
        hard = [float(j == label) for j in range(C)]
        is_soft = method.pseudo == "soft" or (method.partial_soft and not all(members))
        targets.append([x / sum(inside) for x in inside] if is_soft else hard)
    strong = nets.online.logits(flat["strong"]).tolist()
    held = [
        c or (method.partial_soft and not all(m))
        for c, m in zip(confident, candidates, strict=True)
    ]
    reg = sum(oracles.consistency(strong, targets, held)) / B

    anchors = batch.truth.tolist() if method.selection == "true" else labels
    keys = nets.key.embed(flat[key_view]).tolist() + state["queue_z"].tolist()
    key_labels = anchors + state["queue_label"].tolist()
    key_confident = confident + state["queue_confident"].tolist()
    queries = nets.online.embed(flat["strong"]).tolist()
    if method.contrast_set == "queries":
        keys, key_labels = keys + queries, key_labels + anchors
        key_confident = key_confident + confident
    valid = [label != -1 for label in key_labels]
    positive, negative = oracles.contrast(
        method.selection, anchors, confident, key_labels, key_confident, valid, range(B)
    )
    for i in range(B):  # where queries are keys: never itself
        for chosen in (positive, negative):
            chosen[i].discard(B + QUEUE + i)
    masks = [
        [[k in row for k in range(len(keys))] for row in chosen] for chosen in (positive, negative)
    ]
    contrast = sum(oracles.contrastive(queries, keys, *masks, method.temperature)) / B
    return {"loss_part": part, "loss_reg": reg, "loss_contrast": contrast}, labels, confident


def strength_of(method, batch):
    start, end = method.vote_strength, method.vote_strength_end
    return start if end is None else start + (end - start) * (batch.epoch / batch.epochs).item()


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
VARIANTS += [replace(v, balance=b) for v in VARIANTS[:2] for b in ("fixed", "da", "cpl")]
VARIANTS += [replace(VARIANTS[0], part_loss="uniform", part_rows="all")]
VARIANTS += [
    replace(VARIANTS[0], contrast_set="queries", selection=s, branches=b)
    for s in ("ours", "hcpn", "supcon", "unsupcon")
    for b in ("three", "two")
]
VARIANTS += [
    replace(VARIANTS[0], partial_soft=True, pseudo=p, teacher=t)
    for p in ("hard", "soft")
    for t in ("online", "momentum")
]
VARIANTS += [replace(VARIANTS[0], part_weight=4.0)]
VARIANTS += [
    replace(v, vote_strength=2.0, vote_strength_end=end, pseudo=p)
    for v in (VARIANTS[2], VARIANTS[-2])
    for end in (None, 0.5)
    for p in ("hard", "soft")
]


def cast_votes(candidates, seed=0):
    """Weights of the candidates, the largest of a row 1."""
    generator = torch.Generator().manual_seed(seed)
    votes = torch.randint(1, 5, candidates.shape, generator=generator) * candidates
    votes[candidates.all(dim=1)] = 1
    return votes / votes.amax(dim=1, keepdim=True).double()


def describe(method):
    """What is not as by default."""
    defaults = ConCont(queue=QUEUE)
    values = {f.name: getattr(method, f.name) for f in fields(method)}
    return "-".join(str(v) for n, v in values.items() if v != getattr(defaults, n)) or "default"
