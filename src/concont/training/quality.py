"""How good predictions are: accuracy, class by class, who is taken for whom, calibration."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15


def evaluate_probabilities(
    probs: NDArray[np.float32], labels: NDArray[np.int64], classes: tuple[str, ...]
) -> dict[str, Any]:
    """Figures of probabilities (M, C) against true labels (M,): as of labels, and calibration."""
    predicted = probs.argmax(axis=1)
    error = calibration_error(probs.max(axis=1), predicted == labels)
    return {**evaluate_labels(predicted, labels, classes), "calibration_error": error}


def evaluate_labels(
    predicted: NDArray[np.int64], labels: NDArray[np.int64], classes: tuple[str, ...]
) -> dict[str, Any]:
    """Figures of predicted labels (M,) against true ones (M,); scikit-learn counts.

    `confusion` has a row a true class, a column a predicted one. A class without an image has
    no accuracy of its own, and labels alone no calibration error.
    """
    from sklearn.metrics import accuracy_score, confusion_matrix

    confusion = confusion_matrix(labels, predicted, labels=np.arange(len(classes)))
    totals = confusion.sum(axis=1)
    hits = zip(confusion.diagonal().tolist(), totals.tolist(), strict=True)
    own = [hit / n if n else None for hit, n in hits]
    return {
        "n": len(labels),
        "accuracy": float(accuracy_score(labels, predicted)),
        "per_class": dict(zip(classes, own, strict=True)),
        "confusion": confusion.tolist(),
        "calibration_error": None,
    }


def calibration_error(confidence: NDArray[np.floating[Any]], right: NDArray[np.bool_]) -> float:
    """Expected calibration error: mean gap of confidence and accuracy over 15 equal bins."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=confidence - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(right))
