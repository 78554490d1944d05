"""The partial cross-entropy alone, on the weak view: the plain way to learn from candidate sets."""

from dataclasses import dataclass
from typing import Literal

from concont.core.evidence import weigh_classes
from concont.core.losses import PART_MEANS, partial_cross_entropy
from concont.types import Batch, MethodDefaults, Nets, NonNegative, State, StepOut, setting


@dataclass(frozen=True)
class Partial(MethodDefaults):
    """Eq. 1 and nothing else."""

    name: Literal["partial"] = "partial"
    part_mean: Literal["batch", "partial"] = "batch"  # over which rows the loss is averaged
    vote_strength: NonNegative = setting(1.0, shared=True)  # exponent of a candidate's votes

    views = ("weak",)

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The mean of Eq. 1 over the batch, or over its partial rows."""
        (features,) = nets.online.features(batch.views["weak"])
        evidence = weigh_classes(batch.candidates, batch.weights, self.vote_strength)
        rows = partial_cross_entropy(nets.online.logits(features), evidence)
        loss = PART_MEANS[self.part_mean](rows, evidence)
        return StepOut(total=loss, terms={"loss_part": loss.detach()})
