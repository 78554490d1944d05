"""Blends: each image of a batch with a part of another one, held against what is known of both."""

import torch
from torch import Tensor


def blend_shares(rows: int, most: float, like: Tensor) -> Tensor:
    """Which share (rows,) of the other one a blend has: evenly from 0 to `most`, by its place.

    A batch is in random order, so that each image meets a random partner and a random share.
    """
    places = torch.arange(rows, device=like.device, dtype=like.dtype)
    return most * (places + 0.5) / rows


def blend(values: Tensor, most: float) -> Tensor:
    """Rows (B, ...), each with a share of the row that stands as far from the other end."""
    shares = blend_shares(len(values), most, values)
    return values.lerp(values.flip(0), shares.reshape(-1, *[1] * (values.dim() - 1)))
