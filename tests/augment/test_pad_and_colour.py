from dataclasses import replace

import numpy as np
import pytest
import torch

from concont.augment.views import count_uniforms
from concont.runs.view_settings import ALL_OPERATIONS, NAMED_VIEWS, View
from random_views import IMAGES, make_uniforms, render_one


def windows(images, pad, u, flip):
    """Slices of the padded images (B, channels, H, W), one image after another."""
    height, width = images.shape[2:]
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (pad, pad), (pad, pad)), mode="reflect")
    cut = []
    for image, (x, y, mirror) in zip(padded, u[:, 2:5].tolist(), strict=True):
        right, down = int(x * (2 * pad + 1)), int(y * (2 * pad + 1))
        one = image[:, down : down + height, right : right + width]
        cut.append(one[..., ::-1] if flip and mirror < 0.5 else one)
    return torch.from_numpy(np.stack(cut))


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("size", [(12, 16), (28, 28), (8, 5)])
def test_a_padded_crop_moves_the_image_by_whole_pixels(size, flip):
    images = torch.randint(0, 256, (200, 3, *size), dtype=torch.uint8)
    view = View(pad=4)
    u = make_uniforms(view, rows=200)
    expected = windows(images, 4, u, flip)
    assert torch.equal(render_one(images, view, flip, u), expected.float() / 255)
    assert torch.equal(
        render_one(expected, view, flip, make_uniforms(view, 0.5)[:1].expand(200, -1)),
        expected.float() / 255,
    )  # the middle is the image itself


def test_pad_comes_before_the_other_operations():
    operations = ("translate_x", "rotate", "contrast")
    view = View(pad=4, operations=operations, draws=2, cutout=(3.0, 3.0))
    after = View(ratio=(16 / 12, 16 / 12), operations=operations, draws=2, cutout=(3.0, 3.0))
    u = make_uniforms(view, rows=6)
    moved = windows(IMAGES, 4, u, True)
    found = render_one(IMAGES, view, True, u)
    assert torch.allclose(found, render_one(moved, after, False, u), atol=1e-5)


def test_a_pad_as_large_as_the_image_is_refused():
    view = View(pad=12)
    with pytest.raises(ValueError, match="pad is 12; it must be less than .* 12 x 16"):
        render_one(IMAGES, view, False, make_uniforms(view))


JITTER = View(ratio=(1.0, 1.0), jitter=(0.4, 0.3, 0.5, 0.1), jitter_chance=1.0)


def test_jitter_is_torchvisions_in_a_fixed_order():
    from torchvision.transforms.v2 import functional as F

    square = IMAGES[..., :12]
    u = make_uniforms(JITTER)
    found = render_one(square, JITTER, False, u)
    for image, one, numbers in zip(square, found, u[:, -5:-1].tolist(), strict=True):
        b, c, s, h = (x * (2 * n - 1) for x, n in zip(JITTER.jitter, numbers, strict=True))
        expected = F.adjust_contrast(F.adjust_brightness(image, 1 + b), 1 + c)
        expected = F.adjust_hue(F.adjust_saturation(expected, 1 + s), h)
        assert torch.allclose(one, expected, atol=1e-3)  # its greys weigh red by 0.2989


def test_a_jitter_beyond_1_leaves_no_factor_below_0():
    view = View(ratio=(1.0, 1.0), jitter=(3.0, 0.0, 0.0, 0.0), jitter_chance=1.0)
    square = IMAGES[..., :12]
    u = make_uniforms(view, 0.125)
    assert torch.allclose(render_one(square, view, False, u), square / 2, atol=1e-5)


def test_grey_views_have_their_luminance_in_each_channel():
    from torchvision.transforms.v2.functional import rgb_to_grayscale

    square = IMAGES[..., :12]
    view = View(ratio=(1.0, 1.0), grey_chance=1.0)
    found = render_one(square, view, False, make_uniforms(view))
    assert torch.allclose(found, rgb_to_grayscale(square, 3), atol=1e-3)


def test_jitter_and_grey_have_their_chances():
    same = (IMAGES[:1, :, :6, :6] * 0.5 + 0.2).expand(4000, -1, -1, -1)
    view = View(ratio=(1.0, 1.0), jitter=(0.4, 0.4, 0.4, 0.1), grey_chance=0.2)
    found = render_one(same, view, False, make_uniforms(view, rows=4000))
    grey = (found.amax(dim=1) - found.amin(dim=1)).amax(dim=(1, 2)) < 1e-6
    plain = ((found - same).abs() < 1e-5).flatten(1).all(dim=1)
    assert abs(grey.float().mean() - 0.2) < 0.02
    assert abs(plain[~grey].float().mean() - 0.2) < 0.02  # jittered: the other 80 %


def test_an_image_without_colour_keeps_to_brightness_and_contrast():
    square = IMAGES[:, :1, :, :12]
    colour = View(ratio=(1.0, 1.0), jitter=(0.0, 0.0, 0.5, 0.1), jitter_chance=1.0, grey_chance=1.0)
    found = render_one(square, colour, False, make_uniforms(colour))
    assert torch.allclose(found, square, atol=1e-5)
    light = replace(colour, jitter=(0.5, 0.0, 0.0, 0.0))
    assert not torch.allclose(
        render_one(square, light, False, make_uniforms(light)), square, atol=1e-3
    )


def test_only_new_parts_take_more_numbers():
    assert count_uniforms(View()) == count_uniforms(View(pad=4)) == 8
    assert count_uniforms(View(operations=ALL_OPERATIONS, draws=3)) == 14
    assert count_uniforms(View(policy="svhn")) == 13
    assert count_uniforms(View(grey_chance=0.1)) == count_uniforms(JITTER) == 14


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, vs in NAMED_VIEWS.items() for n in vs])
def test_named_views_are_images(kind, name, channels):
    view = NAMED_VIEWS[kind][name]
    images = torch.randint(0, 256, (64, channels, 28, 20), dtype=torch.uint8)
    found = render_one(images, view, True, make_uniforms(view, rows=64))
    assert (found.shape, found.dtype) == (images.shape, torch.float32)
    assert 0 <= found.min() <= found.max() <= 1
    assert len(found.flatten(1).unique(dim=0)) == 64
