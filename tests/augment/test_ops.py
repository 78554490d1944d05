"""Each pointwise operation against PIL's on real images; whole numbers differ by rounding alone."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from sklearn.datasets import load_sample_images

from concont.augment import ops

ONE = 1.001 / 255  # PIL rounds to whole numbers


@pytest.fixture(scope="module")
def images():
    """Eight 32 x 32 crops of scikit-learn's two photographs."""
    photos = load_sample_images().images
    return np.stack([p[y : y + 128 : 4, x : x + 128 : 4] for p in photos for y, x in CORNERS])


CORNERS = [(0, 0), (100, 200), (200, 400), (250, 100)]


def as_tensor(images):
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


def by_pil(images, function, amounts):
    done = [
        np.asarray(function(Image.fromarray(i), a)) for i, a in zip(images, amounts, strict=True)
    ]
    return as_tensor(np.stack(done))


PIL_VERSIONS = {
    "color": (lambda i, a: ImageEnhance.Color(i).enhance(a), (0.1, 1.9), 2 * ONE),
    "contrast": (lambda i, a: ImageEnhance.Contrast(i).enhance(a), (0.1, 1.9), 2 * ONE),
    "brightness": (lambda i, a: ImageEnhance.Brightness(i).enhance(a), (0.1, 1.9), ONE),
    "sharpness": (lambda i, a: ImageEnhance.Sharpness(i).enhance(a), (0.1, 1.9), 2 * ONE),
    "autocontrast": (lambda i, a: ImageOps.autocontrast(i), (0.0, 1.0), ONE),
    "equalize": (lambda i, a: ImageOps.equalize(i), (0.0, 1.0), ONE),
    "posterize": (lambda i, a: ImageOps.posterize(i, round(a)), (4.0, 8.0), 1e-6),
    "solarize": (lambda i, a: ImageOps.solarize(i, a), (0.0, 256.0), 1e-6),
    "invert": (lambda i, a: ImageOps.invert(i), (0.0, 1.0), 1e-6),
}


@pytest.mark.parametrize("name", ops.POINTWISE)
def test_an_operation_is_pils_but_for_rounding(name, images):
    function, (low, high), tolerance = PIL_VERSIONS[name]
    amounts = np.linspace(low, high, len(images)).round(2)
    if name == "posterize":
        amounts = amounts.round()
    found = ops.POINTWISE[name](as_tensor(images), torch.from_numpy(amounts).float())
    worst = (found - by_pil(images, function, amounts.tolist())).abs().max().item()
    assert worst <= tolerance, f"{worst * 255:.2f} of 255"
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize("name", ops.POINTWISE)
def test_flat_and_grey_images_stay_finite(name):
    flat = torch.full((2, 1, 5, 7), 0.4)
    found = ops.POINTWISE[name](flat, torch.tensor([0.5, 1.0]))
    assert found.shape == flat.shape
    assert found.isfinite().all()


def test_the_blur_behind_sharpness_is_pils(images):
    soft = ops.adjust_sharpness(as_tensor(images), torch.zeros(len(images)))
    expected = by_pil(images, lambda i, a: i.filter(ImageFilter.SMOOTH), [0] * len(images))
    assert (soft - expected).abs().max() <= ONE


def identity(n):
    one, zero = torch.ones(n), torch.zeros(n)
    return ops.affine_matrices(one, zero, zero, one, zero, zero)


def test_the_identity_samples_the_image_itself(images):
    scaled = as_tensor(images)
    found = ops.sample_images(scaled, *ops.make_sampling_grid([identity(8), identity(8)], (32, 32)))
    assert torch.allclose(found, scaled, atol=1e-5)


def test_a_translation_by_whole_pixels_moves_them_and_leaves_black(images):
    scaled = as_tensor(images)
    one, zero = torch.ones(8), torch.zeros(8)
    right = ops.affine_matrices(one, zero, zero, one, torch.full((8,), 2 * 4 / 32), zero)
    found = ops.sample_images(scaled, *ops.make_sampling_grid([right], (32, 32)))
    assert torch.allclose(found[..., :-4], scaled[..., 4:], atol=1e-5)
    assert (found[..., -4:] == 0).all()


def test_a_pixel_that_left_an_intermediate_frame_is_black(images):
    one, zero, shift = torch.ones(8), torch.zeros(8), torch.full((8,), 0.5)
    out = ops.affine_matrices(one, zero, zero, one, shift, zero)
    back = ops.affine_matrices(one, zero, zero, one, -shift, zero)
    found = ops.sample_images(as_tensor(images), *ops.make_sampling_grid([out, back], (32, 32)))
    assert (found[..., -8:] == 0).all()  # gone by the first step, though the second brings it back
    assert torch.allclose(found[..., :-8], as_tensor(images)[..., :-8], atol=1e-5)


def test_a_quarter_turn_is_rot90(images):
    zero, one = torch.zeros(8), torch.ones(8)
    turn = ops.affine_matrices(zero, -one, one, zero, zero, zero)
    found = ops.sample_images(as_tensor(images), *ops.make_sampling_grid([turn], (32, 32)))
    assert torch.allclose(found, torch.rot90(as_tensor(images), 1, (2, 3)), atol=1e-5)


def test_cutout_is_a_grey_square_cut_at_the_border():
    blank = torch.zeros(2, 3, 8, 8)
    x, y, side = torch.tensor([4.0, 0.0]), torch.tensor([4.0, 8.0]), torch.tensor([4.0, 6.0])
    found = ops.cut_square(blank, x, y, side)
    assert (found[0, :, 2:6, 2:6] == 0.5).all()
    assert (found[0] > 0).sum() == 3 * 16
    assert (found[1, :, 5:, :3] == 0.5).all()
    assert (found[1] > 0).sum() == 3 * 9


@pytest.mark.parametrize("turn", [-0.5, -0.1, 0.0, 0.03, 0.25, 0.5])
def test_hue_is_torchvisions(turn, images):
    from torchvision.transforms.v2.functional import adjust_hue

    plain = torch.zeros(1, 3, 32, 32)
    plain[0, 1:, :16] = 1.0  # black, and a colour on the edge of its sixth
    given = torch.cat([torch.rand(8, 3, 32, 32), as_tensor(images), plain])
    found = ops.adjust_hue(given, torch.full((17,), turn))
    assert torch.allclose(found, adjust_hue(given, turn), atol=1e-4)


def test_each_image_has_its_own_turn_of_hue_and_grey_stays_grey(images):
    given = as_tensor(images)
    turns = torch.linspace(-0.5, 0.5, 8)
    found = ops.adjust_hue(given, turns)
    alone = torch.cat([ops.adjust_hue(given[i : i + 1], turns[i : i + 1]) for i in range(8)])
    assert torch.equal(found, alone)
    assert torch.equal(ops.adjust_hue(given[:, :1], turns), given[:, :1])


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_shift_is_a_slice_of_the_padded_image(mirrored, images):
    narrow = images[:, :, :21]
    x, y = torch.arange(-4, 4), torch.tensor([4, -4, 0, 3, -1, 2, -3, 1])
    given = torch.from_numpy(narrow).permute(0, 3, 1, 2)
    found = ops.shift_images(given, x, y, torch.full((8,), mirrored))
    padded = np.pad(narrow, ((0, 0), (4, 4), (4, 4), (0, 0)), mode="reflect")
    for image, right, down, one in zip(padded, x, y, found, strict=True):
        expected = image[4 + down : 36 + down, 4 + right : 25 + right]
        expected = expected[:, ::-1] if mirrored else expected
        assert (one.permute(1, 2, 0).numpy() == expected).all()
