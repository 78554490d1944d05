"""Records: from run folders and files; what is none is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from concont.config.resolve import resolve
from concont.data.problem import make_candidate_sets
from concont.data.sources import load
from concont.errors import DataError
from concont.paper.plan import cells_of
from concont.runs.folder import RunFolder
from concont.sweep.record import MOMENTS, RecordSchema, key_of, of_run, read, settings_in, write
from concont.training.prepare import prepare

CELL = cells_of("table4")[0]


def test_a_run_becomes_a_record_without_a_path(run, tmp_path):
    record = of_run(run)
    assert RecordSchema.names() <= set(record)
    summary = run.read_json("summary.json")
    assert {name: record[name] for name in summary} == summary
    lines = run.metrics()
    assert record["curve"] == [[line["epoch"], line["accuracy"]] for line in lines]
    assert record["thresholds"][-1][1] == pytest.approx(lines[-1]["thresholds"], abs=1e-4)
    assert record["environment"]["torch"]
    assert record["verdict"] == run.read_json("verdict.json")
    assert str(tmp_path) not in json.dumps(record)
    assert key_of(record) == record["settings_hash"]
    (run / "verdict.json").unlink()  # as of a method without a controller
    assert of_run(run) == {**record, "verdict": None}


def test_a_file_holds_one_or_a_list(tmp_path, made_up):
    one, two = made_up(CELL), made_up(CELL, seed=2)
    write(tmp_path / "new" / "one.json", one)
    (tmp_path / "both.json").write_text(json.dumps([one, two]))
    assert read(tmp_path / "new" / "one.json") == [one]
    assert read(tmp_path / "both.json") == [one, two]
    assert (tmp_path / "new" / "one.json").read_text().count("\n") == 1


def test_no_path_of_the_machine_goes_along(tmp_path, toy_npz, toy_config):
    """Not of the data, nor of the candidate sets, nor of the command, nor of an earlier start's."""
    toy_config["data"] |= {"source": str(toy_npz), "root": str(tmp_path)}
    settings = resolve(toy_config)
    sets = make_candidate_sets(load(str(toy_npz)), settings.data)
    sets.write(tmp_path / "sets.npz")
    given = replace(settings.data, candidates=str(tmp_path / "sets.npz"))
    folder = RunFolder(tmp_path / "run")
    for _ in prepare(replace(settings, data=given), folder).execute():
        pass
    environment = folder.read_json("environment.json")
    folder.write_json("environment.json", {**environment, "earlier": [environment]})
    assert "command" in environment
    record = of_run(folder)
    assert record["environment"]["earlier"][0]["torch"]
    assert str(tmp_path) not in json.dumps(record)
    assert "command" not in json.dumps(record)
    assert record["sets_hash"] == record["settings"]["data"]["candidates"] == sets.hash
    assert key_of(record) == record["settings_hash"]


def test_long_runs_keep_a_few_moments_of_the_thresholds(run):
    row = run.metrics()[-1]
    for epoch in range(4, 204):
        run.append_metrics({**row, "epoch": epoch})
    kept = [epoch for epoch, _ in of_run(run)["thresholds"]]
    assert len(kept) <= MOMENTS
    assert kept[-1] == 203
    assert kept == sorted(kept)


WRONG = {
    "it has no settings_hash": lambda r: r.pop("settings_hash"),
    "it has no recipe": lambda r: r.pop("recipe"),
    "it has no seconds": lambda r: r.pop("seconds"),
    "settings: ": lambda r: r.update(settings=None),
    "settings_hash: ": lambda r: r.update(settings_hash=""),
    "environment: ": lambda r: r.update(environment=[]),
    "seed: ": lambda r: r.update(seed=[1]),
    "accuracy_last: ": lambda r: r.update(accuracy_last="0.9"),
    "accuracy_best: .* less than or equal to 1": lambda r: r.update(accuracy_best=90.46),
    "seed: .* less than": lambda r: r.update(seed=2**70),
    "Invalid JSON": lambda r: r.update(recipe="\ud800"),
    "epochs: ": lambda r: r.update(epochs=0),
    "steps: ": lambda r: r.update(steps=-5),
    "batch_size: ": lambda r: r.update(batch_size="many"),
    "seconds_by: ": lambda r: r.update(seconds_by=[1]),
    "thresholds.0": lambda r: r.update(thresholds=[3]),
    "verdict.confident: ": lambda r: r.update(
        verdict={"pseudo_labels": [1], "confident": 1, "confident_right": [1], "precision": {}}
    ),
    "accuracy_last: .* less than": lambda r: r.update(accuracy_last=float("nan")),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_record_is_refused(tmp_path, made_up, message):
    """Before it enters a ledger, which would keep it for ever."""
    record = made_up(CELL)
    WRONG[message](record)
    path = tmp_path / "other.json"
    path.write_text(json.dumps([made_up(CELL), record]))
    with pytest.raises(DataError, match=rf"other\.json is no record of a run: {message}"):
        read(path)


def test_what_is_no_json_is_refused(tmp_path):
    path = tmp_path / "other.json"
    for content, message in (("[3]", "is no record of a run"), ("{", "cannot be read")):
        path.write_text(content)
        with pytest.raises(DataError, match=message):
            read(path)


def test_the_projects_own_records_are_records():
    """As they stand in the repository."""
    path = Path(__file__).parents[2] / "benchmarks" / "results" / "ledger.json"
    records = read(path)
    assert len(records) == len({key_of(record) for record in records}) > 50
    assert all(settings_in(record) is not None for record in records)


def test_settings_that_this_version_cannot_read_have_a_hash_of_their_own(made_up):
    record = made_up(CELL, settings={"train": {"speed": 7}}, settings_hash="old")
    assert settings_in(record) is None
    assert key_of(record).startswith("unread-")
    assert key_of({**record, "settings_hash": "new", "seconds": 1.0}) == key_of(record)
    assert key_of({**record, "data_digest": "other"}) != key_of(record)
