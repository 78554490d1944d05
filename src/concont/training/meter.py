"""Sums of what the steps report, kept on the device and read only when a row is written."""

import torch
from torch import Tensor

from concont.errors import NonFiniteLoss
from concont.types import StepOut

TERMS = ("loss", "loss_part", "loss_reg", "loss_contrast")
METRICS = (
    "confident",
    "pseudo_accuracy",
    "pseudo_accuracy_partial",
    "pseudo_accuracy_unlabeled",
    "confident_precision",
)
COLUMNS = TERMS + METRICS
SAVED = ("sums", "counts", "steps", "bad")


class Meter:
    """Running means since the last row, and the first step whose loss was not finite.

    Adding a step's figures waits for nothing on the device; `read` and `check` do.
    """

    def __init__(self, device: torch.device) -> None:
        self.sums = torch.zeros(len(COLUMNS), dtype=torch.float64, device=device)
        self.counts = torch.zeros_like(self.sums)
        self.steps = torch.zeros((), dtype=torch.float64, device=device)
        # step and terms of the first bad step; step -1: there was none
        self.bad = torch.full((1 + len(TERMS),), -1.0, dtype=torch.float64, device=device)

    def add(self, out: StepOut) -> None:
        """Take in one step's losses and counts."""
        terms = [out.total.detach() if name == "loss" else out.terms.get(name) for name in TERMS]
        pairs = [out.metrics.get(name) for name in METRICS]
        one, none = self.sums.new_ones(()), self.sums.new_zeros(())
        values = [none if t is None else t for t in terms]
        sums = [*values, *(none if p is None else p[0] for p in pairs)]
        counts = [none if t is None else one for t in terms]
        counts += [none if p is None else p[1] for p in pairs]
        self.sums += torch.stack([s.double() for s in sums])
        self.counts += torch.stack([c.double() for c in counts])
        self.steps += 1
        now = torch.stack([self.steps, *(v.double() for v in values)])
        first = (self.bad[0] < 0) & ~now.isfinite().all()
        self.bad.copy_(torch.where(first, now, self.bad))

    def read(self) -> dict[str, float | None]:
        """The means since the last reading, None where nothing was counted; starts afresh."""
        sums, counts = self.sums.tolist(), self.counts.tolist()
        self.sums.zero_()
        self.counts.zero_()
        return {
            name: total / count if count else None
            for name, total, count in zip(COLUMNS, sums, counts, strict=True)
        }

    def check(self) -> None:
        """Refuse to go on after a loss that is not a finite number."""
        step, *terms = self.bad.tolist()
        if step >= 0:
            named = ", ".join(f"{n} {t:g}" for n, t in zip(TERMS, terms, strict=True))
            raise NonFiniteLoss(f"the loss is not finite at step {int(step)}: {named}")

    def state_dict(self) -> dict[str, Tensor]:
        """For the checkpoint."""
        return {name: getattr(self, name) for name in SAVED}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """From the checkpoint."""
        for name in SAVED:
            getattr(self, name).copy_(state[name])
