"""Cross-entropy on true labels of all training images: the bound, not a method."""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from concont.types import Batch, Nets, State, StepOut


@dataclass(frozen=True)
class Supervised:
    """The weak view, with the true label of every image."""

    name: Literal["supervised"] = "supervised"

    views = ("weak",)
    key_momentum = None
    momentum_rises = False
    wants_unlabeled = True
    reads_truth = True

    def idle(self, batch: int, partial: int) -> int:
        """Every row learns."""
        return 0

    def init_state(self, candidates: Tensor, dim: int) -> State:
        """Nothing outlives a step."""
        return {}

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The mean cross-entropy."""
        (features,) = nets.online.features(batch.views["weak"])
        return StepOut(total=F.cross_entropy(nets.online.logits(features), batch.truth))

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """Nothing to store."""
