"""`concont data add-votes`, as a user runs it."""

import json

import pytest

from image_tables import make_images, write_csv
from processes import concont
from refusals import assert_refused, run_here

LONG = ("image", "annotator", "label", "remark")
EVIL = "[red]\x1b[31mfox"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A table, images beside it, and a sheet of which a person has filled in half."""
    make_images(tmp_path, ["0.png", "1.png", "2.png", "3.png"])
    rows = [("0.png", "cat|dog", "2|1", "=1"), ("1.png", "cat|dog", "", ""), ("2.png", "", "", "x")]
    write_csv(tmp_path / "t.csv", rows, ("image", "candidates", "votes", "note"))
    sheet = [("0.png", "E", "cat", "sure"), ("1.png", "E", "", "?"), ("3.png", "E", "dog", "")]
    write_csv(tmp_path / "v.csv", sheet, LONG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def add(capsys, *words):
    return run_here(capsys, "data", "add-votes", "t.csv", "v.csv", *words)


def test_a_sheet_that_is_half_filled_in_goes_back_into_the_table(here, capsys):
    done = add(capsys, "-o", "n.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "2 votes on 2 rows, 1 of them new\n"
        "one candidate now, and not before: 1 row\n"
        "the same candidates as before: 1 row\n"
        "n.csv: 4 rows\n"
    )
    assert (here / "n.csv").read_text().splitlines() == [
        "image,candidates,votes,note",
        "0.png,cat|dog,3|1,'=1",
        "1.png,cat|dog,,",
        "2.png,,,x",
        "3.png,dog,1,",
    ]


def test_an_experts_answers_settle_what_they_name_in_the_table_itself(here, capsys):
    refused = add(capsys, "--replace", "-o", "t.csv")
    assert_refused(refused, 2, "t.csv is there already; --overwrite replaces it", here)
    done = add(capsys, "--replace", "-o", "t.csv", "--overwrite", "--json")
    said = json.loads(done.stdout)
    assert said == {
        **{"table": "t.csv", "rows": 4, "voted": 2, "added": 1, "votes": 2, "single": 2},
        **{"unchanged": 0, "left_out": 0, "classes": ["cat", "dog"], "new_classes": []},
    }
    written = (here / "t.csv").read_text().splitlines()
    assert (written[1], written[2]) == ("0.png,cat,1,'=1", "1.png,cat|dog,,")


def test_votes_for_a_class_with_too_few_are_told_to_be_lost(here, capsys):
    write_csv(here / "v.csv", [("0.png", "E", "fox", ""), ("0.png", "E2", "cat", "")], LONG)
    done = add(capsys, "-o", "n.csv", "--min-votes", "2")
    assert "left out: 1 vote for a class with too few to be a candidate\n" in done.stdout
    assert "0.png,cat,3,'=1" in (here / "n.csv").read_text()


def test_the_votes_are_never_written_over_and_a_place_must_be_named(here, capsys):
    before = (here / "v.csv").read_bytes()
    refused = add(capsys, "-o", "v.csv", "--overwrite")
    assert_refused(refused, 2, "v.csv is the file of the votes", here)
    assert (here / "v.csv").read_bytes() == before
    missing = add(capsys)
    assert missing.returncode == 2
    assert "--out" in missing.stderr


def test_a_vote_on_an_image_that_is_nowhere_writes_nothing(here, capsys):
    write_csv(here / "v.csv", [("no.png", "E", "cat", "")], LONG)
    refused = add(capsys, "-o", "n.csv")
    assert_refused(refused, 1, "v.csv row 2: no.png is in no row of the table, and there", here)
    assert not (here / "n.csv").exists()


@pytest.mark.slow
def test_new_names_are_told_plainly_and_the_new_table_is_a_good_one(here):
    write_csv(here / "v.csv", [("2.png", "E", EVIL, ""), ("3.png", "E", "dog", "")], LONG)
    words = ("data", "add-votes", "t.csv", "v.csv", "--images", ".", "-o", "n.parquet")
    done = concont(*words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "warning: v.csv row 2: '[red]\\\\x1b[31mfox' is a class that the table did not have\n"
    )
    checked = concont("data", "check", "n.parquet", "--images", ".", cwd=here)
    assert checked.returncode == 0, checked.stdout
    assert "4 rows" in checked.stdout
    assert "3 classes" in checked.stdout
