"""PRODEN (Lv et al. 2020): each row's labels are weighted by what the network made of them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from concont.core.losses import inside_softmax, soft_cross_entropy, uniform_over
from concont.types import Batch, MethodDefaults, Nets, Plain, State, StepOut


@dataclass(frozen=True)
class Proden(MethodDefaults):
    """Cross-entropy to the weights that the row's last visit left."""

    name: Literal["proden"] = "proden"

    views = ("weak",)
    # of its paper, but that has no augmentation and a constant rate: weak view and cosine are ours
    brings: ClassVar[Plain] = {
        "paper": {"optimizer": {"lr": 0.05, "weight_decay": 1e-3, "schedule": "cosine"}}
    }

    def init_state(self, candidates: Tensor, dim: int) -> State:
        """Equal weights for the candidates."""
        return {"weights": uniform_over(candidates)}

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The mean over the batch; the next weights come from the same pass."""
        (features,) = nets.online.features(batch.views["weak"])
        logits = nets.online.logits(features)
        loss = soft_cross_entropy(logits, state["weights"][batch.index]).mean()
        weights = inside_softmax(logits.detach(), batch.candidates)
        return StepOut(loss, terms={"loss_part": loss.detach()}, to_commit={"weights": weights})

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """The rows' new weights."""
        state["weights"].index_copy_(0, batch.index, out.to_commit["weights"])
