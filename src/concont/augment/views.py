"""Weak and strong views: each a pure function of the images and of uniform numbers an image.

Drawing is apart from applying, so that a view can be tested, compiled and replayed.
"""

import math

import torch
from torch import Tensor

from concont.augment import ops
from concont.settings import View, Views

CROP, FLIP, HOLE, AN_OPERATION = 4, 1, 3, 2  # uniform numbers that each part takes


def n_draws(view: View) -> int:
    """How many uniform numbers an image needs for this view."""
    return CROP + FLIP + AN_OPERATION * view.draws + HOLE


def apply_view(images: Tensor, view: View, flip: bool, uniforms: Tensor) -> Tensor:
    """Views (B, channels, H, W) of images in [0, 1], from uniforms (B, n_draws).

    Crop, flip and the geometric operations are sampled through one bilinear grid; then the
    pointwise operations in order; then the hole.
    """
    widths = [CROP, FLIP, AN_OPERATION * view.draws, HOLE]
    crop, flipped, chosen, hole = torch.split(uniforms, widths, dim=1)
    size = (images.shape[2], images.shape[3])
    slots = [_slot(view, pair) for pair in chosen.view(len(images), view.draws, 2).unbind(1)]

    frames = [_geometry(view, which, amount, size) for which, amount in slots]
    matrices = [m for m in reversed(frames) if m is not None]
    matrices.append(_crop_and_flip(view, size, flip, crop, flipped[:, 0]))
    result = ops.sample(images, *ops.warp_grid(matrices, size))

    for which, amount in slots:
        result = _pointwise(result, view, which, amount)
    if view.cutout[1] > 0:
        result = _hole(result, view, hole)
    return result


def render(
    images: Tensor, views: Views, names: tuple[str, ...], generator: torch.Generator
) -> dict[str, Tensor]:
    """The named views of uint8 images (B, channels, H, W), each image with draws of its own.

    `weak` and `strong` are the two kinds; a number after the name is a further draw of it.
    """
    scaled = images.float() / 255
    rendered = {}
    for name in names:
        view: View = getattr(views, name.rstrip("0123456789"))
        shape = (len(images), n_draws(view))
        uniforms = torch.rand(shape, generator=generator, device=images.device)
        rendered[name] = apply_view(scaled, view, views.flip, uniforms)
    return rendered


def _between(u: Tensor, low: float, high: float) -> Tensor:
    return low + (high - low) * u


def _slot(view: View, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Which operation (B,) as an index into the view's list, and its magnitude in [0, 1)."""
    count = len(view.operations)
    return (uniforms[:, 0] * count).long().clamp(max=count - 1), uniforms[:, 1]


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


def _pointwise(images: Tensor, view: View, which: Tensor, amount: Tensor) -> Tensor:
    """Each image through the operation that its slot names, where that is a pointwise one."""
    spans = {"posterize": view.posterize, "solarize": view.solarize}
    result = images
    for index, name in enumerate(view.operations):
        if name in ops.POINTWISE:
            magnitude = _between(amount, *spans.get(name, view.enhance))
            done = ops.POINTWISE[name](images, magnitude)
            result = torch.where((which == index)[:, None, None, None], done, result)
    return result


def _hole(images: Tensor, view: View, u: Tensor) -> Tensor:
    height, width = images.shape[2:]
    side = _between(u[:, 2], *view.cutout)
    return ops.cutout(images, u[:, 0] * width, u[:, 1] * height, side)
