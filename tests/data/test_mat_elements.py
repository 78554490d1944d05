import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.sparse import csc_array

from concont.data.mat import load_matlab
from concont.data.mat_elements import refuse_unknown_types
from concont.errors import DataError

KINDS = {
    "floats": np.arange(12.0).reshape(4, 3),
    "complex": np.arange(6) * (1 + 2j),
    "bytes": np.arange(3, dtype=np.uint8)[None],  # few enough to stand in a tag
    "sparse": csc_array(np.eye(3)),
    "text": "abc",
    "cells": np.array([["a", 1.0]], dtype=object),
    "struct": {"a": 1},
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_scipy_writes_is_let_through(tmp_path, kind, compressed):
    path = tmp_path / "x.mat"
    savemat(path, {"before": "x", kind: KINDS[kind], "after": 1.5}, do_compression=compressed)
    refuse_unknown_types(path, 1000)
    assert float(loadmat(path)["after"][0, 0]) == 1.5


@pytest.mark.parametrize("kind", [0, 8, 10, 14, 15, 19, 40, 2**16 - 1])
@pytest.mark.parametrize("name", ["floats", "complex", "sparse"])
def test_a_type_that_ends_the_process_is_refused(tmp_path, name, kind):
    path = tmp_path / "x.mat"
    savemat(path, {"data": KINDS[name]})
    content = bytearray(path.read_bytes())
    place = content.rindex(b"\x09\0\0\0")  # the last numbers: floats, imaginary, or not zero
    content[place : place + 4] = kind.to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match="numbers of an unknown type"):
        load_matlab(path, ["data"])
