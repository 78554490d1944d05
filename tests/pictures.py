"""Image files of every kind, for tests."""

import struct
import zlib

import numpy as np
from PIL import Image


def noise(*shape, seed=0):
    return np.random.RandomState(seed).randint(0, 256, shape).astype(np.uint8)


def save_image(path, content, **options):
    """Save an array or an image, with the folders that it needs; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = content if isinstance(content, Image.Image) else Image.fromarray(content)
    image.save(path, **options)
    return path


def vast_png(width, height):
    """The start of a PNG that claims to have this size."""

    def chunk(kind, body):
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b""))
