"""Cross-entropy on true labels of all training images: the bound, not a method."""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F

from concont.types import Batch, MethodDefaults, Nets, State, StepOut


@dataclass(frozen=True)
class Supervised(MethodDefaults):
    """The weak view, with the true label of every image."""

    name: Literal["supervised"] = "supervised"

    views = ("weak",)
    wants_unlabeled = True
    reads_truth = True
    fully_supervised = True  # the ConCont paper states neither views nor schedule: as ConCont

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The mean cross-entropy."""
        (features,) = nets.online.features(batch.views["weak"])
        return StepOut(total=F.cross_entropy(nets.online.logits(features), batch.truth))
