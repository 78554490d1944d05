"""Weak and strong views: each a pure function of the images and of uniform numbers an image.

Drawing is apart from applying, so that a view can be tested, compiled and replayed.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from concont.augment import ops, policies
from concont.runs.settings import View, Views

CROP, FLIP, HOLE, AN_OPERATION, TINT = 4, 1, 3, 2, 6  # uniform numbers that each part takes

Stage = Callable[..., Any]
Names = tuple[str, ...]


def n_draws(view: View) -> int:
    """How many uniform numbers an image needs for this view."""
    return sum(_widths(view))


def _widths(view: View) -> list[int]:
    """The same by part: crop and flip, operations, hole, colours."""
    chosen = AN_OPERATION * view.draws if view.policy == "random" else policies.DRAWS
    tinted = any(view.jitter) or view.grey_chance > 0
    return [CROP + FLIP, chosen, HOLE, TINT if tinted else 0]


class Stages:
    """A view in stages, each a pure function that `wrap` may compile.

    Crop, flip and the geometric operations are sampled through one bilinear grid; then the
    colours; then the pointwise operations in order; then the hole, which comes before a policy's.
    """

    def __init__(self, wrap: Callable[[Stage], Stage] = lambda stage: stage) -> None:
        self.warp, self.tint = wrap(_warp), wrap(_tint)
        self.alter, self.cut = wrap(_pointwise), wrap(_hole)

    def apply(self, images: Tensor, view: View, flip: bool, uniforms: Tensor) -> Tensor:
        """Views (B, channels, H, W) of images, from uniforms (B, n_draws)."""
        if view.pad >= min(images.shape[2:]):
            size = " x ".join(map(str, images.shape[2:]))
            raise ValueError(f"pad is {view.pad}; it must be less than the images' size, {size}")
        policy = policies.table(view.policy)
        names = policies.operations(view.policy) if policy else view.operations
        pose, chosen, hole, colours = torch.split(uniforms, _widths(view), dim=1)
        result: Tensor
        result, slots = self.warp(images, view, flip, policy, names, pose, chosen)
        if colours.shape[1]:
            result = self.tint(result, view, colours)
        early = view.policy != "random"  # a policy sees the hole, as DPLL has it
        if early and view.cutout[1] > 0:
            result = self.cut(result, view, hole)
        if set(names) & set(ops.POINTWISE):
            for which, magnitude in slots:
                result = self.alter(result, names, which, magnitude)
        if not early and view.cutout[1] > 0:
            result = self.cut(result, view, hole)
        return result

    def render(
        self, images: Tensor, views: Views, draws: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """The named views of uint8 images (B, channels, H, W), from the draws of each.

        `weak` and `strong` are the two kinds; a number after the name is a further draw of it.
        All draws of a kind are made in one go.
        """
        kinds: dict[str, list[str]] = {}
        for name in draws:
            kinds.setdefault(_kind(name), []).append(name)
        rendered: dict[str, Tensor] = {}
        for kind, names in kinds.items():
            uniforms, copies = torch.cat([draws[name] for name in names]), (len(names), 1, 1, 1)
            seen = self.apply(images.repeat(copies), getattr(views, kind), views.flip, uniforms)
            rendered.update(zip(names, seen.chunk(len(names)), strict=True))
        return rendered


def draw(
    views: Views, names: tuple[str, ...], rows: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """The uniform numbers (B, n_draws) of each named view, for a batch of `rows` images."""
    device = generator.device
    sizes = {name: (rows, n_draws(getattr(views, _kind(name)))) for name in names}
    return {name: torch.rand(s, generator=generator, device=device) for name, s in sizes.items()}


def render(images: Tensor, views: Views, draws: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The named views of uint8 images (B, channels, H, W): see `Stages.render`."""
    return Stages().render(images, views, draws)


def _kind(name: str) -> str:
    return name.rstrip("0123456789")


def _between(u: Tensor, low: float, high: float) -> Tensor:
    return low + (high - low) * u


def _choose(view: View, names: Names, uniforms: Tensor) -> list[policies.Slot]:
    """The operations of each image in order, as indices into the names, with their magnitudes."""
    slots, count = [], len(names)
    for pair in uniforms.view(len(uniforms), view.draws, AN_OPERATION).unbind(1):
        which, amount = (pair[:, 0] * count).long().clamp(max=count - 1), pair[:, 1]
        magnitude = torch.zeros_like(amount)
        for index, name in enumerate(names):
            magnitude = torch.where(which == index, _magnitude(view, name, amount), magnitude)
        slots.append((which, magnitude))
    return slots


def _magnitude(view: View, name: str, amount: Tensor) -> Tensor:
    """What a number from 0 to 1 means to an operation: radians, a share, a factor, ..."""
    limits = {"rotate": math.radians(view.rotate)}
    limits |= dict.fromkeys(("shear_x", "shear_y"), view.shear)
    limits |= dict.fromkeys(("translate_x", "translate_y"), view.translate)
    if name in limits:
        return limits[name] * (2 * amount - 1)
    spans = {"posterize": view.posterize, "solarize": view.solarize}
    return _between(amount, *spans.get(name, view.enhance))


