"""Evidence: how far what is known of a row speaks for each class, from its set and its votes."""

import torch
from torch import Tensor


def weigh_classes(
    candidates: Tensor, weights: Tensor | None = None, strength: float | Tensor = 1.0
) -> Tensor:
    """How far each class is spoken for (B, C): 1 for the best candidate, 0 for what is ruled out.

    With the candidate set y, weights w of its members (the largest of a row is 1) and their
    strength k, it is u_j = y_j w_j ** k. Eqs. 1 and 2 then have u in the place of y; with equal
    weights it is y itself, so that they are the paper's.

    Parameters
    ----------
    candidates : Tensor (B, C), bool
        The candidate sets; all true where a row is unlabelled.
    weights : Tensor (B, C), float, optional
        How much speaks for each candidate, as shares of votes do: the largest of a row is 1, those
        outside of the set 0, all of an unlabelled row 1. None: all candidates are alike.
    strength : float or Tensor ()
        The exponent of the weights; at 0 all candidates are alike.

    Returns
    -------
    Tensor (B, C)
        bool, the sets themselves, where nobody has voted; else floats from 0 to 1.
    """
    if weights is None:
        return candidates
    inside = weights.clamp(min=torch.finfo(weights.dtype).tiny) ** strength
    return torch.where(candidates, inside, 0.0)


def find_unlabeled(evidence: Tensor) -> Tensor:
    """Which rows (B,) nothing is known of: no class weighs less than another."""
    return (evidence == 1).all(dim=1)


def fading(start: float, end: float | None, epoch: Tensor, epochs: Tensor) -> float | Tensor:
    """A strength that goes straight from one value to another over a run; None: it stays."""
    return start if end is None else start + (end - start) * (epoch / epochs)
