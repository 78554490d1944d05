import math

import pytest
import torch
from hypothesis import given

import oracles
import strategies
from concont.core.evidence import weigh_classes
from concont.core.losses import (
    consistency_loss,
    contrastive_loss,
    inside_softmax,
    mean_over_batch,
    mean_over_partial,
    outside_cross_entropy,
    partial_cross_entropy,
    soft_cross_entropy,
    uniform_cross_entropy,
    uniform_cross_entropy_of_all,
)


def assert_close(found, expected, dtype):
    assert found.dtype == dtype
    tolerance = 1e-9 if dtype == torch.float64 else 2e-5
    wanted = torch.tensor(expected, dtype=torch.float64)
    assert torch.allclose(found.double(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("function", "oracle"),
    [
        (partial_cross_entropy, oracles.partial_cross_entropy),
        (uniform_cross_entropy, oracles.uniform_cross_entropy),
        (outside_cross_entropy, oracles.outside_cross_entropy),
        (inside_softmax, oracles.inside_softmax),
    ],
)
@given(problem=strategies.logit_problems())
def test_part_losses_match_their_oracles(function, oracle, dtype, problem):
    logits, candidates = problem[0].to(dtype), problem[1]
    assert_close(
        function(logits, candidates), oracle(logits.double().tolist(), candidates.tolist()), dtype
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(problem=strategies.weighted_problems())
def test_the_partial_loss_takes_evidence_in_the_place_of_sets(dtype, problem):
    logits, candidates, weights = problem
    evidence = weigh_classes(candidates, weights.to(dtype), 2.0)
    logits = logits.to(dtype).requires_grad_()
    loss = partial_cross_entropy(logits, evidence)
    expected = oracles.weighed_cross_entropy(logits.double().tolist(), evidence.double().tolist())
    assert_close(loss.detach(), expected, dtype)
    loss.sum().backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[candidates.all(dim=1)] == 0).all()


@given(problem=strategies.logit_problems())
def test_unlabelled_rows_cost_exactly_nothing_and_pull_nowhere(problem):
    logits, candidates = problem[0].requires_grad_(), problem[1]
    loss = partial_cross_entropy(logits, candidates)
    loss.sum().backward()
    unlabelled = candidates.all(dim=1)
    assert (loss[unlabelled] == 0).all()
    assert (logits.grad[unlabelled] == 0).all()
    assert logits.grad.isfinite().all()
    assert (loss >= 0).all()


@given(problem=strategies.logit_problems())
def test_another_candidate_never_raises_the_partial_loss(problem):
    logits, candidates = problem
    more = candidates.clone()
    more[:, 0] = True
    assert (
        partial_cross_entropy(logits, more) <= partial_cross_entropy(logits, candidates) + 1e-12
    ).all()


def test_a_certain_network_has_a_tiny_loss_not_a_rounded_one():
    logits = torch.tensor([[30.0, 0.0, 0.0]])
    loss = partial_cross_entropy(logits, torch.tensor([[True, False, False]]))
    assert loss.item() == pytest.approx(2 * 9.357623e-14, rel=1e-4)


def test_eq_1_keeps_its_digits_where_the_loss_is_large():
    logits = torch.tensor([[0.0, 20.5]], dtype=torch.float64)
    loss = partial_cross_entropy(logits, torch.tensor([[True, False]])).item()
    assert loss - 20.5 == pytest.approx(math.log1p(math.exp(-20.5)), rel=1e-5)


def test_partial_loss_gradient():
    logits = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    candidates = torch.tensor(
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]]
    )
    for function in (partial_cross_entropy, uniform_cross_entropy):
        assert torch.autograd.gradcheck(lambda x, f=function: f(x, candidates.bool()), logits)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("hard", [True, False])
@given(problem=strategies.logit_problems())
def test_consistency_loss_matches_its_oracle(dtype, hard, problem):
    logits, candidates = problem[0].to(dtype), problem[1]
    target = torch.softmax(torch.where(candidates, 0.5 * logits, -torch.inf), dim=1)
    if hard:
        target = torch.nn.functional.one_hot(target.argmax(1), target.shape[1]).to(dtype)
    confident = candidates.sum(1) % 2 == 1
    found = consistency_loss(logits, target, confident)
    expected = oracles.consistency(
        logits.double().tolist(), target.double().tolist(), confident.tolist()
    )
    tolerance = 1e-9 if dtype == torch.float64 else 1e-3
    wanted = torch.tensor(expected, dtype=torch.float64)
    assert torch.allclose(found.double(), wanted, tolerance, tolerance)


def test_consistency_loss_gradient_is_zero_for_unconfident_rows():
    logits = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    target = torch.eye(4, dtype=torch.float64)[[1, 2, 3]]
    confident = torch.tensor([True, False, True])
    assert torch.autograd.gradcheck(lambda x: consistency_loss(x, target, confident), logits)
    consistency_loss(logits, target, confident).sum().backward()
    assert (logits.grad[1] == 0).all()
    assert (logits.grad[0] != 0).all()


