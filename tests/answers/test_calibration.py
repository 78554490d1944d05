import numpy as np
import pytest
from scipy.special import softmax

from concont.answers.calibration import FEWEST, fit_calibration, fit_temperature, measure_error


def draw(n, temperature, seed=0, classes=4):
    """Scores (n, classes) and labels that are drawn from their softmax at a temperature."""
    stream = np.random.RandomState(seed)
    scores = stream.randn(n, classes) * 3
    chance = softmax(scores / temperature, axis=1).cumsum(axis=1)
    return scores, (stream.rand(n, 1) > chance).sum(axis=1).clip(max=classes - 1)


def mean_loss(scores, labels, temperature):
    """Plain loops over the definition."""
    total = 0.0
    for row, label in zip(scores, labels, strict=True):
        powers = [np.exp(score / temperature) for score in row]
        total -= np.log(powers[label] / sum(powers))
    return total / len(labels)


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.5])
def test_the_temperature_that_labels_were_drawn_with_is_found(temperature):
    scores, labels = draw(4000, temperature)
    assert fit_temperature(scores, labels) == pytest.approx(temperature, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_temperature_makes_the_labels_likelier(seed):
    scores, labels = draw(60, 2.0, seed)
    best = fit_temperature(scores, labels)
    least = mean_loss(scores, labels, best)
    for other in (*np.geomspace(0.06, 19, 40), best * 1.02, best / 1.02):
        assert mean_loss(scores, labels, other) >= least - 1e-9


def test_scores_that_are_always_right_get_the_lowest_temperature_there_is():
    scores = np.eye(3)[np.arange(90) % 3]
    assert fit_temperature(scores, np.arange(90) % 3) == pytest.approx(1 / 20, rel=0.01)


def test_the_error_falls_where_scores_were_too_sure():
    scores, labels = draw(3000, 3.0)
    found = fit_calibration(scores, labels)
    assert found.n == 3000
    assert found.error_before == measure_error(softmax(scores, axis=1), labels)
    assert found.error_before > 0.15
    assert found.error_after < 0.04


def test_the_error_after_is_of_images_that_the_temperature_was_not_fitted_on(monkeypatch):
    from concont.answers import calibration as module

    scores, labels = draw(100, 2.0)
    key = {tuple(row): k for k, row in enumerate(scores)}
    fitted = []

    def note(some, those):
        fitted.append({key[tuple(row)] for row in some})
        return fit_temperature(some, those)

    measured = []
    monkeypatch.setattr(module, "fit_temperature", note)
    error = module.measure_error
    monkeypatch.setattr(
        module, "measure_error", lambda probs, truth: measured.append(probs) or error(probs, truth)
    )
    fit_calibration(scores, labels)
    *folds, every = fitted
    assert every == set(range(100))
    assert [len(fold) for fold in folds] == [80] * 5
    left = [every - fold for fold in folds]
    assert set.union(*left) == every
    for fold, rest in zip(folds, left, strict=True):
        temperature = fit_temperature(scores[sorted(fold)], labels[sorted(fold)])
        expected = softmax(scores[sorted(rest)] / temperature, axis=1)
        assert np.allclose(measured[1][sorted(rest)], expected, rtol=1e-3)


def test_a_handful_of_images_is_too_few():
    scores, labels = draw(FEWEST - 1, 1.0)
    assert fit_calibration(scores, labels) is None
    assert fit_calibration(*draw(FEWEST, 1.0)) is not None
