"""Operations on batches of images (B, channels, H, W), floats in [0, 1]; a magnitude (B,) an image.

Values follow PIL's definitions without its rounding to whole numbers after each operation.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def to_grey(images: Tensor) -> Tensor:
    """The luminance (B, 1, H, W)."""
    if images.shape[1] == 1:
        return images
    red, green, blue = torch.split(images, 1, dim=1)
    return 0.299 * red + 0.587 * green + 0.114 * blue  # ITU-R 601, PIL's "L"


def blend(base: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """The base where the factor is 0, the image at 1, further away from the base above 1."""
    return torch.lerp(base.expand_as(images), images, factor[:, None, None, None]).clamp(0, 1)


def adjust_color(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the grey image: less colour below 1, more above."""
    return blend(to_grey(images), images, factor)


def adjust_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the mean grey of the image."""
    return blend(to_grey(images).mean(dim=(2, 3), keepdim=True), images, factor)


def adjust_brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with black."""
    return blend(torch.zeros_like(images), images, factor)


def adjust_sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with a 3 x 3 blur; the border, where the blur is undefined, stays."""
    inner = images[:, :, 1:-1, 1:-1]
    smooth = (9 * F.avg_pool2d(images, 3, stride=1) + 4 * inner) / 13  # the middle weighs 5 of 13
    blurred = images.clone()
    blurred[:, :, 1:-1, 1:-1] = smooth
    return blend(blurred, images, factor)


def autocontrast(images: Tensor, _: Tensor) -> Tensor:
    """Stretch each channel to the whole range; a flat channel stays."""
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    span = high - low
    return torch.where(span > 0, (images - low) / span.clamp(min=1e-6), images).clamp(0, 1)


def equalize(images: Tensor, _: Tensor) -> Tensor:
    """Spread each channel's 256-bin histogram evenly, by PIL's table."""
    shape = images.shape
    values = (images * 255).round().long().reshape(-1, shape[2] * shape[3])  # (B*channels, H*W)
    histogram = torch.zeros(len(values), 256, dtype=torch.int32, device=images.device)
    histogram.scatter_add_(1, values, torch.ones_like(values, dtype=torch.int32))
    cumulative = histogram.cumsum(dim=1)
    last = (histogram * (cumulative == values.shape[1])).amax(dim=1, keepdim=True)
    step = (values.shape[1] - last) // 255  # (B*channels, 1) pixels for a grey level
    table = ((cumulative - histogram + step // 2) // step.clamp(min=1)).clamp(0, 255)
    equalized = (table.gather(1, values) / 255).view(shape).to(images.dtype)
    # PIL leaves a channel alone whose pixels are too few, or too much of one level, to spread.
    return torch.where((step > 0).view(shape[0], shape[1], 1, 1), equalized, images)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the upper `bits` of 8."""
    step = 2 ** (8 - bits.round())[:, None, None, None]
    return ((images * 255).round() / step).floor() * step / 255


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert the values from the threshold (of 256) on."""
    return torch.where(images * 255 >= threshold[:, None, None, None], 1 - images, images)


def invert(images: Tensor, _: Tensor) -> Tensor:
    """Make the negative."""
    return 1 - images


def adjust_hue(images: Tensor, turns: Tensor) -> Tensor:
    """Turn the colours round the wheel by a share of it (B,); grey stays."""
    if images.shape[1] == 1:
        return images
    red, green, blue = torch.split(images, 1, dim=1)
    high, low = images.amax(dim=1, keepdim=True), images.amin(dim=1, keepdim=True)
    span = high - low
    unit = torch.where(span > 0, span, 1.0)
    by_green = torch.where(high == green, 2 + (blue - red) / unit, 4 + (red - green) / unit)
    sixths = torch.where(high == red, (green - blue) / unit, by_green)  # red at 0, green 2, blue 4
    turned = sixths + 6 * turns[:, None, None, None]

    def channel(start: int) -> Tensor:
        k = (turned + start).remainder(6)
        return high - span * torch.minimum(k, 4 - k).clamp(0, 1)

    return torch.cat([channel(5), channel(3), channel(1)], dim=1)


POINTWISE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "autocontrast": autocontrast,
    "equalize": equalize,
    "posterize": posterize,
    "solarize": solarize,
    "color": adjust_color,
    "contrast": adjust_contrast,
    "brightness": adjust_brightness,
    "sharpness": adjust_sharpness,
    "invert": invert,
}
GEOMETRIC = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")


def affine_matrices(a: Tensor, b: Tensor, c: Tensor, d: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Matrices (B, 2, 3) that take output to input coordinates: [[a, b, x], [c, d, y]]."""
    return torch.stack([torch.stack([a, b, x], dim=1), torch.stack([c, d, y], dim=1)], dim=1)


