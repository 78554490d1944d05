"""Results are found wherever a user may point."""

import json
import shutil
import sqlite3

import pytest

from concont.errors import DataError
from concont.paper.plan import cells_of
from concont.sweep.folder import SweepFolder
from concont.sweep.ledger import Ledger
from concont.sweep.merge import collect_records, refuse_false_claims
from concont.sweep.record import of_run, write

CELL = cells_of("table4")[0]


def test_in_files_ledgers_runs_sweeps_and_folders_of_them(tmp_path, made_up):
    one, two = made_up(CELL), made_up(CELL, seed=2)
    sweep = SweepFolder(tmp_path / "sweep")
    write(sweep.result("one"), one)
    Ledger(sweep.ledger).add([two])
    (tmp_path / "both.json").write_text(json.dumps([one, two]))
    assert collect_records(sweep.result("one")) == collect_records(sweep.results) == [one]
    assert collect_records(tmp_path / "both.json") == [one, two]
    assert collect_records(sweep.ledger) == [two]
    assert collect_records(sweep.path) == collect_records(tmp_path / "sweep") == [two, one]
    (tmp_path / "both.json").unlink()
    assert collect_records(tmp_path) == [two, one]  # a folder of sweeps
    sweep.result("one").unlink()
    sweep.results.rmdir()
    assert collect_records(sweep.path) == [two]  # one that only merged
    sweep.ledger.rename(tmp_path / "other.sqlite")
    assert collect_records(tmp_path) == [two]


def test_a_ledger_elsewhere_is_only_read_and_its_records_are_looked_at(tmp_path, made_up):
    path = tmp_path / "other.sqlite"
    Ledger(path).add([{**made_up(CELL), "seconds": "long"}])
    before = path.read_bytes()
    told = r"other\.sqlite holds no record of a run \(seconds.*call the file ledger\.sqlite, then"
    with pytest.raises(DataError, match=told):
        collect_records(path)
    assert path.read_bytes() == before
    with sqlite3.connect(tmp_path / "foreign.sqlite") as table:
        table.execute("CREATE TABLE mine (x)")
    table.close()
    before = (tmp_path / "foreign.sqlite").read_bytes()
    with pytest.raises(DataError, match="is no ledger"):
        collect_records(tmp_path / "foreign.sqlite")
    assert (tmp_path / "foreign.sqlite").read_bytes() == before


def test_in_run_folders(run):
    (run.path.parent / "notes.txt").write_text("nothing")
    assert collect_records(run.path) == collect_records(run.path.parent) == [of_run(run)]


def test_a_run_that_is_not_finished_is_told_alone_and_passed_over_among_others(run, tmp_path):
    begun = tmp_path / "folder" / "begun"
    begun.mkdir(parents=True)
    (begun / "config.yaml").write_text((run / "config.yaml").read_text())
    (begun / "data.json").write_text((run / "data.json").read_text())
    with pytest.raises(DataError, match="begun is a run that is not finished"):
        collect_records(begun)
    shutil.copytree(run.path, tmp_path / "folder" / "done")
    assert collect_records(tmp_path / "folder") == [of_run(run)]


def test_a_record_that_claims_the_hash_of_another_is_refused(made_up):
    true = made_up(CELL)
    false = made_up(CELL, seed=2, settings_hash=true["settings_hash"])
    older = made_up(CELL, seed=3, settings_hash="of an earlier version")
    refuse_false_claims([true, older], {true["settings_hash"]})
    for records, known in (([true, false], set()), ([false], {true["settings_hash"]})):
        with pytest.raises(DataError, match=f"claims the hash {true['settings_hash']}, which is a"):
            refuse_false_claims(records, known)
    refuse_false_claims([false], set())  # the true one is not here, and is not blocked later


def test_nothing_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.json").write_text("[]")
    for name in ("empty", "empty.json"):
        with pytest.raises(DataError, match="holds no finished run"):
            collect_records(tmp_path / name)
    with pytest.raises(DataError, match="no such file or folder"):
        collect_records(tmp_path / "nowhere")
