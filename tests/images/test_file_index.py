import json
import os

import pytest

from concont.images.file_index import FileIndex, stamp_files

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


@pytest.fixture
def paths(tmp_path):
    names = ("x/one", "y/two", "x/three", os.fsdecode(b"x/\xff"))
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, errors="surrogateescape")
    return [str(tmp_path / name) for name in names]


@pytest.fixture
def index(tmp_path, paths):
    index = FileIndex(tmp_path / "index")
    index.keep(paths, stamp_files(paths), [A, B, C, A])
    return index


def test_files_are_known_in_any_order_by_any_process(index, paths):
    again = FileIndex(index.folder)
    assert again.find(paths, stamp_files(paths)) == [A, B, C, A]
    assert again.find(paths[::-1], stamp_files(paths[::-1])) == [A, C, B, A]
    assert len(list(index.folder.iterdir())) == 2  # one for each folder


def test_a_relative_path_is_the_same_file(index, paths, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "x")
    assert FileIndex(index.folder).find(["one"], stamp_files(["one"])) == [A]
    monkeypatch.chdir(tmp_path / "y")
    assert FileIndex(index.folder).find(["one"], stamp_files(["one"])) == [None]


def test_a_changed_file_is_not_known(index, paths):
    size, time, *rest = stamp_files(paths[:1])[0]
    os.utime(paths[0], ns=(time, time + 1))
    assert index.find(paths, stamp_files(paths)) == [None, B, C, A]
    assert index.find(paths[:1], [(size + 1, time, *rest)]) == [None]
    os.remove(paths[1])
    assert stamp_files(paths)[1] is None
    assert index.find(paths, stamp_files(paths)) == [None, None, C, A]


def test_each_part_of_a_stamp_counts(index, paths):
    (stamp,) = stamp_files(paths[:1])
    assert index.find(paths[:1], [stamp]) == [A]
    assert len(stamp) == 4
    for k in range(4):
        other = tuple(value + (place == k) for place, value in enumerate(stamp))
        assert index.find(paths[:1], [other]) == [None]


def test_what_is_new_is_added_and_what_is_known_not_written_again(index, paths, tmp_path):
    times = {path: path.stat().st_mtime_ns for path in index.folder.iterdir()}
    index.keep(paths, stamp_files(paths), [A, B, C, A])
    assert {path: path.stat().st_mtime_ns for path in index.folder.iterdir()} == times
    (tmp_path / "y" / "four").write_text("four")
    new = [str(tmp_path / "y" / "four")]
    index.keep(new, stamp_files(new), [C])
    assert index.find(paths + new, stamp_files(paths + new)) == [A, B, C, A, C]


@pytest.mark.parametrize(
    "damage",
    [
        f'{{"one": [7, 8, "{A}"]}}',
        "",
        "{",
        "[1]",
        "null",
        '{"one": 3}',
        '{"one": [1, 2]}',
        '{"one": [1, 2, "a"]}',
        "ä",
    ],
)
def test_a_damaged_file_holds_nothing(index, paths, damage):
    for path in index.folder.iterdir():
        path.write_text(damage, "utf-8")
    assert index.find(paths, stamp_files(paths)) == [None] * 4
    index.keep(paths, stamp_files(paths), [A, B, C, A])
    assert index.find(paths, stamp_files(paths)) == [A, B, C, A]
    assert all(json.loads(path.read_text()) for path in index.folder.iterdir())
