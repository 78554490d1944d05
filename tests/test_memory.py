import resource

import numpy as np
import pytest
import torch

from concont import memory
from concont.errors import DataError, UsageError
from concont.memory import (
    count_memory,
    refuse_beyond_memory,
    show_bytes,
    tells_of_full_memory,
)


def test_there_is_some_memory_but_no_exabyte():
    assert 10**8 < count_memory() < 10**18


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CGROUP_LIMIT", tmp_path / "memory.max")
    whole = count_memory()
    (tmp_path / "memory.max").write_text("1000000\n")
    assert count_memory() == 1_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert count_memory() == whole


def test_a_limit_of_the_process_counts(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (123_456, resource.RLIM_INFINITY))
    assert count_memory() == 123_456


def test_what_fits_is_let_through_and_what_does_not_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "count_memory", lambda: 1000)
    refuse_beyond_memory(1000, "it takes")
    with pytest.raises(DataError, match="it takes 1 kB of memory; there are 1 kB; buy more"):
        refuse_beyond_memory(1001, "it takes", "buy more")
    with pytest.raises(UsageError):
        refuse_beyond_memory(1001, "it takes", error=UsageError)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(1500, "1.5 kB"), (2 * 10**6, "2 MB"), (23_456_789_000, "23.5 GB"), (5 * 10**12, "5 TB")],
)
def test_bytes_in_words(count, shown):
    assert show_bytes(count) == shown
    assert show_bytes(10**30) == "1e+18 TB"


def test_full_memory_is_known_by_its_real_errors():
    with pytest.raises(RuntimeError) as of_torch:
        torch.empty(2**62, dtype=torch.uint8)
    with pytest.raises(MemoryError) as of_numpy:
        np.empty(2**62, np.uint8)
    assert tells_of_full_memory(of_torch.value)
    assert tells_of_full_memory(of_numpy.value)


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (torch.OutOfMemoryError("Allocation on device"), True),
        (RuntimeError("CUDA error: out of memory\nand advice"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_full_memory_in_words_of_the_libraries(error, full):
    assert tells_of_full_memory(error) == full
