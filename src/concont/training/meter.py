"""Sums of what the steps report, kept on the device and read only when a row is written."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from concont.errors import ConcontError, NonFiniteLoss
from concont.types import StepOut

LOSS = "loss"  # the total, which every step has
# A line of metrics has these, null where a method does not report them.
USUAL_TERMS = (LOSS, "loss_part", "loss_reg", "loss_contrast")
USUAL_METRICS = (
    "confident",
    "pseudo_accuracy",
    "pseudo_accuracy_partial",
    "pseudo_accuracy_unlabeled",
    "confident_precision",
)
# What the rest of a line is called, which no method may call a term or metric of its own.
TAKEN = (
    *(LOSS, "epoch", "step", "seconds", "images_per_s", "thresholds"),
    *("accuracy", "accuracy_best", "accuracy_momentum", "accuracy_in_set"),
    *("probability_on_sets", "share_in_sets"),
)
# Metrics of checkpoints that did not name their columns, by how many columns there were.
UNNAMED_METRICS = {9: USUAL_METRICS, 7: ("confident", "pseudo_accuracy", "confident_precision")}


class Meter:
    """Running means since the last row, and the first step whose loss was not finite.

    Its columns are what the first step reports. Adding a step's figures waits for nothing on the
    device; `read` and `check` do.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.matched = device, False
        self._open((LOSS,), ())

    def match_columns(self, out: StepOut) -> None:
        """Take the columns from the first step's report; refuse another one from a later step.

        To be called outside of what is compiled or captured, and before it.
        """
        terms, metrics = (LOSS, *out.terms), tuple(out.metrics)
        if (terms, metrics) != (self.terms, self.metrics):
            if self.matched:
                raise ConcontError(
                    f"a step reported {', '.join([*terms, *metrics])}; those before it reported "
                    f"{', '.join(self.columns)}: a method must report the same at every step"
                )
            self._refuse_taken(out)
            sums, counts = (
                dict(zip(self.columns, t, strict=True)) for t in (self.sums, self.counts)
            )
            self._open(terms, metrics)
            for place, name in enumerate(self.columns):  # of a checkpoint with other columns
                if name in sums:
                    self.sums[place], self.counts[place] = sums[name], counts[name]
        self.matched = True

    @property
    def columns(self) -> tuple[str, ...]:
        """Terms, then metrics."""
        return self.terms + self.metrics

    def add(self, out: StepOut, step: Tensor) -> None:
        """Take in the losses and counts of this step, counted from 1."""
        terms = [out.total.detach(), *(out.terms[name] for name in self.terms[1:])]
        pairs = [out.metrics[name] for name in self.metrics]
        one = self.sums.new_ones(())
        sums = [*terms, *(total for total, _ in pairs)]
        counts = [*(one for _ in terms), *(count for _, count in pairs)]
        self.sums += torch.stack([s.double() for s in sums])
        self.counts += torch.stack([c.double() for c in counts])
        now = torch.stack([step.double(), *(t.double() for t in terms)])
        first = (self.bad[0] < 0) & ~now.isfinite().all()
        self.bad.copy_(torch.where(first, now, self.bad))

    def read(self) -> dict[str, float | None]:
        """The means since the last reading, None where nothing was counted; starts afresh."""
        sums, counts = self.sums.tolist(), self.counts.tolist()
        self.sums.zero_()
        self.counts.zero_()
        means = {
            name: total / count if count else None
            for name, total, count in zip(self.columns, sums, counts, strict=True)
        }
        return {**dict.fromkeys(USUAL_TERMS + USUAL_METRICS), **means}

    def check(self) -> None:
        """Refuse to go on after a loss that is not a finite number."""
        step, *terms = self.bad.tolist()
        if step >= 0:
            named = ", ".join(f"{n} {t:g}" for n, t in zip(self.terms, terms, strict=True))
            raise NonFiniteLoss(f"the loss is not finite at step {int(step)}: {named}", int(step))

    def state_dict(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {
            "terms": list(self.terms),
            "metrics": list(self.metrics),
            "sums": self.sums,
            "counts": self.counts,
            "bad": self.bad,
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """From the checkpoint."""
        if "terms" in saved:
            self._open(tuple(saved["terms"]), tuple(saved["metrics"]))
        else:
            self._open(USUAL_TERMS, UNNAMED_METRICS[len(saved["sums"])])
        for name in ("sums", "counts", "bad"):
            getattr(self, name).copy_(saved[name])

    def rewind(self, start: Mapping[str, Any]) -> None:
        """Back to an earlier `state_dict`, in place; columns that are new since are empty."""
        same = (list(self.terms), list(self.metrics)) == (start["terms"], start["metrics"])
        for name, empty in (("sums", 0.0), ("counts", 0.0), ("bad", -1.0)):
            tensor = getattr(self, name)
            tensor.copy_(start[name]) if same else tensor.fill_(empty)

    def _open(self, terms: tuple[str, ...], metrics: tuple[str, ...]) -> None:
        """Columns by these names, with nothing in them."""
        self.terms, self.metrics = terms, metrics
        self.sums = torch.zeros(len(self.columns), dtype=torch.float64, device=self.device)
        self.counts = torch.zeros_like(self.sums)
        # step and terms of the first bad step; step -1: there was none
        self.bad = torch.full((1 + len(terms),), -1.0, dtype=torch.float64, device=self.device)

    def _refuse_taken(self, out: StepOut) -> None:
        for name in out.terms:
            if name in TAKEN or name in out.metrics:
                raise ConcontError(f"a term cannot be called {name}: that name is taken")
        for name in out.metrics:
            if name in TAKEN:
                raise ConcontError(f"a metric cannot be called {name}: that name is taken")
