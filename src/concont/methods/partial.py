"""The partial cross-entropy alone, on the weak view: the plain way to learn from candidate sets."""

from dataclasses import dataclass
from typing import Literal

from concont.core.losses import PART_MEANS, partial_cross_entropy
from concont.types import Batch, MethodDefaults, Nets, State, StepOut


@dataclass(frozen=True)
class Partial(MethodDefaults):
    """Eq. 1 and nothing else."""

    name: Literal["partial"] = "partial"
    part_mean: Literal["batch", "partial"] = "batch"  # over which rows the loss is averaged

    views = ("weak",)

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The mean of Eq. 1 over the batch, or over its partial rows."""
        (features,) = nets.online.features(batch.views["weak"])
        rows = partial_cross_entropy(nets.online.logits(features), batch.candidates)
        loss = PART_MEANS[self.part_mean](rows, batch.candidates)
        return StepOut(total=loss, terms={"loss_part": loss.detach()})
