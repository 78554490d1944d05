"""Votes and a network together: each weighs what it has shown to be worth."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, ndtr, softmax, stdtrit

ROUNDS = 50
RIGHT = 0.7  # of the votes, to begin with
PRIOR = 5.0  # votes for each class that stand for what annotators do on average
STRONGEST = 2.0  # a network is sharpened no further
SURE = 2.0  # standard errors that the gain of many images must be above 0; of few, more
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Fit:
    """How votes and a network tell the classes of M images."""

    posterior: NDArray[np.float64]  # (M, C)
    confusion: NDArray[np.float64]  # (C, C) how often an image of a class gets a vote for each
    strength: float  # the exponent of the network's probabilities; 0: they say nothing


@dataclass(frozen=True)
class JointEstimate:
    """What votes and network say of M images."""

    label: NDArray[np.int64]  # (M,) by both, or by the most votes where the network does not help
    probability: NDArray[np.float64]  # (M,) of the label
    fit: Fit  # of both
    gain: float  # share of the hidden votes that both name beyond what most of the others name
    network_helps: bool  # whether that is surely above 0


def combine(votes: Floats, log_probs: Floats) -> JointEstimate:
    """The likeliest classes given votes (M, C) and a network's log-probabilities (M, C).

    Votes and network together may follow a network that is worse than the votes. So each vote is
    hidden in turn: the network helps if, with it, the others name the hidden one more often than
    most of them do alone. Else, and where no image has two votes, the most votes decide; of equal
    ones the likeliest, with the network weighed by the votes alone.
    """
    first, both = fit_both(votes, log_probs)
    _, alone = fit_both(votes, np.zeros_like(log_probs))
    gains = score_hidden_votes(votes, log_probs, alone, both)
    gain = float(gains.mean()) if len(gains) else 0.0
    helps = is_surely_gained(gains)
    label, posterior = both.posterior.argmax(axis=1), both.posterior
    if not helps:
        label, posterior = _choose_most(votes, first.posterior), first.posterior
    return JointEstimate(label, posterior[np.arange(len(label)), label], both, gain, helps)


def fit_both(votes: Floats, log_probs: Floats) -> tuple[Fit, Fit]:
    """The first round, which weighs the network by the votes alone, and the last.

    Expectation maximisation as Dawid and Skene's (1979), for annotators alike, with the network's
    prediction as an image's own prior (Raykar et al., JMLR 2010), whose exponent is fitted, too.
    """
    average = _spread(RIGHT, votes.shape[1])
    first = fit = _refit(votes, log_probs, _posterior(votes, average, np.zeros_like(log_probs)))
    for _ in range(ROUNDS - 1):
        before, fit = fit, _refit(votes, log_probs, fit.posterior)
        if np.abs(fit.posterior - before.posterior).max() < 1e-6:
            break
    return first, fit


def score_hidden_votes(
    votes: Floats, log_probs: Floats, alone: Fit, both: Fit
) -> NDArray[np.float64]:
    """How much more of an image's votes both name than most do (images with two votes or more,).

    Each vote is named from the others of its image; of classes with equally many the one that is
    likeliest by the votes alone. Images with shares in the place of counts are left out.
    """
    total = votes.sum(axis=1)
    counted = (votes % 1 == 0).all(axis=1) & (total >= 2)
    apart, together = np.log(alone.confusion).T, np.log(both.confusion).T  # (C voted, C true)
    by_votes, by_both = votes @ apart, both.strength * log_probs + votes @ together
    gains = np.zeros(len(votes))
    for k in range(votes.shape[1]):
        rows = np.flatnonzero((votes[:, k] >= 1) & counted)
        others = votes[rows].copy()
        others[:, k] -= 1
        most = _choose_most(others, by_votes[rows] - apart[k]) == k
        named = (by_both[rows] - together[k]).argmax(axis=1) == k
        gains[rows] += votes[rows, k] / total[rows] * (named * 1.0 - most)
    found: NDArray[np.float64] = gains[counted]
    return found


def is_surely_gained(gains: NDArray[np.float64]) -> bool:
    """Whether the mean of gains (M,) is surely above 0: Student's t-test, one-sided.

    It errs as often as SURE standard errors do in a large sample. A few gains that happen to be
    equal deviate by nothing, and yet prove nothing: so the deviation is no less than 1 / sqrt(M),
    that of gains of which one is 1, all that an image can gain, and the others are 0.
    """
    n = len(gains)
    if n < 2:
        return False
    deviation = max(float(gains.std(ddof=1)), 1 / math.sqrt(n))
    limit = float(stdtrit(n - 1, ndtr(SURE)))
    return bool(gains.mean() > limit * deviation / math.sqrt(n))


def _choose_most(votes: Floats, scores: Floats) -> NDArray[np.int64]:
    """The class (M,) with the most votes (M, C); of equal ones that of the highest score."""
    most = votes == votes.max(axis=1, keepdims=True)
    found: NDArray[np.int64] = np.where(most, scores, -np.inf).argmax(axis=1)
    return found


def _refit(votes: Floats, log_probs: Floats, posterior: Floats) -> Fit:
    confusion = _fit_confusion(votes, posterior)
    strength = _fit_strength(log_probs, posterior)
    return Fit(_posterior(votes, confusion, strength * log_probs), confusion, strength)


def _posterior(votes: Floats, confusion: Floats, prior: Floats) -> NDArray[np.float64]:
    found: NDArray[np.float64] = softmax(prior + votes @ np.log(confusion).T, axis=1)
    return found


def _fit_confusion(votes: Floats, posterior: Floats) -> NDArray[np.float64]:
    """Rows of what is voted, each with some votes of what all annotators do: right, or anything."""
    counts = posterior.T @ votes  # (C, C)
    n_classes = len(counts)
    right = float(np.clip(np.trace(counts) / max(counts.sum(), 1e-12), 1 / n_classes, 0.999))
    counts = counts + PRIOR * _spread(right, n_classes)
    found: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
    return found


def _spread(right: float, n_classes: int) -> NDArray[np.float64]:
    """Annotators who are right with this chance, and else say anything (C, C)."""
    found = np.full((n_classes, n_classes), (1 - right) / max(1, n_classes - 1))
    np.fill_diagonal(found, right)
    return found


def _fit_strength(log_probs: Floats, posterior: Floats) -> float:
    def loss(strength: float) -> float:
        return -float((posterior * log_softmax(strength * log_probs, axis=1)).sum(axis=1).mean())

    return float(minimize_scalar(loss, bounds=(0.0, STRONGEST), method="bounded").x)
