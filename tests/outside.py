"""A method of a user's own, in a file outside the package."""

CODE = '''
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from concont.core.losses import inside_softmax, soft_cross_entropy
from concont.types import MethodDefaults, Share, StepOut, setting


@dataclass(frozen=True)
class Smooth(MethodDefaults):
    """Labels that follow the network slowly."""

    name: Literal["smooth"] = "smooth"
    pace: Share = 0.9
    queue: int = setting(5, shared=True)
    mode: Literal["plain", "deep"] = "plain"
    depth: int = setting(3, only_with={"mode": "deep"})

    views = ("weak",)
    wants_unlabeled = True
    brings: ClassVar = {
        "paper": {"optimizer": {"lr": 0.25}},
        "digits": {"train": {"batch_size": 32}},
    }

    def init_state(self, candidates, dim):
        return {"table": candidates / candidates.sum(dim=1, keepdim=True)}

    def losses(self, nets, state, batch):
        (features,) = nets.online.features(batch.views["weak"])
        logits = nets.online.logits(features)
        before = state["table"][batch.index]
        now = torch.lerp(inside_softmax(logits.detach(), batch.candidates), before, self.pace)
        loss = soft_cross_entropy(logits, now).mean()
        moved = (now - before).abs().sum(dim=1) > 0.01
        metrics = {"moved": (moved.sum(), torch.ones_like(moved).sum())}
        return StepOut(loss, {"loss_smooth": loss.detach()}, metrics, {"table": now})

    def commit(self, nets, state, batch, out):
        state["table"].index_copy_(0, batch.index, out.to_commit["table"])
'''
