from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
import strategies
from concont.methods.pico import Pico, follow
from concont.types import Nets
from toys import B, C, D, LinearNet, all_sets, double, near, scores, uniform, visit

QUEUE, EPOCHS = 13, 8


def embedded(net, batch, name):
    return net.embed(batch.views[name].flatten(1)).tolist()


def expected(method, nets, memory, batch):
    """Loss, its terms, and what is kept, by the loop-written oracles."""
    epoch, members = batch.epoch.item(), batch.candidates.tolist()
    logits = scores(nets.online, batch, "weak")
    queries, keys = embedded(nets.online, batch, "weak"), embedded(nets.key, batch, "strong")
    labels = []
    for row, y in zip(logits, members, strict=True):
        inside = [p * m for p, m in zip(oracles.softmax(row), y, strict=True)]
        labels.append(inside.index(max(inside)))
    confidence = [memory["confidence"][row] for row in batch.index.tolist()]
    if epoch >= 1:
        phi = 0.95 - 0.15 * (epoch - 1) / batch.epochs.item()
        before = memory["prototypes"]
        confidence = oracles.pico_confidence(confidence, queries, before, members, phi)
    classified = oracles.mean(oracles.soft_cross_entropy(logits, confidence))
    queue = (memory["queue_z"], memory["queue_label"])
    contrast = oracles.mean(
        oracles.pico_contrast(queries, keys, labels, *queue, method.temperature, epoch < 1)
    )
    terms = {"loss_part": classified, "loss_contrast": contrast}
    return terms, {"confidence": confidence, "queries": queries, "keys": keys, "label": labels}


