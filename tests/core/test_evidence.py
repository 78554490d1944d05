import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oracles
import strategies
from concont.core.evidence import fading, find_unlabeled, weigh_classes

strengths = st.sampled_from([0.0, 0.5, 1.0, 3.0])


@given(problem=strategies.weighted_problems(), strength=strengths)
def test_it_matches_the_oracle(problem, strength):
    _, candidates, weights = problem
    found = weigh_classes(candidates, weights, strength)
    expected = oracles.evidence(candidates.tolist(), weights.tolist(), strength)
    assert torch.allclose(found.double(), torch.tensor(expected, dtype=torch.float64), atol=1e-6)
    assert found.dtype == weights.dtype


@given(problem=strategies.logit_problems())
def test_without_votes_it_is_the_sets_themselves(problem):
    candidates = problem[1]
    assert weigh_classes(candidates) is candidates
    alike = candidates.double()
    assert torch.equal(weigh_classes(candidates, alike, strength=3.0) == 1, candidates)
    votes = torch.rand_like(alike).clamp(min=0.1) * candidates
    assert torch.equal(weigh_classes(candidates, votes, strength=0.0) == 1, candidates)


def test_rows_of_which_nothing_is_known():
    sets = torch.tensor([[True, True], [True, False], [True, True]])
    assert find_unlabeled(sets).tolist() == [True, False, True]
    votes = torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 0.5]])  # on every class, and not alike
    assert find_unlabeled(weigh_classes(sets, votes)).tolist() == [True, False, False]


def test_a_strength_fades_in_a_straight_line():
    epoch, epochs = torch.tensor([5.0, 20.0]).unbind()
    assert fading(2.0, None, epoch, epochs) == 2.0
    assert fading(2.0, 0.0, epoch, epochs).item() == pytest.approx(1.5)
    assert fading(1.0, 3.0, epoch, epochs).item() == pytest.approx(1.5)
