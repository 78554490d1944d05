import os

import pytest

from concont.errors import UsageError
from concont.report.watched import DETAILED, Watch, find_runs
from concont.runs.folder import RunFolder
from made_runs import make_rows, make_run


def test_runs_are_found_in_folders_of_folders(tmp_path):
    one, two = make_run(tmp_path / "one"), make_run(tmp_path / "runs" / "key")
    (tmp_path / "runs" / "key.yaml").touch()
    assert list(find_runs(tmp_path)) == [one, two]
    assert list(find_runs(one)) == [one]
    assert list(find_runs(tmp_path / "none")) == []


def test_the_newest_run_comes_first_and_is_named_from_the_folder(tmp_path):
    for age, name in enumerate(("c", "runs/b", "a")):
        path = make_run(tmp_path / name)
        os.utime(path / "config.yaml", (1e9 - age, 1e9 - age))
    assert [record.name for record in Watch(tmp_path).read()] == ["c", "runs/b", "a"]


def test_a_run_is_read_again_only_when_it_has_changed(tmp_path):
    path = make_run(tmp_path / "run", epochs=9, rows=make_rows(2), finished=False)
    watch = Watch(path)
    first, second = watch.make_page().runs[0], watch.make_page().runs[0]
    assert first is second
    RunFolder(path).append_metrics(make_rows(3)[-1])
    third = watch.make_page().runs[0]
    assert third is not second
    assert third.state == "running, epoch 3 of 9"
    assert third.charts["thresholds"].data[0]["x"] == [1, 2, 3]


def test_a_run_that_is_not_there_yet_is_waited_for(tmp_path):
    watch = Watch(tmp_path / "run")
    assert watch.make_page().title == f"Waiting for a run in {tmp_path / 'run'}"
    make_run(tmp_path / "run", rows=[], finished=False)
    page = watch.make_page()
    assert (page.title, page.runs[0].state) == ("run", "waiting")


def test_of_many_runs_the_newest_have_charts(tmp_path):
    for k in range(DETAILED + 2):
        make_run(tmp_path / f"{k:02d}", epochs=1)
    page = Watch(tmp_path).make_page()
    assert len(page.runs) == DETAILED
    assert len(page.figures.rows) == DETAILED + 2
    assert page.title == f"{DETAILED + 2} runs"


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file; give the folder of a run"):
        Watch(tmp_path / "file")


def test_a_new_run_leaves_the_colours_of_the_others(tmp_path):
    for age, name in enumerate(("new", "old")):
        path = make_run(tmp_path / name)
        os.utime(path / "config.yaml", (1e9 - age, 1e9 - age))
    page = Watch(tmp_path).make_page()
    assert [run.name for run in page.runs] == ["new", "old"]
    assert [trace["name"] for trace in page.shared["accuracy"].data] == ["old", "new"]
    assert page.live
