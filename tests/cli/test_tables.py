"""`concont data from-votes` and `concont data check`, as a user runs them."""

import json
import re

import pytest

from image_tables import make_images, make_table, write_csv
from processes import concont
from refusals import assert_refused, run_here

LONG = ("image", "annotator", "label")
EVIL = "[red]\x1b[31mfox"
VOTES = [("0.png", "Ann", "cat"), ("0.png", "[b]Bob", EVIL), ("1.png", "Ann", EVIL)]


@pytest.fixture
def votes(tmp_path, monkeypatch):
    make_images(tmp_path / "photos", ["0.png", "1.png", "2.png"])
    monkeypatch.chdir(tmp_path)
    return write_csv(tmp_path / "votes.csv", VOTES, LONG)


def make(capsys, *words):
    return run_here(capsys, "data", "from-votes", "votes.csv", "--images", "photos", *words)


def test_votes_become_a_table_and_figures(votes, capsys):
    done = make(capsys, "-o", "t.csv")
    assert done.returncode == 0, done.stderr
    for text in ("2 of 3", "3 by 2 annotators", "1.50", "Krippendorff's alpha", "t.csv: 3 rows"):
        assert text in done.stdout
    assert "[red]\\x1b[31mfox" in done.stdout  # what stands in the file, and no colour
    assert "[b]Bob" in done.stdout
    assert "\x1b[31m" not in done.stdout
    table = votes.with_name("t.csv").read_text()
    assert table.splitlines()[1:] == [f"0.png,{EVIL}|cat,1|1", f"1.png,{EVIL},1", "2.png,,"]


def test_the_figures_as_json_and_warnings_beside_them(votes, capsys):
    write_csv(votes, [*VOTES, ("0.png", "Ann", "cat")], LONG)
    done = make(capsys, "-o", "t.csv", "--json")
    said = json.loads(done.stdout)
    assert (said["table"], said["images"], said["voted"], said["votes"]) == ("t.csv", 3, 2, 3)
    assert said["confusions"] == [{"first": EVIL, "second": "cat", "images": 1, "share": 0.5}]
    assert done.stderr.startswith("warning: votes.csv row 5: Ann has voted on 0.png before")


def test_a_table_that_is_there_stays_unless_it_may_be_replaced(votes, capsys, tmp_path):
    (tmp_path / "t.csv").write_text("mine")
    refused = make(capsys, "-o", "t.csv")
    assert_refused(refused, 2, "t.csv is there already; --overwrite replaces it", tmp_path)
    assert (tmp_path / "t.csv").read_text() == "mine"
    assert make(capsys, "-o", "t.csv", "--overwrite").returncode == 0
    before = votes.read_bytes()
    refused = make(capsys, "-o", "votes.csv", "--overwrite")
    assert_refused(refused, 2, "votes.csv is the file of the votes", tmp_path)
    assert votes.read_bytes() == before


def test_votes_on_an_image_that_is_not_there_write_nothing(votes, capsys, tmp_path):
    write_csv(votes, [*VOTES, ("no.png", "Ann", "cat")], LONG)
    refused = make(capsys, "-o", "t.csv")
    assert_refused(refused, 1, "votes.csv row 5: there is no file no.png in photos", tmp_path)
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [20, 40, 60, 100])
def test_figures_are_those_of_json_on_every_screen(votes, tmp_path, columns):
    rows = [("0.png", f"A{k}", ("cat", EVIL)[k % 7 == 0]) for k in range(113)]
    write_csv(votes, rows, LONG)
    words = ("data", "from-votes", "votes.csv", "--images", "photos", "-o", "t.csv")
    shown = concont(*words, cwd=tmp_path, columns=columns).stdout
    figures = json.loads(concont(*words, "--overwrite", "--json", cwd=tmp_path).stdout)
    whole = [
        *(f"{figures['voted']} of {figures['images']}", f"{figures['votes']} by 113 annotators"),
        *(f"{figures['set_size']:.2f}", f"{figures['alpha']:.3f}"),
    ]
    whole += [f"{100 * pair['share']:.2f} %" for pair in figures["confusions"]]
    whole += [f"{100 * who['agreement']:.2f} %" for who in figures["apart"]]
    for cell in whole:
        assert re.search(rf"[│:] +{re.escape(cell)}( |$)", shown, re.MULTILINE), cell
    assert "\x1b" not in shown
    if columns in (20, 100):
        assert "[red]\\x1b[31mfox" in shown


