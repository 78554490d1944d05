"""GIST against a slow version from its definition: one image, one filter, one block at a time."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_sample_images

from concont.classic.descriptor import AT_ONCE, average_responses, gist
from concont.errors import DataError, UsageError

CORNERS = [(0, 0), (100, 400), (220, 100)]
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def triangles(length, size):
    """The weights (size, length) of a bilinear resize whose triangles widen when it shrinks."""
    step = length / size
    weights = np.zeros((size, length))
    for i in range(size):
        for j in range(length):
            apart = abs((j + 0.5) - (i + 0.5) * step) / max(step, 1)
            weights[i, j] = max(0.0, 1 - apart)
        weights[i] /= weights[i].sum()
    return weights


class Plane:
    """Frequencies from -n/2 to n/2 - 1 in both directions, by the sums that define them."""

    def __init__(self, n):
        self.n = n
        cycles = np.arange(-n // 2, n // 2)
        self.waves = np.exp(-2j * np.pi * np.outer(cycles, np.arange(n)) / n)
        self.fy, self.fx = cycles[:, None], cycles[None, :]

    def forth(self, image):
        return self.waves @ image @ self.waves.T

    def back(self, spectrum):
        return self.waves.conj().T @ spectrum @ self.waves.conj() / self.n**2


def slow_prefilter(image):
    image = np.pad(np.log(image + 1), 5, mode="symmetric")
    plane = Plane(len(image))
    s = 4 / math.sqrt(math.log(2))
    gauss = np.exp(-(plane.fx**2 + plane.fy**2) / s**2)
    image = image - plane.back(plane.forth(image) * gauss).real
    local = np.sqrt(np.abs(plane.back(plane.forth(image**2) * gauss)))
    return (image / (0.2 + local))[5:-5, 5:-5]


def slow_gist(image, size=32):
    image = image.astype(np.float64)
    if image.ndim == 3:
        image = sum(image[..., c] for c in range(image.shape[2])) / image.shape[2]
    if image.min() == image.max():
        return np.zeros(512)
    if image.shape != (size, size):
        down, across = (triangles(length, size) for length in image.shape)
        image = down @ image @ across.T
    image = image - image.min()
    image = slow_prefilter(255 * image / image.max())
    plane = Plane(size + 64)
    spectrum = plane.forth(np.pad(image, 32, mode="symmetric"))
    fr, t = np.hypot(plane.fx, plane.fy), np.angle(plane.fx + 1j * plane.fy)
    numbers = []
    for i in range(4):
        for j in range(8):
            tr = np.angle(np.exp(1j * (t + np.pi / 8 * j)))
            f = 0.3 / 1.85**i
            gabor = np.exp(-10 * 0.35 * (fr / plane.n / f - 1) ** 2 - 2 * np.pi * 1 * tr**2)
            response = np.abs(plane.back(spectrum * gabor))[32:-32, 32:-32]
            side = size // 4
            for x in range(0, size, side):
                for y in range(0, size, side):
                    numbers.append(response[y : y + side, x : x + side].mean())
    return np.array(numbers)


def photographs(size):
    """Crops of scikit-learn's two photographs, RGB."""
    photos = load_sample_images().images
    crops = [p[y:, x:][: 4 * size : 4, : 4 * size : 4] for p in photos for y, x in CORNERS]
    return np.stack(crops)


def digits(enlarged):
    few = np.rint(load_digits().images[:6] * (255 / 16)).astype(np.uint8)
    return few.repeat(enlarged, axis=1).repeat(enlarged, axis=2)


def smooth_images(size):
    y, x = np.mgrid[:size, :size] / size
    planes = [x, x * y, np.exp(-8 * ((x - 0.3) ** 2 + (y - 0.6) ** 2))]
    return np.stack([(200 * p + 20).astype(np.uint8) for p in planes])


def bare_images(size):
    """Hardly anything in them: one dot, one bright edge, one grey but for one step of one pixel."""
    images = np.zeros((3, size, size), dtype=np.uint8)
    images[0, 1, 2] = 255
    images[1, :, -1] = 90
    images[2] += 77
    images[2, -1, 0] += 1
    return images


def random_images(*shape):
    return np.random.RandomState(0).randint(0, 256, shape).astype(np.uint8)


def agree(images, size=32, **options):
    found = gist(images, size=size, device="cpu", **options)
    expected = np.stack([slow_gist(image, size) for image in images])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    "images",
    [
        random_images(3, 32, 32),
        random_images(3, 32, 32, 1),
        random_images(3, 32, 32, 3),
        smooth_images(32),
        bare_images(32),
        digits(4),
        photographs(32),
    ],
    ids=["grey", "one channel", "RGB", "smooth", "bare", "digits", "photographs"],
)
def test_it_is_the_definition(images):
    agree(images)


@pytest.mark.parametrize("size", [4, 20, 48])
def test_it_is_the_definition_at_another_size(size):
    agree(photographs(size)[:2], size)
    agree(bare_images(size), size)


@pytest.mark.parametrize("shape", [(28, 28), (8, 8), (50, 81), (32, 40, 3), (100, 32, 3)])
def test_images_of_another_size_are_resized_first(shape):
    agree(random_images(2, *shape))
    agree(smooth_images(100)[:, : shape[0], : shape[1]])


