"""One image file: whether it can be read, its size, its pixels; and the images in a folder."""

import io
import os
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from concont.errors import DataError, UsageError, printable

Fit = Literal["crop", "pad", "stretch"]
Size = tuple[int, int]  # height, width

Image.init()
# Pillow knows some formats by name only, and starts another program for EPS.
UNREAD = {"BUFR", "EPS", "GRIB", "HDF5", "MPEG", "WMF"}
FORMATS = tuple(name for name in Image.ID if name not in UNREAD)
SUFFIXES = {suffix for suffix, name in Image.registered_extensions().items() if name in FORMATS}
LARGEST_FILE = 2**30  # bytes; an image that may be read is smaller
BEHIND = (255, 255, 255)  # what is seen through transparent pixels: white, as on a page
BORDER = 128  # round a padded image: the grey of the views' squares
ORIENTATION = 0x0112  # the EXIF tag
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDEWAYS = [TURNS[value] for value in (5, 6, 7, 8)]
DEEP_AS_WIDE = ("PNG", "PPM")  # formats whose 16 bits Pillow may give as 32
# A JPEG may be decoded at a half, a quarter or an eighth, and large steps of resizing taken
# roughly, while what comes of it is still so many times larger than what is wanted.
JPEG_GAP, RESIZE_GAP = 2, 3.0


def find_images(paths: Sequence[Path]) -> list[Path]:
    """Files as they are given; for a folder, the images in it and below it, sorted.

    Hidden files and folders below a given one are left out.
    """
    found: list[Path] = []
    for path in paths:
        found += list_images(path) if os.path.isdir(path) else [path]
    if not found:
        raise UsageError(f"no image in {', '.join(map(str, paths))}")
    return found


def list_images(folder: Path) -> list[Path]:
    """The images in a folder and below it by their suffixes, sorted; no hidden ones."""
    return sorted(Path(folder, name) for name, _ in walk_images(folder))


