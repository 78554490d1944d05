import os

import numpy as np
import pyarrow as pa
import pytest

from concont.errors import DataError, UsageError
from concont.tables.listing import (
    describe_missing,
    find_leaving,
    list_image_names,
    look_up,
    name_files,
    normalise_paths,
)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for name in ("a.png", "b.JPG", "deep/er/c.jpeg", "notes.txt", ".hidden.png", ".git/x.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def test_images_are_listed_below_a_folder_by_their_ending(photos):
    assert list_image_names(photos).to_pylist() == ["a.png", "b.JPG", "deep/er/c.jpeg"]
    with pytest.raises(UsageError, match="nowhere: no such folder"):
        list_image_names(photos / "nowhere")


def test_a_listed_link_that_leads_away_is_refused(photos, tmp_path):
    (photos / "near.png").symlink_to("a.png")
    assert "near.png" in list_image_names(photos).to_pylist()
    (tmp_path / "s.png").write_bytes(b"x")
    (photos / "deep" / "far.png").symlink_to(tmp_path / "s.png")
    with pytest.raises(DataError, match=r"deep/far.png: a link that leaves the image folder"):
        list_image_names(photos)


def test_a_name_that_no_table_can_hold_is_refused_when_it_is_an_images(photos):
    with open(os.fsencode(photos) + b"/\xff.png", "wb"):
        pass
    with pytest.raises(DataError, match=r"\\udcff.png: the file's name is no UTF-8"):
        list_image_names(photos)
    there, _ = look_up(pa.array(["a.png"]), photos)  # but it harms nobody else
    assert there.tolist() == [True]


def test_one_file_has_one_path():
    given = ["a.png", "./a.png", ".//a.png", "x/./y.png", "x//y.png", "x/.//./y.png", "..png", "/a"]
    same = ["a.png", "a.png", "a.png", "x/y.png", "x/y.png", "x/y.png", "..png", "/a"]
    assert normalise_paths(pa.array(given)).to_pylist() == same


def test_a_path_becomes_that_of_the_file_that_is_meant(photos):
    two, one = "a\u0308", "\u00e4"
    for name in (f"{two}/x{two}.png", f"both{one}.png", f"both{two}.png"):
        (photos / name).parent.mkdir(exist_ok=True)
        (photos / name).write_bytes(b"x")
    expected = {
        "./a.png": "a.png",
        f"{one}//x{one}.png": f"{two}/x{two}.png",
        f"{two}/x{one}.png": f"{two}/x{two}.png",
        f"both{one}.png": f"both{one}.png",  # there are two, of which each has its name
        f"both{two}.png": f"both{two}.png",
        f"no{one}.png": f"no{one}.png",
        f"{one}/no.png": f"{one}/no.png",
        f"../photos/{one}/x{one}.png": f"../photos/{one}/x{one}.png",
        f"/{one}": f"/{one}",
        f"nul\0/{one}": f"nul\0/{one}",
        f"a.png/{one}": f"a.png/{one}",
        " a.png": "a.png",
    }
    assert name_files(pa.array(expected), photos).to_pylist() == list(expected.values())
    assert name_files(pa.array([], pa.string()), photos).to_pylist() == []


def test_a_path_of_windows_is_known_by_its_bars(photos):
    assert describe_missing("a.png", photos) == f"there is no file a.png in {photos}"
    assert describe_missing("x\\a.png", photos).endswith("(write / in place of \\)")


@pytest.mark.parametrize(
    ("path", "leaves"),
    [
        ("a.png", False),
        ("x/..y/a..png", False),
        ("...", False),
        ("../a.png", True),
        ("x/../a.png", True),
        ("x/..", True),
        ("..\\a.png", True),
        ("/etc/passwd", True),
        ("C:\\a.png", True),
        ("c:/a.png", True),
        ("\\\\host\\a.png", True),
    ],
)
def test_paths_that_climb_or_are_absolute_leave_the_folder(path, leaves):
    assert find_leaving(pa.array([path])).tolist() == [leaves]


def test_files_are_looked_up_and_links_that_lead_away_are_seen(photos, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.png").write_bytes(b"x")
    (tmp_path / "secret" / "further").mkdir()
    (tmp_path / "secret" / "further" / "s.png").write_bytes(b"x")
    (photos / "deep" / "back").symlink_to("..")
    (photos / "near.png").symlink_to("a.png")
    (photos / "also").symlink_to(photos / "deep")
    (photos / "broken.png").symlink_to("nothing.png")
    (photos / "far.png").symlink_to(tmp_path / "secret" / "s.png")
    (photos / "out").symlink_to(tmp_path / "secret")
    expected = {
        "a.png": (True, False),
        "notes.txt": (True, False),
        "near.png": (True, False),
        "also/er/c.jpeg": (True, False),
        "far.png": (False, True),
        "out/s.png": (False, True),
        "broken.png": (False, False),
        "out/no.png": (False, False),
        "deep": (False, False),
        "deep/no.png": (False, False),
        "nowhere/a.png": (False, False),
        "a.png/a.png": (False, False),
        "nul\0/a.png": (False, False),
        "": (False, False),
        "out/further/s.png": (False, True),
        "also/back/a.png": (True, False),
        "../secret/s.png": (False, True),
        "x/" * 3000 + "a.png": (False, False),
    }
    there, leaving = look_up(pa.array(expected), photos)
    found = zip(expected, there.tolist(), leaving.tolist(), strict=True)
    assert {name: (here, away) for name, here, away in found} == expected
    (tmp_path / "door").symlink_to(photos)  # the folder itself may be a link
    again, _ = look_up(pa.array(expected), tmp_path / "door")
    assert np.array_equal(there, again)
