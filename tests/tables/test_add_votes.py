import csv

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concont.errors import DataError, UsageError
from concont.tables.add_votes import add_votes
from concont.tables.files import read_cells
from concont.tables.problems import Problems
from concont.tables.votes import write_rows
from image_tables import make_images, write_csv

IMAGES = [f"{k}.png" for k in range(5)]
CLASSES = ["cat", "dog", "10", "9", "=fox"]
LONG = ("image", "annotator", "label")
HEADER = ("image", "note", "candidates", "votes", "split", "label")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("add")
    make_images(place, [*IMAGES, "new.png", "deep/new.png"])
    return place


def add(table, votes, folder=None, **options):
    """What the command writes, as a list of rows, header first; and the report."""
    found, report = add_votes(table, votes, Problems(), folder, **options)
    out = table.with_name("out.csv")
    write_rows(found, out)
    with open(out, encoding="utf-8", newline="") as file:
        return list(csv.reader(file)), report


def rank(counts):
    """`a|b` and `2|1`, the most votes first, then numbers by value, then by letters."""
    order = sorted(
        counts, key=lambda k: (-counts[k], not k.isdigit(), int(k) if k.isdigit() else 0, k)
    )
    return "|".join(order), "|".join(str(counts[k]) for k in order)


def by_hand(sets, votes, min_votes, replace):
    """Candidates and votes of each image in plain Python; sets: counts by class of each image."""
    cells = {}
    for image in [*IMAGES, *sorted({image for image, _, _ in votes} - set(IMAGES))]:
        given = [label for voted, _, label in sorted(set(votes)) if voted == image]
        if not given:
            cells[image] = None
            continue
        counts = {} if replace else dict(sets.get(image, {}))
        for label in given:
            counts[label] = counts.get(label, 0) + 1
        most = max(counts.values())
        chosen = {k: n for k, n in counts.items() if n >= min(min_votes, most)}
        cells[image] = rank(chosen)
    return cells


ballots = st.tuples(
    st.sampled_from([*IMAGES, "new.png", "deep/new.png"]),
    st.sampled_from(["Ann", "Bob"]),
    st.sampled_from(CLASSES),
)
counts = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 3), max_size=3)


@given(
    sets=st.dictionaries(st.sampled_from(IMAGES), counts),
    uncounted=st.booleans(),
    votes=st.lists(ballots, min_size=1, max_size=20),
    min_votes=st.integers(1, 3),
    replace=st.booleans(),
)
def test_votes_are_added_as_a_plain_loop_adds_them(
    sets, uncounted, votes, min_votes, replace, folder
):
    if uncounted:
        sets = {image: dict.fromkeys(names, 1) for image, names in sets.items()}
    rows = []
    for image in IMAGES:
        names, numbers = "|".join(sets.get(image, {})), map(str, sets.get(image, {}).values())
        rows.append([image, " kept ", names, "" if uncounted else "|".join(numbers), "train", ""])
    table = folder / "table.csv"
    write_rows(pa.table(dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True))), table)
    given_votes = write_csv(folder / "votes.csv", votes, LONG)
    written, report = add(table, given_votes, min_votes=min_votes, replace=replace)

    expected = by_hand(sets, votes, min_votes, replace)
    assert tuple(written[0]) == HEADER
    old = {row[0]: row for row in rows}
    single = same = 0
    for row, (image, cells) in zip(written[1:], expected.items(), strict=True):
        before = old.get(image, [image, "", "", "", "", ""])
        if cells is not None:
            before = [*before[:2], *cells, *before[4:]]
            now, then = set(cells[0].split("|")), set(sets.get(image, {}))
            single += len(now) == 1 and len(then) != 1
            same += now == then
        before[2] = f"'{before[2]}" if before[2].startswith("=") else before[2]
        assert row == before
    voted = [cells for cells in expected.values() if cells is not None]
    assert (report.rows, report.voted) == (len(expected), len(voted))
    assert (report.votes, report.added) == (len(set(votes)), len(expected) - len(IMAGES))
    assert (report.single, report.unchanged) == (single, same)
    lost = [1 for image, _, label in set(votes) if label not in expected[image][0].split("|")]
    assert report.left_out == len(lost)
    named = {label for cells in voted for label in cells[0].split("|")}
    known = {label for names in sets.values() for label in names}
    assert set(report.new_classes) == named - known


