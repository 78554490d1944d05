import pytest
import torch

from concont.core.blend import blend, blend_shares


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shares_are_spread_evenly_and_those_of_the_first_rows_too(dtype):
    shares = blend_shares(1024, 0.4, torch.zeros((), dtype=dtype))
    for rows in (8, 64, 1024):
        evenly = 0.4 * (torch.arange(rows) + 0.5) / rows
        assert (shares[:rows].sort().values - evenly).abs().max() < 0.4 * 2 / rows
        assert torch.equal(shares[:rows], blend_shares(rows, 0.4, shares))


@pytest.mark.parametrize("shape", [(5,), (4, 3), (6, 2, 3, 3)])
def test_each_row_has_a_share_of_the_one_as_far_from_the_other_end(shape):
    values = torch.randn(shape, dtype=torch.float64)
    shares = blend_shares(len(values), 0.5, values).tolist()
    blended = blend(values, 0.5)
    for i, share in enumerate(shares):
        expected = (1 - share) * values[i] + share * values[len(values) - 1 - i]
        assert torch.allclose(blended[i], expected, atol=1e-12)
    assert blended.shape == values.shape


def test_nothing_is_blended_into_the_middle_row_of_an_odd_batch():
    values = torch.randn(5, 2)
    assert torch.allclose(blend(values, 0.5)[2], values[2])
    assert not torch.allclose(blend(values, 0.5)[1], values[1])


def test_nothing_is_blended_where_the_most_is_nothing():
    values = torch.randn(4, 3)
    assert torch.equal(blend(values, 0.0), values)
