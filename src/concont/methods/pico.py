"""PiCO (Wang et al. 2022): prototypes resolve the labels, contrast shapes the prototypes."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from concont.core.contrast import contrast_masks, without
from concont.core.controller import label_quality
from concont.core.losses import contrastive_loss, soft_cross_entropy, uniform_over
from concont.core.memory import EMPTY, empty_queue, push_
from concont.ranks.tensors import gather_rows, gather_with_gradient, own_rows
from concont.types import (
    Batch,
    Fraction,
    MethodDefaults,
    Nets,
    NonNegative,
    Plain,
    Positive,
    Share,
    Slots,
    State,
    StepOut,
    setting,
)


@dataclass(frozen=True)
class Pico(MethodDefaults):
    """Cross-entropy to a slow label confidence, and contrast between equal pseudo-labels."""

    name: Literal["pico"] = "pico"
    repr_weight: NonNegative = 0.5
    temperature: Positive = 0.07
    queue: Slots = setting(8192, shared=True)
    momentum: Fraction = setting(0.999, shared=True)  # of the key network
    prototype_momentum: Share = 0.99
    confidence_momentum: tuple[Share, Share] = (0.95, 0.8)  # phi, at the start and at the end

    views = ("weak", "strong")
    key_views = ("strong",)
    brings: ClassVar[Plain] = {  # of its paper, whose rate ends at lr / 1000
        "paper": {
            "views": {"weak": "pico", "strong": "pico"},
            "model": {"embedding": 128},
            "optimizer": {"lr": 0.01, "weight_decay": 1e-3, "schedule": "cosine"},
            "train": {"batch_size": 256},
        }
    }

    def key_momentum(self, step: Tensor) -> float | Tensor | None:
        """The key network follows at this pace."""
        return self.momentum

    def init_state(self, candidates: Tensor, dim: int) -> State:
        """Each row's label confidence, a prototype a class, an empty queue."""
        return {
            "confidence": uniform_over(candidates),
            "prototypes": torch.zeros(candidates.shape[1], dim),
            **empty_queue(self.queue, dim),
        }

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The weak view asks, the strong view of the key network answers."""
        (weak,) = nets.online.features(batch.views["weak"])
        logits, queries = nets.online.logits(weak), nets.online.embed(weak)
        with torch.no_grad():
            (strong,) = nets.key.features(batch.views["strong"])
            keys = nets.key.embed(strong)
        label = logits.detach().masked_fill(~batch.candidates, -torch.inf).argmax(dim=1)

        confidence = self._confidence(queries.detach(), state, batch)
        classified = soft_cross_entropy(logits, confidence).mean()
        contrast = self._contrast(queries, keys, label, state, batch).mean()
        return StepOut(
            total=classified + self.repr_weight * contrast,
            terms={"loss_part": classified.detach(), "loss_contrast": contrast.detach()},
            metrics=label_quality(label, batch.truth, batch.candidates),
            to_commit={
                "confidence": confidence,
                "queries": queries.detach(),
                "keys": keys,
                "label": label,
            },
        )

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """Confidence of these rows, prototypes, queue."""
        stored = out.to_commit
        state["confidence"].index_copy_(0, batch.index, stored["confidence"])
        prototypes = follow(
            state["prototypes"], stored["queries"], stored["label"], self.prototype_momentum
        )
        state["prototypes"].copy_(prototypes)
        push_(state, stored["keys"], stored["label"], torch.ones_like(stored["label"]).bool())

    def _confidence(self, queries: Tensor, state: State, batch: Batch) -> Tensor:
        """The rows' confidence (B, C), moved to the nearest prototype from the second epoch on."""
        before = state["confidence"][batch.index]
        likeness = queries @ state["prototypes"].T  # (B, C); its softmax has the same order
        nearest = likeness.masked_fill(~batch.candidates, -torch.inf).argmax(dim=1)
        first, last = self.confidence_momentum
        phi = first - (first - last) * (batch.epoch - 1) / batch.epochs
        now = phi * before + (1 - phi) * F.one_hot(nearest, before.shape[1])
        return torch.where(batch.epoch >= 1, now.to(before), before)

    def _contrast(
        self, queries: Tensor, keys: Tensor, label: Tensor, state: State, batch: Batch
    ) -> Tensor:
        """Equal pseudo-labels pull (B,); in the first epoch only a query's own key does."""
        keys, key_label = gather_rows(keys, label)
        others = gather_with_gradient(queries)
        z = torch.cat([keys, state["queue_z"], others])  # (K, D)
        labels = torch.cat([key_label, state["queue_label"], key_label])  # (K,)
        columns, rows = torch.arange(len(z), device=label.device), len(keys)
        valid, sure = labels != EMPTY, torch.ones_like(labels, dtype=torch.bool)
        own, itself = own_rows(columns[:rows]), own_rows(columns[-rows:])
        masks = contrast_masks("supcon", label, sure[: len(label)], labels, sure, valid, own)
        positive, negative = without(itself, masks)
        queued = valid & (columns >= rows) & (columns < len(z) - rows)
        early = batch.epoch < 1  # plain MoCo
        positive = torch.where(early, columns == own[:, None], positive)
        negative = torch.where(early, queued, negative)
        return contrastive_loss(queries, z, positive, negative, self.temperature)


def follow(prototypes: Tensor, queries: Tensor, label: Tensor, momentum: float) -> Tensor:
    """Prototypes (C, D) after each query (B, D) in turn has moved its class's one; unit rows.

    The loop in closed form: a query's weight falls with the number of later ones of its class.
    """
    # Whole numbers: older versions of PyTorch sum no others up deterministically on a GPU.
    member = F.one_hot(label, len(prototypes))  # (B, C)
    later = member.flip(0).cumsum(dim=0).flip(0) - member  # (B, C) members after this row
    weights = member.to(queries) * (1 - momentum) * momentum ** later.to(queries)
    kept = momentum ** member.sum(dim=0).to(queries)  # (C,)
    moved = (weights[:, :, None] * queries[:, None]).sum(
        dim=0
    )  # fuses; a product this thin is slow
    return F.normalize(kept[:, None] * prototypes + moved, dim=1)
