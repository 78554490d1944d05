import contextlib
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from concont.data.file_watch import FileWatch, find_mapped_path
from concont.data.mapped_arrays import RowsOf
from concont.errors import DataError
from processes import ENVIRONMENT


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4000).reshape(100, 40))
    return tmp_path / "x.npy"


def cut(path):
    os.truncate(path, 200)


def write_into(path):
    with open(path, "r+b") as file:
        file.seek(500)
        file.write(b"other")
    os.utime(path, ns=(0, os.stat(path).st_mtime_ns + 1))  # clocks of files may be coarse


@pytest.mark.parametrize("change", [cut, write_into])
@pytest.mark.parametrize("of", [lambda a: a, lambda a: a[3:7], lambda a: RowsOf(a, np.arange(5))])
def test_a_file_that_is_changed_in_place_is_named(path, change, of):
    watch = FileWatch(of(np.load(path, mmap_mode="r")))
    watch.refuse_if_changed()
    change(path)
    with pytest.raises(DataError, match=r"x\.npy was changed while it was read; .* --resume"):
        watch.refuse_if_changed()


@pytest.mark.parametrize("late", [False, True])
def test_one_that_is_removed_or_replaced_has_no_effect(path, late):
    array = np.load(path, mmap_mode="r")
    watch = None if late else FileWatch(array)
    os.replace(path, path.with_name("moved"))
    path.mkdir()
    (watch or FileWatch(array)).refuse_if_changed()
    assert array[99, 39] == 3999


def test_what_is_in_memory_has_no_file(path):
    watch = FileWatch(np.load(path))
    path.unlink()
    watch.refuse_if_changed()
    assert (watch.handle, find_mapped_path(np.zeros(3))) == (None, None)


def test_no_file_stays_open(path):
    watch = FileWatch(np.load(path, mmap_mode="r"))
    assert path in open_files()
    del watch
    gc.collect()
    assert path not in open_files()


def open_files():
    """Paths of what this process has open at the moment; some may be closed while it looks."""
    found = []
    for number in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(number.readlink())
    return found


CUT = """
import os, sys, time
import concont
from concont.config.resolve import resolve
from concont.data import mapped_arrays
mapped_arrays.LARGE = 0
source, out = sys.argv[1:]
train = {"epochs": 50, "batch_size": 16, "device": "cpu", "checkpoint_every": 0}
model = {"name": "small", "width": 4, "hidden": 8, "embedding": 8}
from concont.runs.folder import RunFolder
from concont.training.prepare import prepare
run = prepare(resolve({"data": {"source": source}, "model": model, "train": train}), RunFolder(out))
steps = run.execute()
for _ in range(5):
    next(steps)
time.sleep(0.5)  # what is being fetched is fetched
os.truncate(source, 700)
try:
    list(steps)
except concont.errors.DataError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_run_whose_mapped_data_is_cut_short_ends_in_a_line(toy_npz, tmp_path):
    """Without the look it dies of SIGBUS, in most of the cases."""
    words = [sys.executable, "-c", CUT, toy_npz, tmp_path / "run"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert "toy.npz was changed while it was read" in done.stdout
