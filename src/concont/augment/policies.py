"""AutoAugment's published policies: each image draws a pair of operations with given magnitudes."""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

N_UNIFORMS = 5  # an image: the pair, then chance and sign of each of its two operations
POLICY_IMAGE_SIZE = 32  # pixels, of the images that the policies were found on
TORCHVISION_NAMES = {
    "ShearX": "shear_x",
    "ShearY": "shear_y",
    "TranslateX": "translate_x",
    "TranslateY": "translate_y",
}
FACTOR_OPERATIONS = (
    "color",
    "contrast",
    "brightness",
    "sharpness",
)  # a factor of 1 changes nothing

Choice = tuple[Tensor, Tensor]  # which operation (B,), and its magnitude (B,) in its own unit


class PolicyOperation(NamedTuple):
    """One operation of a pair: how likely it is, and its magnitude under either sign."""

    name: str
    chance: float
    minus: float
    plus: float


Policy = tuple[tuple[PolicyOperation, PolicyOperation], ...]


@cache
def load_policy(name: str) -> Policy:
    """The 25 pairs of a policy; none for `random`."""
    if name == "random":
        return ()
    from torchvision.transforms.autoaugment import AutoAugment, AutoAugmentPolicy  # takes seconds

    published = AutoAugment(AutoAugmentPolicy(name))
    space = published._augmentation_space(10, (POLICY_IMAGE_SIZE, POLICY_IMAGE_SIZE))

    def convert(operation: str, chance: float, level: int | None) -> PolicyOperation:
        levels, signed = space[operation]
        magnitude = 0.0 if level is None else levels[level].item()
        return _convert_operation(operation, chance, magnitude, signed)

    return tuple((convert(*first), convert(*second)) for first, second in published.policies)


def _convert_operation(
    torchvision_name: str, chance: float, magnitude: float, signed: bool
) -> PolicyOperation:
    """torchvision's magnitude in our unit: radians, a share of the size, a factor."""
    name = TORCHVISION_NAMES.get(torchvision_name, torchvision_name.lower())
    if name == "rotate":
        magnitude = math.radians(magnitude)
    elif name.startswith("translate"):
        magnitude = int(magnitude) / POLICY_IMAGE_SIZE  # torchvision moves by whole pixels
    neutral = 1.0 if name in FACTOR_OPERATIONS else 0.0
    plus = neutral + magnitude
    return PolicyOperation(name, chance, neutral - magnitude if signed else plus, plus)


@cache
def operation_names(policy: str) -> tuple[str, ...]:
    """The names that `choose_operations` points at; the first is for one that is left out."""
    return ("identity", *sorted({op.name for pair in load_policy(policy) for op in pair}))


def choose_operations(policy: Policy, names: Sequence[str], uniforms: Tensor) -> list[Choice]:
    """Both operations of each image, from uniforms (B, N_UNIFORMS)."""
    n_pairs = len(policy)
    pair_index = (uniforms[:, 0] * n_pairs).long().clamp(max=n_pairs - 1)
    choices = []
    for place in (0, 1):
        chance, sign = uniforms[:, 1 + 2 * place], uniforms[:, 2 + 2 * place]
        which, magnitude = torch.zeros_like(pair_index), torch.zeros_like(chance)
        # Not by indexing a table: that would have to be copied to the device first.
        for number, pair in enumerate(policy):
            operation = pair[place]
            applied = (pair_index == number) & (chance < operation.chance)
            which = torch.where(applied, names.index(operation.name), which)
            signed = torch.where(sign < 0.5, operation.minus, operation.plus)
            magnitude = torch.where(applied, signed, magnitude)
        choices.append((which, magnitude))
    return choices
