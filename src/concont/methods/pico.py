"""PiCO (Wang et al. 2022): prototypes resolve the labels, contrast shapes the prototypes."""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from concont.losses import contrastive_loss, soft_cross_entropy
from concont.memory import EMPTY, empty_queue, push_
from concont.types import Batch, Count, Fraction, Nets, NonNegative, Positive, Share, State, StepOut


@dataclass(frozen=True)
class Pico:
    """Cross-entropy to a slow label confidence, and contrast between equal pseudo-labels."""

    name: Literal["pico"] = "pico"
    repr_weight: NonNegative = 0.5
    temperature: Positive = 0.07
    queue: Count = 8192
    momentum: Fraction = 0.999  # of the key network
    prototype_momentum: Share = 0.99
    confidence_momentum: tuple[Share, Share] = (0.95, 0.8)  # phi, at the start and at the end

    views = ("weak", "strong")
    momentum_rises = False
    wants_unlabeled = False
    reads_truth = False

    @property
    def key_momentum(self) -> float | None:
        """The key network follows at this pace."""
        return self.momentum

    def idle(self, batch: int, partial: int) -> int:
        """Every row learns."""
        return 0

    def init_state(self, candidates: Tensor, dim: int) -> State:
        """Each row's label confidence, a prototype a class, an empty queue."""
        return {
            "confidence": candidates / candidates.sum(dim=1, keepdim=True),
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
            memory={
                "confidence": confidence,
                "queries": queries.detach(),
                "keys": keys,
                "label": label,
            },
        )

    def commit(self, nets: Nets, state: State, batch: Batch, out: StepOut) -> None:
        """Confidence of these rows, prototypes, queue."""
        memory = out.memory
        state["confidence"].index_copy_(0, batch.index, memory["confidence"])
        prototypes = follow(
            state["prototypes"], memory["queries"], memory["label"], self.prototype_momentum
        )
        state["prototypes"].copy_(prototypes)
        push_(state, memory["keys"], memory["label"], torch.ones_like(memory["label"]).bool())

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
        everything = torch.cat([queries, keys, state["queue_z"]])  # (K, D), queries with gradient
        labels = torch.cat([label, label, state["queue_label"]])  # (K,)
        rows, columns = (torch.arange(len(x), device=label.device) for x in (label, labels))
        valid = (labels != EMPTY) & (columns != rows[:, None])  # all but the query itself
        same = label[:, None] == labels
        own = columns == rows[:, None] + len(label)
        queued = (columns >= 2 * len(label)) & valid
        early = batch.epoch < 1
        positive = torch.where(early, own, same & valid)
        negative = torch.where(early, queued, ~same & valid)
        return contrastive_loss(queries, everything, positive, negative, self.temperature)


def follow(prototypes: Tensor, queries: Tensor, label: Tensor, momentum: float) -> Tensor:
    """Prototypes (C, D) after each query (B, D) in turn has moved its class's one; unit rows.

    The loop in closed form: a query's weight falls with the number of later ones of its class.
    """
    # Whole numbers: older versions of PyTorch sum no others up deterministically on a GPU.
    member = F.one_hot(label, len(prototypes))  # (B, C)
    later = member.flip(0).cumsum(dim=0).flip(0) - member  # (B, C) members after this row
    weights = member * (1 - momentum) * momentum ** later.to(queries)
    kept = momentum ** member.sum(dim=0).to(queries)  # (C,)
    return F.normalize(kept[:, None] * prototypes + weights.T @ queries, dim=1)
