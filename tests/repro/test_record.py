"""Records: from run folders and files; what is none is refused."""

import json

import pytest

from concont.config import resolve
from concont.engine.either import execute, prepare
from concont.errors import DataError
from concont.repro.plan import cells_of
from concont.repro.record import MOMENTS, NEEDED, key_of, of_run, read, settings_of, write
from concont.runs import RunFolder

CELL = cells_of("table4")[0]


@pytest.fixture
def run(tmp_path, toy_npz, toy_config):
    """A finished run on a file of the user's own."""
    toy_config["data"]["source"] = str(toy_npz)
    folder = RunFolder(tmp_path / "runs" / "one")
    for _ in execute(prepare(resolve(toy_config), folder)):
        pass
    return folder


def test_a_run_becomes_a_record_without_a_path(run, tmp_path):
    record = of_run(run)
    assert set(NEEDED) <= set(record)
    summary = run.read_json("summary.json")
    assert {name: record[name] for name in summary} == summary
    lines = run.metrics()
    assert record["curve"] == [[line["epoch"], line["accuracy"]] for line in lines]
    assert record["thresholds"][-1][1] == pytest.approx(lines[-1]["thresholds"], abs=1e-4)
    assert record["environment"]["torch"]
    assert record["verdict"] == run.read_json("verdict.json")
    settings = {**record["settings"], "data": {**record["settings"]["data"], "source": ""}}
    assert str(tmp_path) not in json.dumps({**record, "settings": settings})
    assert key_of(record) == record["settings_hash"]
    (run / "verdict.json").unlink()  # as of a method without a controller
    assert of_run(run) == {**record, "verdict": None}


def test_records_are_read_from_files_lists_and_folders(run, tmp_path, made_up):
    one, two = made_up(CELL), made_up(CELL, seed=2)
    write(tmp_path / "new" / "one.json", one)
    (tmp_path / "new" / "both.json").write_text(json.dumps([one, two]))
    assert read(tmp_path / "new" / "one.json") == [one]
    assert read(tmp_path / "new") == [one, two, one]
    assert read(run.path) == read(tmp_path / "runs") == [of_run(run)]


def test_long_runs_keep_a_few_moments_of_the_thresholds(run):
    row = run.metrics()[-1]
    for epoch in range(4, 204):
        run.append_metrics({**row, "epoch": epoch})
    kept = [epoch for epoch, _ in of_run(run)["thresholds"]]
    assert len(kept) <= MOMENTS
    assert kept[-1] == 203
    assert kept == sorted(kept)


def test_what_is_no_record_is_refused(tmp_path):
    path = tmp_path / "other.json"
    for content, message in (
        ('{"settings": {}}', "is no record of a run: it has no settings_hash"),
        ("[3]", "is no record of a run"),
        ("{", "cannot be read"),
    ):
        path.write_text(content)
        with pytest.raises(DataError, match=message):
            read(path)
    with pytest.raises(DataError, match="no such file or folder"):
        read(tmp_path / "nowhere.json")


def test_settings_that_this_version_cannot_read_keep_their_hash(made_up):
    record = made_up(CELL, settings={"train": {"speed": 7}}, settings_hash="old")
    assert settings_of(record) is None
    assert key_of(record) == "old"
