"""BatchNorm whose statistics are those of the whole batch, when several ranks have a part each."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from concont.ranks.tensors import sum_over_ranks


class SharedBatchNorm(_BatchNorm):
    """`nn.SyncBatchNorm` for main memory, which PyTorch's own refuses; plain, and no faster."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As BatchNorm's on the rows of all ranks together."""
        running = self.running_mean, self.running_var
        if not self.training:
            return F.batch_norm(inputs, *running, self.weight, self.bias, False, 0.0, self.eps)
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
    convert: Callable[[nn.Module], nn.Module] = nn.SyncBatchNorm.convert_sync_batchnorm
    for name, child in network.named_children():
        if not isinstance(child, _BatchNorm):
            share_statistics(child, device)
        elif device.type == "cuda":
            setattr(network, name, convert(child))
        else:
            setattr(network, name, _copy(child))


def _copy(norm: _BatchNorm) -> SharedBatchNorm:
    """With the same weights and averages, not copies of them."""
    own = norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats
    shared = SharedBatchNorm(*own)
    shared._parameters, shared._buffers = norm._parameters, norm._buffers
    return shared.train(norm.training)