def columns_of(path):
    return pq.read_table(path).to_pydict()


def test_parquet_keeps_its_columns_and_their_types(tmp_path, folder):
    table = tmp_path / "t.parquet"
    columns = {
        "when": pa.array([1, None, 3], pa.timestamp("ms")),
        "image": pa.array(["0.png", "1.png", "2.png"]).dictionary_encode(),
        "votes": pa.array([[2, 1], None, [1]], pa.list_(pa.int64())),
        "candidates": pa.array([["cat", "dog"], None, ["cat"]]),
        "place": pa.array([{"x": 1}, {"x": 2}, None]),
    }
    pq.write_table(pa.table(columns), table)
    votes = write_csv(tmp_path / "v.csv", [("1.png", "A", "dog"), ("new.png", "A", "cat")], LONG)
    found, _ = add_votes(table, votes, Problems(), folder)
    write_rows(found, tmp_path / "out.parquet")
    wrote = columns_of(tmp_path / "out.parquet")
    assert list(wrote) == list(columns)
    assert wrote["image"] == ["0.png", "1.png", "2.png", "new.png"]
    assert wrote["candidates"] == [["cat", "dog"], ["dog"], ["cat"], ["cat"]]
    assert wrote["votes"] == [[2, 1], [1], [1], [1]]
    assert [place and place["x"] for place in wrote["place"]] == [1, 2, None, None]
    assert found["when"].type == pa.timestamp("ms")
    with pytest.raises(DataError, match=r"out.csv: column place holds struct.*a CSV cannot hold"):
        write_rows(found, tmp_path / "out.csv")


KINDS = {
    "numbers": (pa.array([0, 1]), pa.array([2, 1])),
    "floats with gaps": (pa.array([0.0, None]), pa.array([1.0, None])),
    "text with gaps": (pa.array(["cat", None]), pa.array(["3", None])),
    "lists of numbers": (pa.array([[0], [1, 2]]), pa.array([[1], [1, 1]])),
    "pairs": (
        pa.array([["a", "b"], ["b", "c"]], pa.list_(pa.string(), 2)),
        pa.array([[1, 2], [1, 1]], pa.list_(pa.int8(), 2)),
    ),
    "a few words": (pa.array(["cat", "cat|dog"]).dictionary_encode(), pa.array(["1", "1|1"])),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", ["cat", "7"])
def test_columns_of_any_type_take_any_name_and_the_other_row_says_what_it_said(
    tmp_path, folder, kind, label
):
    candidates, numbers = KINDS[kind]
    table = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"image": IMAGES[:2], "candidates": candidates, "votes": numbers}), table
    )
    before = read_cells(table)
    votes = write_csv(tmp_path / "v.csv", [("1.png", "A", label)], LONG)
    found, _ = add_votes(table, votes, Problems(), folder, replace=True)
    for name in ("out.parquet", "out.csv"):
        write_rows(found, tmp_path / name)
        after = read_cells(tmp_path / name)
        for column, cell in (("candidates", label), ("votes", "1")):
            assert after.columns[column].to_pylist() == [before.columns[column][0].as_py(), cell]


def test_labels_alone_are_sets_of_one_and_stay_so(tmp_path, folder):
    table = write_csv(
        tmp_path / "t.csv", [("0.png", "cat"), ("1.png", "dog"), ("2.png", "")], ("image", "label")
    )
    votes = write_csv(tmp_path / "v.csv", [("1.png", "A", "cat"), ("2.png", "A", "cat")], LONG)
    rows, report = add(table, votes, folder)
    assert rows == [
        ["image", "label", "candidates", "votes"],
        ["0.png", "cat", "cat", ""],
        ["1.png", "dog", "cat|dog", "1|1"],
        ["2.png", "", "cat", "1"],
    ]
    assert (report.single, report.new_classes) == (1, ())


