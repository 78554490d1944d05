import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oracles
import strategies
from concont.core.balance import Adaptive, Fixed
from concont.core.controller import Controller, Verdict, label_quality, partial_confidence
from concont.core.evidence import weigh_classes

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


@given(problem=strategies.weighted_problems(), weights=weights)
def test_evidence_takes_the_place_of_sets(problem, weights):
    probs, candidates, votes = problem[0].softmax(dim=1), problem[1], problem[2]
    evidence = weigh_classes(candidates, votes, 2.0)
    score, label = partial_confidence(probs, candidates, weights, evidence)
    plain = (probs.tolist(), candidates.tolist(), weights, evidence.tolist())
    expected, labels = oracles.weighed_confidence(*plain)
    assert score.tolist() == pytest.approx(expected, abs=1e-9)
    weighed = probs * evidence
    best = torch.tensor(labels)[:, None]
    assert torch.allclose(weighed.gather(1, label[:, None]), weighed.gather(1, best))
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
    probs, full = torch.tensor([[0.9, 0.1], [0.1, 0.9]]), torch.ones(2, 2).bool()
    controller = Controller(Fixed(0.8))
    verdict = controller.judge(probs, full, {"tau": torch.tensor([1.31, 1.29])})
    assert verdict.score.tolist() == pytest.approx([1.3, 1.3])
    assert verdict.confident.tolist() == [False, True]
    assert controller.judge(probs, full, {"tau": verdict.score}).confident.all()  # p >= tau


def test_a_verdict_holds_what_was_judged_and_what_was_given():
    probs, full = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.8, 0.2]]), torch.ones(3, 2).bool()

    class Turned(Fixed):
        """Judges the classes the other way round."""

        def align(self, probs, state):
            return probs.flip(1)

    controller = Controller(Turned(0.5), weights=(0.0, 1.0, 0.0))
    verdict = controller.judge(probs, full, controller.init_state(3, 2))
    assert verdict.label.tolist() == [1, 0, 1]
    assert torch.equal(verdict.probs, probs.flip(1))
    assert torch.equal(verdict.given, probs)
    assert verdict.score.tolist() == pytest.approx([0.8, 0.8, 0.6])


def test_the_controller_remembers_a_verdict_over_the_step():
    probs, full = torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.ones(2, 2).bool()
    controller = Controller(Adaptive(0.8, 0.5, 0.95, 1.0))
    state = controller.init_state(40, 2)
    verdict = controller.judge(probs, full, state)
    assert set(verdict.to_commit) == {
        f"verdict_{n}" for n in ("label", "score", "confident", "given")
    }
    controller.update(state, torch.tensor([7, 3]), verdict.to_commit)
    assert state["tau"].tolist() == pytest.approx([0.95, 0.5])
    seen = []

    class Noting(Fixed):
        def update(self, state, step):
            seen.append(step)

    Controller(Noting(0.8)).update(state, torch.tensor([7, 3]), verdict.to_commit)
    (step,) = seen
    assert step.index.tolist() == [7, 3]
    for name in ("label", "score", "confident"):
        assert torch.equal(getattr(step, name), getattr(verdict, name))
    assert step.mean.tolist() == pytest.approx([0.85, 0.15])


def test_what_is_logged_counts_only_labels_that_are_known():
    label, truth = torch.tensor([0, 1, 2, 1, 0]), torch.tensor([0, 2, 2, -1, -1])
    confident = torch.tensor([True, True, False, True, False])
    verdict = Verdict(label, torch.zeros(5), confident, torch.zeros(5, 3), torch.zeros(3))
    sets = torch.tensor([[1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 0]]).bool()
    found = {name: (a.item(), b.item()) for name, (a, b) in verdict.quality(truth, sets).items()}
    alone = {
        "pseudo_accuracy": (2, 3),
        "pseudo_accuracy_partial": (2, 2),
        "pseudo_accuracy_unlabeled": (0, 1),
    }
    assert found == {"confident": (3, 5), "confident_precision": (1, 2), **alone}
    without = label_quality(label, truth, sets)
    assert {name: (a.item(), b.item()) for name, (a, b) in without.items()} == alone
