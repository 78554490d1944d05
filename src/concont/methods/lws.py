"""LWS (Wen et al. 2021): leveraged weighted sigmoid losses inside and outside the set."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from concont.core.losses import inside_softmax
from concont.ranks.tensors import gather_rows
from concont.types import Batch, MethodDefaults, Nets, NonNegative, Plain, State, StepOut


@dataclass(frozen=True)
class Lws(MethodDefaults):
    """A sigmoid loss a label, weighted on each side of the candidate set."""

    name: Literal["lws"] = "lws"
    leverage: NonNegative = 1.0  # beta: what the labels outside count

    views = ("weak",)
    brings: ClassVar[Plain] = {  # of its paper; the weak view is ours
        "paper": {"optimizer": {"lr": 0.05, "weight_decay": 1e-3, "schedule": "halving"}}
    }

    def init_state(self, candidates: Tensor, dim: int) -> State:
        """Equal weights for all labels."""
        return {"weights": torch.full(candidates.shape, 1 / candidates.shape[1])}

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The mean over the batch."""
        (features,) = nets.online.features(batch.views["weak"])
        logits = nets.online.logits(features)
        weights, inside = state["weights"][batch.index], batch.candidates
        kept = (weights * torch.sigmoid(-logits) * inside).sum(dim=1)
        left = (weights * torch.sigmoid(logits) * ~inside).sum(dim=1)
        loss = (kept + self.leverage * left).mean()
        return StepOut(total=loss, terms={"loss_part": loss.detach()})

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """New weights by a second pass, of the network as the step left it."""
        (features,) = nets.online.features(batch.views["weak"])
        (logits,) = gather_rows(nets.online.logits(features))  # of the whole batch
        inside = batch.candidates
        outside = ~inside | inside.all(dim=1, keepdim=True)  # a full set: a side of its own
        weights = torch.where(
            inside, inside_softmax(logits, inside), inside_softmax(logits, outside)
        )
        state["weights"].index_copy_(0, batch.index, weights)
