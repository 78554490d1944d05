"""How an image of any size becomes one of the size that is wanted."""

import numpy as np
import pytest
from PIL import Image

from concont.images.files import read_image
from pictures import noise


def triangle(old, new, part):
    """Weights (new, old) of bilinear antialiasing: a tent over each centre in a part."""
    scale = (part[1] - part[0]) / new
    weights = np.zeros((new, old))
    for i in range(new):
        for j in range(old):
            distance = abs((j + 0.5) - part[0] - (i + 0.5) * scale) / max(scale, 1)
            weights[i, j] = max(0, 1 - distance)
    return weights / weights.sum(axis=1, keepdims=True)


def resize(image, height, width, box=None):
    """A part (top, bottom, left, right) of an image at another size."""
    top, bottom, left, right = box or (0, image.shape[0], 0, image.shape[1])
    rows = triangle(image.shape[0], height, (top, bottom))
    columns = triangle(image.shape[1], width, (left, right))
    return np.einsum("ih,jw,hwc->ijc", rows, columns, image)


@pytest.mark.parametrize("size", [(20, 31), (8, 31), (4, 5)])
def test_stretch_resizes_each_side_with_antialiasing(save, size):
    image = noise(*size, 3)
    got = read_image(save("image.png", image), (8, 6), 3, "stretch")
    assert got.astype(float) == pytest.approx(resize(image, 8, 6), abs=1.5)


@pytest.mark.parametrize(
    ("size", "middle"),
    [
        ((20, 31), (0, 20, 8, 23)),  # too wide: 15 of 31 columns
        ((40, 15), (10, 30, 0, 15)),  # too high: 20 of 40 rows
        ((4, 13), (0, 4, 5, 8)),  # and smaller than what is wanted
        ((16, 13), (0, 16, 0.5, 12.5)),
        ((16, 12), (0, 16, 0, 12)),
    ],
)
def test_crop_takes_the_middle(save, size, middle):
    image = noise(*size, 3)
    got = read_image(save("image.png", image), (8, 6), 3, "crop")
    assert got.astype(float) == pytest.approx(resize(image, 8, 6, middle), abs=1.5)


@pytest.mark.parametrize(
    ("size", "inside"),
    [
        ((20, 30), np.s_[2:6, :]),  # a third less high than wide: 4 x 6, two rows on each side
        ((40, 15), np.s_[:, 1:4]),  # 8 x 3
        ((2, 1), np.s_[:, 1:5]),  # 8 x 4: a small one grows
        ((40, 1), np.s_[:, 2:3]),  # at least a pixel
        ((16, 12), np.s_[:]),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_pad_keeps_all_of_the_image_in_a_grey_border(save, size, inside, channels):
    image = noise(*size, channels)
    got = read_image(
        save("image.png", image.squeeze(2) if channels == 1 else image), (8, 6), channels, "pad"
    )
    expected = np.full((8, 6, channels), 128.0)
    expected[inside] = resize(image, *expected[inside].shape[:2])
    assert got.astype(float) == pytest.approx(expected, abs=1.5)


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_large_photograph_is_decoded_at_less_without_visible_loss(save, fit, orientation):
    smooth = Image.fromarray(noise(40, 60, 3)).resize((1300, 900), Image.Resampling.BICUBIC)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save("photo.jpg", smooth, quality=92, exif=exif)
    with Image.open(path) as image:
        image.load()
        save("photo.png", image, exif=exif)
    size = (64, 48)
    quick, slow = (
        read_image(path.with_suffix(suffix), size, 3, fit).astype(float)
        for suffix in (".jpg", ".png")
    )
    assert np.abs(quick - slow).mean() < 1.5
