"""Large arrays of an `.npz` as read-only views of the file, so that they need not fit in memory."""

import math
import mmap
import struct
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

LARGE = 256 * 2**20  # bytes of an array from which on it is mapped
LOCAL_FILE_HEADER = struct.Struct(
    "<26xHH"
)  # of a zip member; ends in the lengths of name and extras
READ_NPY_HEADER = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_arrays(path: Path) -> dict[str, Any]:
    """What an `.npz` holds, by name: large arrays stored uncompressed are mapped, others read."""
    arrays = {}
    with np.load(path, allow_pickle=False) as archive:
        for info in archive.zip.infolist():
            mapped = _map_member(path, archive.zip, info)
            name = info.filename.removesuffix(".npy")
            arrays[name] = archive[info.filename] if mapped is None else mapped
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


def _map_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any] | None:
    """An array of the archive as a view of the file; None where it is to be read."""
    stored = info.compress_type == zipfile.ZIP_STORED and info.filename.endswith(".npy")
    if not stored or info.file_size < LARGE:
        return None
    with archive.open(info) as member:  # refuses a damaged local header
        version = npy.read_magic(member)
        if version not in READ_NPY_HEADER:
            return None
        shape, fortran_order, dtype = READ_NPY_HEADER[version](member)
        header = member.tell()
    if fortran_order or dtype.hasobject:  # np.load copies the one and refuses the other
        return None
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        lengths = LOCAL_FILE_HEADER.unpack(file.read(LOCAL_FILE_HEADER.size))
    start = info.header_offset + LOCAL_FILE_HEADER.size + sum(lengths)
    size = header + math.prod(shape) * dtype.itemsize
    # The archive's CRC goes unchecked, as that would take reading it all; its extent is checked.
    if size != info.file_size or start + size > path.stat().st_size:
        raise zipfile.BadZipFile(f"{info.filename} is not of the size that its header states")
    return np.memmap(path, dtype, "r", start + header, shape)
