"""What the ranks of a training exchange in a step.

A batch of B rows is dealt out like cards: rank r of W has rows r, r + W, r + 2W, ... of it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ParamSpec

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from concont.errors import UsageError
from concont.ranks.world import WORLD
from concont.types import StepOut

P = ParamSpec("P")


def own_rows(batch: Tensor, dim: int = 0) -> Tensor:
    """This rank's rows of what holds all rows of a batch; dim: which of its dimensions does."""
    if WORLD.size == 1:
        return batch
    place = (slice(None),) * dim
    return batch[(*place, slice(WORLD.rank, None, WORLD.size))]


def count_own_rows(rows: int) -> int:
    """How many of the first so many rows of a batch this rank has."""
    return len(range(WORLD.rank, rows, WORLD.size))


def gather_rows(*own: Tensor) -> tuple[Tensor, ...]:
    """The rows (B, ...) of the whole batch, in its order, of tensors that hold this rank's.

    Without gradient; all tensors travel as one message.
    """
    if WORLD.size == 1 or not own:
        return own
    with torch.no_grad():
        rows = len(own[0])
        parts = [t.detach().contiguous().reshape(rows, -1) for t in own]
        # Views of other types as bytes, which every backend knows, bool and all.
        packed = torch.cat([part.view(torch.uint8) for part in parts], dim=1)
        found = [torch.empty_like(packed) for _ in range(WORLD.size)]
        dist.all_gather(found, packed)
        whole = torch.stack(found, dim=1).flatten(0, 1)  # row i of rank r is row i W + r
        columns = torch.split(whole, [part.shape[1] * part.element_size() for part in parts], dim=1)
        return tuple(
            piece.contiguous().view(tensor.dtype).reshape(-1, *tensor.shape[1:])
            for piece, tensor in zip(columns, own, strict=True)
        )


def gather_with_gradient(own: Tensor) -> Tensor:
    """As `gather_rows`; a loss of any rank that depends on a row reaches the rank that has it."""
    if WORLD.size == 1:
        return own
    places = torch.arange(WORLD.size, device=own.device) == WORLD.rank
    only_own = torch.where(places.view(1, -1, *[1] * (own.ndim - 1)), own[:, None], 0.0)
    return sum_over_ranks(only_own).flatten(0, 1)


def sum_over_ranks(own: Tensor) -> Tensor:
    """The sum of all ranks' tensors, with the gradient of the sum of all ranks' losses."""
    if WORLD.size == 1:
        return own
    total: Tensor = _Sum.apply(own)
    return total


def divide_over_ranks(total: Tensor, count: Tensor) -> Tensor:
    """`total / count` of sums over this rank's rows, such that its mean over ranks is that of all.

    0 where no rank has counted anything.
    """
    if WORLD.size == 1:
        return total / count.clamp(min=1)
    return total * WORLD.size / sum_over_ranks(count).clamp(min=1)


class _Sum(torch.autograd.Function):
    """PyTorch's own differentiable sum over ranks has another name in each of its versions."""

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        total = own.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        found: Tensor = _Sum.apply(gradients[0])
        return found


class _WithForward(nn.Module):
    """Losses as the module that `DistributedDataParallel` wants: it wraps a forward."""

    def __init__(self, losses: Callable[..., StepOut], weights: Iterable[nn.Parameter]) -> None:
        super().__init__()
        self.losses, self.weights = losses, nn.ParameterList(weights)

    def forward(self, *inputs: Any) -> tuple[Tensor, StepOut]:
        """The loss in sight of the wrapper, beside all that comes with it."""
        out = self.losses(*inputs)
        return out.total, out


def replicate(
    losses: Callable[P, StepOut], weights: Iterable[nn.Parameter]
) -> Callable[P, StepOut]:
    """The same losses, whose gradients by these weights are then averaged over the ranks.

    By `DistributedDataParallel`: it sums gradients in large pieces while the backward pass still
    runs, and begins with rank 0's weights on every rank.
    """
    if WORLD.size == 1:
        return losses
    # Every step asks for the same; a head that a method leaves unused has no gradient, as alone.
    parallel = DistributedDataParallel(_WithForward(losses, weights), static_graph=True)

    def call(*args: P.args, **kwargs: P.kwargs) -> StepOut:
        found: tuple[Tensor, StepOut] = parallel(*args, **kwargs)
        total, out = found
        return replace(out, total=total)

    return call


def combine(own: StepOut, n_rows: int) -> StepOut:
    """What the ranks make of their rows, so many each, as what one makes of the whole batch."""
    if WORLD.size == 1:
        return own
    for name, tensor in own.to_commit.items():
        if tensor.shape[:1] != (n_rows,):
            raise UsageError(
                f"what the method gives to commit as {name} has shape {tuple(tensor.shape)}: on "
                f"several ranks it must have a row for each of the batch, here {n_rows}"
            )
    totals = [own.total.detach(), *own.terms.values()]  # each a mean over rows
    pairs = [number for pair in own.metrics.values() for number in pair]
    numbers = torch.stack([n.double() for n in (*totals, *pairs)])
    dist.all_reduce(numbers)
    total, *terms = numbers[: len(totals)] / WORLD.size
    sums = iter(numbers[len(totals) :])
    rows = gather_rows(*own.to_commit.values())
    return StepOut(
        total,
        terms=dict(zip(own.terms, terms, strict=True)),
        metrics={name: (next(sums), next(sums)) for name in own.metrics},
        to_commit=dict(zip(own.to_commit, rows, strict=True)),
    )


def share(tensors: Iterable[Tensor]) -> None:
    """Give every rank what rank 0 has, in place."""
    if WORLD.size == 1:
        return
    for tensor in (t.detach() for t in tensors if t.numel()):
        # As bytes, which every backend knows, bool and all.
        copy = tensor.clone(memory_format=torch.contiguous_format)
        content = copy.reshape(-1).view(torch.uint8)
        dist.broadcast(content, 0)
        tensor.copy_(content.view(tensor.dtype).view(tensor.shape))
