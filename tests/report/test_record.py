import json
import subprocess
import sys

import pytest

from concont.errors import UsageError
from concont.report.record import (
    NOT_USED,
    find_differences,
    is_number,
    name_apart,
    read_record,
    read_runs,
    tell_state,
)
from concont.report.watched import Watch
from concont.runs.folder import RunFolder
from made_runs import CLASSES, make_rows, make_run
from processes import ENVIRONMENT


def test_a_finished_run_is_read_whole(tmp_path):
    record = read_record(make_run(tmp_path / "run", epochs=3))
    assert (record.name, record.state, record.method) == ("run", "finished", "concont")
    assert (record.epochs, record.seconds, record.classes) == (3, 108.0, CLASSES)
    assert (record.evaluated_on, record.problems) == ("test", ())
    assert record.read_series("accuracy") == [(1, 0.5), (2, 0.75), (3, 1 - 0.5 / 3)]
    assert record.summary.accuracy_last == record.last["accuracy"]


def test_what_is_not_there_yet_is_empty(tmp_path):
    path = make_run(tmp_path / "run", rows=[], finished=False)
    for name in ("data.json", "environment.json"):
        (path / name).unlink()
    record = read_record(path)
    assert (record.state, record.rows, record.classes) == ("waiting", (), ())
    assert (record.seconds, record.evaluated_on, record.summary) == (None, None, None)
    assert read_record(tmp_path / "none").settings is None


def test_a_damaged_file_is_a_problem_of_its_own(tmp_path):
    path = make_run(tmp_path / "run")
    (path / "verdict.json").write_text("{")
    (path / "environment.json").write_text("[]")
    (path / "metrics.jsonl").write_text("no\n")
    record = read_record(path)
    assert (record.verdict, record.environment, record.rows) == (None, None, ())
    assert len(record.problems) == 3
    assert record.state == "finished"


DAMAGES = {
    "text": ("verdict.json", {"precision": {"p_score": ["x"], "max_probability": None}}),
    "too few": ("verdict.json", {"confident": [1]}),
    "no count": ("data.json", {"n_train": [1]}),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_file_with_values_of_other_kinds_is_a_problem_and_the_page_is_drawn(tmp_path, kind):
    """Found by `make fuzz`."""
    path, (name, values) = make_run(tmp_path / "run"), DAMAGES[kind]
    folder = RunFolder(path)
    folder.write_json(name, {**folder.read_json(name), **values})
    (problem,) = read_record(path).problems
    assert name in problem
    assert Watch(path).make_page().title == "run"


def test_thresholds_of_other_classes_are_not_drawn(tmp_path):
    path = make_run(tmp_path / "run", rows=[*make_rows(2), *make_rows(4, classes=2)[2:]])
    Watch(path).make_page()


def test_a_value_that_is_no_number_is_no_point(tmp_path):
    rows = make_rows(4)
    rows[0]["loss"], rows[1]["loss"], rows[2]["loss"] = None, float("nan"), float("inf")
    record = read_record(make_run(tmp_path / "run", rows=rows))
    assert record.read_series("loss") == [(4, 1.0)]
    assert [is_number(x) for x in (1, 0.5, "1", None, float("nan"))] == [
        *(True, True),
        *(False, False, False),
    ]


def test_a_run_that_is_silent_for_long_has_stopped(tmp_path):
    rows = [{**row, "seconds": 100.0 * row["epoch"]} for row in make_rows(3)]
    record = read_record(make_run(tmp_path / "run", rows=rows, finished=False))
    assert record.state == "running"
    assert tell_state(record, record.seen + 499) == "running"  # five times 100 s is its patience
    assert tell_state(record, record.seen + 501) == "stopped"


def test_a_run_before_its_first_line_waits_a_minute(tmp_path):
    record = read_record(make_run(tmp_path / "run", rows=[], finished=False))
    assert tell_state(record, record.seen + 59) == "waiting"
    assert tell_state(record, record.seen + 61) == "stopped"


def test_runs_are_named_by_as_many_folders_as_tell_them_apart(tmp_path):
    paths = [tmp_path / "one" / "run", tmp_path / "two" / "run", tmp_path / "one" / "last"]
    assert name_apart(paths) == ["one/run", "two/run", "one/last"]
    assert name_apart([tmp_path / "a\nb"]) == ["a\\nb"]
    with pytest.raises(UsageError, match="given twice"):
        name_apart([tmp_path, tmp_path / "x" / ".."])


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no such run folder"):
        read_runs([tmp_path / "none"])


def test_settings_that_differ_are_those_that_runs_use(tmp_path):
    one = read_record(make_run(tmp_path / "one"))
    two = read_record(make_run(tmp_path / "two", epochs=9, method={"threshold": 0.7}))
    three = read_record(make_run(tmp_path / "three", method={"name": "proden"}))
    found = find_differences([one, two])
    assert found["train.epochs"] == [4, 9]
    assert found["method.threshold"][1] == 0.7
    assert "data.source" not in found
    assert "method.threshold" not in find_differences([one, three])
    assert find_differences([one, two, three])["method.threshold"][2] == NOT_USED
    assert find_differences([one, one]) == {}


def test_settings_that_a_run_has_no_use_for_are_no_difference(tmp_path):
    deep = read_record(make_run(tmp_path / "deep", epochs=9))
    classic = read_record(make_run(tmp_path / "classic", epochs=7, method={"name": "sspl"}))
    assert "train.epochs" not in find_differences([deep, classic])
    whole, narrow = (
        read_record(make_run(tmp_path / name, model={"name": name}))
        for name in ("resnet18", "narrow-resnet18")
    )
    whole.settings["model"]["width"] = 7
    assert [name for name in find_differences([whole, narrow]) if name.startswith("model.")] == [
        "model.name"
    ]


def test_a_method_of_ones_own_is_named_without_its_folder(tmp_path):
    record = read_record(make_run(tmp_path / "run"))
    record.settings["method"]["name"] = "/home/me/mine.py:Mine"
    assert record.method == record.flat_settings["method.name"] == "mine.py:Mine"


@pytest.mark.slow
def test_a_record_is_read_without_torch(tmp_path):
    path = make_run(tmp_path / "run")
    ask = f"""
import json, sys
from pathlib import Path
from concont.report.watched import Watch
page = Watch(Path({str(path)!r})).make_page()
print(json.dumps([page.title, sorted({{'torch', 'sklearn', 'PIL'}} & set(sys.modules))]))
"""
    done = subprocess.run(
        [sys.executable, "-c", ask], env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert json.loads(done.stdout) == ["run", []], done.stderr
