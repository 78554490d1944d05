import io
import mmap
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from concont import memory
from concont.data import mapped_arrays
from concont.data.given import NAMES
from concont.data.mapped_arrays import (
    RowsOf,
    choose_rows,
    find_mapped_file,
    gather_rows,
    list_arrays,
    read_ahead,
    read_arrays,
    read_shape,
)
from concont.data.sources import digest, load, read_npz
from concont.errors import DataError


@pytest.fixture(autouse=True)
def _all_is_large(monkeypatch):
    monkeypatch.setattr(mapped_arrays, "LARGE", 0)


def test_a_mapped_file_is_the_same_data(toy_npz, monkeypatch):
    found = load(str(toy_npz))
    monkeypatch.setattr(mapped_arrays, "LARGE", 10**9)
    read = load(str(toy_npz))
    assert find_mapped_file(found.x_train) is not None
    assert find_mapped_file(read.x_train) is None
    assert not found.x_train.flags.writeable
    for name in ("x_train", "y_train", "x_test", "y_test"):
        assert np.array_equal(getattr(found, name), getattr(read, name))
    assert found.digest == read.digest


def test_only_large_arrays_are_mapped(toy_npz, monkeypatch):
    monkeypatch.setattr(mapped_arrays, "LARGE", 40 * 8 * 8)
    kept = {
        name
        for name, array in read_arrays(toy_npz, NAMES).items()
        if find_mapped_file(array) is not None
    }
    assert kept == {"x_train"}


def test_a_compressed_file_is_read(tmp_path, toy_arrays):
    path = tmp_path / "small.npz"
    np.savez_compressed(path, **toy_arrays)
    arrays = read_arrays(path, NAMES)
    assert all(find_mapped_file(array) is None for array in arrays.values())
    assert np.array_equal(arrays["x_train"], toy_arrays["x_train"])


def test_arrays_in_other_orders_are_read_not_mapped_and_every_version_is(tmp_path):
    path, array = tmp_path / "odd.npz", np.arange(6).reshape(2, 3)
    np.savez(path, columns=np.asfortranarray(array))
    with zipfile.ZipFile(path, "a") as archive:
        utf8 = io.BytesIO()
        np.lib.format.write_array(utf8, array, version=(3, 0))
        archive.writestr("utf8.npy", utf8.getvalue())
        archive.writestr("note.txt", "what is in it")
    arrays = read_arrays(path, ["columns", "utf8"])
    assert find_mapped_file(arrays["columns"]) is None
    assert np.array_equal(arrays["columns"], array)
    assert np.array_equal(arrays["utf8"], array)


def test_a_mapped_array_is_hashed_without_a_copy(tmp_path):
    path, size = tmp_path / "zeros.npz", 2**24
    np.savez(path, x_train=np.zeros(size, np.uint8))
    array = read_arrays(path, NAMES)["x_train"]
    tracemalloc.start()
    digest({"x_train": array})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size / 16


def test_objects_are_never_unpickled(tmp_path):
    path = tmp_path / "objects.npz"
    np.savez(path, x_train=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="Python objects"):
        read_npz(path)


def cut(content):
    return content[:-500]


def cut_inside(content):
    return content[:1000] + content[1500:]


def without_its_header(content):
    return bytes(100) + content[100:]


@pytest.mark.parametrize("damage", [cut, cut_inside, without_its_header])
def test_a_damaged_file_is_refused(toy_npz, damage):
    toy_npz.write_bytes(damage(toy_npz.read_bytes()))
    with pytest.raises(DataError, match="toy.npz"):
        read_npz(toy_npz)


def test_an_array_of_another_size_than_its_member_is_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, x_train=np.zeros((900, 8, 8), np.uint8))
    path.write_bytes(path.read_bytes().replace(b"(900, 8, 8)", b"(300, 8, 8)"))
    with pytest.raises(DataError, match="damaged or cut short"):
        read_npz(path)


def test_a_member_beyond_the_end_of_its_file_is_refused(tmp_path):
    path, whole = tmp_path / "beyond.npz", io.BytesIO()
    np.save(whole, np.zeros((9000, 8, 8), np.uint8))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", whole.getvalue()[:1000])
    content = bytearray(path.read_bytes())
    size = len(whole.getvalue())
    struct.pack_into("<II", content, content.index(b"PK\x01\x02") + 20, size, size)
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged or cut short"):
        read_npz(path)


