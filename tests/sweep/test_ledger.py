"""The ledger takes a run once and forgets nothing."""

import sqlite3
import subprocess
import sys

import pytest

from concont.errors import DataError
from concont.paper.plan import cells_of
from concont.sweep import ledger as module
from concont.sweep.ledger import Ledger
from concont.sweep.record import key_of

PART = cells_of("table4")


def test_a_run_enters_once_and_stays_as_it_was(tmp_path, made_up):
    ledger = Ledger(tmp_path / "sub" / "ledger.sqlite")
    assert ledger.records() == []
    first, second = made_up(PART[0]), made_up(PART[1], seed=2)
    assert ledger.add([first, second, first]) == 2
    assert ledger.add([{**first, "accuracy_last": 0.9}]) == 0
    assert ledger.records() == [first, second]
    assert ledger.records(seed=2) == ledger.records(recipe=second["recipe"]) == [second]
    assert ledger.records(method="pico") == ledger.records(data="svhn") == []
    with pytest.raises(DataError, match="cannot be asked by colour"):
        ledger.records(colour="red")


def test_nothing_is_changed_or_removed(tmp_path, made_up):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.add([made_up(PART[0])])
    table = sqlite3.connect(ledger.path)
    for words in ("DELETE FROM results", "UPDATE results SET accuracy_last = 1"):
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            table.execute(words)
    table.close()


def test_a_run_is_found_by_what_its_settings_mean_today(tmp_path, made_up):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    record = made_up(PART[0])
    key = record["settings_hash"]
    del record["settings"]["train"]["deterministic"]  # as if it were newer than the record
    record["settings_hash"] = "before"
    ledger.add([record])
    assert ledger.keys() == {key}
    assert ledger.add([made_up(PART[0], accuracy=0.9)]) == 0  # the same run by its hash of today
    assert ledger.records() == [record]
    strange = made_up(PART[1], settings={"train": {"speed": 7}}, settings_hash="strange")
    ledger.add([strange])
    assert ledger.keys() == {key, key_of(strange)}


def test_a_false_claim_does_not_block_the_run_whose_hash_it_is(tmp_path, made_up):
    ledger, true = Ledger(tmp_path / "ledger.sqlite"), made_up(PART[0])
    claimed = {"settings_hash": true["settings_hash"]}
    false = [made_up(PART[1], **claimed), made_up(PART[2], settings={"train": 7}, **claimed)]
    assert ledger.add(false) == 2
    assert not {key_of(true)} & ledger.keys()
    assert ledger.add([true]) == 1
    assert {key_of(true)} <= ledger.keys()
    assert ledger.records() == [*false, true]


def test_a_row_is_hashed_once(tmp_path, made_up, monkeypatch):
    """However many results are added; rows that another process adds are seen too."""
    path, hashed = tmp_path / "ledger.sqlite", []
    monkeypatch.setattr(module, "key_of", lambda record: hashed.append(record) or key_of(record))
    Ledger(path).add(made_up(PART[0], seed) for seed in range(10))
    ledger, other = Ledger(path), Ledger(path)
    assert (ledger.add([made_up(PART[1])]), other.add([made_up(PART[2])])) == (1, 1)
    hashed.clear()
    assert ledger.add([made_up(PART[2]), made_up(PART[3])]) == 1
    assert len(hashed) == 2 + 2  # of what is added, and of the rows that came since
    assert len(ledger.keys()) == len(ledger.records()) == 13
    path.unlink()
    assert ledger.add([made_up(PART[1])]) == 1  # it is another ledger now


def test_what_is_no_ledger_is_said_to_be_none(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_text("not a database, " * 100)
    with pytest.raises(DataError, match="is no ledger"):
        Ledger(path).records()


def test_two_processes_may_add_at_once(tmp_path, made_up):
    """Ten records from each of two processes, five of them the same."""
    path = tmp_path / "ledger.sqlite"
    code = (
        "import json, sys; from pathlib import Path; from concont.sweep.ledger import Ledger\n"
        "base = json.loads(sys.stdin.read())\n"
        "for n in range(int(sys.argv[2]), int(sys.argv[2]) + 10):\n"
        "    base['settings']['train']['seed'] = n\n"
        "    Ledger(Path(sys.argv[1])).add([base])\n"
    )
    import json

    words = [sys.executable, "-c", code, str(path)]
    adding = [
        subprocess.Popen([*words, str(start)], stdin=subprocess.PIPE, text=True) for start in (0, 5)
    ]
    for process in adding:
        process.stdin.write(json.dumps(made_up(PART[0])))
        process.stdin.close()
    assert [process.wait() for process in adding] == [0, 0]
    assert len(Ledger(path).records()) == 15
