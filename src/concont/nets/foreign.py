"""A network of the user's own: what it must return, and in which words it is refused."""

import copy
import logging
import math
from typing import Any

import torch
from torch import Tensor, nn

from concont.errors import UsageError, printable
from concont.nets.backbones import Shape

log = logging.getLogger("concont")
MUST = "the model must return features (B, dim) in float32 for a batch"


def refuse_misfit(model: Any, shape: Shape) -> None:
    """Refuse what is no module, or returns anything but a row of features an input.

    It is asked as in evaluation and, in a copy, as in training: some return other things there.
    """
    if isinstance(model, type):
        raise UsageError(f"the model is a class; give one of its objects: {model.__name__}()")
    if not isinstance(model, nn.Module):
        raise UsageError(f"the model must be a torch.nn.Module, not {type(model).__name__}")
    count = count_features(model.eval(), shape)
    with torch.random.fork_rng(devices=[]):
        training = _copy(model).train()
        other = count_features(training, shape, rows=3)
        if other != count:
            raise UsageError(f"{MUST}; it gave {count} features in evaluation, {other} in training")


def count_features(backbone: nn.Module, shape: Shape, rows: int = 2) -> int:
    """How many features it returns of an input of `shape`; refuses anything else than features."""
    weight = next(backbone.parameters(), torch.zeros(()))
    inputs = torch.linspace(-1, 1, rows * math.prod(shape)).view(rows, *shape)
    try:
        with torch.no_grad():
            found = backbone(inputs.to(weight.device))
    except Exception as error:
        why = printable(" ".join(str(error).split()))
        raise UsageError(
            f"the model fails on a batch of shape {tuple(inputs.shape)}: "
            f"{type(error).__name__}: {why}"
        ) from error
    if not isinstance(found, Tensor):
        raise UsageError(f"{MUST}; it gave a {type(found).__name__}")
    if found.ndim != 2 or len(found) != rows or not found.shape[1]:
        raise UsageError(f"{MUST}; it gave {tuple(found.shape)} for {rows} inputs")
    if found.dtype != torch.float32:
        raise UsageError(f"{MUST}; it gave {str(found.dtype).removeprefix('torch.')}")
    if not found.isfinite().all():
        raise UsageError(f"{MUST}; it gave some that are not finite")
    return found.shape[1]


def warn_if_idle(model: nn.Module, shape: Shape) -> None:
    """Say so where what it returns depends on none of the weights that are to learn."""
    learning = [each for each in model.parameters() if each.requires_grad]
    if not learning:
        return
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        found = _copy(model).train()(torch.zeros(3, *shape, device=learning[0].device))
    if not found.requires_grad:
        log.warning("no gradient reaches the model's weights: in training its heads alone learn")


def _copy(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except Exception as error:
        why = printable(" ".join(str(error).split()))
        raise UsageError(f"the model cannot be copied: {type(error).__name__}: {why}") from error