def _warp(
    images: Tensor,
    view: View,
    flip: bool,
    policy: policies.Policy,
    names: Names,
    pose: Tensor,
    chosen: Tensor,
) -> tuple[Tensor, list[policies.Slot]]:
    """Crop, flip and the geometric operations, through one bilinear grid; and all that was chosen.

    A crop of the padded image takes whole pixels, which need no grid.
    """
    size = (images.shape[2], images.shape[3])
    slots = policies.choose(policy, names, chosen) if policy else _choose(view, names, chosen)
    matrices = []
    if set(names) & set(ops.GEOMETRIC):
        corner = bool(policy)
        matrices = [_geometry(names, *slot, size, corner) for slot in reversed(slots)]
    if view.pad:
        images = _shift(images, view.pad, flip, pose)
    else:
        matrices.append(_crop_and_flip(view, size, flip, pose[:, :CROP], pose[:, CROP]))
    scaled = images if images.is_floating_point() else images.float() / 255
    return ops.sample(scaled, *ops.warp_grid(matrices, size)) if matrices else scaled, slots


def _shift(images: Tensor, pad: int, flip: bool, pose: Tensor) -> Tensor:
    """A crop of the image's own size from the padded image, and a mirror image."""
    x, y = ((pose[:, CROP - 2 : CROP] * (2 * pad + 1)).long().clamp(max=2 * pad) - pad).unbind(1)
    mirror = pose[:, CROP] < (0.5 if flip else 0.0)
    return ops.shift(images, x, y, mirror)


def _crop_and_flip(view: View, size: tuple[int, int], flip: bool, u: Tensor, v: Tensor) -> Tensor:
    """Output-to-input matrices (B, 2, 3) of a random resized crop and a mirror image."""
    height, width = size
    area = _between(u[:, 0], *view.crop)
    ratio = _between(u[:, 1], math.log(view.ratio[0]), math.log(view.ratio[1])).exp()
    # A side that would stick out is cut to the image, where torchvision would draw again.
    w = (area * ratio * height / width).sqrt().clamp(max=1)  # share of the width
    h = (area / ratio * width / height).sqrt().clamp(max=1)
    x, y = (1 - w) * (2 * u[:, 2] - 1), (1 - h) * (2 * u[:, 3] - 1)
    mirror = torch.where(v < 0.5, -1.0, 1.0) if flip else torch.ones_like(v)
    zero = torch.zeros_like(w)
    return ops.affine(w * mirror, zero, zero, h, x, y)


def _geometry(
    names: Names, which: Tensor, magnitude: Tensor, size: tuple[int, int], corner: bool
) -> Tensor:
    """Output-to-input matrices of the geometric operations in a slot; identity elsewhere.

    Shear keeps the centre in its place, or as AutoAugment does the upper left corner.
    """

    def of(name: str) -> Tensor:
        chosen = torch.zeros_like(which, dtype=torch.bool)
        for index, other in enumerate(names):
            if other == name:
                chosen = chosen | (which == index)
        return torch.where(chosen, magnitude, 0.0)

    tall = size[0] / size[1]
    angle = of("rotate")
    cos, sin = angle.cos(), angle.sin()
    across, down = of("shear_x"), of("shear_y")
    x, y = 2 * of("translate_x"), 2 * of("translate_y")
    # Rotation and shear are those of pixels: `tall` turns the frame's -1..1 into them and back.
    if corner:
        x, y = x + across * tall, y + down / tall
    return ops.affine(cos, (across - sin) * tall, (down + sin) / tall, cos, x, y)


def _tint(images: Tensor, view: View, u: Tensor) -> Tensor:
    """Jitter of brightness, contrast, saturation and hue, in this order, and loss of colour."""
    done = images
    kinds = (ops.brightness, ops.contrast, ops.color)
    for place, (operation, spread) in enumerate(zip(kinds, view.jitter[:3], strict=True), start=1):
        if spread:
            done = operation(done, _between(u[:, place], max(0.0, 1 - spread), 1 + spread))
    if view.jitter[3]:
        done = ops.hue(done, _between(u[:, 4], -view.jitter[3], view.jitter[3]))
    result = torch.where((u[:, 0] < view.jitter_chance)[:, None, None, None], done, images)
    faded = (u[:, 5] < view.grey_chance)[:, None, None, None]
    return torch.where(faded, ops.grey(result), result)


def _pointwise(images: Tensor, names: Names, which: Tensor, magnitude: Tensor) -> Tensor:
    """Each image through the operation that its slot names, where that is a pointwise one."""
    # To know how many images chose an operation a GPU would have to be waited for.
    everywhere = images.is_cuda or torch.compiler.is_compiling()
    result = images if everywhere else images.clone()
    for index, name in enumerate(names):
        if name not in ops.POINTWISE:
            continue
        operation, chosen = ops.POINTWISE[name], which == index
        if everywhere:
            done = operation(images, magnitude)
            result = torch.where(chosen[:, None, None, None], done, result)
        else:
            rows = chosen.nonzero()[:, 0]
            result[rows] = operation(images[rows], magnitude[rows])
    return result


def _hole(images: Tensor, view: View, u: Tensor) -> Tensor:
    height, width = images.shape[2:]
    side = _between(u[:, 2], *view.cutout)
    return ops.cutout(images, u[:, 0] * width, u[:, 1] * height, side)
