"""Large arrays of an `.npz` as read-only views of the file, so that they need not fit in memory."""

import io
import math
import mmap
import struct
import warnings
import zipfile
import zlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from concont.errors import DataError
from concont.memory import refuse_beyond_memory

Arrays = dict[str, NDArray[Any]]
LARGE = 256 * 2**20  # bytes of an array from which on it is mapped
LOCAL_FILE_HEADER = struct.Struct(
    "<26xHH"
)  # of a zip member; ends in the lengths of name and extras
READ_NPY_HEADER = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
    (3, 0): npy.read_array_header_2_0,  # the same, of names that are not in Latin-1
}
LONGEST_HEADER = 2**16  # bytes; NumPy takes a sixth of it
AT_ONCE = 2**24  # bytes that are unpacked at once
UNCOMPRESSED = "an array that is stored uncompressed (`np.savez`) stays on disk"
# What a damaged archive, or one that was never whole, is found by.
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, LZMAError, struct.error, EOFError, OSError),
    *(ValueError, TypeError, OverflowError, RuntimeError, SyntaxError, MemoryError, TokenError),
)


@dataclass(frozen=True)
class _Member:
    """An array in an archive, by its header."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int  # of its first byte, in the member

    @property
    def name(self) -> str:
        return self.info.filename.removesuffix(".npy")

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def order(self) -> Literal["C", "F"]:
        return "F" if self.fortran_order else "C"


def list_arrays(path: Path) -> list[str]:
    """The names of what an `.npz` holds; reads none of it."""
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_shape(path: Path, name: str) -> tuple[int, ...]:
    """The shape of an array in an `.npz`; a KeyError where it holds none of the name."""
    with zipfile.ZipFile(path) as archive:
        return _read_header(archive, archive.getinfo(f"{name}.npy")).shape


def read_arrays(path: Path, wanted: Collection[str]) -> Arrays:
    """The wanted arrays that an `.npz` holds, by name: never unpickled, and no other is unpacked.

    Large ones that are stored uncompressed are mapped, the others read; what they take in memory,
    by their headers, is held against what there is before that.
    """
    arrays: Arrays = {}
    with zipfile.ZipFile(path) as archive:
        members = [_read_header(archive, info) for info in _choose(archive, wanted)]
        needed = sum(0 if _can_be_mapped(member) else member.nbytes for member in members)
        refuse_beyond_memory(needed, f"{path}: its arrays take", UNCOMPRESSED)
        for member in members:
            read = _map_member if _can_be_mapped(member) else _read_member
            arrays[member.name] = read(path, archive, member)
    return arrays


class RowsOf:
    """Some rows of an array, not copied until they are asked for: what numpy has no view for."""

    def __init__(self, array: NDArray[Any], rows: NDArray[np.int64]) -> None:
        self.array, self.rows = array, rows
        self.shape, self.dtype = (len(rows), *array.shape[1:]), array.dtype
        self.ndim, self.nbytes = array.ndim, len(rows) * math.prod(array.shape[1:]) * array.itemsize

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Any) -> NDArray[Any]:
        """A row, or a copy of several."""
        chosen: NDArray[Any] = self.array[self.rows[which]]
        return chosen

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All of them, in memory."""
        return np.asarray(self[:], dtype)


def choose_rows(array: NDArray[Any] | RowsOf, rows: NDArray[np.int64]) -> NDArray[Any] | RowsOf:
    """These rows of an array, in ascending order: a copy, but for a mapped file."""
    if len(rows) == len(array):
        return array
    if isinstance(array, RowsOf):
        return RowsOf(array.array, array.rows[rows])
    return array[rows] if find_mapped_file(array) is None else RowsOf(array, rows)


def gather_rows(array: NDArray[Any] | RowsOf, rows: NDArray[np.int64], out: NDArray[Any]) -> None:
    """Copy rows to where they are wanted; no other Python thread is held up by it."""
    if isinstance(array, RowsOf):
        rows, array = array.rows[rows], array.array
    np.take(array, rows, axis=0, out=out, mode="clip")  # other modes copy twice


def find_mapped_file(array: NDArray[Any] | RowsOf) -> mmap.mmap | None:
    """The mapped file that an array is a view of, if it is one."""
    base: object = array.array if isinstance(array, RowsOf) else array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def read_ahead(array: NDArray[Any] | RowsOf, rows: NDArray[np.int64]) -> None:
    """Ask for these rows of a mapped array at once; else each page is waited for on its own.

    A hint: it does nothing for an array in memory, or where the system has no such call.
    """
    file = find_mapped_file(array)
    if file is None or not hasattr(file, "madvise"):
        return
    if isinstance(array, RowsOf):
        rows, array = array.rows[rows], array.array
    first_row = array.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
    for row in rows.tolist():
        start = first_row + row * array.strides[0]
        into_page = start % mmap.PAGESIZE  # the call takes whole pages
        with suppress(OSError):
            file.madvise(mmap.MADV_WILLNEED, start - into_page, into_page + array.strides[0])


def _choose(archive: zipfile.ZipFile, wanted: Collection[str]) -> list[zipfile.ZipInfo]:
    """The members that hold wanted arrays; the last one of a name, as everywhere with zip files."""
    found = {info.filename: info for info in archive.infolist()}
    return [found[f"{name}.npy"] for name in wanted if f"{name}.npy" in found]


def _read_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    """What an array is like; refused unless the member has just the size that follows from it."""
    with archive.open(info) as file:  # refuses a damaged local header
        head = io.BytesIO(file.read(LONGEST_HEADER))
    version = npy.read_magic(head)
    if version not in READ_NPY_HEADER:
        raise zipfile.BadZipFile(f"{info.filename} is of an unknown version")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Python 2 wrote
        shape, fortran_order, dtype = READ_NPY_HEADER[version](head)
    if dtype.hasobject:
        raise DataError(
            f"{archive.filename}: holds Python objects, which are never read ({info.filename})"
        )
    member = _Member(info, shape, fortran_order, dtype, head.tell())
    if min(shape, default=0) < 0 or member.offset + member.nbytes != info.file_size:
        raise zipfile.BadZipFile(f"{info.filename} is not of the size that its header states")
    return member


def _can_be_mapped(member: _Member) -> bool:
    stored = member.info.compress_type == zipfile.ZIP_STORED
    return stored and not member.fortran_order and member.info.file_size >= LARGE


def _read_member(path: Path, archive: zipfile.ZipFile, member: _Member) -> NDArray[Any]:
    """An array in memory."""
    content = np.empty(member.nbytes, np.uint8)
    with archive.open(member.info) as file:
        file.read(member.offset)
        place = 0
        while chunk := file.read(AT_ONCE):
            content[place : place + len(chunk)] = np.frombuffer(chunk, np.uint8)
            place += len(chunk)
    if place != member.nbytes:
        raise EOFError(f"{member.info.filename} is cut short")
    return content.view(member.dtype).reshape(member.shape, order=member.order)


def _map_member(path: Path, archive: zipfile.ZipFile, member: _Member) -> NDArray[Any]:
    """An array of the archive as a view of the file."""
    info = member.info
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        lengths = LOCAL_FILE_HEADER.unpack(file.read(LOCAL_FILE_HEADER.size))
    start = info.header_offset + LOCAL_FILE_HEADER.size + sum(lengths)
    # The archive's CRC goes unchecked, as that would take reading it all; its extent is checked.
    if start + info.file_size > path.stat().st_size:
        raise zipfile.BadZipFile(f"{info.filename} goes on beyond the end of the file")
    return np.memmap(path, member.dtype, "r", start + member.offset, member.shape)
