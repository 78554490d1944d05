import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oracles
import strategies
from concont.balance import AdaptiveThresholds


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
