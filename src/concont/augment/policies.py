"""AutoAugment's published policies: each image draws a pair of operations with given magnitudes."""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

DRAWS = 5  # uniform numbers an image: the pair, then chance and sign of each of its operations
SIZE = 32  # of the images that the policies were found on, in pixels
NAMES = {
    "ShearX": "shear_x",
    "ShearY": "shear_y",
    "TranslateX": "translate_x",
    "TranslateY": "translate_y",
}
FACTORS = ("color", "contrast", "brightness", "sharpness")  # those that 1 leaves as they are

Slot = tuple[Tensor, Tensor]  # which operation (B,), and its magnitude (B,) in its own unit


class Step(NamedTuple):
    """One operation of a pair: how likely it is, and its magnitude under either sign."""

    name: str
    chance: float
    minus: float
    plus: float


Policy = tuple[tuple[Step, Step], ...]


@cache
def table(policy: str) -> Policy:
    """The 25 pairs of a policy; none for `random`."""
    if policy == "random":
        return ()
    from torchvision.transforms.autoaugment import AutoAugment, AutoAugmentPolicy  # takes seconds

    published = AutoAugment(AutoAugmentPolicy(policy))
    space = published._augmentation_space(10, (SIZE, SIZE))

    def step(name: str, chance: float, level: int | None) -> Step:
        levels, signed = space[name]
        return _step(name, chance, 0.0 if level is None else levels[level].item(), signed)

    return tuple((step(*first), step(*second)) for first, second in published.policies)


def _step(name: str, chance: float, amount: float, signed: bool) -> Step:
    """torchvision's magnitude in our unit: radians, a share of the size, a factor."""
    own = NAMES.get(name, name.lower())
    if own == "rotate":
        amount = math.radians(amount)
    elif own.startswith("translate"):
        amount = int(amount) / SIZE  # torchvision moves by whole pixels
    middle = 1.0 if own in FACTORS else 0.0
    plus = middle + amount
    return Step(own, chance, middle - amount if signed else plus, plus)


@cache
def operations(policy: str) -> tuple[str, ...]:
    """The names that `choose` points at; the first is for an operation that is left out."""
    return ("identity", *sorted({step.name for pair in table(policy) for step in pair}))


def choose(policy: Policy, names: Sequence[str], u: Tensor) -> list[Slot]:
    """Both operations of each image, from uniforms (B, 5)."""
    count = len(policy)
    drawn = (u[:, 0] * count).long().clamp(max=count - 1)
    slots = []
    for place in (0, 1):
        chance, sign = u[:, 1 + 2 * place], u[:, 2 + 2 * place]
        which, magnitude = torch.zeros_like(drawn), torch.zeros_like(chance)
        # A table on the device would have to be copied there.
        for number, pair in enumerate(policy):
            step = pair[place]
            mine = (drawn == number) & (chance < step.chance)
            which = torch.where(mine, names.index(step.name), which)
            amount = torch.where(sign < 0.5, step.minus, step.plus)
            magnitude = torch.where(mine, amount, magnitude)
        slots.append((which, magnitude))
    return slots
