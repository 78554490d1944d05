import pickle
import struct
import tracemalloc

import numpy as np
import pytest

from concont.data.pickled_arrays import unpickle_arrays
from concont.errors import DataError


def read(folder, content):
    path = folder / "data_batch_1"
    path.write_bytes(content)
    return unpickle_arrays(path)


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize("dtype", ["u1", "<i4", ">f8", "bool"])
def test_arrays_are_read_as_they_were_written(tmp_path, protocol, dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    content = {b"data": array, b"columns": np.asfortranarray(array), b"names": [b"a", 1]}
    found = read(tmp_path, pickle.dumps(content, protocol))
    assert np.array_equal(found[b"data"], array)
    assert np.array_equal(found[b"columns"], array)
    assert found[b"data"].dtype == array.dtype
    assert found[b"names"] == [b"a", 1]


# {"data": array([[97, 98, 99], [100, 101, 102]], "u1")} as Python 2 wrote CIFAR's files.
OF_PYTHON_2 = (
    b"\x80\x02}q\x01U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    b"K\x00\x85U\x01b\x87R(K\x01K\x02K\x03\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
    b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x06abcdeftbs."
)


def test_the_pickles_of_python_2_are_read(tmp_path):
    assert read(tmp_path, OF_PYTHON_2)[b"data"].tolist() == [[97, 98, 99], [100, 101, 102]]


class Call:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


# An empty dictionary that is put where the list of what was read would take 16 GB.
MANY_PLACES = b"}r" + struct.pack("<I", 2**31 - 1) + b"."
BAD = {
    "a huge array": pickle.dumps({b"data": Call(np.ndarray, ((10**13,), "u1"))}),
    "a claimed shape": pickle.dumps({b"data": np.zeros(9, "u1")}, 2).replace(b"K\t", b"K\xff"),
    "objects": pickle.dumps({b"data": np.array([{}], dtype=object)}, 2),
    "many places": MANY_PLACES,
    "bytes that are not there": b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"abc.",
    "another function": pickle.dumps(Call(eval, ("1/0",))),
    "a name within a module": b"cnumpy\ndtype.type.mro\n.",
    "depth": b"(" * 10**6 + b".",
    "no end": b"}",
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cifar_has_not_is_refused_and_takes_no_memory(kind, tmp_path):
    tracemalloc.start()
    with pytest.raises(DataError, match="data_batch_1: not one of CIFAR's files"):
        read(tmp_path, BAD[kind])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**28
