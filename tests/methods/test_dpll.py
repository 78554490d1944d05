from dataclasses import replace

import pytest
import torch

import oracles
from concont.methods.dpll import Dpll
from concont.types import Nets
from toys import B, C, D, LinearNet, N, all_sets, double, near, problem, scores, uniform, visit

BOUNDS = (0.5, 0.95, 1.0)  # lower, upper, rate


def expected(method, net, z, tau, batch):
    """Loss, its terms, new z and verdicts by the loop-written oracles."""
    members = batch.candidates.tolist()
    views = [scores(net, batch, name) for name in ("weak", "strong", "strong2")]
    own = [z[row] for row in batch.index.tolist()]
    score, labels = oracles.partial_confidence(own, members, (1, 1, 1))
    sure = [s >= tau[j] for s, j in zip(score, labels, strict=True)]
    apart = [sum(rows) for rows in zip(*(oracles.divergence(own, v) for v in views), strict=True)]
    if method.controlled:
        apart = [d if c else 0.0 for d, c in zip(apart, sure, strict=True)]
    part = oracles.mean(oracles.outside_cross_entropy(views[0], members))
    ramp = min(batch.epoch.item() / (method.ramp * batch.epochs.item()), 1)
    total = part + method.weight * ramp * oracles.mean(apart)
    terms = {"loss_part": part, "loss_reg": oracles.mean(apart)}
    return total, terms, oracles.conformal(views, members), labels, sure


@pytest.mark.parametrize("controlled", [False, True])
def test_losses_z_and_thresholds_follow_the_oracle_from_visit_to_visit(controlled):
    method, sets = Dpll(controlled=controlled, weight=0.7), all_sets()
    state, z, tau = double(method.init_state(sets, D)), uniform(sets), [0.8] * 4
    assert near(state["conformal"], z, 1e-7)
    state["conformal"].copy_(torch.tensor(z, dtype=torch.float64))  # not float32's thirds
    kinds = set()
    for epoch in range(9):
        net, batch = LinearNet(epoch), visit(sets, epoch, epoch, epochs=10)
        out = method.losses(Nets(net, net), state, batch)
        total, terms, new, labels, sure = expected(method, net, z, tau, batch)
        assert out.total.item() == pytest.approx(total, abs=1e-8)
        assert {n: t.item() for n, t in out.terms.items()} == pytest.approx(terms, abs=1e-8)
        assert near(state["conformal"], z, 1e-8)  # nothing is written before the step

        moved = LinearNet(99)  # by the step; z is what the pass before it gave
        method.commit(Nets(moved, moved), state, batch, out)
        for row, own in zip(batch.index.tolist(), new, strict=True):
            z[row] = own  # whatever the verdict
        assert near(state["conformal"], z, 1e-8)
        if controlled:
            tau = oracles.thresholds(tau, labels, sure, *BOUNDS)
            assert near(state["tau"], tau, 1e-6)
            kinds |= {
                (s, sum(y) == 1) for s, y in zip(sure, batch.candidates.tolist(), strict=True)
            }
        assert net.passes == [3]  # one batch, one set of statistics
        assert moved.passes == []
    assert kinds == ({(True, True), (True, False), (False, False)} if controlled else set())


@pytest.mark.parametrize(
    ("epoch", "epochs", "ramp", "factor"),
    [
        (0, 200, 0.5, 0),
        (50, 200, 0.5, 0.5),
        (100, 200, 0.5, 1),
        (180, 200, 0.5, 1),
        (1, 4, 1, 0.25),
    ],
)
def test_consistency_ramps_up_over_a_share_of_the_run(epoch, epochs, ramp, factor):
    method, batch = Dpll(weight=3.0, ramp=ramp), problem(epoch=epoch, epochs=epochs)
    net = LinearNet(2)
    out = method.losses(Nets(net, net), double(method.init_state(batch.candidates, D)), batch)
    part, apart = out.terms["loss_part"].item(), out.terms["loss_reg"].item()
    assert out.total.item() == pytest.approx(part + 3 * factor * apart)
    assert apart > 0.1


def test_at_first_the_controller_lets_only_single_candidates_pass():
    sets = all_sets()
    method, net = Dpll(controlled=True), LinearNet(2)
    batch = replace(visit(sets, epoch=9), index=torch.arange(1, 7), candidates=sets[1:7])
    state = double(method.init_state(sets, D))
    first = state["conformal"].clone()
    out = method.losses(Nets(net, net), state, batch)
    lone = batch.candidates.sum(dim=1) == 1
    assert 0 < lone.sum() < B
    assert torch.equal(out.to_commit["verdict_confident"], lone)
    method.commit(Nets(net, net), state, batch, out)
    assert torch.equal(state["conformal"][1:7], out.to_commit["conformal"])
    wide = sets.sum(dim=1) > 1
    moved = (state["conformal"] != first).any(dim=1)
    assert moved[1:7].tolist() == wide[1:7].tolist()  # those that did not pass, too


