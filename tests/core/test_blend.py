import pytest
import torch

from concont.core.blend import blend, blend_shares


def test_shares_go_evenly_from_none_to_the_most():
    shares = blend_shares(4, 0.4, torch.zeros((), dtype=torch.float64))
    assert shares.tolist() == pytest.approx([0.05, 0.15, 0.25, 0.35])


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
