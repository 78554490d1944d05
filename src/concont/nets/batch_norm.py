"""BatchNorm whose statistics are those of the whole batch, when several ranks have a part each."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from concont.errors import UsageError
from concont.nets.resnet import UncountedBatchNorm
from concont.ranks.tensors import sum_over_ranks

KNOWN = (_BatchNorm, nn.SyncBatchNorm, UncountedBatchNorm)  # with nothing of their own in a pass


class SharedBatchNorm(_BatchNorm):
    """`nn.SyncBatchNorm` for main memory, which PyTorch's own refuses; plain, and no faster."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As BatchNorm's on the rows of all ranks together."""
        running = self.running_mean, self.running_var
        if not self.training:
            measured = running[0] is None  # without averages it takes this batch's
            return F.batch_norm(inputs, *running, self.weight, self.bias, measured, 0.0, self.eps)
        rest = [dim for dim in range(inputs.ndim) if dim != 1]
        shape = [1, -1, *[1] * (inputs.ndim - 2)]
        own = inputs.numel() // inputs.shape[1]
        sums = sum_over_ranks(torch.cat([inputs.sum(rest), inputs.new_tensor([own])]))
        count = sums[-1].detach()
        mean = sums[:-1] / count
        centred = inputs - mean.view(shape)
        # A sum of its own: as a difference of large sums it would lose its digits.
        variance = sum_over_ranks(centred.square().sum(rest)) / count
        self._follow(mean.detach(), variance.detach() * count / (count - 1))
        result = centred * (variance + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            result = result * self.weight.view(shape) + self.bias.view(shape)
        return result

    def _check_input_dim(self, inputs: Tensor) -> None:
        """Whatever dimensions it has."""

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running averages; without a momentum they are those of all batches."""
        if self.running_mean is None or self.running_var is None:
            return
        pace: float | Tensor | None = self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            pace = 1 / self.num_batches_tracked if pace is None else pace
        self.running_mean.lerp_(mean, pace or 0.0)
        self.running_var.lerp_(variance, pace or 0.0)


def share_statistics(network: nn.Module, device: torch.device) -> None:
    """Let every BatchNorm in a network take its statistics from the rows of all ranks."""
    for name, child in network.named_children():
        if isinstance(child, _BatchNorm):
            setattr(network, name, _share(child, device))
        else:
            share_statistics(child, device)


def _share(norm: _BatchNorm, device: torch.device) -> nn.Module:
    convert: Callable[[nn.Module], nn.Module] = nn.SyncBatchNorm.convert_sync_batchnorm
    shared = convert(norm) if device.type == "cuda" else _copy(norm)
    if _activates(norm):
        shared.drop, shared.act = norm.drop, norm.act
        shared.register_forward_hook(_drop_and_activate)
    elif not any(type(norm).forward is kind.forward for kind in KNOWN):
        raise UsageError(
            f"{type(norm).__name__} is a BatchNorm of its own kind, whose statistics the ranks "
            "cannot share: --set train.sync_batchnorm=false"
        )
    return shared


def _activates(norm: nn.Module) -> bool:
    """Whether it is timm's, with the activation inside, which PyTorch's conversion leaves out."""
    kinds = [f"{kind.__module__}:{kind.__name__}" for kind in type(norm).__mro__]
    return "timm.layers.norm_act:BatchNormAct2d" in kinds


def _drop_and_activate(norm: nn.Module, inputs: Any, normalised: Tensor) -> Tensor:
    """As timm's do after they have normalised."""
    result: Tensor = norm.get_submodule("act")(norm.get_submodule("drop")(normalised))
    return result


def _copy(norm: _BatchNorm) -> SharedBatchNorm:
    """With the same weights and averages, not copies of them."""
    own = norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats
    shared = SharedBatchNorm(*own)
    shared._parameters, shared._buffers = norm._parameters, norm._buffers
    return shared.train(norm.training)
