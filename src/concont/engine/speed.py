"""The same numbers, sooner: compilation of what a step computes."""

from collections.abc import Callable

import torch

from concont.settings import Settings
from concont.types import Batch, Nets, State, StepOut

Losses = Callable[[Nets, State, Batch], StepOut]


def losses_of(settings: Settings, device: torch.device) -> Losses:
    """The method's losses, compiled where asked for; by default on a GPU only."""
    wanted = settings.train.compile
    if wanted is None:
        wanted = device.type == "cuda"
    losses: Losses = settings.method.losses
    return torch.compile(losses) if wanted else losses
