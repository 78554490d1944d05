"""The controller: pseudo-labels, partial confidence scores, and who is confident (Eq. 2)."""

from dataclasses import dataclass

from torch import Tensor


def partial_confidence(
    probs: Tensor, candidates: Tensor, weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
) -> tuple[Tensor, Tensor]:
    """Eq. 2: the p-score (B,) of each row and its pseudo-label (B,), always a candidate.

    probs (B, C) rows of a distribution; candidates (B, C) bool; weights of the three terms.
    Scores are not probabilities: a row with a single candidate has at least 2.
    """
    n_classes = candidates.shape[1]
    n_candidates = candidates.sum(dim=1).to(probs.dtype)  # (B,)
    inside = probs * candidates  # (B, C)
    mass = inside.sum(dim=1)
    # -1 outside: even where every candidate has underflowed to 0 the label is one of them.
    label = probs.masked_fill(~candidates, -1.0).argmax(dim=1)

    first = inside.amax(dim=1)
    second = inside.scatter(1, label[:, None], 0.0).amax(dim=1)
    label_information = 1 / n_candidates  # p1
    margin = ((first - second) / mass).where(mass > 0, 0.0)  # p2
    # p3 rises as the model fits worse, and still the paper adds it.
    # Paper: 0/0 where every class is a candidate; taken as 0.
    n_outside = n_classes - n_candidates
    learning_state = ((1 - mass) / n_outside.clamp(min=1)).where(n_outside > 0, 0.0)  # p3

    w1, w2, w3 = weights
    return w1 * label_information + w2 * margin + w3 * learning_state, label


@dataclass(frozen=True)
class Verdict:
    """The controller's opinion of a batch."""

    label: Tensor  # (B,) pseudo-labels
    score: Tensor  # (B,) p-scores
    confident: Tensor  # (B,) bool


def judge(
    probs: Tensor,
    candidates: Tensor,
    tau: Tensor,
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Verdict:
    """Call a row confident where its p-score reaches the threshold (C,) of its pseudo-label."""
    score, label = partial_confidence(probs, candidates, weights)
    return Verdict(label=label, score=score, confident=score >= tau[label])
