"""What outlives a step: the queue of keys, and the running average of a network."""

import torch
from torch import Tensor, nn

from concont.types import State

EMPTY = -1  # the label of a slot that no key has filled yet


def empty_queue(size: int, dim: int) -> State:
    """A first-in-first-out store of `size` keys with their labels and confident bits."""
    return {
        "queue_z": torch.zeros(size, dim),
        "queue_label": torch.full((size,), EMPTY),
        "queue_confident": torch.zeros(size, dtype=torch.bool),
        "queue_next": torch.zeros((), dtype=torch.long),
    }


def push_(state: State, z: Tensor, label: Tensor, confident: Tensor) -> None:
    """Let the newest keys (B, D) take the place of the oldest; no device sync."""
    size = len(state["queue_label"])
    if size == 0:
        return
    z, label, confident = z[-size:], label[-size:], confident[-size:]
    slots = (state["queue_next"] + torch.arange(len(label), device=label.device)) % size
    state["queue_z"].index_copy_(0, slots, z)
    state["queue_label"].index_copy_(0, slots, label)
    state["queue_confident"].index_copy_(0, slots, confident)
    state["queue_next"].add_(len(label)).remainder_(size)


@torch.no_grad()
def average_(key: nn.Module, online: nn.Module, momentum: float | Tensor) -> None:
    """Move the key network's parameters towards the online ones, and no BatchNorm statistics."""
    behind: list[Tensor] = list(key.parameters())
    ahead: list[Tensor] = list(online.parameters())
    if not isinstance(momentum, Tensor):
        torch._foreach_lerp_(behind, ahead, 1 - momentum)
        return
    gaps = torch._foreach_sub(ahead, behind)
    torch._foreach_mul_(gaps, (1 - momentum).to(ahead[0]))
    torch._foreach_add_(behind, gaps)


def rising(momentum: float, step: Tensor) -> Tensor:
    """The momentum at a step (): (s + 1) / (s + 10), from 0.1 up to its own value."""
    return ((step + 1) / (step + 10)).clamp(max=momentum)
