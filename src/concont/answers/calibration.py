"""Probabilities that mean what they say: a temperature, fitted where the truth is declared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from concont.data.sources import Labels
from concont.training.quality import calibration_error

FEWEST = 50  # images: fewer say little about a temperature, and nothing about its error
FOLDS = 5
HOTTEST = 20.0  # the temperature lies between 1/20 and 20
Scores = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Calibration:
    """The temperature that scores are divided by, and what that did to their error."""

    temperature: float
    n: int  # images that it was fitted on
    error_before: float  # expected calibration error
    error_after: float  # of images that the temperature in use was not fitted on


def fit_calibration(scores: Scores, labels: Labels) -> Calibration | None:
    """From class scores (M, C) of images with these true labels (M,); None: too few of them.

    The error after is measured in turn on each fifth of the images, with the temperature that the
    other four give; the temperature that is kept is fitted on all.
    """
    if len(labels) < FEWEST:
        return None
    fold = np.random.RandomState(0).permutation(len(labels)) % FOLDS
    calibrated = np.empty(scores.shape)  # (M, C)
    for k in range(FOLDS):
        temperature = fit_temperature(scores[fold != k], labels[fold != k])
        calibrated[fold == k] = softmax(scores[fold == k] / temperature, axis=1)
    return Calibration(
        fit_temperature(scores, labels),
        len(labels),
        measure_error(softmax(scores, axis=1), labels),
        measure_error(calibrated, labels),
    )


def fit_temperature(scores: Scores, labels: Labels) -> float:
    """The one under which the true labels (M,) are likeliest (Guo et al., ICML 2017)."""
    rows = np.arange(len(labels))

    def loss(log_temperature: float) -> float:
        log_probs = log_softmax(scores / np.exp(log_temperature), axis=1)
        return -float(log_probs[rows, labels].mean())

    bounds = (-np.log(HOTTEST), np.log(HOTTEST))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def measure_error(probs: Scores, labels: Labels) -> float:
    """Expected calibration error of the likeliest class."""
    return calibration_error(probs.max(axis=1), probs.argmax(axis=1) == labels)
