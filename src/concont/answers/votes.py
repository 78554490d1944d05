"""Votes and a network together: each weighs what it has shown to be worth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

ROUNDS = 50
RIGHT = 0.7  # of the votes, to begin with
PRIOR = 5.0  # votes for each class that stand for what annotators do on average
STRONGEST = 2.0  # a network is sharpened no further
LEAST_GAIN = 0.05  # nats an image: a network that tells less adds nothing to the votes
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class JointEstimate:
    """What votes and network say of M images."""

    posterior: NDArray[np.float64]  # (M, C)
    confusion: NDArray[np.float64]  # (C, C) how often an image of a class gets a vote for each
    strength: float  # the exponent of the network's probabilities; 0: they say nothing
    gain: float  # nats an image that the network tells beyond how frequent each class is

    @property
    def network_helps(self) -> bool:
        """Whether the network tells enough to be listened to."""
        return self.gain >= LEAST_GAIN


def combine(votes: Floats, log_probs: Floats) -> JointEstimate:
    """The likeliest classes given votes (M, C) and a network's log-probabilities (M, C).

    Expectation maximisation as Dawid and Skene's (1979), for annotators alike, with the network's
    prediction as an image's own prior (Raykar et al., JMLR 2010). Its exponent is fitted with the
    rest: a network that contradicts the votes at random ends near 0.
    """
    n_classes = votes.shape[1]
    average = np.full((n_classes, n_classes), (1 - RIGHT) / max(1, n_classes - 1))
    np.fill_diagonal(average, RIGHT)
    posterior = _posterior(votes, average, np.zeros_like(log_probs))
    for _ in range(ROUNDS):
        confusion = _fit_confusion(votes, posterior)
        strength = _fit_strength(log_probs, posterior)
        before = posterior
        posterior = _posterior(votes, confusion, strength * log_probs)
        if np.abs(posterior - before).max() < 1e-6:
            break
    calibrated = log_softmax(strength * log_probs, axis=1)
    frequent = np.log(np.maximum(posterior.mean(axis=0), 1e-12))
    gain = float((posterior * (calibrated - frequent)).sum(axis=1).mean())
    return JointEstimate(posterior, confusion, strength, gain)


def choose_by_votes(votes: Floats, estimate: JointEstimate) -> NDArray[np.int64]:
    """The class (M,) with the most votes; of equal ones the likeliest."""
    most = votes == votes.max(axis=1, keepdims=True)
    likeliest: NDArray[np.int64] = np.where(most, estimate.posterior, -1).argmax(axis=1)
    return likeliest


def _posterior(votes: Floats, confusion: Floats, prior: Floats) -> NDArray[np.float64]:
    found: NDArray[np.float64] = softmax(prior + votes @ np.log(confusion).T, axis=1)
    return found


def _fit_confusion(votes: Floats, posterior: Floats) -> NDArray[np.float64]:
    """Rows of what is voted, each with some votes of what all annotators do: right, or anything."""
    counts = posterior.T @ votes  # (C, C)
    n_classes = len(counts)
    right = float(np.clip(np.trace(counts) / max(counts.sum(), 1e-12), 1 / n_classes, 0.999))
    average = np.full_like(counts, (1 - right) / max(1, n_classes - 1))
    np.fill_diagonal(average, right)
    counts = counts + PRIOR * average
    found: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
    return found


def _fit_strength(log_probs: Floats, posterior: Floats) -> float:
    def loss(strength: float) -> float:
        return -float((posterior * log_softmax(strength * log_probs, axis=1)).sum(axis=1).mean())

    return float(minimize_scalar(loss, bounds=(0.0, STRONGEST), method="bounded").x)