def walk_images(folder: str | Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Each image in a folder and below it, by its suffix, with its path from the folder.

    Nothing hidden, and nothing behind a link to a folder.
    """
    left = [""]
    while left:
        under = left.pop()
        for entry in _scan(os.path.join(folder, under)):
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                if not entry.is_symlink():
                    left.append(f"{under}{entry.name}/")
            elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:
                yield under + entry.name, entry


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise DataError(f"{printable(folder)} cannot be listed: {error.strerror}") from None


def read_image(
    path: str | Path, size: Size, channels: int, fit: Fit = "stretch"
) -> NDArray[np.uint8]:
    """An image file, turned upright, as uint8 (H, W, channels); an animated one's first frame.

    A DataError says in one line why a file cannot be read.
    """
    return decode_image(read_content(path), size, channels, fit)


def read_content(path: str | Path) -> bytes:
    """The bytes of an image file; a DataError where it is no plain file, empty or not readable."""
    with _refusals():
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise DataError("a folder, not a file")
        if not stat.S_ISREG(status.st_mode):  # to open a pipe would wait for its other end
            raise DataError("not a plain file")
        if status.st_size == 0:
            raise DataError("the file is empty")
        if status.st_size > LARGEST_FILE:
            raise DataError(f"the file has {status.st_size / 1e9:.1f} GB, too many for an image")
        with open(path, "rb") as file:
            return file.read()


def decode_image(content: bytes, size: Size, channels: int, fit: Fit) -> NDArray[np.uint8]:
    """The content of an image file as `read_image` gives it.

    crop: the largest part in the middle that has the shape wanted, resized. pad: the whole image,
    resized to fit inside, with a grey border. stretch: the whole image, each side resized.
    """
    height, width = size
    with _refusals(), Image.open(io.BytesIO(content), formats=FORMATS) as image:
        extent = _load(image, size, fit)
        turn = _read_turn(image)
        sides = (height, width) if turn in SIDEWAYS else (width, height)  # as it is stored
        small = _resize(_flatten(image, channels), extent, sides, fit)
        upright = small if turn is None else small.transpose(turn)
        page = _lay_on_grey(upright, (width, height))
        if channels == 3 and page.mode != "RGB":
            page = page.convert("RGB")
        return np.asarray(page, dtype=np.uint8).reshape(height, width, channels)


def verify_image(path: str | Path) -> str | None:
    """Why an image file cannot be read, in one line; None where all of it can be decoded."""
    try:
        verify_content(read_content(path))
    except DataError as error:
        return str(error)
    return None


def verify_content(content: bytes) -> None:
    """A DataError says why the content of an image file cannot be decoded."""
    with _refusals(), Image.open(io.BytesIO(content), formats=FORMATS) as image:
        image.draft(None, (1, 1))  # reads all of a JPEG, and computes little
        image.load()
        _flatten(image, 3)


def read_size(path: str | Path) -> tuple[int, int]:
    """Width and height of an image once it is upright; reads no more than the file's head."""
    with _refusals():
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise DataError("not a plain file")
        with Image.open(path, formats=FORMATS) as image:
            width, height = image.size
            # PNG's own way to read EXIF would decode the pixels to look behind them.
            turn = _read_turn(image, Image.Image.getexif)
            # A TIFF states the size that it has once it is upright.
            sideways = turn in SIDEWAYS and image.format != "TIFF"
            return (height, width) if sideways else (width, height)


@contextmanager
def _refusals() -> Iterator[None]:
    """Whatever goes wrong with a file in here is a DataError that says why in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged metadata: the pixels can still be read
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except Exception as error:  # Pillow raises errors of every kind on a damaged file
        raise DataError(_explain(error)) from None


def _load(image: Image.Image, size: Size, fit: Fit) -> tuple[float, float]:
    """Decode all pixels; returns the extent (width, height) that the image takes of them.

    Those of a JPEG may be fewer than it has, while they are enough; at its border they may be more.
    """
    drafted = None
    if image.format in ("JPEG", "MPO"):
        sides = size if _read_turn(image) in SIDEWAYS else size[::-1]
        width, height = _fit_inside(image.size, sides) if fit == "pad" else sides
        drafted = image.draft(None, (width * JPEG_GAP, height * JPEG_GAP))
    image.load()
    return image.size if drafted is None else drafted[1][2:]


def _read_turn(
    image: Image.Image,
    read_exif: Callable[[Image.Image], Image.Exif] = lambda image: image.getexif(),
) -> Image.Transpose | None:
    """What brings the image upright; None where it is, or where its metadata is damaged."""
    try:
        return TURNS.get(read_exif(image).get(ORIENTATION, 1))
    except Exception:
        return None


def _flatten(image: Image.Image, channels: int) -> Image.Image:
    """Grey or RGB of 8 bits a channel, grey if that is wanted; transparent pixels over white."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in DEEP_AS_WIDE):
        # The upper 8 of 16 bits; Pillow itself would cut off at 255.
        return Image.fromarray((np.asarray(image) >> 8).clip(0, 255).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise DataError(
            f"its pixels are of mode {image.mode}, whose range is not known; "
            "save it with 8 or 16 bits a channel"
        )
    plain = image
    if image.mode.endswith(("A", "a")) or "transparency" in image.info:
        see_through = image.convert("RGBA")
        page = Image.new("RGBA", image.size, BEHIND)
        plain = Image.alpha_composite(page, see_through)
    wanted = "L" if channels == 1 or plain.mode in ("1", "L") else "RGB"
    return plain if plain.mode == wanted else plain.convert(wanted)


def _resize(
    image: Image.Image, extent: tuple[float, float], sides: tuple[int, int], fit: Fit
) -> Image.Image:
    """What is wanted of the image as (width, height), or smaller to be padded; antialiased."""
    whole = (0.0, 0.0, *extent)
    box = _find_middle(extent, sides) if fit == "crop" else whole
    if fit == "pad":
        sides = _fit_inside(extent, sides)
    if image.size == sides and box == whole == (0, 0, *sides):
        return image
    return image.resize(sides, Image.Resampling.BILINEAR, box, reducing_gap=RESIZE_GAP)


def _lay_on_grey(image: Image.Image, sides: tuple[int, int]) -> Image.Image:
    """The image in the middle of a page of (width, height)."""
    if image.size == sides:
        return image
    page = Image.new(image.mode, sides, (BORDER,) * len(image.getbands()))
    page.paste(image, ((sides[0] - image.width) // 2, (sides[1] - image.height) // 2))
    return page


def _find_middle(
    whole: tuple[float, float], shape: tuple[int, int]
) -> tuple[float, float, float, float]:
    """The largest box (left, top, right, bottom) in the middle that has the shape's proportions."""
    scale = min(whole[0] / shape[0], whole[1] / shape[1])
    left = max(0.0, (whole[0] - shape[0] * scale) / 2)
    top = max(0.0, (whole[1] - shape[1] * scale) / 2)
    return left, top, whole[0] - left, whole[1] - top


def _fit_inside(whole: tuple[float, float], room: tuple[int, int]) -> tuple[int, int]:
    """The largest size of the image's own proportions that the room has, at least a pixel."""
    scale = min(room[0] / whole[0], room[1] / whole[1])
    return max(1, round(whole[0] * scale)), max(1, round(whole[1] * scale))


def _explain(error: Exception) -> str:
    """Why an image could not be read, in one line."""
    if isinstance(error, UnidentifiedImageError):
        return "not an image that can be read"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
