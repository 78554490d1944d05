"""The ledger takes a run once, and forgets it only when asked to, with a trace."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from concont.errors import DataError, UsageError
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


def test_what_is_forgotten_is_kept_beside_and_can_come_back(tmp_path, made_up):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    wrong, other = made_up(PART[0], accuracy=0.1), made_up(PART[1])
    ledger.add([wrong, other])
    assert Ledger(ledger.path).forget(key_of(wrong), "cut short") == wrong
    assert ledger.records() == [other]
    assert Ledger(ledger.path).keys() == {key_of(other)}
    table = sqlite3.connect(ledger.path)
    ((key, at, why, text),) = table.execute("SELECT * FROM forgotten")
    assert (key, why, json.loads(text)) == (key_of(wrong), "cut short", wrong)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", at)
    for words in ("DELETE FROM forgotten", "UPDATE forgotten SET why = ''", "DELETE FROM results"):
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            table.execute(words)
    table.close()
    right = made_up(PART[0], accuracy=0.9)
    assert ledger.add([right]) == 1
    assert ledger.records() == [other, right]
    with pytest.raises(UsageError, match=r"no run \\x1b in .*ledger.sqlite"):
        ledger.forget("\x1b")


def test_a_ledger_of_the_first_version_learns_to_forget(tmp_path, made_up):
    ledger, record = Ledger(tmp_path / "ledger.sqlite"), made_up(PART[0])
    ledger.add([record])
    table = sqlite3.connect(ledger.path)
    table.executescript(
        "DROP TRIGGER delete_only_forgotten; DROP TABLE forgotten; CREATE TRIGGER no_delete "
        "BEFORE DELETE ON results BEGIN SELECT RAISE(ABORT, 'append-only'); END;"
    )
    table.close()
    assert ledger.forget(key_of(record)) == record
    assert ledger.records() == []


def test_a_record_that_claims_anothers_hash_does_not_stand_in_its_place(tmp_path, made_up):
    ledger, true = Ledger(tmp_path / "ledger.sqlite"), made_up(PART[0])
    false = made_up(PART[1], settings={"train": {"speed": 7}})
    false["settings_hash"] = true["settings_hash"]
    assert ledger.add([false]) == 1
    assert ledger.add([true]) == 1
    assert ledger.keys() == {true["settings_hash"], key_of(false)}


def test_a_row_of_an_earlier_version_under_such_a_hash_blocks_none(tmp_path, made_up):
    ledger, true = Ledger(tmp_path / "ledger.sqlite"), made_up(PART[0])
    ledger.add([made_up(PART[1], settings={"train": {"speed": 7}}, settings_hash="strange")])
    table = sqlite3.connect(ledger.path)
    table.executescript("DROP TRIGGER no_update")
    table.execute("UPDATE results SET settings_hash = ?", [true["settings_hash"]])
    table.commit()
    table.close()
    assert Ledger(ledger.path).add([true]) == 1
    assert len(Ledger(ledger.path).records()) == 2


def damage(ledger, change):
    """Let the record of the first row be what `change` makes of its text."""
    with closing(sqlite3.connect(ledger.path)) as table:
        table.executescript("DROP TRIGGER no_update")
        row, text = table.execute("SELECT settings_hash, record FROM results").fetchone()
        words = "UPDATE results SET record = ? WHERE settings_hash = ?"
        table.execute(words, [change(text), row])
        table.commit()


def drop(name):
    def change(text):
        content = json.loads(text)
        del content[name]
        return json.dumps(content)

    return change


DAMAGES = {
    "deep": lambda text: "[" * 10**5,
    "a letter": lambda text: "{",
    "a control character": lambda text: "\x00",
    "no text": lambda text: b"\xff",
    "a list": lambda text: "[]",
    "a flipped name": lambda text: text.replace("settings", "semtings"),
    "a word for a number": lambda text: json.dumps(json.loads(text) | {"accuracy_last": "[/x]"}),
    "a word for settings": lambda text: json.dumps(json.loads(text) | {"settings": "x"}),
    **{f"no {name}": drop(name) for name in ("settings", "curve", "environment", "accuracy_last")},
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_row_is_named_with_its_cure_which_works(kind, tmp_path, made_up):
    ledger, other = Ledger(tmp_path / "ledger.sqlite"), made_up(PART[1])
    ledger.add([made_up(PART[0])])
    (key,) = ledger.keys()
    damage(ledger, DAMAGES[kind])
    ledger = Ledger(ledger.path)
    for ask in (ledger.records, ledger.keys, lambda: ledger.add([other])):
        with pytest.raises(DataError, match=r"a row of .*ledger\.sqlite holds no record") as caught:
            ask()
        assert f"concont results forget {key} --folder {tmp_path}" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert ledger.forget(key, "damaged") is None
    assert ledger.add([other]) == 1
    assert ledger.records() == [other]


def test_of_two_damaged_rows_each_can_be_taken_out(tmp_path, made_up):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.add([made_up(PART[0]), made_up(PART[1])])
    keys = ledger.keys()
    with closing(sqlite3.connect(ledger.path)) as table:
        table.executescript("DROP TRIGGER no_update; UPDATE results SET record = '{'")
    for key in keys:
        assert Ledger(ledger.path).forget(key) is None
    assert Ledger(ledger.path).records() == []


def test_a_number_that_no_row_holds_is_refused(tmp_path, made_up):
    with pytest.raises(DataError, match="cannot be used"):
        Ledger(tmp_path / "ledger.sqlite").add([made_up(PART[0], epochs=10**30)])


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
