"""Weak and strong views: each a pure function of the images and of uniform numbers an image.

Numbers are drawn in one place and applied in another, so that a view can be tested, compiled and
replayed.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from concont.augment import ops, policies
from concont.runs.view_settings import View, Views

# How many uniform numbers of an image each part of a view takes.
N_CROP, N_FLIP, N_HOLE, N_OPERATION, N_COLOURS = 4, 1, 3, 2, 6

Stage = Callable[..., Any]
Names = tuple[str, ...]


def count_uniforms(view: View) -> int:
    """How many uniform numbers an image needs for this view."""
    return sum(_count_by_part(view))


def _count_by_part(view: View) -> list[int]:
    """The same for crop and flip, operations, hole, colours."""
    n_chosen = N_OPERATION * view.draws if view.policy == "random" else policies.N_UNIFORMS
    recoloured = any(view.jitter) or view.grey_chance > 0
    return [N_CROP + N_FLIP, n_chosen, N_HOLE, N_COLOURS if recoloured else 0]


class ViewRenderer:
    """Renders views in stages, each a pure function that `wrap` may compile.

    Crop, flip and the geometric operations are sampled through one bilinear grid; then the
    colours; then the pointwise operations in order; then the hole, which comes before a policy's.
    """

    def __init__(self, wrap: Callable[[Stage], Stage] = lambda stage: stage) -> None:
        self.warp, self.recolour = wrap(_warp), wrap(_recolour)
        self.apply_pointwise, self.cut_hole = wrap(_apply_pointwise), wrap(_cut_hole)

    def draw(
        self, views: Views, names: tuple[str, ...], rows: int, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """The uniform numbers of each named view: see `draw_uniforms`."""
        return draw_uniforms(views, names, rows, generator)

    def render_one(self, images: Tensor, view: View, flip: bool, uniforms: Tensor) -> Tensor:
        """One view (B, channels, H, W) of images, from uniforms (B, count_uniforms)."""
        if view.pad_in_pixels(min(images.shape[2:])) >= min(images.shape[2:]):
            size = " x ".join(map(str, images.shape[2:]))
            raise ValueError(f"pad is {view.pad}; it must be less than the images' size, {size}")
        policy = policies.load_policy(view.policy)
        names = policies.operation_names(view.policy) if policy else view.operations
        pose, chosen, hole, colours = torch.split(uniforms, _count_by_part(view), dim=1)
        result: Tensor
        result, choices = self.warp(images, view, flip, policy, names, pose, chosen)
        if colours.shape[1]:
            result = self.recolour(result, view, colours)
        hole_first = view.policy != "random"  # a policy sees the hole, as DPLL has it
        if hole_first and view.cutout[1] > 0:
            result = self.cut_hole(result, view, hole)
        if set(names) & set(ops.POINTWISE):
            for which, magnitude in choices:
                result = self.apply_pointwise(result, names, which, magnitude)
        if not hole_first and view.cutout[1] > 0:
            result = self.cut_hole(result, view, hole)
        return result

    def render(
        self, images: Tensor, views: Views, uniforms: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """The named views of uint8 images (B, channels, H, W), from the uniforms of each.

        `weak` and `strong` are the two kinds; a number after the name is a further draw of it.
        All draws of a kind are made in one go.
        """
        names_by_kind: dict[str, list[str]] = {}
        for name in uniforms:
            names_by_kind.setdefault(kind_of(name), []).append(name)
        rendered: dict[str, Tensor] = {}
        for kind, names in names_by_kind.items():
            copies = images.repeat((len(names), 1, 1, 1))
            numbers = torch.cat([uniforms[name] for name in names])
            together = self.render_one(copies, getattr(views, kind), views.flip, numbers)
            rendered.update(zip(names, together.chunk(len(names)), strict=True))
        return rendered


def draw_uniforms(
    views: Views,
    names: tuple[str, ...],
    rows: int,
    generator: torch.Generator,
    count: Callable[[View], int] = count_uniforms,
) -> dict[str, Tensor]:
    """The uniform numbers (B, count) of each named view, for a batch of `rows` images."""
    device = generator.device
    sizes = {name: (rows, count(getattr(views, kind_of(name)))) for name in names}
    return {name: torch.rand(s, generator=generator, device=device) for name, s in sizes.items()}


def render_views(images: Tensor, views: Views, uniforms: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The named views of uint8 images (B, channels, H, W): see `ViewRenderer.render`."""
    return ViewRenderer().render(images, views, uniforms)


