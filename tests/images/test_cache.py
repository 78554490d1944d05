import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from concont.errors import DataError
from concont.images.cache import image_cache_folder, load_images
from concont.images.files import read_image
from pictures import noise
from processes import SECONDS, at_once, fill_image_cache

SIZE = (6, 5)


@pytest.fixture
def paths(save):
    return [save(f"{k % 2}/{k}.png", noise(9 + k, 12, 3, seed=k)) for k in range(8)]


@pytest.fixture
def many(save, tmp_path):
    for k in range(70):
        save(f"{k:02}.png", noise(9, 12, 3, seed=k))
    return sorted((tmp_path / "images").iterdir())


@pytest.fixture
def place(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def load(place):
    def load(paths, fit="crop", channels=3, report=None):
        return load_images(paths, SIZE, channels, fit, place, report)

    return load


@pytest.fixture
def touched(monkeypatch):
    """The names of files that are read, and those that are decoded."""
    read, decoded = [], []
    from concont.images import decoding

    content, decode = decoding.read_content, decoding.decode_image

    def read_content(path):
        read.append(os.path.basename(path))
        return content(path)

    def decode_image(content, *rest):
        decoded.append(read[-1])
        return decode(content, *rest)

    monkeypatch.setattr(decoding, "read_content", read_content)
    monkeypatch.setattr(decoding, "decode_image", decode_image)
    return read, decoded


def check(images, paths, fit="crop", channels=3):
    assert len(images.contents) == len(images.pixels) == len(paths)
    for path, pixels in zip(paths, images.pixels, strict=True):
        assert np.array_equal(pixels, read_image(path, SIZE, channels, fit))


def names(paths):
    return [path.name for path in paths]


def test_pixels_are_mapped_and_read_only(load, paths):
    images = load(paths)
    check(images, paths)
    assert isinstance(images.pixels, np.memmap)
    assert not images.pixels.flags.writeable
    assert len(set(images.contents)) == 8


def test_the_second_start_opens_no_image(load, paths, touched):
    read, _ = touched
    first = load(paths)
    assert len(read) == 8
    second = load(paths, report=pytest.fail)
    assert len(read) == 8
    assert second.contents == first.contents
    assert np.array_equal(second.pixels, first.pixels)


def test_each_form_is_kept_beside_the_others(load, paths, touched):
    for fit in ("crop", "pad", "stretch"):
        for channels in (1, 3):
            check(load(paths, fit, channels), paths, fit, channels)
    assert len(touched[1]) == 6 * 8
    check(load(paths, "pad", 1), paths, "pad", 1)
    assert len(touched[1]) == 6 * 8


def test_a_folder_that_was_moved_is_read_but_not_decoded(load, paths, touched, tmp_path):
    first = load(paths)
    moved = shutil.move(tmp_path / "images", tmp_path / "moved")
    for path in moved.rglob("*.png"):
        os.utime(path)
    now = [moved / path.relative_to(tmp_path / "images") for path in paths]
    second = load(now)
    assert touched == (names(paths) * 2, names(paths))
    assert second.contents == first.contents
    check(second, now)
    load(now)
    assert len(touched[0]) == 16


def test_only_what_is_new_is_decoded(load, paths, touched, save):
    load(paths)
    new = save("new.png", noise(10, 10, 3, seed=99))
    more = [*paths[:3], new, *paths[:2:-1], paths[0]]  # in another order, one of them twice
    check(load(more), more)
    assert touched[1] == [*names(paths), "new.png"]
    check(load(paths[2:5]), paths[2:5])
    assert touched[0] == touched[1] == [*names(paths), "new.png"]


def test_the_same_image_twice_is_no_trouble(load, paths, save):
    twin = save("twin.png", noise(9, 12, 3, seed=0))
    images = load([*paths, twin])
    assert images.contents[0] == images.contents[8]
    check(images, [*paths, twin])


def test_an_image_that_changed_in_place_is_noticed(load, paths, touched, save):
    load(paths)
    before = paths[3].stat()
    save("1/3.png", noise(12, 12, 3, seed=7))
    os.utime(paths[3], ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert paths[3].stat().st_size == before.st_size
    check(load(paths), paths)
    assert touched[1] == [*names(paths), "3.png"]


def test_a_damaged_pack_is_made_again(load, paths, place, touched):
    load(paths)
    (pack,) = place.glob("*.npy")
    whole = pack.read_bytes()
    for damaged in (b"", whole[:-1], b"x" + whole[1:]):
        pack.write_bytes(damaged)
        check(load(paths), paths)
        assert pack.read_bytes() == whole
    assert len(touched[1]) == 4 * 8


def test_a_pack_of_other_images_under_its_name_is_made_again(load, paths, place):
    load(paths)
    (pack,) = place.glob("*.npy")
    load(paths[::-1])
    (other,) = set(place.glob("*.npy")) - {pack}
    shutil.copy(other, pack)
    check(load(paths), paths)


def test_a_lost_index_costs_no_decoding(load, paths, place, touched):
    load(paths)
    shutil.rmtree(place / "index")
    check(load(paths), paths)
    assert len(touched[0]) == 16
    assert len(touched[1]) == 8


def test_unreadable_images_are_named_and_counted(load, paths, place):
    for k in (1, 2, 5, 6, 7):
        paths[k].write_text("no image")
    paths[2].unlink()
    with pytest.raises(DataError) as caught:
        load([*paths])
    said = str(caught.value)
    assert said.startswith(f"5 of 8 images cannot be read: {paths[1]}: not an image that can be")
    assert f"{paths[2]}: No such file or directory; {paths[5]}: " in said
    assert said.endswith("; ...")
    assert str(paths[6]) not in said


def test_where_nothing_can_be_read_nothing_is_kept(load, paths, place):
    paths[0].write_text("no image")
    with pytest.raises(DataError, match="1 of 1 image cannot be read"):
        load(paths[:1])
    assert list(place.iterdir()) == []


def test_after_a_repair_only_what_could_not_be_read_is_read_again(load, paths, place, touched):
    whole = {k: paths[k].read_bytes() for k in (3, 5)}
    for k in whole:
        paths[k].write_text("no image")
    with pytest.raises(DataError, match="2 of 8 images"):
        load(paths)
    paths[3].write_bytes(whole[3])
    with pytest.raises(DataError, match="1 of 8 images"):
        load(paths)
    assert touched[0] == [*names(paths), "3.png", "5.png"]
    paths[5].write_bytes(whole[5])
    check(load(paths), paths)
    assert touched[0][10:] == ["5.png"]
    assert len(list(place.glob("*.npy"))) == 1  # what was kept in parts is in it


def test_a_swapped_file_of_the_same_size_and_time_is_noticed(load, save):
    paths = [save(name, noise(9, 9, 3, seed=k)) for k, name in enumerate(("a.bmp", "b.bmp"))]
    for path in paths:
        os.utime(path, ns=(10**18, 10**18))
    check(load(paths), paths)
    os.rename(paths[0], paths[0].with_name("c"))
    os.rename(paths[1], paths[0])
    os.rename(paths[0].with_name("c"), paths[1])
    check(load(paths), paths)


def test_no_image_at_all(load):
    with pytest.raises(DataError, match="no image to read"):
        load([])


def test_progress_is_told(load, paths):
    heard = []
    load(paths, report=lambda *counts: heard.append(counts))
    assert heard == [(8, 8)]


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


def test_the_cache_lies_where_the_environment_says(monkeypatch, tmp_path, paths):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "all"))
    assert image_cache_folder() == tmp_path / "all" / "concont" / "images"
    monkeypatch.setenv("CONCONT_CACHE", str(tmp_path / "own"))
    assert image_cache_folder() == tmp_path / "own" / "images"
    load_images(paths, SIZE, 3, "crop")
    assert len(list((tmp_path / "own" / "images").glob("*.npy"))) == 1


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
