import numpy as np
import pytest
import torch

from concont.augment.features import NEVER_VARIES
from concont.data.mapped_arrays import RowsOf
from concont.training import moments


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("at_once", [7, 2**22])
def test_the_moments_are_those_of_all_rows(monkeypatch, kind, at_once):
    monkeypatch.setattr(moments, "AT_ONCE", at_once)
    rows = (np.random.RandomState(0).randn(50, 3) * [1, 10, 0.1] + [0, 100, -3]).astype(kind)
    chosen = RowsOf(rows, np.arange(0, 50, 2))
    for given, all_rows in ((rows, rows), (chosen, rows[::2])):
        mean, std = moments.measure_features(given)
        wide = all_rows.astype(np.float64)
        assert mean.dtype == std.dtype == torch.float32
        assert np.allclose(mean, wide.mean(axis=0), rtol=1e-6)
        assert np.allclose(std, wide.std(axis=0), rtol=1e-5)


def test_a_feature_that_does_not_vary_counts_for_nothing(caplog):
    rows = np.random.RandomState(0).randn(20, 5)
    rows[:, 1], rows[:, 2] = 0.1, 0.0
    moments.measure_features(rows)
    assert caplog.text == ""
    rows[:, 3] = 1e9 + 1e-3 * rows[:, 3]  # float32 cannot tell these apart
    rows[:, 4] *= 1e-100
    mean, std = moments.measure_features(rows)
    assert std[1:].tolist() == [pytest.approx(NEVER_VARIES)] * 4
    assert "2 of 5 features vary too little beside their mean" in caplog.text
    assert "feature 3 first" in caplog.text
    normalised = (torch.from_numpy(rows.astype(np.float32)) - mean) / std
    assert normalised[:, 1:].abs().max() < 1e-20
    assert normalised[:, 0].std() == pytest.approx(1, rel=0.05)


def test_in_a_million_rows_one_that_does_not_vary_is_no_warning(caplog):
    """The sum of so many is rounded, and the mean is not quite the number."""
    rows = np.full((1_000_000, 2), 0.1)
    _, std = moments.measure_features(rows)
    assert caplog.text == ""
    assert std.tolist() == [pytest.approx(NEVER_VARIES)] * 2
    rows[7, 1] += 1e-9
    moments.measure_features(rows)
    assert "1 of 2 features vary too little beside their mean" in caplog.text
    assert "feature 1 first" in caplog.text


def test_numbers_beyond_float32_are_no_warning():
    """They are refused in words where the rows are placed; a warning is an error here."""
    rows = np.random.RandomState(0).randn(20, 2) * [1e300, 1]
    assert moments.measure_features(rows)[1][1] == pytest.approx(rows[:, 1].std(), rel=1e-5)
