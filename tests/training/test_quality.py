import numpy as np
import pytest

from concont.training.quality import (
    BINS,
    calibration_error,
    evaluate_labels,
    evaluate_probabilities,
)


def test_the_figures_of_a_case_small_enough_to_count():
    probs = np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.7, 0.3, 0], [0.6, 0.4, 0]], np.float32)
    figures = evaluate_probabilities(probs, np.array([0, 1, 1, 0]), ("cat", "dog", "owl"))
    assert figures["n"] == 4
    assert figures["accuracy"] == 0.75
    assert figures["per_class"] == {"cat": 1.0, "dog": 0.5, "owl": None}
    assert figures["confusion"] == [[2, 0, 0], [1, 1, 0], [0, 0, 0]]
    labels_alone = evaluate_labels(
        probs.argmax(axis=1), np.array([0, 1, 1, 0]), ("cat", "dog", "owl")
    )
    assert labels_alone["accuracy"] == 0.75
    assert labels_alone["calibration_error"] is None
    # bins of 1/15: .9 and .8 and .7 and .6 each alone; gaps .1, .2, .7, .4
    assert figures["calibration_error"] == pytest.approx((0.1 + 0.2 + 0.7 + 0.4) / 4, abs=1e-6)


def test_labels_alone_have_all_but_calibration():
    probs = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], np.float32)
    truth, names = np.array([0, 1, 1]), ("cat", "dog")
    figures = evaluate_probabilities(probs, truth, names)
    assert evaluate_labels(probs.argmax(axis=1), truth, names) == {
        **figures,
        "calibration_error": None,
    }


def test_calibration_error_against_a_loop():
    stream = np.random.RandomState(0)
    confidence = np.append(stream.random_sample(500), [0.0, 1.0])
    right = stream.random_sample(502) < confidence**2
    total = 0.0
    for k in range(BINS):
        upper = (k + 1) / BINS if k < BINS - 1 else 1.1
        inside = (confidence >= k / BINS) & (confidence < upper)
        if inside.any():
            total += inside.sum() * abs(confidence[inside].mean() - right[inside].mean())
    assert calibration_error(confidence, right) == pytest.approx(total / 502)
    assert calibration_error(np.ones(4), np.ones(4, bool)) == 0
