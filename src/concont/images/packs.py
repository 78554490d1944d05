"""A pack: the pixels of many images as one file that is mapped, and which images they are.

An `.npy` of uint8 (N, H, W, channels), behind which lie the SHA-256 sums of the N image files. One
that was not finished may have gaps, rows without pixels, and is there to be copied from. Its name
holds how the images were made to fit, and a sum of those sums: other images, another name.
"""

import fcntl
import hashlib
import io
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from concont.images.files import Fit

VERSION = 1  # of what `decode_image` makes of a file: another one is kept beside it
SUM = 32  # bytes of a SHA-256 sum
MISSING = "00" * SUM  # stands for the sum of a row without pixels
PART = ".part.npy"  # what the name of a pack with such rows ends in
# What a damaged array is found by; the last two where its header is.
DAMAGE = (OSError, ValueError, TypeError, EOFError, OverflowError, SyntaxError, TokenError)


@dataclass(frozen=True)
class Form:
    """What files of any kind are turned into."""

    height: int
    width: int
    channels: int
    fit: Fit

    @property
    def name(self) -> str:
        """Of all packs of this form."""
        return f"{self.height}x{self.width}x{self.channels}-{self.fit}-{VERSION}"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one image."""
        return self.height, self.width, self.channels

    @property
    def nbytes(self) -> int:
        """Of one image."""
        return self.height * self.width * self.channels

    def make_header(self, rows: int) -> bytes:
        """What an `.npy` file of so many images begins with."""
        file = io.BytesIO()
        described = {"descr": "|u1", "fortran_order": False, "shape": (rows, *self.shape)}
        npy.write_array_header_1_0(file, described)
        return file.getvalue()


@dataclass(frozen=True)
class Pack:
    """A pack that was found whole."""

    pixels: NDArray[np.uint8]  # (N, H, W, channels), mapped, read-only
    contents: list[str]  # N SHA-256 sums of the image files, in hexadecimal


def name_pack(folder: Path, form: Form, contents: Sequence[str]) -> Path:
    """Where the pack of these images lies, if there is one."""
    state = hashlib.sha256("".join(contents).encode())
    return folder / f"{form.name}-{state.hexdigest()[:32]}.npy"


def name_part(folder: Path, form: Form, contents: Sequence[str]) -> Path:
    """The same of a pack that has gaps."""
    return name_pack(folder, form, contents).with_suffix(PART)


def open_pack(path: Path, form: Form) -> Pack | None:
    """A pack, mapped; None where there is none, or where it is damaged or cut short."""
    try:
        pixels: Any = npy.open_memmap(path, mode="r")
        if not isinstance(pixels, np.memmap) or pixels.dtype != np.uint8:
            return None
        end = pixels.offset + pixels.nbytes
        if pixels.shape[1:] != form.shape or path.stat().st_size != end + SUM * len(pixels):
            return None
        with open(path, "rb") as file:
            file.seek(end)
            text = file.read().hex()
    except DAMAGE:
        return None
    return Pack(pixels, [text[k : k + 2 * SUM] for k in range(0, len(text), 2 * SUM)])


def find_packs(folder: Path, form: Form) -> list[Pack]:
    """All whole packs of a form, the newest first."""
    found: list[tuple[int, Path]] = []
    for path in folder.glob(f"{form.name}-*.npy"):
        with suppress(FileNotFoundError):  # another process has just removed it
            found.append((path.stat().st_mtime_ns, path))
    packs = (open_pack(path, form) for _, path in sorted(found, reverse=True))
    return [pack for pack in packs if pack is not None]


def remove_parts(folder: Path, form: Form, contents: Sequence[str]) -> None:
    """Remove packs with gaps of which another pack, with these contents, holds all images."""
    held = {*contents, MISSING}
    for path in folder.glob(f"{form.name}-*{PART}"):
        part = open_pack(path, form)
        if part is None or held.issuperset(part.contents):
            path.unlink(missing_ok=True)


class PackWriter:
    """A pack under way: rows in any order, by any process that knows its name, then the sums."""

    def __init__(self, path: Path, handle: int, form: Form, rows: int) -> None:
        self.path, self.handle, self.form, self.rows = path, handle, form, rows
        header = form.make_header(rows)
        self.first_row = len(header)
        write_all(handle, header, 0)

    def copy(self, row: int, pixels: NDArray[np.uint8], old_row: int) -> None:
        """Take an image from another pack."""
        place = self.first_row + row * self.form.nbytes
        write_all(self.handle, pixels[old_row].data.cast("B"), place)

    def finish(self, contents: Sequence[str], path: Path) -> None:
        """Write the sums, and give the file its name once all of it is on disk."""
        end = self.first_row + self.rows * self.form.nbytes
        write_all(self.handle, bytes.fromhex("".join(contents)), end)
        os.fsync(self.handle)
        os.replace(self.path, path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


@contextmanager
def start_pack(folder: Path, form: Form, rows: int) -> Iterator[PackWriter]:
    """A new pack under a name of its own, so that two processes may make the same one.

    Where it is not finished, it is removed; if this process is killed, the next one does so.
    """
    remove_abandoned(folder)
    path, handle = _make_locked_file(folder)
    try:
        yield PackWriter(path, handle, form, rows)
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left: files that nobody holds the lock of."""
    for path in folder.glob(".*.tmp"):
        try:
            with open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
        except OSError:  # in use, or gone by now
            continue


def write_all(handle: int, content: bytes | memoryview, place: int) -> None:
    """Write at a place of a file, to the end."""
    left = memoryview(content)
    while left:
        count = os.pwrite(handle, left, place)
        left, place = left[count:], place + count


def _make_locked_file(folder: Path) -> tuple[Path, int]:
    """An empty file, and a handle that holds its lock for as long as this process lives."""
    while True:
        path = folder / f".{os.getpid()}-{secrets.token_hex(4)}.tmp"
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if path.exists():  # else another process took it for abandoned before it was locked
            return path, handle
        os.close(handle)