def kind_of(view_name: str) -> str:
    """`weak` or `strong`, of which a number after the name is a further draw."""
    return view_name.rstrip("0123456789")


def _scale(uniform: Tensor, low: float, high: float) -> Tensor:
    return low + (high - low) * uniform


def _choose_operations(view: View, names: Names, uniforms: Tensor) -> list[policies.Choice]:
    """The operations of each image in order, as indices into the names, with their magnitudes."""
    choices, n_names = [], len(names)
    for pair in uniforms.view(len(uniforms), view.draws, N_OPERATION).unbind(1):
        which, strength = (pair[:, 0] * n_names).long().clamp(max=n_names - 1), pair[:, 1]
        magnitude = torch.zeros_like(strength)
        for index, name in enumerate(names):
            magnitude = torch.where(which == index, _to_magnitude(view, name, strength), magnitude)
        choices.append((which, magnitude))
    return choices


def _to_magnitude(view: View, name: str, strength: Tensor) -> Tensor:
    """What a number from 0 to 1 means to an operation: radians, a share, a factor, ..."""
    limits = {"rotate": math.radians(view.rotate)}
    limits |= dict.fromkeys(("shear_x", "shear_y"), view.shear)
    limits |= dict.fromkeys(("translate_x", "translate_y"), view.translate)
    if name in limits:
        return limits[name] * (2 * strength - 1)
    ranges = {"posterize": view.posterize, "solarize": view.solarize}
    return _scale(strength, *ranges.get(name, view.enhance))


def _warp(
    images: Tensor,
    view: View,
    flip: bool,
    policy: policies.Policy,
    names: Names,
    pose: Tensor,
    chosen: Tensor,
) -> tuple[Tensor, list[policies.Choice]]:
    """Crop, flip and the geometric operations, through one bilinear grid; and all that was chosen.

    A crop of the padded image takes whole pixels, which need no grid.
    """
    size = (images.shape[2], images.shape[3])
    choices = (
        policies.choose_operations(policy, names, chosen)
        if policy
        else _choose_operations(view, names, chosen)
    )
    matrices = []
    if set(names) & set(ops.GEOMETRIC):
        from_corner = bool(policy)
        matrices = [_move_matrices(names, *c, size, from_corner) for c in reversed(choices)]
    if view.pad:
        images = _shift_and_flip(images, view.pad_in_pixels(min(size)), flip, pose)
    else:
        matrices.append(_crop_and_flip_matrices(view, size, flip, pose))
    scaled = images if images.is_floating_point() else images.float() / 255
    if len(matrices) == 1 and not view.pad and not _runs_on_all(images):
        scaled = ops.sample_images(scaled, ops.make_crop_grid(matrices[0], size))
    elif matrices:
        scaled = ops.sample_images(scaled, *ops.make_sampling_grid(matrices, size))
    return scaled, choices


def _shift_and_flip(images: Tensor, pad: int, flip: bool, pose: Tensor) -> Tensor:
    """A crop of the image's own size from the padded image, and a mirror image."""
    corner = pose[:, N_CROP - 2 : N_CROP]
    x, y = ((corner * (2 * pad + 1)).long().clamp(max=2 * pad) - pad).unbind(1)
    mirror = pose[:, N_CROP] < (0.5 if flip else 0.0)
    return ops.shift_images(images, x, y, mirror)


