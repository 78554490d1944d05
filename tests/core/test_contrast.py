import pytest
import torch
from hypothesis import given

import oracles
import strategies
from concont.core.contrast import SELECTIONS, contrast_masks, without


def columns(mask):
    return [set(row.nonzero()[:, 0].tolist()) for row in mask]


@pytest.mark.parametrize("strategy", SELECTIONS)
@given(problem=strategies.contrast_problems())
def test_masks_match_the_oracle(strategy, problem):
    positive, negative = contrast_masks(strategy, **problem)
    plain = [value.tolist() for value in problem.values()]
    expected = oracles.contrast(strategy, *plain)
    assert (columns(positive), columns(negative)) == expected
    assert not (positive & negative).any()
    assert not (positive | negative)[:, ~problem["key_valid"]].any()


def test_ours_on_a_case_small_enough_to_read():
    # keys:    own of 0   own of 1   same, sure   same, unsure   other class   unfilled slot
    positive, negative = contrast_masks(
        "ours",
        pseudo_labels=torch.tensor([0, 0]),
        confident=torch.tensor([True, False]),
        key_labels=torch.tensor([0, 0, 0, 0, 1, -1]),
        key_confident=torch.tensor([True, False, True, False, True, False]),
        key_valid=torch.tensor([True] * 5 + [False]),
        own_key=torch.tensor([0, 1]),
    )
    assert columns(positive) == [{0, 2}, {1}]
    assert columns(negative) == [{4}, {4}]


def test_an_unknown_strategy_is_named():
    problem = [torch.zeros(1, dtype=torch.long)] * 6
    with pytest.raises(ValueError, match="unknown selection 'best'; there are ours, hcp"):
        contrast_masks("best", *problem)


def test_an_anchor_can_be_left_out_of_its_own_keys():
    positive = torch.tensor([[True, True, False], [True, False, False]])
    masks = without(torch.tensor([1, 2]), (positive, ~positive))
    assert masks[0].tolist() == [[True, False, False], [True, False, False]]
    assert masks[1].tolist() == [[False, False, True], [False, True, False]]