@pytest.mark.slow
def test_from_votes_to_a_checked_table_in_real_processes(votes, tmp_path):
    make_images(tmp_path / "photos", ["3.png"], start=9)
    write_csv(votes, [*VOTES, ("3.png", "Ann", "cat")], LONG)
    asked = ("data", "from-votes", "votes.csv", "--images", "photos", "-o", "t.parquet")
    done = concont(*asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = concont("data", "check", "t.parquet", "--images", "photos", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "t.parquet: 4 rows (3 with candidates, 1 of them with every class, which tells nothing; "
        "1 unlabelled), 2 classes: 0 errors, 0 warnings\n"
    )


def check(capsys, *words):
    return run_here(capsys, "data", "check", *words)


def test_problems_are_listed_with_file_and_row(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_table(tmp_path, {4: ["no\n.png", "a"], 6: ["0.png", "a|b"], 8: ["../x.png", "a"]})
    done = check(capsys, "table.csv")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "error: table.csv row 9: ../x.png leaves the image folder .",
        "error: table.csv row 4: there is no file no\\n.png in .",
        "warning: table.csv row 7: 0.png stands in row 2 already",
        "the images may lie elsewhere: --images FOLDER says where",
        "table.csv: 12 rows (12 with candidates, 0 unlabelled), 3 classes: 2 errors, 1 warning",
    ]


def test_one_is_counted_in_the_singular(votes, capsys, tmp_path):
    write_csv(votes, VOTES[:1], LONG)
    assert "1 by 1 annotator " in make(capsys, "-o", "t.csv").stdout
    done = check(capsys, "t.csv", "--images", "photos")
    assert done.stdout.endswith("2 unlabelled), 1 class: 1 error, 0 warnings\n")


def test_a_folder_of_images_has_no_other_place_for_them(tmp_path, capsys):
    make_table(tmp_path, {4: ["no.png", "a"]}).rename(tmp_path / "metadata.csv")
    done = check(capsys, tmp_path)
    assert "there is no file no.png" in done.stdout
    assert "--images" not in done.stdout


def test_warnings_alone_are_no_failure(tmp_path, capsys):
    table = make_table(tmp_path, {6: ["0.png", "a|b"]})
    done = check(capsys, table)
    assert done.returncode == 0
    assert done.stdout.startswith(f"warning: {table} row 6: 0.png stands in row 2 already\n")


def test_only_twenty_of_a_kind_are_listed(tmp_path, capsys):
    table = write_csv(tmp_path / "t.csv", [[f"{k}.png", "a|b"] for k in range(1500)])
    done = check(capsys, table)
    assert done.stdout.count("there is no file") == 20
    assert "error: 1,480 more of this kind (missing image)\n" in done.stdout
    assert check(capsys, table, "--all").stdout.count("there is no file") == 1500


def test_the_report_as_json(tmp_path, capsys):
    table = make_table(tmp_path, {5: ["no.png", "a"]})
    done = check(capsys, table, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert (report["rows"], report["errors"], report["warnings"]) == (12, 1, 0)
    assert report["classes"] == ["a", "b", "c"]
    (kind,) = report["kinds"]
    (problem,) = kind["problems"]
    assert (kind["kind"], kind["count"]) == ("missing image", 1)
    assert (problem["file"], problem["row"]) == (str(table), 5)


def test_images_are_read_unless_told_otherwise(tmp_path, capsys):
    table = make_table(tmp_path)
    (tmp_path / "4.png").write_bytes(b"")
    done = check(capsys, table)
    assert done.returncode == 1
    assert f"error: {table} row 6: 4.png cannot be read: the file is empty\n" in done.stdout
    assert check(capsys, table, "--no-decode").returncode == 0


def test_the_classes_may_be_given_as_a_list_or_a_file(tmp_path, capsys):
    table = make_table(tmp_path)
    assert check(capsys, table, "--classes", "a, b,c,d").returncode == 0
    (tmp_path / "names.txt").write_text("a\nb\n\ncc\n")
    done = check(capsys, table, "--classes", tmp_path / "names.txt")
    assert done.returncode == 1
    assert f"error: {table} row 4: 'c' is no known class; did you mean 'cc'?\n" in done.stdout
    refused = check(capsys, table, "--classes", " , ")
    assert_refused(refused, 2, "--classes  , : no name in it", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", 1, "error: t.csv: the file is empty"),
        (b"image,candidates\na.png,K\xe4se\n", 1, "error: t.csv row 2: byte 0xe4 is no UTF-8"),
        (None, 2, "error: t.csv: no such file"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(content, code, message, tmp_path):
    if content is not None:
        (tmp_path / "t.csv").write_bytes(content)
    done = concont("data", "check", "t.csv", cwd=tmp_path)
    assert_refused(done, code, message, tmp_path)
