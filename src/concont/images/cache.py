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
from concont.errors import ConcontError, DataError, count
from concont.images.decoding import Decoded
from concont.images.decoding_processes import Target, decode_files
from concont.images.file_index import FileIndex, Stamp, stamp_files
from concont.images.files import Fit, Size
from concont.images.packs import (
    MISSING,
    Form,
    Pack,
    PackWriter,
    find_packs,
    name_pack,
    name_part,
    open_pack,
    remove_parts,
    start_pack,
)

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
    decoded. What was decoded before an error or Ctrl-C is kept. `report` hears how many of those
    that must be read are done. `folder` is `image_cache_folder()` by default; `describe` says what
    an error calls a file, else its path.
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
            reading = _Reading(place, form, names, stamps, index, report)
            pack = _make_pack(reading, contents, describe or names.__getitem__)
    return CachedImages(pack.pixels, pack.contents)


def image_cache_folder() -> Path:
    """Where decoded images are kept."""
    return cache_folder() / "images"


class _Reading:
    """Files that are read into a pack, and what has become of them so far."""

    def __init__(
        self,
        place: Path,
        form: Form,
        names: Sequence[str],
        stamps: Sequence[Stamp | None],
        index: FileIndex,
        report: Callable[[int, int], None] | None,
    ) -> None:
        self.place, self.form, self.names, self.report = place, form, names, report
        self.stamps, self.index = stamps, index
        self.results: list[Decoded] = []

    def decode(self, rows: Sequence[int], target: Target) -> None:
        """Read some of the files."""

        def take(more: list[Decoded]) -> None:
            self.results += more
            if self.report is not None:
                self.report(len(self.results), len(rows))

        decode_files([(row, self.names[row]) for row in rows], target, take)

    @property
    def contents(self) -> dict[int, str]:
        """The sums of the files that could be read, by their rows."""
        read = (result for result in self.results if result.problem is None)
        return {result.row: result.content for result in read if result.content is not None}

    @property
    def written(self) -> set[int]:
        """The rows that hold pixels."""
        return {result.row for result in self.results if result.written}

    def remember(self) -> None:
        """Keep the sums, so that the files need not be read again."""
        read = self.contents
        if read:
            names, stamps = [self.names[row] for row in read], [self.stamps[row] for row in read]
            self.index.keep(names, stamps, list(read.values()))

    def keep_part(self, writer: PackWriter) -> None:
        """What was decoded before an end in the midst, as a pack with gaps."""
        written, contents = self.written, self.contents
        if written and writer.path.exists():  # else it was finished
            rows = range(len(self.names))
            sums = [contents[row] if row in written else MISSING for row in rows]
            writer.finish(sums, name_part(self.place, self.form, sums))
        self.remember()


def _open(place: Path, form: Form, contents: Sequence[str]) -> Pack | None:
    """The pack of just these images, if it is there and whole."""
    pack = open_pack(name_pack(place, form, contents), form)
    return pack if pack is not None and pack.contents == contents else None


def _make_pack(
    reading: _Reading, expected: Sequence[str | None], describe: Callable[[int], str]
) -> Pack:
    """Decode what no earlier pack holds, copy the rest; expected: contents, where known."""
    place, form, n_rows = reading.place, reading.form, len(reading.names)
    packs = find_packs(place, form)
    if not packs:
        _refuse_if_full(place, form.nbytes * n_rows)
    kept = {
        content: (pack.pixels, row) for pack in packs for row, content in enumerate(pack.contents)
    }
    kept.pop(MISSING, None)
    with start_pack(place, form, n_rows) as writer:
        try:
            target = Target(str(writer.path), writer.first_row, form, list(kept))
            reading.decode([row for row in range(n_rows) if expected[row] not in kept], target)
            _refuse_unreadable(reading.results, n_rows, describe)
            read, written = reading.contents, reading.written
            contents = [read.get(row) or content or "" for row, content in enumerate(expected)]
            path = name_pack(place, form, contents)
            if _open(place, form, contents) is None:
                for row in range(n_rows):
                    if row not in written:
                        writer.copy(row, *kept[contents[row]])
                writer.finish(contents, path)
        except (KeyboardInterrupt, ConcontError):
            reading.keep_part(writer)
            raise
    reading.remember()
    pack = _open(place, form, contents)
    if pack is None:
        raise DataError(f"{path} was written, but cannot be read back")
    remove_parts(place, form, pack.contents)
    return pack


def _refuse_unreadable(
    results: Sequence[Decoded], n_images: int, describe: Callable[[int], str]
) -> None:
    problems = sorted((r.row, r.problem) for r in results if r.problem is not None)
    if problems:
        listed = "; ".join(f"{describe(row)}: {problem}" for row, problem in problems[:N_NAMED])
        more = "; ..." if len(problems) > N_NAMED else ""
        raise DataError(
            f"{len(problems)} of {count(n_images, 'image')} cannot be read: {listed}{more}"
        )


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
