"""Class balance: who counts as confident, class by class (Eqs. 6-8 and their alternatives)."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from concont.types import State

BATCHES = 128  # that distribution alignment looks back on
NEVER = -1  # an image none of whose pseudo-labels has passed yet


class AdaptiveThresholds:
    """One confidence threshold a class: strong classes rise, weak ones fall (Eqs. 7, 8 [1]_).

    After a step in which s_j rows with pseudo-label j were confident, s' of all classes together
    and s_mean on average::

        tau_j = clamp(tau_j - rate * (s_mean - s_j) / s', lower, upper)

    So a class that few rows pass as becomes easier to pass as, and all take part in learning.

    Parameters
    ----------
    num_classes : int
        C.
    initial : float
        Every threshold at the start, from `lower` to `upper`.
    lower, upper : float
        Bounds that no threshold leaves.
    rate : float
        How fast they move; the paper's gamma.
    values : Tensor (C,), optional
        Thresholds to go on from; they are then updated in place.

    Attributes
    ----------
    values : Tensor (C,)
        The thresholds.

    References
    ----------
    .. [1] "Controller-Guided Partial Label Consistency Regularization with Unlabeled Data",
       AAAI 2024, https://doi.org/10.1609/aaai.v38i14.29484

    Examples
    --------
    >>> import torch
    >>> from concont import AdaptiveThresholds
    >>> thresholds = AdaptiveThresholds(3, initial=0.8, lower=0.5, upper=0.95, rate=0.3)
    >>> thresholds.update(torch.tensor([0, 0, 1]), confident=torch.tensor([True, True, False]))
    >>> thresholds.values
    tensor([0.9500, 0.7000, 0.7000])
    """

    def __init__(
        self,
        num_classes: int,
        initial: float,
        lower: float,
        upper: float,
        rate: float,
        values: Tensor | None = None,
    ) -> None:
        if not lower <= initial <= upper:
            raise ValueError(f"initial threshold {initial} is outside [{lower}, {upper}]")
        self.lower, self.upper, self.rate = lower, upper, rate
        self.values = torch.full((num_classes,), float(initial)) if values is None else values

    def update(self, pseudo_labels: Tensor, confident: Tensor) -> None:
        """Eq. 7 after a step: pseudo_labels (B,) and which of them were confident (B,) bool."""
        classes = torch.arange(len(self.values), device=pseudo_labels.device)
        self.update_counts(((pseudo_labels[:, None] == classes) & confident[:, None]).sum(dim=0))

    def update_counts(self, counts: Tensor) -> None:
        """Eq. 7 from s_j (C,), the confident rows of each class, counted anywhere.

        The shifts add up to 0 before the clamp of Eq. 8. Without a confident row nothing moves.
        Paper: Eq. 6 divides by s_j and the appendix has its sign turned; Eq. 7 does neither.
        """
        counts = counts.to(self.values)
        total = counts.sum().clamp(min=1)  # s'; with no confident row the shift is 0 / 1
        shift = self.rate * (counts.mean() - counts) / total
        self.values.sub_(shift).clamp_(self.lower, self.upper)  # Eq. 8


@dataclass(frozen=True)
class JudgedBatch:
    """What a balance learns from a step."""

    index: Tensor  # (B,) rows of the training set
    label: Tensor  # (B,) pseudo-labels
    score: Tensor  # (B,) p-scores
    confident: Tensor  # (B,) bool
    mean: Tensor  # (C,) of the probabilities, as the network gave them


class Balance(Protocol):
    """Thresholds for each class, and what is done to the probabilities before they are judged."""

    def init_state(self, rows: int, classes: int) -> State:
        """What it remembers."""
        ...

    def align(self, probs: Tensor, state: State) -> Tensor:
        """Probabilities (B, C) as they are to be judged."""
        ...

    def thresholds(self, state: State) -> Tensor:
        """The p-score (C,) from which on a pseudo-label of each class is confident."""
        ...

    def update(self, state: State, step: JudgedBatch) -> None:
        """After a step, in place."""
        ...


@dataclass(frozen=True)
class Fixed:
    """The same threshold for every class, for good (Vanilla in Table 5)."""

    threshold: float

    def init_state(self, rows: int, classes: int) -> State:
        """The threshold of each class."""
        return {"tau": torch.full((classes,), self.threshold)}

    def align(self, probs: Tensor, state: State) -> Tensor:
        """As they are."""
        return probs

    def thresholds(self, state: State) -> Tensor:
        """What the state holds."""
        return state["tau"]

    def update(self, state: State, step: JudgedBatch) -> None:
        """Nothing moves."""


@dataclass(frozen=True)
class Adaptive(Fixed):
    """The paper's: Eqs. 7 and 8."""

    lower: float
    upper: float
    rate: float

    def update(self, state: State, step: JudgedBatch) -> None:
        """Strong classes rise, weak ones fall."""
        limits = (self.lower, self.upper, self.rate)
        moved = AdaptiveThresholds(len(state["tau"]), self.threshold, *limits, values=state["tau"])
        moved.update(step.label, step.confident)


@dataclass(frozen=True)
class Alignment(Fixed):
    """Distribution alignment (ReMixMatch) towards equal classes; the threshold is fixed."""

    def init_state(self, rows: int, classes: int) -> State:
        """The mean predictions of the last batches, uniform at first."""
        return {
            **super().init_state(rows, classes),
            "means": torch.full((BATCHES, classes), 1 / classes),
            "means_next": torch.zeros((), dtype=torch.long),
        }

    def align(self, probs: Tensor, state: State) -> Tensor:
        """Divided by their running mean."""
        scaled = probs / state["means"].mean(dim=0).to(probs).clamp(min=1e-6)
        return scaled / scaled.sum(dim=1, keepdim=True)

    def update(self, state: State, step: JudgedBatch) -> None:
        """This batch's mean takes the place of the oldest."""
        state["means"].index_copy_(0, state["means_next"][None], step.mean[None].to(state["means"]))
        state["means_next"].add_(1).remainder_(BATCHES)


@dataclass(frozen=True)
class Curriculum(Fixed):
    """Curriculum thresholds (FlexMatch): lower for classes that few images have passed as."""

    def init_state(self, rows: int, classes: int) -> State:
        """The last label of each image that passed the fixed threshold; 0 for every class."""
        return {"tau": torch.zeros(classes), "passed": torch.full((rows,), NEVER)}

    def update(self, state: State, step: JudgedBatch) -> None:
        """Remember the labels that passed; then tau is threshold * b / (2 - b).

        b is a class's share of the largest one's count; those never used count while warming up.
        """
        tau, passed = state["tau"], state["passed"]
        now = torch.where(step.score >= self.threshold, step.label, passed[step.index])
        passed.index_copy_(0, step.index, now)
        counts = torch.zeros(len(tau) + 1, device=tau.device, dtype=tau.dtype)
        counts = counts.scatter_add(0, passed + 1, torch.ones_like(passed, dtype=tau.dtype))
        share = counts[1:] / counts.max()
        tau.copy_(self.threshold * share / (2 - share))


def make_balance(
    name: str, threshold: float, lower: float, upper: float, rate: float
) -> Adaptive | Fixed:
    """The balance that a setting names.

    The bounds widen to hold the threshold: who sets that one alone keeps a recipe's bounds.
    """
    if lower > upper:
        raise ValueError(f"threshold_lower {lower:g} is above threshold_upper {upper:g}")
    if name == "adaptive":
        return Adaptive(threshold, min(lower, threshold), max(upper, threshold), rate)
    return {"fixed": Fixed, "da": Alignment, "cpl": Curriculum}[name](threshold)
