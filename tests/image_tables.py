"""Small tables with real images."""

import csv
import struct
import zlib

import numpy as np
from PIL import Image


def make_images(folder, names, start=0):
    """A small image of its own content under each name."""
    for k, name in enumerate(names, start):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.RandomState(k).randint(0, 255, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name)


def write_csv(path, rows, header=("image", "candidates")):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return path


def make_table(folder, changes=None, header=("image", "candidates"), n=12):
    """A good table of n rows, a, b and c in turn; changes: other cells, by row as people count."""
    rows = {k + 2: [f"{k}.png", ("a|b", "b", "c|a")[k % 3]] for k in range(n)}
    make_images(folder, [row[0] for row in rows.values()])
    rows |= changes or {}
    return write_csv(folder / "table.csv", rows.values(), header)


def list_problems(report):
    """(severity, row, message) of every problem that is listed."""
    return [(p.severity, p.row, p.message) for kind in report.kinds for p in kind.problems]


def enlarge_png(content):
    """The same file, which says of itself that it has 60,000 x 60,000 pixels."""
    header = b"IHDR" + struct.pack(">II", 60_000, 60_000) + content[24:29]
    return content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]
