"""The controller: pseudo-labels, partial confidence scores, and who is confident (Eq. 2)."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from concont.core.balance import Balance, JudgedBatch
from concont.core.evidence import find_unlabeled
from concont.types import State


def partial_confidence(
    probs: Tensor,
    candidates: Tensor,
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
    evidence: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The p-score of each row and its pseudo-label: the likeliest candidate (Eq. 2 [1]_).

    With probabilities f, the candidate set y of n labels out of C, and m = sum_j y_j f_j, the mass
    inside the set, the p-score is the weighted sum of three terms::

        p1 = 1 / n                                            # how much the set says
        p2 = (largest - second largest of f inside y) / m     # how far the pseudo-label leads
        p3 = (1 - m) / (C - n)                                # what falls outside the set

    p2 is 0 where m is 0, and p3 is 0 where every class is a candidate. Scores are not
    probabilities: a row with a single candidate has at least 2. With evidence u for each class
    (`core.evidence`), p2 and the pseudo-label have u in the place of y.

    Parameters
    ----------
    probs : Tensor (B, C), float
        Rows of a distribution over the classes.
    candidates : Tensor (B, C), bool
        The candidate sets, at least one class a row; all true where a row is unlabelled.
    weights : tuple of three floats
        Of p1, p2 and p3.
    evidence : Tensor (B, C), optional
        How far a row's set and its votes speak for each class, from 0 to 1; by default 1 for its
        candidates and 0 for the others.

    Returns
    -------
    score : Tensor (B,)
        The p-scores. A row counts as confident where its score reaches a threshold.
    pseudo_labels : Tensor (B,), int64
        Always one of the candidates, or of the classes with evidence above 0.

    References
    ----------
    .. [1] "Controller-Guided Partial Label Consistency Regularization with Unlabeled Data",
       AAAI 2024, https://doi.org/10.1609/aaai.v38i14.29484

    Examples
    --------
    >>> import torch
    >>> from concont import partial_confidence
    >>> probs = torch.tensor([[0.7, 0.2, 0.1]])
    >>> partial_confidence(probs, torch.tensor([[False, True, True]]))
    (tensor([1.5333]), tensor([1]))
    """
    n_classes = candidates.shape[1]
    n_candidates = candidates.sum(dim=1).to(probs.dtype)  # (B,)
    evidence = candidates if evidence is None else evidence.to(probs.dtype)
    likely = probs * evidence  # (B, C)
    mass = likely.sum(dim=1)
    # -1 outside: even where every candidate has underflowed to 0 the label is one of them.
    label = likely.masked_fill(evidence == 0, -1.0).argmax(dim=1)

    first = likely.amax(dim=1)
    second = likely.scatter(1, label[:, None], 0.0).amax(dim=1)
    label_information = 1 / n_candidates  # p1
    margin = ((first - second) / mass).where(mass > 0, 0.0)  # p2
    # p3 rises as the model fits worse, and still the paper adds it.
    # Paper: 0/0 where every class is a candidate; taken as 0.
    n_outside = n_classes - n_candidates
    outside = 1 - (probs * candidates).sum(dim=1)
    learning_state = (outside / n_outside.clamp(min=1)).where(n_outside > 0, 0.0)  # p3

    w1, w2, w3 = weights
    return w1 * label_information + w2 * margin + w3 * learning_state, label


@dataclass(frozen=True)
class Verdict:
    """The controller's opinion of a batch."""

    label: Tensor  # (B,) pseudo-labels
    score: Tensor  # (B,) p-scores
    confident: Tensor  # (B,) bool
    probs: Tensor  # (B, C) as they were judged
    given: Tensor  # (B, C) probabilities before

    @property
    def to_commit(self) -> dict[str, Tensor]:
        """What the controller wants to see again after the step."""
        names = ("label", "score", "confident", "given")
        return {f"verdict_{name}": getattr(self, name) for name in names}

    def quality(self, truth: Tensor, evidence: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """Sums and counts for the log: how many are confident, and how many of them rightly.

        evidence (B, C): the candidate sets, or what weighs more than they say.
        """
        sure = self.confident & (truth >= 0)
        right = (self.label == truth) & sure
        return {
            "confident": (self.confident.sum(), torch.ones_like(self.label).sum()),
            "confident_precision": (right.sum(), sure.sum()),
            **label_quality(self.label, truth, evidence),
        }


def label_quality(
    labels: Tensor, truth: Tensor, evidence: Tensor
) -> dict[str, tuple[Tensor, Tensor]]:
    """The same of pseudo-labels (B,) alone, of all rows and of each kind; for logging, no loss."""
    known, unlabeled = truth >= 0, find_unlabeled(evidence)
    right = (labels == truth) & known
    return {
        "pseudo_accuracy": (right.sum(), known.sum()),
        "pseudo_accuracy_partial": ((right & ~unlabeled).sum(), (known & ~unlabeled).sum()),
        "pseudo_accuracy_unlabeled": ((right & unlabeled).sum(), (known & unlabeled).sum()),
    }


@dataclass(frozen=True)
class Controller:
    """Scores, pseudo-labels and thresholds together: what any method can be guided by."""

    balance: Balance
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)  # of the p-score's terms

    def init_state(self, rows: int, classes: int) -> State:
        """What it remembers between steps."""
        return self.balance.init_state(rows, classes)

    def judge(
        self, probs: Tensor, candidates: Tensor, state: State, evidence: Tensor | None = None
    ) -> Verdict:
        """Call a row confident where its p-score reaches the threshold of its pseudo-label."""
        aligned = self.balance.align(probs, state)
        score, label = partial_confidence(aligned, candidates, self.weights, evidence)
        confident = score >= self.balance.thresholds(state)[label]
        return Verdict(label, score, confident, aligned, probs)

    def update(self, state: State, index: Tensor, memory: Mapping[str, Tensor]) -> None:
        """Move the thresholds after a step on the rows `index` (B,), from a verdict's memory."""
        label, score = memory["verdict_label"], memory["verdict_score"]
        confident, mean = memory["verdict_confident"], memory["verdict_given"].mean(dim=0)
        self.balance.update(state, JudgedBatch(index, label, score, confident, mean))
