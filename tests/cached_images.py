"""What the cache holds, against what is read without one."""

import numpy as np

from concont.images.files import read_image

SIZE = (6, 5)


def check(images, paths, fit="crop", channels=3):
    assert len(images.contents) == len(images.pixels) == len(paths)
    for path, pixels in zip(paths, images.pixels, strict=True):
        assert np.array_equal(pixels, read_image(path, SIZE, channels, fit))


def names(paths):
    return [path.name for path in paths]
