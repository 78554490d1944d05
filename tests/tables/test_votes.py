import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concont.errors import DataError
from concont.tables.problems import Problems
from concont.tables.spreadsheet import escape_formula
from concont.tables.table import read_images_table
from concont.tables.votes import (
    choose_candidates,
    count_votes,
    make_rows,
    read_votes,
    write_rows,
)
from image_tables import make_images, write_csv

IMAGES = ["0.png", "deep/1.png", "deep/a, b.png", "deep/9.png", "é.png"]
LONG = ("image", "annotator", "label")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes") / "photos"
    make_images(folder, IMAGES)
    return folder


def make(votes, photos, min_votes=1, problems=None):
    """What the command writes, as a list of rows, header first."""
    found = read_votes(votes, photos, problems or Problems())
    out = votes.with_name("table.csv")
    write_rows(make_rows(found, choose_candidates(count_votes(found), min_votes)), out)
    with open(out, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def by_hand(votes, min_votes):
    """The same in plain Python: (image, annotator, label) to rows."""
    rows = [["image", "candidates", "votes"]]
    for image in sorted(IMAGES, key=lambda name: name.encode()):
        counts = {}
        for voted, _, label in set(votes):
            if voted == image:
                counts[label] = counts.get(label, 0) + 1
        most = max(counts.values(), default=0)
        chosen = {k: n for k, n in counts.items() if n >= min_votes}
        chosen = chosen or {k: n for k, n in counts.items() if n == most}
        ranked = sorted(
            chosen, key=lambda k: (-chosen[k], not k.isdigit(), int(k) if k.isdigit() else 0, k)
        )
        rows.append([image, "|".join(ranked), "|".join(str(chosen[k]) for k in ranked)])
    return rows


ballots = st.tuples(
    st.sampled_from(IMAGES),
    st.sampled_from(["Ann", "Bob", "[Eve], x", "7"]),
    st.sampled_from(["cat", "dog", "10", "9", "a, b", 'the "fox"']),
)


@given(votes=st.lists(ballots, min_size=1, max_size=40), min_votes=st.integers(1, 4))
def test_long_votes_become_the_sets_that_a_plain_loop_finds(votes, min_votes, photos):
    path = write_csv(photos.parent / "long.csv", votes, LONG)
    assert make(path, photos, min_votes) == by_hand(votes, min_votes)


@given(
    cells=st.dictionaries(
        ballots.map(lambda b: b[:2]), st.sampled_from(["cat", "dog", "10"]), min_size=1
    ),
    min_votes=st.integers(1, 4),
    form=st.sampled_from(["csv", "parquet"]),
)
def test_wide_votes_are_the_same_as_long_ones(cells, min_votes, form, photos):
    annotators = sorted({annotator for _, annotator in cells})
    rows = [[image, *(cells.get((image, who), "") for who in annotators)] for image in IMAGES]
    path = photos.parent / f"wide.{form}"
    if form == "csv":
        write_csv(path, rows, ("image", *annotators))
    else:
        columns = dict(zip(["image", *annotators], zip(*rows, strict=True), strict=True))
        nulled = {name: [cell or None for cell in column] for name, column in columns.items()}
        table = pa.table({name: pa.array(c, pa.string()) for name, c in nulled.items()})
        pq.write_table(table, path)
    votes = [(image, who, label) for (image, who), label in cells.items()]
    assert make(path, photos, min_votes) == by_hand(votes, min_votes)


def test_the_table_reads_back_as_candidates_and_votes(photos, tmp_path):
    votes = [("0.png", "A", "cat"), ("0.png", "B", "dog"), ("0.png", "C", "dog")]
    votes += [("./deep/1.png", "A", " cat ")]
    path = write_csv(tmp_path / "v.csv", votes, LONG)
    found = read_votes(path, photos, Problems())
    for name in ("t.csv", "t.parquet"):
        out = tmp_path / name
        write_rows(make_rows(found, choose_candidates(count_votes(found), 1)), out)
        table = read_images_table(out, photos)
        assert table.classes == ("cat", "dog")
        assert len(table) == len(IMAGES)
        assert table.votes.dense(np.array([0])).tolist() == [[1, 2]]
        assert table.candidates[1].tolist() == [True, False]
        assert table.candidates[2:].all()
    assert out.with_name("t.csv").read_text().splitlines()[0] == "image,candidates,votes"


def test_plain_tables_are_written_without_quotes(tmp_path):
    make_images(tmp_path / "photos", ["a.png", "b.png"])
    path = write_csv(tmp_path / "v.csv", [("a.png", "A", "cat"), ("a.png", "B", "dog")], LONG)
    make(path, tmp_path / "photos")
    assert (
        tmp_path / "table.csv"
    ).read_text() == "image,candidates,votes\na.png,cat|dog,1|1\nb.png,,\n"


def test_what_an_annotator_says_twice_is_a_warning(photos, tmp_path):
    votes = [
        ("0.png", "A", "cat"),
        ("0.png", "B", "dog"),
        ("0.png", "A", "cat"),
        ("0.png", "B", "cat"),
    ]
    problems = Problems()
    rows = make(write_csv(tmp_path / "v.csv", votes, LONG), photos, problems=problems)
    assert rows[1] == ["0.png", "cat|dog", "2|1"]
    said = [(p.severity, p.row, p.message) for kind in problems.kinds for p in kind.problems]
    assert said == [
        ("warning", 4, "A has voted on 0.png before, for the same label: counted once"),
        ("warning", 5, "B has voted on 0.png before, for another label: both count"),
    ]


BAD = {
    "an image that is not there": (
        "image,annotator,label\n0.png,A,cat\nno.png,A,cat\n",
        "v.csv row 3: there is no file no.png in ",
    ),
    "a path that climbs": (
        "image,annotator,label\n../v.csv,A,cat\n",
        "v.csv row 2: ../v.csv leaves the image folder",
    ),
    "an absolute path": (
        "image,annotator,label\n/etc/passwd,A,cat\n",
        "v.csv row 2: /etc/passwd leaves the image folder",
    ),
    "a Windows path": (
        "image,annotator,label\ndeep\\1.png,A,cat\n",
        "(write / in place of \\)",
    ),
    "no image": ("image,annotator,label\n,A,cat\n", "v.csv row 2: names no image"),
    "no annotator": ("image,annotator,label\n0.png,,cat\n", "v.csv row 2: names no annotator"),
    "a | in a label": ("image,annotator,label\n0.png,A,a|b\n", "row 2: label 'a|b' holds a |"),
    "too few cells": ("image,annotator,label\n0.png,A\n", "row 2: has 2 cells, the header has 3"),
    "a header alone": ("image,annotator,label\n", "v.csv: holds no vote"),
    "only empty votes": ("image,A,B\n0.png,,\n", "v.csv: holds no vote"),
    "a misspelt image": ("images,A,B\n0.png,x,y\n", "no column image; did you mean 'images'?"),
    "a misspelt annotator": (
        "image,annotators,label\n0.png,A,cat\n",
        "a column label but no column annotator; did you mean 'annotators'?",
    ),
    "no label": ("image,annotator,vote\n0.png,A,cat\n", "a column annotator but no column label"),
    "long under other names": (
        "image,worker,vote\n0.png,A,cat\n0.png,B,dog\n",
        "v.csv row 3: 0.png has a row already (with a row a vote the columns are called",
    ),
    "an index without a name": (",image,A\n0,0.png,cat\n", "v.csv: column 1 has no name"),
    "nobody": ("image\n0.png\n", "there is no column of votes beside image"),
    "an empty file": ("", "v.csv: the file is empty"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_votes_that_make_no_sense_are_refused_with_file_and_row(mistake, photos, tmp_path):
    text, message = BAD[mistake]
    (tmp_path / "v.csv").write_text(text)
    with pytest.raises(DataError) as refused:
        read_votes(tmp_path / "v.csv", photos, Problems())
    assert message in str(refused.value)
    assert str(tmp_path / "v.csv") in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("header", [LONG, ("image", "Ann")])
def test_votes_name_files_in_any_unicode_form(header, tmp_path):
    make_images(tmp_path / "photos", ["a\u0308.png", "b.png"])
    rows = [["\u00e4.png ", "Ann", "cafe\u0301"], ["b.png", "Bob", "caf\u00e9"]]
    rows = rows if header == LONG else [[row[0], row[2]] for row in rows]
    votes = read_votes(write_csv(tmp_path / "v.csv", rows, header), tmp_path / "photos", Problems())
    assert votes.images.to_pylist() == ["a\u0308.png", "b.png"]
    assert votes.image.tolist() == [0, 1]
    assert votes.classes == ("caf\u00e9",)


def test_votes_on_an_image_that_a_link_leads_away_from_are_refused(tmp_path):
    make_images(tmp_path / "photos", ["0.png"])
    make_images(tmp_path / "secret", ["s.png"])
    (tmp_path / "photos" / "s.png").symlink_to(tmp_path / "secret" / "s.png")
    path = write_csv(tmp_path / "v.csv", [("0.png", "A", "cat"), ("s.png", "A", "dog")], LONG)
    with pytest.raises(DataError, match=r"photos/s.png: a link that leaves the image folder"):
        read_votes(path, tmp_path / "photos", Problems())
    (tmp_path / "photos" / "s.png").unlink()
    (tmp_path / "photos" / "out").symlink_to(tmp_path / "secret")
    write_csv(path, [("0.png", "A", "cat"), ("out/s.png", "A", "dog")], LONG)
    with pytest.raises(DataError, match=r"v.csv row 3: out/s.png leaves the image folder"):
        read_votes(path, tmp_path / "photos", Problems())


def test_no_name_becomes_a_formula_and_every_name_comes_back(tmp_path):
    names = ["=1+1.png", "'=x.png", "-2.png", "b.png"]
    make_images(tmp_path / "photos", names)
    labels = ["=cmd", "@a", "-7", "+fox"]
    votes = zip(map(escape_formula, names), "AAAA", labels, strict=True)
    path = write_csv(tmp_path / "v.csv", votes, LONG)
    rows = make(path, tmp_path / "photos")
    assert rows[1:] == [
        ["''=x.png", "'@a", "1"],
        ["'-2.png", "-7", "1"],
        ["'=1+1.png", "'=cmd", "1"],
        ["b.png", "'+fox", "1"],
    ]
    table = read_images_table(tmp_path / "table.csv", tmp_path / "photos")
    assert sorted(table.images.to_pylist()) == sorted(names)
    assert set(table.classes) == {"=cmd", "@a", "-7", "+fox"}
