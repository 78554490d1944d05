"""Full disks, interrupts and processes that end while a cache is written."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cached_images import SIZE, check, names
from concont.errors import DataError
from processes import SECONDS, at_once, fill_image_cache


def test_a_full_disk_is_told_before_the_work(load, paths, place, touched, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(DataError, match="cache .*cache cannot be written: 0 MB of images do not"):
        load(paths)
    assert touched[0] == []


def test_a_disk_that_fills_up_leaves_nothing(load, paths, place, monkeypatch):
    own, left = os.pwrite, [3]

    def write(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return own(*arguments)

    monkeypatch.setattr("os.pwrite", write)
    with pytest.raises(DataError, match="No space left on device; .CONCONT_CACHE may name another"):
        load(paths)
    assert list(place.iterdir()) == []


def test_a_place_that_is_no_folder_is_told(load, paths, place):
    place.write_text("a file")
    with pytest.raises(DataError, match="cache .* cannot be written: File exists"):
        load(paths)


def test_an_interrupt_keeps_what_was_decoded(load, many, place, touched):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(many[:20], report=interrupt)
    assert len(touched[0]) == 16
    check(load(many[:20]), many[:20])
    assert touched[0] == names(many[:20])
    assert [path.suffix for path in place.glob("*.npy")] == [".npy"]


def test_an_interrupt_while_images_are_copied_keeps_what_was_decoded(
    load, many, place, touched, monkeypatch
):
    load(many[:3])

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("concont.images.packs.PackWriter.copy", interrupt)
        load(many[:9])
    check(load(many[:9]), many[:9])
    assert touched[0] == names(many[:9])


# Says so when the first images are done, then waits.
LOAD_AND_WAIT = """
import os, signal, sys, time
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
from concont.images.cache import load_images
os.sched_getaffinity = lambda _: range(2)
def wait(done, total):
    print("begun", flush=True)
    time.sleep(600)
load_images(sorted(Path(sys.argv[1]).iterdir()), (6, 5), 3, "crop", Path(sys.argv[2]), wait)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_end_in_the_midst_leaves_no_broken_cache(many, place, load, number):
    words = [sys.executable, "-c", LOAD_AND_WAIT, str(many[0].parent), str(place)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        children = list_children(process.pid)
        assert len(children) == 2
        assert len(list(place.glob(".*.tmp"))) == 1
        process.send_signal(number)
        assert process.wait(SECONDS) != 0
    deadline = time.monotonic() + 20
    while any(map(is_running, children)):
        assert time.monotonic() < deadline, "a process was left"
        time.sleep(0.05)
    killed = number == signal.SIGKILL
    assert len(list(place.glob("*.npy"))) == (0 if killed else 1)  # else what was decoded
    assert len(list(place.glob(".*.tmp"))) == (1 if killed else 0)
    check(load(many), many)
    assert len(list(place.glob("*.npy"))) == 1
    assert list(place.glob(".*.tmp")) == []


def list_children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_two_processes_at_once_both_end_right(paths, place, load, touched):
    assert at_once(fill_image_cache, paths, SIZE, place) == [0, 0]
    assert len(list(place.glob("*.npy"))) == 1
    assert list(place.glob(".*.tmp")) == []
    check(load(paths), paths)
    assert touched[0] == []