def write_members(path, compression=zipfile.ZIP_DEFLATED, **members):
    """An archive of these members, each a header and how many zeros follow it."""
    with zipfile.ZipFile(path, "w", compression, compresslevel=1) as archive:
        for name, (shape, zeros) in members.items():
            head = io.BytesIO()
            described = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(head, described)
            with archive.open(f"{name}.npy", "w") as file:
                file.write(head.getvalue())
                for _ in range(zeros // 2**20):
                    file.write(bytes(2**20))


def peak_of(work):
    tracemalloc.start()
    try:
        work()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


def test_a_member_that_nobody_asked_for_is_never_unpacked(tmp_path):
    path, size = tmp_path / "bomb.npz", 2**28
    write_members(path, x_train=((2**20,), 2**20), extra=((size,), size))
    assert path.stat().st_size < size / 100
    found = {}
    peak = peak_of(lambda: found.update(read_arrays(path, NAMES)))
    assert list(found) == ["x_train"]
    assert peak < size / 4
    assert list_arrays(path) == ["x_train", "extra"]


@pytest.mark.parametrize("shape", [(10**12, 8, 8), (2**64, 2**64), (-1, 8, 8)])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_rows_that_are_claimed_and_not_there_are_refused(shape, compression, tmp_path):
    path = tmp_path / "claims.npz"
    write_members(path, compression, x_train=(shape, 0))
    with pytest.raises(DataError, match="x_train.npy is not of the size that its header states"):
        read_npz(path)
    with pytest.raises(zipfile.BadZipFile):
        read_shape(path, "x_train")


def test_arrays_that_do_not_fit_in_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "large.npz"
    write_members(path, x_train=((2**25,), 2**25), y_train=((2**25,), 2**25))
    monkeypatch.setattr(memory, "count_memory", lambda: 2**26 - 1)

    def read():
        with pytest.raises(DataError, match="its arrays take 67.1 MB .* stays on disk"):
            read_npz(path)

    assert peak_of(read) < 2**21


def test_a_long_header_is_not_read(tmp_path):
    path = tmp_path / "long.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        content = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**28) + b" " * 2**28
        archive.writestr("x_train.npy", content)
        del content

    def read():
        with pytest.raises(DataError, match="damaged or cut short"):
            read_npz(path)

    assert peak_of(read) < 2**24


class Recorder(mmap.mmap):
    def madvise(self, option, start, length):
        assert option == mmap.MADV_WILLNEED
        self.asked = [*getattr(self, "asked", []), slice(start, start + length)]


@pytest.mark.skipif(not hasattr(mmap.mmap, "madvise"), reason="no such call here")
def test_rows_are_asked_for_by_whole_pages(tmp_path):
    path, shape, offset = tmp_path / "rows.bin", (50, 700, 3), 130
    path.write_bytes(np.random.RandomState(0).bytes(offset + 50 * 2100))
    with open(path, "rb") as file:
        held = Recorder(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.ndarray(shape, np.uint8, held, offset)
    read_ahead(array, np.array([49, 0, 7]))
    for row, part in zip([49, 0, 7], held.asked, strict=True):
        assert part.start % mmap.PAGESIZE == 0
        assert held[part].endswith(array[row].tobytes())
        assert part.stop - part.start < 2100 + mmap.PAGESIZE


def test_reading_ahead_leaves_an_array_in_memory_alone(toy_arrays):
    assert find_mapped_file(toy_arrays["x_train"]) is None
    read_ahead(toy_arrays["x_train"], np.array([0, 1]))


def test_rows_of_an_array_are_those_rows():
    array, rows = np.arange(60, dtype=np.uint8).reshape(10, 2, 3), np.array([1, 4, 5, 9])
    view, copy = RowsOf(array, rows), array[rows]
    assert (len(view), view.shape, view.ndim) == (4, (4, 2, 3), 3)
    assert (view.dtype, view.nbytes) == (copy.dtype, copy.nbytes)
    for which in (2, -1, slice(1, 3), slice(None), np.array([3, 0, 0])):
        assert np.array_equal(view[which], copy[which])
    assert np.array_equal(np.asarray(view), copy)
    assert np.asarray(view, dtype=float).dtype == float
    out = np.empty((2, 2, 3), np.uint8)
    for source in (view, copy):
        gather_rows(source, np.array([3, 1]), out)
        assert np.array_equal(out, copy[[3, 1]])


def test_rows_are_copied_of_what_is_in_memory_and_chosen_of_a_mapped_file(toy_npz):
    mapped = read_arrays(toy_npz, NAMES)["x_train"]
    rows, all_rows = np.array([1, 4, 9]), np.arange(40)
    assert choose_rows(mapped, all_rows) is mapped
    chosen = choose_rows(mapped, rows)
    assert isinstance(chosen, RowsOf)
    assert chosen.array is mapped
    assert find_mapped_file(chosen) is find_mapped_file(mapped)
    again = choose_rows(chosen, np.array([0, 2]))
    assert again.array is mapped
    assert again.rows.tolist() == [1, 9]
    copy = choose_rows(np.array(mapped), rows)
    assert isinstance(copy, np.ndarray)
    assert np.array_equal(copy, np.asarray(chosen))