def test_unlabelled_rows_have_no_candidate_term_and_learn_by_consistency():
    sets = torch.ones(B, 4).bool()
    batch, net, method = visit(sets, epoch=5), LinearNet(2), Dpll()
    out = method.losses(Nets(net, net), method.init_state(sets, D), batch)
    assert out.terms["loss_part"] == 0
    assert out.total > 0


def test_no_gradient_flows_through_z():
    sets = all_sets()
    batch, net, method = visit(sets, epoch=9), LinearNet(2), Dpll()
    for view in batch.views.values():
        view.requires_grad_()
    state = double(method.init_state(sets, D))
    out = method.losses(Nets(net, net), state, batch)
    assert not out.to_commit["conformal"].requires_grad
    found = torch.autograd.grad(out.total, list(batch.views.values()))
    z = state["conformal"][batch.index]
    for name, pull in zip(("strong", "strong2"), found[1:], strict=True):
        probs = net.logits(batch.views[name].flatten(1)).softmax(dim=1)
        assert torch.allclose(pull.flatten(1), (probs - z) @ net.scores.T / B)
    assert found[0].abs().sum() > 0


LIMITS = {"threshold_lower": 0.4, "threshold_upper": 0.9, "threshold_rate": 0.5}


def judged(name, kept, own, members):
    """Scores, labels and verdicts of the rows' targets by the loops, under one of the balances."""
    seen = oracles.alignment(own, kept["means"]) if name == "da" else own
    score, labels = oracles.partial_confidence(seen, members, (1, 1, 1))
    return score, labels, [s >= kept["tau"][j] for s, j in zip(score, labels, strict=True)]


def remembered(name, kept, index, own, verdict):
    """Thresholds after a step, and what they or the alignment come from."""
    score, labels, sure = verdict
    if name == "adaptive":
        return {**kept, "tau": oracles.thresholds(kept["tau"], labels, sure, *LIMITS.values())}
    if name == "da":
        mean = [oracles.mean(column) for column in zip(*own, strict=True)]
        return {**kept, "means": [*kept["means"][1:], mean]}
    if name == "cpl":
        visits = zip(index, labels, score, strict=True)
        passed = kept["passed"] | {row: label for row, label, s in visits if s >= 0.7}
        return {**kept, "passed": passed, "tau": oracles.curriculum(0.7, passed, N, C)}
    return kept


@pytest.mark.parametrize(
    ("name", "extra"),
    [("adaptive", set()), ("fixed", set()), ("da", {"means", "means_next"}), ("cpl", {"passed"})],
)
def test_the_controller_has_the_balance_that_was_asked_for(name, extra):
    sets, verdicts = all_sets(), set()
    method = Dpll(controlled=True, balance=name, threshold=0.7, **LIMITS)
    state, first = double(method.init_state(sets, D)), [0.0 if name == "cpl" else 0.7] * C
    assert set(state) == {"conformal", "tau", *extra}
    kept = {"tau": first, "means": [[1 / C] * C] * 128, "passed": {}}
    for epoch in range(9):
        net, batch = LinearNet(epoch), visit(sets, epoch, epoch)
        index, own = batch.index.tolist(), state["conformal"][batch.index].tolist()
        out = method.losses(Nets(net, net), state, batch)
        verdict = judged(name, kept, own, batch.candidates.tolist())
        score, labels, sure = verdict
        assert near(out.to_commit["verdict_score"], score, 1e-6)
        assert out.to_commit["verdict_label"].tolist() == labels
        assert out.to_commit["verdict_confident"].tolist() == sure
        method.commit(Nets(net, net), state, batch, out)
        kept = remembered(name, kept, index, own, verdict)
        assert near(state["tau"], kept["tau"], 1e-6)
        verdicts |= set(sure)
    assert verdicts == {True, False}
    assert (kept["tau"] != first) == (name in ("adaptive", "cpl"))  # the others stay as they are


def test_without_the_controller_its_state_is_not_kept():
    assert list(Dpll().init_state(all_sets(), D)) == ["conformal"]
    method = Dpll()
    assert method.views == ("weak", "strong", "strong2")
    assert (method.key_momentum(torch.zeros(())), method.wants_unlabeled) == (None, False)


def test_bounds_widen_to_hold_the_threshold_and_may_not_cross():
    balance = Dpll(controlled=True, threshold=0.3).controller.balance
    assert (balance.threshold, balance.lower, balance.upper) == (0.3, 0.3, 0.95)
    with pytest.raises(ValueError, match=r"threshold_lower 0\.99 is above threshold_upper 0\.95"):
        Dpll(controlled=True, threshold_lower=0.99)