def test_an_image_in_two_rows_has_its_votes_in_both(tmp_path, folder):
    table = write_csv(tmp_path / "t.csv", [("0.png", "a|b"), ("./0.png", "b|a"), ("1.png", "a")])
    votes = write_csv(tmp_path / "v.csv", [("0.png", "A", "b")], LONG)
    rows, report = add(table, votes, folder)
    assert rows[1:] == [["0.png", "b|a", "2|1"], ["./0.png", "b|a", "2|1"], ["1.png", "a", ""]]
    assert (report.voted, report.votes, report.unchanged) == (2, 1, 2)


def test_the_name_that_hugging_face_gives_the_column_stays(tmp_path, folder):
    table = write_csv(tmp_path / "t.csv", [("0.png", "a")], ("file_name", "label"))
    votes = write_csv(tmp_path / "v.csv", [("new.png", "A", "a")], LONG)
    rows, _ = add(table, votes, folder)
    assert rows[0] == ["file_name", "label", "candidates", "votes"]
    assert rows[2] == ["new.png", "", "a", "1"]


def test_images_of_the_table_need_not_be_there(tmp_path):
    table = write_csv(tmp_path / "t.csv", [("far/0.png", "a|b")])
    votes = write_csv(tmp_path / "v.csv", [("far/0.png", "A", "b")], LONG)
    rows, _ = add(table, votes)
    assert rows[1] == ["far/0.png", "b|a", "2|1"]


def test_a_class_that_is_new_is_a_warning_unless_all_are(tmp_path, folder):
    votes = write_csv(tmp_path / "v.csv", [("0.png", "A", "cat"), ("1.png", "A", "dgo")], LONG)
    for cells, said in (("cat|dog", [("v.csv", 3)]), ("", [])):
        table = write_csv(tmp_path / "t.csv", [("0.png", cells), ("1.png", cells)])
        problems = Problems()
        _, report = add_votes(table, votes, problems, folder)
        found = [each for kind in problems.kinds for each in kind.problems]
        assert [(each.file.name, each.row) for each in found] == said
        if said:
            assert report.new_classes == ("dgo",)
            assert "'dgo' is a class that the table did not have" in found[0].message
            assert found[0].message.endswith("did you mean 'dog'?")


BAD = {
    "an image that is nowhere": (
        [("0.png", "a|b", "", "")],
        [("0.png", "A", "a"), ("no.png", "A", "a")],
        "v.csv row 3: no.png is in no row of the table, and there is no file no.png in ",
    ),
    "a test row": (
        [("0.png", "a|b", "", ""), ("1.png", "", "test", "a")],
        [("0.png", "A", "a"), ("1.png", "A", "a")],
        "v.csv row 3: 1.png is a test row of the table (row 3); votes are for training rows",
    ),
    "counts that do not fit": (
        [("0.png", "a|b", "", ""), ("1.png", "a||b", "", "")],
        [("0.png", "A", "a")],
        "t.csv row 3: an empty name among its candidates",
    ),
    "no vote at all": ([("0.png", "a|b", "", "")], [("0.png", "A", "")], "v.csv: holds no vote"),
    "nobody": ([("0.png", "a|b", "", "")], [("0.png", "", "a")], "v.csv row 2: names no annotator"),
    "a path that climbs": (
        [("0.png", "a|b", "", "")],
        [("../0.png", "A", "a")],
        "v.csv row 2: ../0.png leaves the image folder",
    ),
}


@pytest.mark.parametrize("mistake", BAD)
def test_what_is_wrong_is_told_with_file_and_row(tmp_path, folder, mistake):
    rows, votes, message = BAD[mistake]
    table = write_csv(tmp_path / "t.csv", rows, ("image", "candidates", "split", "label"))
    with pytest.raises(DataError) as told:
        add_votes(table, write_csv(tmp_path / "v.csv", votes, LONG), Problems(), folder)
    assert message in str(told.value)


def test_a_folder_is_no_table(tmp_path, folder):
    votes = write_csv(tmp_path / "v.csv", [("0.png", "A", "a")], LONG)
    with pytest.raises(UsageError, match="is a folder; give a table"):
        add_votes(folder, votes, Problems())
