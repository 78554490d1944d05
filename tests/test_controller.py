import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oracles
import strategies
from concont.controller import judge, partial_confidence

weights = st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(problem=strategies.logit_problems(), weights=weights)
def test_p_score_and_label_match_the_oracle(dtype, problem, weights):
    probs, candidates = problem[0].to(dtype).softmax(dim=1), problem[1]
    score, label = partial_confidence(probs, candidates, weights)
    expected, labels = oracles.partial_confidence(
        probs.double().tolist(), candidates.tolist(), weights
    )
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    assert score.dtype == dtype
    assert torch.allclose(score.double(), torch.tensor(expected, dtype=torch.float64), 0, tolerance)
    best = torch.tensor(labels)
    assert torch.equal(probs.gather(1, label[:, None]), probs.gather(1, best[:, None]))
    assert candidates.gather(1, label[:, None]).all()


def test_the_papers_example_of_the_candidate_margin():
    probs = torch.tensor([[0.5, 0.2, 0.1, 0.1, 0.1], [0.5, 0.49, 0.01, 0.0, 0.0]])
    margin, label = partial_confidence(probs, torch.ones(2, 5).bool(), weights=(0, 1, 0))
    assert margin.tolist() == pytest.approx([0.3, 0.01], abs=1e-6)
    assert label.tolist() == [0, 0]


def test_the_terms_at_their_ends():
    probs = torch.tensor([[0.7, 0.2, 0.1]] * 3)
    candidates = torch.tensor([[1, 0, 0], [0, 1, 1], [1, 1, 1]]).bool()
    score, label = partial_confidence(probs, candidates)
    lone = 1 + 1 + 0.3 / 2  # a single candidate always has at least 2
    two = 1 / 2 + (0.2 - 0.1) / 0.3 + 0.7 / 1
    unlabelled = 1 / 3 + 0.5 + 0  # Eq. 2's third term is 0/0 there
    assert score.tolist() == pytest.approx([lone, two, unlabelled])
    assert label.tolist() == [0, 1, 0]


def test_candidates_whose_probability_underflowed():
    probs = torch.tensor([[1.0, 0.0, 0.0]])
    score, label = partial_confidence(probs, torch.tensor([[False, True, True]]))
    assert score.item() == pytest.approx(1 / 2 + 0 + 1)
    assert label.item() in (1, 2)


@given(problem=strategies.logit_problems(), seed=strategies.seeds)
def test_permuting_the_classes_permutes_the_labels(problem, seed):
    probs, candidates = problem[0].softmax(dim=1), problem[1]
    order = torch.randperm(probs.shape[1], generator=torch.Generator().manual_seed(seed))
    score, label = partial_confidence(probs, candidates)
    moved_score, moved = partial_confidence(probs[:, order], candidates[:, order])
    assert torch.allclose(score, moved_score, atol=1e-12)
    back = probs.gather(1, order[moved][:, None])
    assert torch.equal(back, probs.gather(1, label[:, None]))


def test_the_threshold_of_the_pseudo_label_decides():
    probs = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    verdict = judge(probs, torch.ones(2, 2).bool(), torch.tensor([1.31, 1.29]))
    assert verdict.score.tolist() == pytest.approx([1.3, 1.3])
    assert verdict.confident.tolist() == [False, True]
    at = judge(probs, torch.ones(2, 2).bool(), verdict.score)
    assert at.confident.all()  # p >= tau, with equality
