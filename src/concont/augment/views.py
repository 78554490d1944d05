"""Weak and strong views: each a pure function of the images and of uniform numbers an image.

Drawing is apart from applying, so that a view can be tested, compiled and replayed.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from concont.augment import ops
from concont.settings import View, Views

CROP, FLIP, HOLE, AN_OPERATION = 4, 1, 3, 2  # uniform numbers that each part takes

Stage = Callable[..., Any]


def n_draws(view: View) -> int:
    """How many uniform numbers an image needs for this view."""
    return CROP + FLIP + AN_OPERATION * view.draws + HOLE


def apply_view(images: Tensor, view: View, flip: bool, uniforms: Tensor) -> Tensor:
    """Views (B, channels, H, W) of images in [0, 1], from uniforms (B, n_draws)."""
    return Stages().apply(images, view, flip, uniforms)


class Stages:
    """A view in stages, each a pure function that `wrap` may compile.

    Crop, flip and the geometric operations are sampled through one bilinear grid; then the
    pointwise operations in order; then the hole.
    """

    def __init__(self, wrap: Callable[[Stage], Stage] = lambda stage: stage) -> None:
        self.warp, self.alter, self.cut = wrap(_warp), wrap(_pointwise), wrap(_hole)

    def apply(self, images: Tensor, view: View, flip: bool, uniforms: Tensor) -> Tensor:
        """Views (B, channels, H, W) of images, from uniforms (B, n_draws)."""
        widths = [CROP + FLIP, AN_OPERATION * view.draws, HOLE]
        pose, chosen, hole = torch.split(uniforms, widths, dim=1)
        result: Tensor = self.warp(images, view, flip, pose, chosen)
        if set(view.operations) & set(ops.POINTWISE):
            for pair in _slots(view, chosen):
                result = self.alter(result, view, pair)
        if view.cutout[1] > 0:
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


def _slots(view: View, uniforms: Tensor) -> tuple[Tensor, ...]:
    """The pairs of uniform numbers (B, 2) that choose each operation."""
    return uniforms.view(len(uniforms), view.draws, 2).unbind(1)


def _choice(view: View, pair: Tensor) -> tuple[Tensor, Tensor]:
    """Which operation (B,) as an index into the view's list, and its magnitude in [0, 1)."""
    count = len(view.operations)
    return (pair[:, 0] * count).long().clamp(max=count - 1), pair[:, 1]


def _warp(images: Tensor, view: View, flip: bool, pose: Tensor, chosen: Tensor) -> Tensor:
    """Crop, flip and the geometric operations, through one bilinear grid."""
    scaled = images if images.is_floating_point() else images.float() / 255
    size = (images.shape[2], images.shape[3])
    frames = [_geometry(view, *_choice(view, pair), size) for pair in _slots(view, chosen)]
    matrices = [m for m in reversed(frames) if m is not None]
    matrices.append(_crop_and_flip(view, size, flip, pose[:, :CROP], pose[:, CROP]))
    return ops.sample(scaled, *ops.warp_grid(matrices, size))


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


def _geometry(view: View, which: Tensor, amount: Tensor, size: tuple[int, int]) -> Tensor | None:
    """Output-to-input matrices of the geometric operations in a slot; identity elsewhere.

    None where the view has no geometric operation at all.
    """
    names = view.operations
    if not set(names) & {"rotate", "shear_x", "shear_y", "translate_x", "translate_y"}:
        return None

    def signed(name: str, limit: float) -> Tensor:
        chosen = torch.zeros_like(which, dtype=torch.bool)
        for index, other in enumerate(names):
            if other == name:
                chosen = chosen | (which == index)
        return torch.where(chosen, limit * (2 * amount - 1), 0.0)

    tall = size[0] / size[1]
    angle = signed("rotate", math.radians(view.rotate))
    cos, sin = angle.cos(), angle.sin()
    across, down = signed("shear_x", view.shear), signed("shear_y", view.shear)
    # Rotation and shear are those of pixels: `tall` turns the frame's -1..1 into them and back.
    return ops.affine(
        cos,
        (across - sin) * tall,
        (down + sin) / tall,
        cos,
        2 * signed("translate_x", view.translate),
        2 * signed("translate_y", view.translate),
    )


def _pointwise(images: Tensor, view: View, pair: Tensor) -> Tensor:
    """Each image through the operation that its slot names, where that is a pointwise one."""
    which, amount = _choice(view, pair)
    spans = {"posterize": view.posterize, "solarize": view.solarize}
    # To know how many images chose an operation a GPU would have to be waited for.
    everywhere = images.is_cuda or torch.compiler.is_compiling()
    result = images if everywhere else images.clone()
    for index, name in enumerate(view.operations):
        if name not in ops.POINTWISE:
            continue
        operation, chosen = ops.POINTWISE[name], which == index
        magnitude = _between(amount, *spans.get(name, view.enhance))
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