@pytest.mark.parametrize("shape", [(32, 32), (28, 28), (37, 61, 3), (7, 100)])
@pytest.mark.parametrize("grey", [0, 1, 77, 255])
def test_an_image_of_one_grey_has_zeros(shape, grey):
    assert not gist(np.full((2, *shape), grey, dtype=np.uint8), device="cpu").any()


def test_a_colour_that_differs_only_between_channels_is_one_grey():
    images = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    images[:, ::2, :, 0] = images[:, 1::2, :, 2] = 200
    assert not gist(images, device="cpu").any()


@pytest.mark.parametrize("block", [1, 2, 4, 6, 100])
def test_blocks_change_nothing(block):
    images = photographs(32)
    whole = gist(images, device="cpu")
    assert whole.shape == (6, 512)
    assert whole.dtype == np.float32
    np.testing.assert_allclose(gist(images, device="cpu", block=block), whole, rtol=1e-6)


@pytest.mark.parametrize(("side", "rows"), [(32, [4, 2]), (128, [2, 2, 2])])
def test_a_block_has_so_many_pixels(monkeypatch, side, rows):
    monkeypatch.setitem(AT_ONCE, "cpu", 4 * 96**2)  # 96: with the border
    found = []

    def spied(images, gabors):
        found.append(len(images))
        return average_responses(images, gabors)

    monkeypatch.setattr("concont.classic.descriptor.average_responses", spied)
    gist(random_images(6, side, side), device="cpu")
    assert found == rows


def test_brightness_and_contrast_change_nothing():
    images = random_images(4, 32, 32) // 4  # 0 to 63
    expected = gist(images, device="cpu")
    for factor, shift in [(1, 100), (3, 0), (3, 60), (4, 3)]:
        changed = images * np.uint8(factor) + np.uint8(shift)
        np.testing.assert_allclose(gist(changed, device="cpu"), expected, rtol=1e-5)


@pytest.mark.parametrize("scale", [0, 1, 2])
@pytest.mark.parametrize(
    ("across", "down", "orientation"),
    [(1, 0, 0), (0, 1, 4), (1, 1, 6), (1, -1, 2)],  # a filter turns the other way than the wave
    ids=["across", "down", "down and across", "up and across"],
)
def test_a_wave_answers_in_its_own_filter(scale, across, down, orientation):
    y, x = np.mgrid[:32, :32]
    cycles = 0.3 / 1.85**scale * (across * x + down * y) / math.hypot(across, down)
    wave = np.rint(127.5 + 127.5 * np.cos(2 * np.pi * cycles)).astype(np.uint8)
    answers = gist(wave[None], device="cpu").reshape(4, 8, 16).mean(axis=2)
    assert np.unravel_index(answers.argmax(), (4, 8)) == (scale, orientation)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 0), (0, 3), (2, 1)])
def test_blocks_are_stored_down_the_columns(row, column):
    images = np.full((1, 32, 32), 128, dtype=np.uint8)
    block = images[0, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
    block[:] = random_images(8, 8)
    answers = gist(images, device="cpu").reshape(4, 8, 16)
    assert (answers[0].argmax(axis=1) == 4 * column + row).all()


def test_images_are_only_read():
    images = photographs(32)[:, :, ::-1]
    expected = gist(images.copy(), device="cpu")
    images.flags.writeable = False
    before = images.copy()
    assert np.array_equal(gist(images, device="cpu"), expected)
    assert np.array_equal(images, before)


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((2, 32, 32)),
        np.zeros((2, 32, 32), dtype=np.int64),
        np.zeros((32, 32), dtype=np.uint8),
        np.zeros((2, 3, 32, 32), dtype=np.uint8),
        np.zeros((2, 32, 32, 4), dtype=np.uint8),
    ],
)
def test_what_is_no_image_is_refused(images):
    with pytest.raises(DataError, match="gist: images is .*; it must be uint8, N x H x W") as found:
        gist(images, device="cpu")
    assert "\n" not in str(found.value)


def test_no_images_at_all_are_refused():
    with pytest.raises(DataError, match="no image in it"):
        gist(np.zeros((0, 32, 32), dtype=np.uint8), device="cpu")


@pytest.mark.parametrize("size", [-4, 0, 2, 30, 33])
def test_a_size_that_blocks_do_not_fill_is_refused(size):
    with pytest.raises(UsageError, match=f"size is {size}; it must be a multiple of 4"):
        gist(random_images(1, 32, 32), size=size, device="cpu")


@pytest.mark.parametrize("block", [-1, 0])
def test_a_block_without_images_is_refused(block):
    with pytest.raises(UsageError, match=f"block is {block}; it must be at least 1"):
        gist(random_images(1, 32, 32), block=block, device="cpu")


def test_a_device_that_nobody_knows_is_refused():
    with pytest.raises(UsageError, match="not 'tpu'"):
        gist(random_images(1, 32, 32), device="tpu")


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("shape", [(32, 32, 3), (50, 81)])
def test_a_gpu_finds_the_same(shape):
    images = np.concatenate([random_images(40, *shape), np.zeros((1, *shape), dtype=np.uint8)])
    found = gist(images, device="cuda")
    np.testing.assert_allclose(found, gist(images, device="cpu"), rtol=1e-5, atol=0)
    np.testing.assert_allclose(gist(images, device="cuda", block=7), found, rtol=1e-5, atol=0)
