import json
import os

import pytest

from concont.config.resolve import resolve, write_yaml
from concont.errors import DataError, UsageError
from concont.runs.folder import RunFolder, write_whole
from concont.runs.lock import FolderLock
from metrics_lines import metrics_line
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
    (folder / "config.yaml").write_text(write_yaml(resolve({"data": {"source": "digits"}})))
    with pytest.raises(UsageError, match=r"thesis\.txt is not part of a run"):
        folder.clear()
    assert (folder / "thesis.txt").read_text() == "precious"
    assert (folder / "config.yaml").exists()
    (folder / "thesis.txt").unlink()
    (folder / "events.out.tfevents.1.host").write_text("")
    (folder / ".summary.json.tmp").write_text("")
    folder.clear()
    assert list(folder.path.iterdir()) == []


@pytest.mark.parametrize("config", [None, b"{}", b"model: resnet\ntrain: 5\n", bytes(range(256))])
def test_another_programs_files_of_the_same_names_are_left_alone(config, tmp_path):
    folder = RunFolder(tmp_path / "theirs")
    folder.path.mkdir()
    for name in ("model.safetensors", "metrics.jsonl", "events.out.tfevents.1.host"):
        (folder / name).write_text("theirs")
    if config is not None:
        (folder / "config.yaml").write_bytes(config)
    names = {path.name for path in folder.path.iterdir()}
    with pytest.raises(UsageError, match="theirs has no config.yaml of a run, so it is left alone"):
        folder.clear()
    assert {path.name for path in folder.path.iterdir()} == names


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
        folder.append_metrics(metrics_line(step))
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 40, "lo')
    assert [row["step"] for row in folder.metrics()] == [10, 20, 30]
    folder.cut_metrics(20)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(text)["step"] for text in lines] == [10, 20]
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


@pytest.mark.parametrize("text", ["", "{}", "[]", "3", "[" * 10**5, "\x00"])
def test_a_line_of_metrics_or_a_file_that_says_nothing_is_named_with_a_cure(tmp_path, text):
    folder = RunFolder(tmp_path)
    if text:
        (folder / "metrics.jsonl").write_text(f"{text}\n")
        with pytest.raises(DataError, match=r"metrics\.jsonl is damaged: .*; put it back from a"):
            folder.metrics()
    (folder / "data.json").write_text(text)
    with pytest.raises(DataError, match=r"data\.json is damaged: .*; put it back from a"):
        folder.read_data()


def test_dated_folders_do_not_collide(tmp_path, monkeypatch):
    """Chosen at the same moment, they are told apart when they are made."""
    monkeypatch.chdir(tmp_path)
    folders = [RunFolder.dated("concont") for _ in range(3)]
    for folder in folders:
        folder.claim(new=True)
        (folder / "config.yaml").write_text("")
    assert len({folder.path.name for folder in folders}) == len(list((tmp_path / "runs").iterdir()))


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


def test_the_folder_of_a_live_run_is_refused_and_that_of_a_dead_one_is_not(tmp_path):
    path = tmp_path / "run"
    live = RunFolder(path)
    live.claim(new=True)
    for new in (True, False):
        with pytest.raises(UsageError, match=r"run is in use by process \d+ on .*; wait for"):
            RunFolder(path).claim(new)
    live.lock.release()
    (path / ".config.yaml.12-0a1b2c3d.tmp").write_text("half")
    RunFolder(path).claim(new=True)
    (path / "config.yaml").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        RunFolder(path).claim(new=True)
    RunFolder(path).claim(new=False)
    assert {each.name for each in path.iterdir()} == {"config.yaml", ".lock", ".lock.holder"}


def test_what_is_cleared_stays_locked(tmp_path):
    folder = RunFolder(tmp_path)
    (folder / "config.yaml").write_text(write_yaml(resolve({}, "digits")))
    folder.lock.acquire(folder.path)
    folder.clear()
    assert not (folder / "config.yaml").exists()
    with pytest.raises(UsageError, match="is in use by"):
        FolderLock().acquire(folder.path)


def test_damage_is_found_by_its_checksum_and_named(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_json("data.json", {"classes": ["a", "b"]})
    folder.require_whole("data.json", "summary.json")  # one that is not there is no damage
    folder.write_json("data.json", {"classes": ["a", "c"]})
    folder.require_whole("data.json")
    (folder / "data.json").write_text((folder / "data.json").read_text().replace("c", "b", 1))
    with pytest.raises(
        DataError, match=r"data\.json is damaged: it does not fit its checksum; put"
    ):
        folder.require_whole("data.json")
