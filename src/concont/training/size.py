"""What a run's settings ask for in memory, told before any of it is taken."""

import torch
from torch import nn

from concont.data.problem import Problem
from concont.errors import UsageError
from concont.memory import refuse_beyond_memory
from concont.nets.backbones import Shape
from concont.nets.network import count_weights
from concont.runs.settings import Settings

BYTES = 4  # of a float32
COPIES = 3  # of each weight: itself, its gradient, its momentum


def refuse_too_large(
    settings: Settings, shape: Shape, problem: Problem, model: nn.Module | None = None
) -> None:
    """Refuse networks and tables that this machine cannot hold, whatever a step takes besides.

    shape: of an input, as the network has it. model: a network of the user's own, which is there.
    """
    n_weights = 0
    if model is None:
        n_weights = count_weights(settings.model, shape, len(problem.classes))
    refuse_beyond_memory(
        n_weights * BYTES * COPIES,
        "the network takes",
        "make model.width, model.hidden or model.embedding smaller",
        UsageError,
    )
    refuse_beyond_memory(
        _measure_state(settings, problem),
        f"what {settings.method.name} remembers takes",
        "make method.queue or model.embedding smaller",
        UsageError,
    )


def _measure_state(settings: Settings, problem: Problem) -> int:
    """Bytes of what outlives a step; 0 of a method of the user's own, which is not asked."""
    if settings.method_source is not None:
        return 0
    with torch.device("meta"):
        candidates = torch.ones(problem.candidates.shape, dtype=torch.bool)
        state = settings.network_method.init_state(candidates, settings.model.embedding)
    return sum(tensor.nbytes for tensor in state.values())