def _crop_and_flip_matrices(view: View, size: tuple[int, int], flip: bool, pose: Tensor) -> Tensor:
    """Output-to-input matrices (B, 2, 3) of a random resized crop and a mirror image."""
    height, width = size
    area = _scale(pose[:, 0], *view.crop)
    ratio = _scale(pose[:, 1], math.log(view.ratio[0]), math.log(view.ratio[1])).exp()
    # A side that would stick out is cut to the image, where torchvision would draw again.
    w = (area * ratio * height / width).sqrt().clamp(max=1)  # share of the width
    h = (area / ratio * width / height).sqrt().clamp(max=1)
    x, y = (1 - w) * (2 * pose[:, 2] - 1), (1 - h) * (2 * pose[:, 3] - 1)
    coin = pose[:, N_CROP]
    mirror = torch.where(coin < 0.5, -1.0, 1.0) if flip else torch.ones_like(coin)
    zero = torch.zeros_like(w)
    return ops.affine_matrices(w * mirror, zero, zero, h, x, y)


def _move_matrices(
    names: Names, which: Tensor, magnitude: Tensor, size: tuple[int, int], from_corner: bool
) -> Tensor:
    """Output-to-input matrices of the geometric operations chosen; identity for other images.

    Shear keeps the centre in its place, or as AutoAugment does the upper left corner.
    """

    def magnitude_of(name: str) -> Tensor:
        chosen = torch.zeros_like(which, dtype=torch.bool)
        for index, other in enumerate(names):
            if other == name:
                chosen = chosen | (which == index)
        return torch.where(chosen, magnitude, 0.0)

    aspect = size[0] / size[1]
    angle = magnitude_of("rotate")
    cos, sin = angle.cos(), angle.sin()
    shear_x, shear_y = magnitude_of("shear_x"), magnitude_of("shear_y")
    x, y = 2 * magnitude_of("translate_x"), 2 * magnitude_of("translate_y")
    # Rotation and shear are those of pixels: `aspect` turns the frame's -1..1 into them and back.
    if from_corner:
        x, y = x + shear_x * aspect, y + shear_y / aspect
    return ops.affine_matrices(cos, (shear_x - sin) * aspect, (shear_y + sin) / aspect, cos, x, y)


def _recolour(images: Tensor, view: View, uniforms: Tensor) -> Tensor:
    """Jitter of brightness, contrast, saturation and hue, in this order, and loss of colour."""
    jittered = images
    adjustments = (ops.adjust_brightness, ops.adjust_contrast, ops.adjust_color)
    numbers = uniforms[:, 1:4].unbind(1)
    for adjust, spread, number in zip(adjustments, view.jitter[:3], numbers, strict=True):
        if spread:
            jittered = adjust(jittered, _scale(number, max(0.0, 1 - spread), 1 + spread))
    if view.jitter[3]:
        jittered = ops.adjust_hue(jittered, _scale(uniforms[:, 4], -view.jitter[3], view.jitter[3]))
    chosen = (uniforms[:, 0] < view.jitter_chance)[:, None, None, None]
    result = torch.where(chosen, jittered, images)
    to_grey = (uniforms[:, 5] < view.grey_chance)[:, None, None, None]
    return torch.where(to_grey, ops.to_grey(result), result)


def _runs_on_all(images: Tensor) -> bool:
    """Whether work is not to depend on what was drawn: to know it a GPU would be waited for."""
    return images.is_cuda or torch.compiler.is_compiling()


def _apply_pointwise(images: Tensor, names: Names, which: Tensor, magnitude: Tensor) -> Tensor:
    """Each image through the operation chosen for it, where that is a pointwise one."""
    on_all_images = _runs_on_all(images)
    result = images if on_all_images else images.clone()
    for index, name in enumerate(names):
        if name not in ops.POINTWISE:
            continue
        operation, chosen = ops.POINTWISE[name], which == index
        if on_all_images:
            changed = operation(images, magnitude)
            result = torch.where(chosen[:, None, None, None], changed, result)
        else:
            rows = chosen.nonzero()[:, 0]
            result[rows] = operation(images[rows], magnitude[rows])
    return result


def _cut_hole(images: Tensor, view: View, uniforms: Tensor) -> Tensor:
    height, width = images.shape[2:]
    side = _scale(uniforms[:, 2], *view.cutout_in_pixels(min(height, width)))
    return ops.cut_square(images, uniforms[:, 0] * width, uniforms[:, 1] * height, side)
