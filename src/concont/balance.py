"""Class balance: the adaptive confidence thresholds (Eqs. 6-8)."""

import torch
from torch import Tensor


class AdaptiveThresholds:
    """One confidence threshold a class; strong classes rise, weak ones fall.

    Starts at `initial` and stays in [lower, upper]; `rate` is the paper's gamma. `values` (C,)
    may be given to go on from, and is then updated in place.
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
