"""Blends: each image of a batch with a part of another one, held against what is known of both."""

import torch
from torch import Tensor

GOLDEN = 0.6180339887  # multiples of it, without their whole part, lie evenly between 0 and 1


def blend_shares(rows: int, most: float, like: Tensor) -> Tensor:
    """Which share (rows,) of the other one a blend has, by its place: spread from 0 to `most`.

    A batch is in random order, so that each image meets a random partner and a random share.
    """
    places = torch.arange(1, rows + 1, device=like.device, dtype=like.dtype)
    return most * (places * GOLDEN % 1)


def blend(values: Tensor, most: float) -> Tensor:
    """Rows (B, ...), each with a share of the row that stands as far from the other end."""
    shares = blend_shares(len(values), most, values)
    return values.lerp(values.flip(0), shares.reshape(-1, *[1] * (values.dim() - 1)))
