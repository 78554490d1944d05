import re

import pytest
import torch

import ranked_steps
from concont.errors import UsageError
from concont.ranks import tensors
from concont.types import StepOut
from processes import on_ranks


@pytest.mark.slow
def test_what_ranks_exchange_is_what_one_process_has():
    assert on_ranks(3, ranked_steps.exchange) == [0, 0, 0]


def test_one_process_is_given_back_what_it_gave():
    rows, count = torch.rand(4, 2, requires_grad=True), torch.tensor(3)
    assert tensors.own_rows(rows) is rows
    assert tensors.own_rows(rows, dim=1) is rows
    assert tensors.count_own_rows(4) == 4
    assert tensors.gather_rows(rows, count) == (rows, count)
    assert tensors.gather_with_gradient(rows) is rows
    assert tensors.sum_over_ranks(rows) is rows
    out = StepOut(rows.sum())
    assert tensors.combine(out, 4) is out
    assert tensors.replicate(len, []) is len
    tensors.share([rows])


@pytest.mark.parametrize(("count", "expected"), [(4, 1.5), (1, 6.0), (0, 6.0)])
def test_a_sum_is_divided_by_its_count(count, expected):
    found = tensors.divide_over_ranks(torch.tensor(6.0), torch.tensor(count))
    assert found.item() == expected


@pytest.mark.parametrize("kept", [torch.zeros(()), torch.zeros(4), torch.zeros(2, 3)])
def test_what_has_no_row_for_each_of_the_batch_is_refused(monkeypatch, kept):
    monkeypatch.setattr(tensors.WORLD, "size", 2)
    out = StepOut(torch.zeros(()), to_commit={"whole": torch.zeros(3, 2), "mean": kept})
    shape = re.escape(str(tuple(kept.shape)))
    with pytest.raises(UsageError, match=f"as mean has shape {shape}: .* here 3"):
        tensors.combine(out, 3)
