import json
import os

import pytest

from concont.errors import DataError, UsageError
from concont.runs.folder import RunFolder, write_whole
from processes import at_once, write_file


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(temporary):
        temporary.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_two_processes_may_write_one_file_at_once(tmp_path):
    path = tmp_path / "file"
    assert at_once(write_file, path) == [0, 0]
    text = path.read_text()
    number = text[: len(text) // 1000]
    assert text == number * 1000  # one process's, whole
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_before_is_kept(tmp_path):
    path, keep = tmp_path / "now", tmp_path / "before"
    for text in ("one", "two", "three"):
        write_whole(path, lambda temporary, text=text: temporary.write_text(text) and None, keep)
    assert (path.read_text(), keep.read_text()) == ("three", "two")


def test_a_used_folder_is_refused_and_only_a_run_is_cleared(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.refuse_if_used()
    folder.path.mkdir()
    folder.refuse_if_used()
    (folder / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="not empty; choose another folder"):
        folder.refuse_if_used()
    (folder / "config.yaml").write_text("{}")
    with pytest.raises(UsageError, match=r"thesis\.txt is not part of a run"):
        folder.clear()
    assert (folder / "thesis.txt").read_text() == "precious"
    assert (folder / "config.yaml").exists()
    (folder / "thesis.txt").unlink()
    (folder / "events.out.tfevents.1.host").write_text("")
    (folder / ".summary.json.tmp").write_text("")
    folder.clear()
    assert list(folder.path.iterdir()) == []


def test_what_a_kill_left_half_written_does_not_count(tmp_path):
    folder, other = RunFolder(tmp_path), tmp_path / ".profile"
    other.write_text("")
    half = [tmp_path / name for name in (".config.yaml.tmp", ".config.yaml.12-0a1b2c3d.tmp")]
    for path in half:
        path.write_text("half")
    with pytest.raises(UsageError, match="not empty"):
        folder.refuse_if_used()
    folder.remove_unfinished()
    assert list(tmp_path.iterdir()) == [other]
    other.unlink()
    for path in half:
        path.write_text("half")
    folder.refuse_if_used()


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        RunFolder(tmp_path / "run").refuse_if_used()
    with pytest.raises(UsageError, match="no such run folder"):
        RunFolder(tmp_path / "none").require("config.yaml")
    with pytest.raises(UsageError, match=r"holds no summary\.json"):
        RunFolder(tmp_path).read_json("summary.json")


def test_metrics_are_cut_back_and_a_torn_line_is_dropped(tmp_path):
    folder = RunFolder(tmp_path)
    for step in (10, 20, 30):
        folder.append_metrics({"step": step})
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 40, "lo')
    assert [row["step"] for row in folder.metrics()] == [10, 20, 30]
    folder.cut_metrics(20)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [10, 20]
    folder.cut_metrics(0)
    assert folder.metrics() == []


def test_damaged_files_are_named(tmp_path):
    folder = RunFolder(tmp_path)
    (folder / "data.json").write_text("{")
    with pytest.raises(DataError, match=r"data\.json is damaged"):
        folder.read_json("data.json")
    (folder / "metrics.jsonl").write_text("{\n{}\n")
    with pytest.raises(DataError, match=r"metrics\.jsonl is damaged"):
        folder.metrics()


def test_dated_folders_do_not_collide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = set()
    for _ in range(3):
        folder = RunFolder.dated("concont")
        folder.path.mkdir(parents=True)
        names.add(folder.path.name)
    assert len(names) == 3


def test_who_may_read_a_file_follows_the_umask_whoever_puts_it_in_place(tmp_path):
    def put_in_place(temporary):
        own = temporary.with_suffix(".own")
        own.touch(0o600)
        own.rename(temporary)

    before = os.umask(0o027)
    try:
        for name, write in (("a", put_in_place), ("b", lambda path: None)):
            write_whole(tmp_path / name, write)
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)