def test_losses_and_memory_follow_the_oracle_from_visit_to_visit():
    method, sets = Pico(queue=QUEUE), all_sets()
    state = double(method.init_state(sets, D))
    assert near(state["confidence"], uniform(sets), 1e-7)
    assert not state["prototypes"].any()
    state["confidence"].copy_(torch.tensor(uniform(sets), dtype=torch.float64))
    slot = 0
    for step in range(8):
        nets = Nets(LinearNet(step), LinearNet(step + 50))
        batch = visit(sets, step, epoch=step // 2, epochs=EPOCHS)
        before = {name: tensor.tolist() for name, tensor in state.items()}
        out = method.losses(nets, state, batch)
        terms, kept = expected(method, nets, before, batch)
        assert {n: t.item() for n, t in out.terms.items()} == pytest.approx(terms, abs=1e-8)
        total = terms["loss_part"] + 0.5 * terms["loss_contrast"]
        assert out.total.item() == pytest.approx(total, abs=1e-8)
        for name, values in kept.items():
            assert near(out.to_commit[name], values, 1e-8), name
        assert {name: tensor.tolist() for name, tensor in state.items()} == before

        method.commit(Nets(LinearNet(98), LinearNet(99)), state, batch, out)
        for row, own in zip(batch.index.tolist(), kept["confidence"], strict=True):
            before["confidence"][row] = own
        assert near(state["confidence"], before["confidence"], 1e-8)
        moved = oracles.prototypes(before["prototypes"], kept["queries"], kept["label"], 0.99)
        assert near(state["prototypes"], moved, 1e-8)
        newest = [(slot + n) % QUEUE for n in range(B)]
        assert state["queue_label"][newest].tolist() == kept["label"]
        assert near(state["queue_z"][newest], kept["keys"], 1e-8)
        slot = (slot + B) % QUEUE
        assert state["queue_next"].item() == slot


def mid_run(epoch=3, seed=0, **settings):
    """A state whose queue is half full and whose prototypes are somewhere."""
    method, sets = Pico(queue=QUEUE, **settings), all_sets()
    generator = torch.Generator().manual_seed(seed)
    state = double(method.init_state(sets, D))

    def rows(n):
        return F.normalize(torch.randn(n, D, generator=generator, dtype=torch.float64), dim=1)

    state["prototypes"].copy_(rows(C))
    state["queue_z"][:7].copy_(rows(7))
    state["queue_label"][:7] = torch.randint(C, (7,), generator=generator)
    state["queue_next"].fill_(7)
    return method, Nets(LinearNet(2), LinearNet(3)), state, visit(sets, seed, epoch, EPOCHS)


def test_the_confidence_moves_from_the_second_epoch_on_and_more_and_more():
    moves = []
    for epoch in range(EPOCHS):
        method, nets, state, batch = mid_run(epoch, confidence_momentum=(0.9, 0.5))
        before = state["confidence"][batch.index]
        confidence = method.losses(nets, state, batch).to_commit["confidence"]
        likeness = nets.online.embed(batch.views["weak"].flatten(1)) @ state["prototypes"].T
        nearest = likeness.masked_fill(~batch.candidates, -9).argmax(dim=1)
        goal = F.one_hot(nearest, C).double()
        wide = batch.candidates.sum(dim=1) > 1
        moves.append(((confidence - before) / (goal - before))[wide][batch.candidates[wide]])
    expected = [0.0] + [1 - (0.9 - 0.4 * (epoch - 1) / EPOCHS) for epoch in range(1, EPOCHS)]
    for found, wanted in zip(moves, expected, strict=True):
        assert near(found, [wanted] * len(found))


def test_the_cross_entropy_is_to_the_confidence_of_the_same_step():
    method, nets, state, batch = mid_run()
    out = method.losses(nets, state, batch)
    logits = scores(nets.online, batch, "weak")
    new, old = out.to_commit["confidence"], state["confidence"][batch.index]
    assert not torch.allclose(new, old)
    rows = oracles.soft_cross_entropy(logits, new.tolist())
    assert out.terms["loss_part"].item() == pytest.approx(oracles.mean(rows))


def test_contrast_leaves_itself_out_and_learns_through_queries_as_keys():
    method, nets, state, batch = mid_run(repr_weight=1.0)
    queries = nets.online.embed(batch.views["weak"].flatten(1)).detach().requires_grad_()
    keys = nets.key.embed(batch.views["strong"].flatten(1))
    label = method.losses(nets, state, batch).to_commit["label"]

    def loop(q):
        """The oracle once more, in tensors, so that it has a gradient."""
        losses = []
        for i in range(B):
            pool = [(q[k], label[k]) for k in range(B) if k != i]
            pool += list(zip(keys, label, strict=True))
            pool += list(zip(state["queue_z"][:7], state["queue_label"][:7], strict=True))
            score = torch.stack([q[i] @ z / method.temperature for z, _ in pool])
            own = torch.stack([other == label[i] for _, other in pool])
            losses.append(-(score - score.logsumexp(0))[own].mean())
        return torch.stack(losses).mean()

    found = method._contrast(queries, keys, label, state, batch).mean()
    assert found.item() == pytest.approx(loop(queries).item())
    (pull,) = torch.autograd.grad(found, queries)
    (wanted,) = torch.autograd.grad(loop(queries), queries)
    assert torch.allclose(pull, wanted)


def test_no_gradient_flows_through_keys_or_memory():
    method, nets, state, batch = mid_run()
    for view in batch.views.values():
        view.requires_grad_()
    out = method.losses(nets, state, batch)
    out.total.backward()
    assert batch.views["weak"].grad.abs().sum() > 0
    assert batch.views["strong"].grad is None
    assert not any(tensor.requires_grad for tensor in out.to_commit.values())


def test_an_empty_queue_leaves_moco_nothing_to_push_against():
    sets = all_sets()
    method, nets, batch = Pico(queue=QUEUE), Nets(LinearNet(2), LinearNet(3)), visit(sets)
    out = method.losses(nets, double(method.init_state(sets, D)), batch)
    assert out.terms["loss_contrast"].item() == pytest.approx(0, abs=1e-12)
    none = Pico(queue=0)
    state = double(none.init_state(sets, D))
    later = none.losses(nets, state, replace(batch, epoch=torch.tensor(2.0)))
    assert later.terms["loss_contrast"] > 0
    none.commit(nets, state, batch, later)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@example(seed=2_147_483_646, rows=39, momentum=0.99, zero=False)  # a weight in float32 is too far
@given(
    seed=strategies.seeds,
    rows=st.integers(1, 40),
    momentum=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    zero=st.booleans(),
)
def test_prototypes_in_closed_form_are_those_of_the_loop(dtype, seed, rows, momentum, zero):
    generator = torch.Generator().manual_seed(seed)
    before = torch.zeros(C + 2, D, dtype=torch.float64)  # the last two have no member
    if not zero:
        before = F.normalize(torch.randn(before.shape, generator=generator, dtype=torch.float64))
        before[-1] = 0
    queries = F.normalize(torch.randn(rows, D, generator=generator, dtype=torch.float64))
    label = torch.randint(C, (rows,), generator=generator)
    found = follow(before.to(dtype), queries.to(dtype), label, momentum)
    loop = oracles.prototypes(before.tolist(), queries.tolist(), label.tolist(), momentum)
    assert found.dtype == dtype
    assert near(found, loop, 1e-9 if dtype == torch.float64 else 1e-4)
    assert torch.equal(found[-1], torch.zeros(D, dtype=dtype))


def test_what_it_asks_for():
    method = Pico()
    assert (method.views, method.key_momentum(torch.zeros(()))) == (("weak", "strong"), 0.999)
    assert method.wants_unlabeled is False
    assert (method.repr_weight, method.temperature, method.queue) == (0.5, 0.07, 8192)