def unit_rows(n, seed, dtype):
    rows = torch.randn(n, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(rows, dim=1).to(dtype)


def random_masks(problem, seed):
    shape = len(problem["confident"]), len(problem["key_labels"])
    kind = torch.randint(3, shape, generator=torch.Generator().manual_seed(seed))
    return kind == 1, kind == 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(problem=strategies.contrast_problems(), seed=strategies.seeds)
def test_contrastive_loss_matches_its_oracle(dtype, problem, seed):
    positive, negative = random_masks(problem, seed)
    positive[0] = False  # an anchor without positives
    queries, keys = (
        unit_rows(positive.shape[0], seed, dtype),
        unit_rows(positive.shape[1], seed + 1, dtype),
    )
    found = contrastive_loss(queries, keys, positive, negative, 0.07)
    expected = oracles.contrastive(
        queries.double().tolist(),
        keys.double().tolist(),
        positive.tolist(),
        negative.tolist(),
        0.07,
    )
    assert_close(found, expected, dtype)
    assert found[0] == 0


def test_contrastive_loss_gradient_and_no_nan_without_any_pair():
    queries = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    positive = torch.tensor([[1, 0, 1, 0, 0, 0], [0] * 6, [0] * 6]).bool()
    negative = torch.tensor([[0, 1, 0, 1, 0, 0], [1] * 6, [0] * 6]).bool()
    assert torch.autograd.gradcheck(
        lambda q, k: contrastive_loss(q, k, positive, negative, 0.5), (queries, keys)
    )
    contrastive_loss(queries, keys, positive, negative, 0.07).sum().backward()
    assert queries.grad.isfinite().all()
    assert (queries.grad[1:] == 0).all()


def test_ignored_keys_take_no_part():
    queries, keys = unit_rows(1, 0, torch.float64), unit_rows(3, 1, torch.float64)
    positive = torch.tensor([[True, False, False]])
    negative = torch.tensor([[False, True, False]])
    before = contrastive_loss(queries, keys, positive, negative, 0.1)
    keys[2] = queries[0]  # as near as can be, but ignored
    assert torch.equal(before, contrastive_loss(queries, keys, positive, negative, 0.1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(problem=strategies.logit_problems(), seed=strategies.seeds)
def test_soft_cross_entropy_matches_its_oracle(dtype, problem, seed):
    logits, candidates = problem[0].to(dtype), problem[1]
    generator = torch.Generator().manual_seed(seed)
    target = torch.rand(logits.shape, generator=generator, dtype=torch.float64) * candidates
    target = target.to(dtype)  # a plain sum: it need not add up to 1
    expected = oracles.soft_cross_entropy(logits.double().tolist(), target.double().tolist())
    assert_close(soft_cross_entropy(logits, target), expected, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("top", [17.0, 40.0, 60.0, 200.0, 1000.0])
def test_a_label_outside_that_is_certain_has_a_finite_loss_and_pull(dtype, top):
    logits = torch.tensor([[top, 0.0, 0.0], [0.0, top, top]], dtype=dtype, requires_grad=True)
    candidates = torch.tensor([[False, True, True], [True, False, False]])
    loss = outside_cross_entropy(logits, candidates)
    # 1 - p = 2 / (e^top + 2); where two are certain 1 - p is a half of each
    expected = [math.log1p(2 * math.exp(-top)) + top - math.log(2), 2 * math.log(2)]
    assert loss.tolist() == pytest.approx(expected, rel=1e-6)
    loss.sum().backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0].tolist() == pytest.approx([1, -0.5, -0.5], abs=1e-4)


def test_the_outside_loss_keeps_its_digits_where_it_is_tiny():
    logits = torch.tensor([[30.0, 0.0, 0.0]])
    loss = outside_cross_entropy(logits, torch.tensor([[True, False, False]]))
    assert loss.item() == pytest.approx(2 * 9.357623e-14, rel=1e-4)


def test_gradients_of_the_outside_and_soft_losses():
    logits = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    candidates = torch.tensor(
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]]
    ).bool()
    target = torch.rand(5, 4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: outside_cross_entropy(x, candidates), logits)
    assert torch.autograd.gradcheck(lambda x: soft_cross_entropy(x, target), logits)
    (pull,) = torch.autograd.grad(outside_cross_entropy(logits, candidates).sum(), logits)
    assert (pull[3] == 0).all()  # a full set has nothing outside


@given(problem=strategies.logit_problems())
def test_the_inside_distribution_sums_to_one_whatever_underflows(problem):
    logits, candidates = problem[0].float() * 10, problem[1]
    found = inside_softmax(logits, candidates)
    assert (found[~candidates] == 0).all()
    assert torch.allclose(found.sum(dim=1), torch.ones(len(found)))


def test_the_uniform_loss_of_all_rows_holds_unlabelled_ones_too():
    logits, candidates = torch.randn(4, 3), torch.tensor([[1, 0, 1]] * 2 + [[1, 1, 1]] * 2).bool()
    partial, everything = (
        f(logits, candidates) for f in (uniform_cross_entropy, uniform_cross_entropy_of_all)
    )
    assert torch.equal(partial[:2], everything[:2])
    assert (partial[2:] == 0).all()
    assert torch.allclose(everything[2:], -logits[2:].log_softmax(dim=1).mean(dim=1))


def test_the_two_means_of_the_partial_loss():
    rows = torch.tensor([2.0, 4.0, 0.0, 0.0])
    candidates = torch.tensor([[1, 0], [0, 1], [1, 1], [1, 1]]).bool()
    assert mean_over_batch(rows, candidates) == 1.5
    assert mean_over_partial(rows, candidates) == 3
    assert mean_over_partial(rows[2:], torch.ones(2, 2).bool()) == 0
