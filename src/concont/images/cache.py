"""Image files as mapped pixels, decoded once: kept on disk by what is in the files."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from concont.cache import cache_folder
from concont.errors import DataError
from concont.images.decoding import Decoded
from concont.images.decoding_processes import Target, decode_files
from concont.images.file_index import FileIndex, stamp_files
from concont.images.files import Fit, Size
from concont.images.packs import Form, Pack, find_packs, name_pack, open_pack, start_pack

N_NAMED = 3  # files in an error that concerns many


@dataclass(frozen=True)
class CachedImages:
    """The pixels of image files, and what identifies each file."""

    pixels: NDArray[np.uint8]  # (N, H, W, channels), a read-only mapped file
    contents: list[str]  # N SHA-256 sums of the files, in hexadecimal


def load_images(
    paths: Sequence[str | Path],
    size: Size,
    channels: int,
    fit: Fit,
    folder: Path | None = None,
    report: Callable[[int, int], None] | None = None,
    describe: Callable[[int], str] | None = None,
) -> CachedImages:
    """The pixels of these files, from the cache where it has them, else decoded and kept there.

    Files that have not changed are not opened; the same images under other names are read but not
    decoded. `report` hears how many of those that must be read are done. `folder` is
    `image_cache_folder()` by default; `describe` says what an error calls a file, else its path.
    """
    if not paths:
        raise DataError("there is no image to read")
    place = folder or image_cache_folder()
    form, names = Form(*size, channels, fit), [os.fspath(path) for path in paths]
    index, stamps = FileIndex(place / "index"), stamp_files(names)
    contents = index.find(names, stamps)
    known = [content for content in contents if content is not None]
    pack = _open(place, form, known) if len(known) == len(names) else None
    if pack is None:
        with _explained(place):
            os.makedirs(place, exist_ok=True)
            pack = _make_pack(place, form, names, contents, report, describe or names.__getitem__)
            index.keep(names, stamps, pack.contents)
    return CachedImages(pack.pixels, pack.contents)


def image_cache_folder() -> Path:
    """Where decoded images are kept."""
    return cache_folder() / "images"


def _open(place: Path, form: Form, contents: Sequence[str]) -> Pack | None:
    """The pack of just these images, if it is there and whole."""
    pack = open_pack(name_pack(place, form, contents), form)
    return pack if pack is not None and pack.contents == contents else None


def _make_pack(
    place: Path,
    form: Form,
    names: Sequence[str],
    expected: Sequence[str | None],
    report: Callable[[int, int], None] | None,
    describe: Callable[[int], str],
) -> Pack:
    """Decode what no earlier pack holds, copy the rest; expected: contents, where known."""
    packs = find_packs(place, form)
    if not packs:
        _refuse_if_full(place, form.nbytes * len(names))
    kept = {
        content: (pack.pixels, row) for pack in packs for row, content in enumerate(pack.contents)
    }
    tasks = [(row, names[row]) for row, content in enumerate(expected) if content not in kept]
    with start_pack(place, form, len(names)) as writer:
        target = Target(str(writer.path), writer.first_row, form, list(kept))
        results = decode_files(tasks, target, report)
        _refuse_unreadable(results, len(names), describe)
        read = {result.row: result.content for result in results}
        contents = [read.get(row) or content or "" for row, content in enumerate(expected)]
        pack = _open(place, form, contents)
        if pack is not None:
            return pack
        written = {result.row for result in results if result.written}
        for row in range(len(names)):
            if row not in written:
                writer.copy(row, *kept[contents[row]])
        path = name_pack(place, form, contents)
        writer.finish(contents, path)
    pack = _open(place, form, contents)
    if pack is None:
        raise DataError(f"{path} was written, but cannot be read back")
    return pack


def _refuse_unreadable(
    results: Sequence[Decoded], count: int, describe: Callable[[int], str]
) -> None:
    problems = sorted((r.row, r.problem) for r in results if r.problem is not None)
    if problems:
        listed = "; ".join(f"{describe(row)}: {problem}" for row, problem in problems[:N_NAMED])
        more = "; ..." if len(problems) > N_NAMED else ""
        raise DataError(f"{len(problems)} of {count} images cannot be read: {listed}{more}")


def _refuse_if_full(place: Path, needed: int) -> None:
    """Say so before the work rather than in the midst of it."""
    if shutil.disk_usage(place).free < needed:
        raise OSError(errno.ENOSPC, f"{needed / 1e6:,.0f} MB of images do not fit on the disk")


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    """What the system refuses is told with the place, and how to choose another."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(
            f"the image cache {place} cannot be written: {reason}; $CONCONT_CACHE may name another"
        ) from None
