import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oracles
import strategies
from concont.core.balance import (
    BATCHES,
    NEVER,
    Adaptive,
    AdaptiveThresholds,
    Alignment,
    Curriculum,
    Fixed,
    JudgedBatch,
    make_balance,
)
from concont.core.controller import Controller
from toys import double, near

ROWS, CLASSES = 9, 4


@given(
    seed=strategies.seeds,
    rows=st.integers(0, 30),
    classes=st.integers(2, 8),
    rate=st.sampled_from([0.0, 0.1, 1.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_updates_match_the_oracle(seed, rows, classes, rate, dtype):
    generator = torch.Generator().manual_seed(seed)
    start = torch.rand(classes, generator=generator, dtype=torch.float64) * 0.45 + 0.5
    found = AdaptiveThresholds(classes, 0.8, 0.5, 0.95, rate, values=start.to(dtype))
    tau = start.tolist()
    for _ in range(3):
        labels = torch.randint(classes, (rows,), generator=generator)
        confident = torch.rand(rows, generator=generator) < 0.5
        found.update(labels, confident)
        tau = oracles.thresholds(tau, labels.tolist(), confident.tolist(), 0.5, 0.95, rate)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    assert found.values.tolist() == pytest.approx(tau, abs=tolerance)


def test_strong_classes_rise_and_weak_ones_fall():
    thresholds = AdaptiveThresholds(3, 0.8, 0.0, 2.0, 0.1)
    labels, confident = torch.tensor([0, 0, 0, 1, 2]), torch.tensor([1, 1, 1, 1, 0]).bool()
    thresholds.update(labels, confident)
    strong, middle, weak = thresholds.values.tolist()
    assert strong > 0.8 > middle > weak
    assert thresholds.values.sum().item() == pytest.approx(2.4)  # zero-sum before the clamp


def test_clamped_to_the_bounds():
    thresholds = AdaptiveThresholds(2, 0.8, 0.5, 0.95, 10.0)
    thresholds.update(torch.zeros(4, dtype=torch.long), torch.ones(4).bool())
    assert thresholds.values.tolist() == pytest.approx([0.95, 0.5])


def test_without_a_confident_row_nothing_moves():
    thresholds = AdaptiveThresholds(2, 0.8, 0.5, 0.95, 1.0)
    before = thresholds.values.clone()
    thresholds.update(torch.tensor([0, 1]), torch.zeros(2).bool())
    assert torch.equal(before, thresholds.values)


def test_counts_summed_elsewhere_give_the_same():
    one, two = (AdaptiveThresholds(3, 0.8, 0.5, 0.95, 0.3) for _ in range(2))
    labels, confident = torch.tensor([0, 0, 2, 1]), torch.tensor([1, 1, 1, 0]).bool()
    one.update(labels, confident)
    two.update_counts(torch.tensor([2, 0, 1]))
    assert torch.equal(one.values, two.values)


def test_given_values_are_updated_in_place():
    tau = torch.full((2,), 0.8)
    AdaptiveThresholds(2, 0.8, 0.5, 0.95, 1.0, values=tau).update_counts(torch.tensor([1, 0]))
    assert tau.tolist() == pytest.approx([0.95, 0.5])


def test_a_start_outside_the_bounds_is_refused():
    with pytest.raises(ValueError, match=r"initial threshold 0\.2 is outside \[0\.5, 0\.95\]"):
        AdaptiveThresholds(2, 0.2, 0.5, 0.95, 1.0)


def batches(count, seed=0, rows=5, scale=2.0):
    """Indices, skewed probabilities and candidate sets, batch after batch."""
    generator = torch.Generator().manual_seed(seed)
    lean = torch.tensor([2.0, 0.5, 0.0, -1.0], dtype=torch.float64)
    for _ in range(count):
        index = torch.randperm(ROWS, generator=generator)[:rows]
        logits = torch.randn(rows, CLASSES, generator=generator, dtype=torch.float64)
        candidates = torch.rand(rows, CLASSES, generator=generator) < 0.6
        candidates[torch.arange(rows), torch.randint(CLASSES, (rows,), generator=generator)] = True
        yield index, (scale * (logits + lean)).softmax(dim=1), candidates


def run(balance, count, seed=0):
    """Judge and update, batch after batch; yields what went in and what was said of it."""
    controller = Controller(balance)
    state = double(controller.init_state(ROWS, CLASSES))
    for index, probs, candidates in batches(count, seed):
        before = {name: tensor.clone() for name, tensor in state.items()}
        verdict = controller.judge(probs, candidates, state)
        assert all(torch.equal(before[name], state[name]) for name in state)  # only looked at
        yield index, probs, candidates, verdict, before
        controller.update(state, index, verdict.to_commit)


def test_a_fixed_threshold_never_moves():
    for _, probs, _, verdict, state in run(Fixed(0.8), 5):
        assert list(state) == ["tau"]
        assert near(state["tau"], [0.8] * CLASSES, 1e-7)
        assert torch.equal(verdict.probs, probs)
        assert torch.equal(verdict.confident, verdict.score >= state["tau"][0])
        assert verdict.confident.any()


def test_the_adaptive_balance_is_eq_7():
    tau = [0.8] * CLASSES
    for *_, verdict, state in run(Adaptive(0.8, 0.5, 0.95, 0.3), 20):
        assert near(state["tau"], tau, 1e-6)
        labels, confident = verdict.label.tolist(), verdict.confident.tolist()
        tau = oracles.thresholds(tau, labels, confident, 0.5, 0.95, 0.3)
    assert len(set(tau)) > 2


def test_distribution_alignment_follows_the_loop():
    ring, tau, kinds = [[1 / CLASSES] * CLASSES] * BATCHES, 0.8, set()
    changed = 0
    for _, probs, candidates, verdict, state in run(Alignment(tau), BATCHES + 12):
        plain, members = probs.tolist(), candidates.tolist()
        aligned = oracles.alignment(plain, ring)
        assert near(verdict.probs, aligned, 1e-6)
        score, label = oracles.partial_confidence(aligned, members, (1, 1, 1))
        assert near(verdict.score, score, 1e-5)
        assert verdict.label.tolist() == label
        assert verdict.confident.tolist() == [s >= tau for s in score]
        changed += label != oracles.partial_confidence(plain, members, (1, 1, 1))[1]
        kinds.update(verdict.confident.tolist())
        assert near(state["tau"], [tau] * CLASSES, 1e-7)
        # The oldest mean goes; the newest is that of the probabilities before they were aligned.
        ring = [*ring[1:], [oracles.mean(column) for column in zip(*plain, strict=True)]]
    assert BATCHES == 128
    assert changed > 10
    assert kinds == {True, False}


def test_alignment_starts_uniform_and_so_changes_nothing_at_first():
    (first,) = run(Alignment(0.8), 1)
    _, probs, _, verdict, _ = first
    assert torch.allclose(verdict.probs, probs, atol=1e-9)


def test_alignment_survives_a_class_that_is_never_predicted():
    balance = Alignment(0.8)
    state = balance.init_state(ROWS, 2)
    state["means"][:, 0], state["means"][:, 1] = 1.0, 0.0
    aligned = balance.align(torch.tensor([[1.0, 0.0], [0.9, 0.1]]), state)
    assert aligned.isfinite().all()
    assert torch.allclose(aligned.sum(dim=1), torch.ones(2))


def test_curriculum_thresholds_follow_the_loop():
    tau, passed, seen = 0.8, {}, set()
    for index, _, _, verdict, state in run(Curriculum(tau), 40):
        lowered = oracles.curriculum(tau, passed, ROWS, CLASSES)
        assert near(state["tau"], lowered, 1e-6)
        assert state["passed"].tolist() == [passed.get(row, NEVER) for row in range(ROWS)]
        reached = [
            s >= lowered[j] - 1e-6
            for s, j in zip(verdict.score.tolist(), verdict.label.tolist(), strict=True)
        ]
        assert verdict.confident.tolist() == reached
        for row, score, label in zip(
            index.tolist(), verdict.score.tolist(), verdict.label.tolist(), strict=True
        ):
            if score >= tau:  # the fixed one
                seen.add("again" if passed.get(row, label) != label else "first")
                passed[row] = label
            elif row in passed:
                seen.add("kept")
    assert seen == {"first", "again", "kept"}
    assert len(set(lowered)) > 2


def step(index, label, score):
    """As the controller reports it; neither the verdict nor the mean matters to a curriculum."""
    label = torch.tensor(label)
    return JudgedBatch(
        torch.tensor(index), label, torch.tensor(score), label < 0, torch.zeros(CLASSES)
    )


def test_a_curriculum_on_a_case_small_enough_to_read():
    balance = Curriculum(0.8)
    state = balance.init_state(10, 3)
    assert balance.thresholds(state).tolist() == [0, 0, 0]  # everyone is confident at first
    balance.update(state, step([0, 1, 2, 3], [0, 0, 1, 1], [0.9, 0.8, 0.85, 0.79]))
    # 2 passed as class 0 and 1 as class 1; 7 are not used yet, and they are the most.
    shares = [2 / 7, 1 / 7, 0]
    expected = [0.8 * b / (2 - b) for b in shares]
    assert balance.thresholds(state).tolist() == pytest.approx(expected)
    balance.update(state, step([1, 2, 4, 5, 6, 7, 8], [1] * 7, [0.9, 0.1, *[0.9] * 5]))
    assert state["passed"].tolist() == [0, 1, 1, -1, 1, 1, 1, 1, 1, -1]  # 1 has changed, 2 has not
    assert balance.thresholds(state).tolist() == pytest.approx(
        [0.8 * (1 / 7) / (2 - 1 / 7), 0.8, 0]
    )


def test_balances_by_name():
    found = {n: make_balance(n, 0.8, 0.5, 0.95, 1.0) for n in ("adaptive", "fixed", "da", "cpl")}
    assert found["adaptive"] == Adaptive(0.8, 0.5, 0.95, 1.0)
    assert (found["fixed"], found["da"], found["cpl"]) == (
        Fixed(0.8),
        Alignment(0.8),
        Curriculum(0.8),
    )
