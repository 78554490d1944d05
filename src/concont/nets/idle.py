"""Convolution and BatchNorm whose backward pass leaves out the idle rows, which carry no loss.

The first `idle` rows of a batch go through the forward pass and enter every statistic, but no
gradient flows through them, and their share of the backward pass is not computed.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS_AND_PIXELS = (0, 2, 3)


def conv_norm(
    inputs: Tensor,
    conv: nn.Conv2d,
    bn: nn.BatchNorm2d,
    idle: int,
    shortcut: Tensor | None = None,
    act: bool = True,
) -> Tensor:
    """A convolution, BatchNorm over all rows, a shortcut added, ReLU."""
    if idle == 0:
        result: Tensor = _batch_norm(conv(inputs), bn)
        result = result if shortcut is None else result + shortcut
        return F.relu(result) if act else result
    kind, weight = inputs.device.type, conv.weight
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        inputs, weight = inputs.to(dtype), weight.to(dtype)
    shape = (conv.stride, conv.padding, idle, act, bn.eps)
    with torch.autocast(kind, enabled=False):
        result, mean, variance = _ConvNorm.apply(
            inputs, shortcut, weight, bn.weight, bn.bias, *shape
        )
    with torch.no_grad():
        count = result.numel() / result.shape[1]
        _follow(bn.running_mean, mean, bn.momentum)
        _follow(bn.running_var, variance * (count / (count - 1)), bn.momentum)
    return result


class _ConvNorm(torch.autograd.Function):
    """All rows forward, the rows that are not idle backward.

    A weight that feeds a BatchNorm can be scaled without effect, and its gradient says so only if
    the statistics move with it. Without the idle rows the shared ones would move too little, so
    the other rows' own mean and variance stand in for them: the gradient has no part along the
    weight, as it would have none in a full backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        shortcut: Tensor | None,
        weight: Tensor,
        scale: Tensor,
        bias: Tensor,
        stride: Any,
        padding: Any,
        idle: int,
        act: bool,
        eps: float,
    ) -> Any:
        filtered = F.conv2d(inputs, weight, None, stride, padding)
        variance, mean = torch.var_mean(_wide(filtered), ROWS_AND_PIXELS, correction=0)
        invstd = (variance + eps).rsqrt()
        result = _wide(filtered) * _per_channel(invstd * scale)
        result = result + _per_channel(bias - mean * invstd * scale)
        result = result if shortcut is None else result + shortcut
        result = F.relu(result) if act else result
        if (
            result.dtype != filtered.dtype
        ):  # compiled by PyTorch 2.11, `to` its own type cuts it off
            result = result.to(filtered.dtype)
        # whole: a slice of the result would keep itself alive until a backward pass
        ctx.save_for_backward(inputs, weight, filtered, result, scale, mean, invstd)
        ctx.stride, ctx.padding, ctx.idle, ctx.act, ctx.eps = stride, padding, idle, act, eps
        ctx.added = shortcut is not None
        ctx.mark_non_differentiable(mean, variance)
        return result, mean, variance

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> Any:
        inputs, weight, filtered, result, scale, mean, invstd = ctx.saved_tensors
        upper = gradient[ctx.idle :]
        if ctx.act:
            upper = torch.where(result[ctx.idle :] > 0, upper, 0)
        g, x = _wide(upper), _wide(filtered[ctx.idle :])
        count = x.numel() / x.shape[1]
        total, along = g.sum(ROWS_AND_PIXELS), (g * x).sum(ROWS_AND_PIXELS)  # (channels,)
        own_mean = x.sum(ROWS_AND_PIXELS) / count
        own_variance = ((x * x).sum(ROWS_AND_PIXELS) / count - own_mean**2).clamp(min=0)
        # What is left of g beside its least-squares line on x moves neither mean nor variance.
        slope = (along - own_mean * total) / count / (own_variance + ctx.eps)
        left = g - _per_channel(slope) * x - _per_channel(total / count - slope * own_mean)
        to_filtered = (_per_channel(scale * invstd) * left).to(filtered.dtype)

        plain = ((1, 1), False, (0, 0), 1)  # dilation, transposed, output padding, groups
        wanted = (ctx.needs_input_grad[0], True, False)
        to_inputs, to_weight, _ = torch.ops.aten.convolution_backward(
            to_filtered, inputs[ctx.idle :], weight, None, ctx.stride, ctx.padding, *plain, wanted
        )
        to_inputs = _below(to_inputs, ctx.idle) if ctx.needs_input_grad[0] else None
        to_shortcut = _below(upper, ctx.idle) if ctx.added else None
        to_scale, to_bias = invstd * (along - mean * total), total
        return to_inputs, to_shortcut, to_weight, to_scale, to_bias, *(None,) * 5


def _batch_norm(inputs: Tensor, bn: nn.BatchNorm2d) -> Tensor:
    """`bn(inputs)` but for its count of batches, a kernel a layer that nothing here reads."""
    running, momentum = (bn.running_mean, bn.running_var), bn.momentum or 0.0
    return F.batch_norm(inputs, *running, bn.weight, bn.bias, bn.training, momentum, bn.eps)


def _follow(running: Tensor | None, now: Tensor, momentum: float | None) -> None:
    if running is not None and momentum is not None:
        running.lerp_(now, momentum)


def _wide(values: Tensor) -> Tensor:
    """At least float32, for sums over a batch."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _per_channel(values: Tensor) -> Tensor:
    return values[None, :, None, None]


def _below(gradient: Tensor, idle: int) -> Tensor:
    """The gradient of all rows, which is zero for the idle ones, the first."""
    return F.pad(gradient, (0, 0, 0, 0, 0, 0, idle, 0))
