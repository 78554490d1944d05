"""Small tables with real images."""

import csv
import shutil
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


# Rows that take the place of good ones, and what must be said of which row.
TWO_COLUMNS = {
    "missing image": ({5: ["no.png", "a"]}, "error", 5, "there is no file no.png in {folder}"),
    "Windows path": ({5: ["x\\3.png", "a"]}, "error", 5, "(write / in place of \\)"),
    "no image named": ({5: ["", "a"]}, "error", 5, "names no image"),
    "climbing path": ({5: ["../3.png", "a"]}, "error", 5, "../3.png leaves the image folder"),
    "absolute path": ({5: ["/etc/passwd", "a"]}, "error", 5, "/etc/passwd leaves the image folder"),
    "link that leaves": ({5: ["out.png", "a"]}, "error", 5, "out.png leaves the image folder"),
    "folder that leaves": ({5: ["out/x.png", "a"]}, "error", 5, "through a link"),
    "empty name": ({5: ["3.png", "a||b"]}, "error", 5, "an empty name among its candidates"),
    "class twice": ({5: ["3.png", "a|b| a"]}, "error", 5, "'a' stands twice among its candidates"),
    "image twice": ({5: ["0.png", "b|a"]}, "warning", 5, "0.png stands in row 2 already"),
    "image twice, otherwise": (
        {5: ["./0.png", "b"]},
        "error",
        5,
        "0.png stands in row 2 already, with other content",
    ),
    "rare class": ({5: ["3.png", "zebra|a"]}, "warning", 5, "'zebra' is a candidate here and no"),
    "too many cells": ({5: ["3.png", "a", "b"]}, "error", 5, "has 3 cells, the header has 2"),
    "empty file": ({5: ["empty.png", "a"]}, "error", 5, "empty.png cannot be read: the file is"),
    "cut short": ({5: ["cut.png", "a"]}, "error", 5, "cut.png cannot be read: "),
    "no image at all": ({5: ["text.png", "a"]}, "error", 5, "text.png cannot be read: "),
    "too large": ({5: ["bomb.png", "a"]}, "error", 5, "bomb.png cannot be read: "),
    "copy": ({5: ["copy.png", "a"]}, "warning", 5, "has the same content as 0.png (row 2)"),
    "name of odd letters": ({5: ["\x1b[31m\n.png", "a"]}, "error", 5, "no file \\x1b[31m\\n.png"),
}


def make_odd_table(tmp_path, problem):
    """A table with one of these problems, beside its images; returns the table."""
    folder = tmp_path / "photos"
    make_images(folder, ["big.png"])
    make_images(tmp_path / "secret", ["x.png"], start=50)
    (folder / "out.png").symlink_to(tmp_path / "secret" / "x.png")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "empty.png").touch()
    (folder / "text.png").write_text("no image")
    (folder / "cut.png").write_bytes((folder / "big.png").read_bytes()[:-40])
    (folder / "bomb.png").write_bytes(enlarge_png((folder / "big.png").read_bytes()))
    table = make_table(folder, TWO_COLUMNS[problem][0])
    shutil.copy(folder / "0.png", folder / "copy.png")
    return table
