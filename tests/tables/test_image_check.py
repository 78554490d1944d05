import hashlib
import os
import signal

import pytest

from concont.errors import DataError
from concont.tables import image_check as module
from concont.tables.image_check import ImageState, read_states, verify_image
from image_tables import enlarge_png, make_images


@pytest.fixture
def files(tmp_path):
    names = ["a.png", "b.jpg", "c.gif"]
    make_images(tmp_path, names)
    good = (tmp_path / "a.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(good[: len(good) // 2])
    (tmp_path / "bomb.png").write_bytes(enlarge_png(good))
    (tmp_path / "empty.png").touch()
    return tmp_path


def test_files_are_read_once_for_content_and_pixels(files):
    names = ["a.png", "empty.png", "b.jpg", "no.png", "cut.png"]
    states = read_states([str(files / name) for name in names])
    digest = hashlib.sha256((files / "a.png").read_bytes()).hexdigest()
    assert states[0] == ImageState(None, digest)
    assert states[1] == ImageState("the file is empty", "")
    assert states[2].problem is None
    assert states[3] == ImageState("No such file or directory", "")
    assert states[4].problem
    assert states[4].digest


def test_damage_is_put_into_one_line(files):
    for name in ("cut.png", "bomb.png"):
        reason = verify_image(files / name)
        assert reason
        assert "\n" not in reason
    assert verify_image(files / "c.gif") is None


def test_processes_give_the_same_in_the_same_order(files):
    names = ["a.png", "empty.png", "cut.png", "b.jpg"]
    once = read_states([str(files / name) for name in names])
    told = []
    many = read_states([str(files / name) for name in names * 40], told.append)
    assert many == once * 40
    assert told == [64, 64, 32]
    assert read_states([]) == []


def test_a_process_that_is_killed_is_told_in_one_line(files, monkeypatch):
    paths = [str(files / "a.png")] * 200
    monkeypatch.setattr(module, "_read_chunk", kill_this_process)
    with pytest.raises(DataError, match=r"a.png or an image after it was killed"):
        read_states(paths)


def kill_this_process(_):
    os.kill(os.getpid(), signal.SIGKILL)
