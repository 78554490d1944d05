"""Images to cache, and the cache."""

import os

import pytest

from cached_images import SIZE
from concont.images.cache import load_images
from pictures import noise


@pytest.fixture
def paths(save):
    return [save(f"{k % 2}/{k}.png", noise(9 + k, 12, 3, seed=k)) for k in range(8)]


@pytest.fixture
def many(save, tmp_path):
    for k in range(70):
        save(f"{k:02}.png", noise(9, 12, 3, seed=k))
    return sorted((tmp_path / "images").iterdir())


@pytest.fixture
def place(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def load(place):
    def load(paths, fit="crop", channels=3, report=None):
        return load_images(paths, SIZE, channels, fit, place, report)

    return load


@pytest.fixture
def touched(monkeypatch):
    """The names of files that are read, and those that are decoded."""
    read, decoded = [], []
    from concont.images import decoding

    content, decode = decoding.read_content, decoding.decode_image

    def read_content(path):
        read.append(os.path.basename(path))
        return content(path)

    def decode_image(content, *rest):
        decoded.append(read[-1])
        return decode(content, *rest)

    monkeypatch.setattr(decoding, "read_content", read_content)
    monkeypatch.setattr(decoding, "decode_image", decode_image)
    return read, decoded