def make_sampling_grid(matrices: list[Tensor], size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Where each output pixel comes from after a chain of operations, and if it stayed inside.

    matrices: output-to-input (B, 2, 3), last operation first, in coordinates that run from -1
    to 1 over a frame. Returns the sampling grid (B, H, W, 2) and a mask (B, 1, H, W): a pixel
    that left an intermediate frame is black, as if each operation had been applied by itself.
    """
    height, width = size
    device = matrices[0].device
    xs = (torch.arange(width, device=device) * 2 + 1) / width - 1
    ys = (torch.arange(height, device=device) * 2 + 1) / height - 1
    x, y = xs[None, :], ys[:, None]  # both spread over (H, W) below
    inside = torch.ones((), dtype=torch.bool, device=device)
    for matrix in matrices:
        (a, b, right), (c, d, down) = (row[:, :, None, None].unbind(1) for row in matrix.unbind(1))
        x, y = a * x + b * y + right, c * x + d * y + down  # (B, H, W)
        inside = inside & (x.abs() <= 1 + 1e-5) & (y.abs() <= 1 + 1e-5)  # rounding must not blacken
    return torch.stack([x, y], dim=-1), inside[:, None]


def make_crop_grid(matrix: Tensor, size: tuple[int, int]) -> Tensor:
    """The same for a crop alone, which turns nothing and stays inside: columns, then rows."""
    height, width = size
    points = torch.empty(len(matrix), height, width, 2, device=matrix.device)
    for place, count, shape in ((0, width, (1, -1)), (1, height, (-1, 1))):
        steps = ((torch.arange(count, device=matrix.device) * 2 + 1) / count - 1).view(shape)
        scale, shift = matrix[:, place, place, None, None], matrix[:, place, 2, None, None]
        points[..., place] = scale * steps + shift
    return points


def sample_images(images: Tensor, points: Tensor, inside: Tensor | None = None) -> Tensor:
    """Take bilinear values of the images at the grid's points; 0 outside, if there is any."""
    warped = F.grid_sample(images, points, padding_mode="border", align_corners=False)
    return warped if inside is None else warped * inside


def shift_images(images: Tensor, x: Tensor, y: Tensor, mirror: Tensor) -> Tensor:
    """Move the images by x and y (B,) whole pixels, and mirror them where asked.

    Beyond the border the image is reflected, its outermost pixels not repeated.
    """
    height, width = images.shape[2:]
    across = torch.arange(width, device=images.device)
    across = torch.where(mirror[:, None], width - 1 - across, across) + x[:, None]  # (B, W)
    down = torch.arange(height, device=images.device) + y[:, None]  # (B, H)
    rows, columns = _reflect_index(down, height), _reflect_index(across, width)
    moved = images.gather(2, rows[:, None, :, None].expand(images.shape))
    return moved.gather(3, columns[:, None, None, :].expand(images.shape))


def _reflect_index(index: Tensor, size: int) -> Tensor:
    """Positions beyond either end of 0 .. size - 1, folded back inside."""
    return size - 1 - (size - 1 - index.abs()).abs()


def cut_square(images: Tensor, x: Tensor, y: Tensor, side: Tensor, fill: float = 0.5) -> Tensor:
    """Put a grey square of `side` pixels at (x, y), all (B,) in pixels; the border cuts it."""
    height, width = images.shape[2:]
    xs = torch.arange(width, device=images.device) + 0.5
    ys = torch.arange(height, device=images.device) + 0.5
    across = (xs - x[:, None]).abs() < side[:, None] / 2  # (B, W)
    down = (ys - y[:, None]).abs() < side[:, None] / 2  # (B, H)
    hole = down[:, None, :, None] & across[:, None, None, :]  # (B, 1, H, W)
    return images.masked_fill(hole, fill)
