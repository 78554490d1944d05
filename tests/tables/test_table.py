import os
import shutil

import numpy as np
import pytest

from concont.errors import DataError
from concont.tables import table as module
from concont.tables.table import read_images_table
from image_tables import make_images, make_table, write_csv

HEADER = ("image", "candidates", "votes", "label", "split")
ROWS = [
    ["0.png", "dog|cat", "3|1", "dog", ""],
    ["1.png", "cat|10", "", "", "train"],
    ["2.png", "", "", "", ""],
    ["3.png", "", "", "cat", "test"],
    ["4.png", "9|dog", "0|2", "", ""],
    ["5.png", "9|10", "1|2", "", ""],
]


@pytest.fixture
def table(tmp_path):
    make_images(tmp_path, [row[0] for row in ROWS])
    return write_csv(tmp_path / "t.csv", ROWS, HEADER)


def test_a_table_becomes_arrays(table, tmp_path):
    found = read_images_table(table)
    assert found.classes == ("9", "10", "cat", "dog")
    assert found.candidates.dtype == np.bool_
    assert found.candidates.astype(int).tolist() == [
        [0, 0, 1, 1],
        [0, 1, 1, 0],
        [1, 1, 1, 1],
        [1, 1, 1, 1],
        [1, 0, 0, 1],
        [1, 1, 0, 0],
    ]
    votes = found.votes.dense(np.arange(6))
    assert votes.dtype == np.int32
    assert votes.tolist() == [
        [0, 0, 1, 3],
        [0, 0, 0, 0],  # a set that nobody counted
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 2],
        [1, 2, 0, 0],
    ]
    assert found.votes.dense(np.array([5, 2, 0, 5])).tolist() == votes[[5, 2, 0, 5]].tolist()
    assert found.votes.dense(np.array([], np.int64)).shape == (0, 4)
    assert len(found.votes.row) == 6  # as many as there are candidates that were counted
    assert found.labels.tolist() == [3, -1, -1, 2, -1, -1]
    assert found.is_test.tolist() == [False, False, False, True, False, False]
    assert found.paths() == [str(tmp_path / f"{k}.png") for k in range(6)]
    assert found.paths(np.array([4, 1])) == [str(tmp_path / "4.png"), str(tmp_path / "1.png")]
    assert found.describe_row(3) == f"{table} row 5"
    assert len(found) == 6


def test_without_a_column_of_votes_there_are_none(tmp_path):
    assert read_images_table(make_table(tmp_path)).votes is None


def test_unlabelled_images_lie_in_a_folder_of_their_own(table, tmp_path):
    make_images(tmp_path / "more", ["x.png"], start=9)
    found = read_images_table(table, unlabeled=tmp_path / "more")
    assert found.candidates[6].all()
    assert not found.votes.dense(np.array([6])).any()
    assert found.labels[6] == -1
    assert found.paths()[6] == str(tmp_path / "more" / "x.png") == found.describe_row(6)


def test_images_are_called_as_a_row_of_the_table_would_name_them(tmp_path):
    table = make_table(tmp_path / "photos", n=2)
    for folder in (tmp_path / "photos" / "more", tmp_path / "elsewhere"):
        make_images(folder, ["x.png"], start=9)
        found = read_images_table(table, unlabeled=folder)
        name = "more/x.png" if folder.name == "more" else str(folder / "x.png")  # outside: in full
        assert found.names(np.array([2, 0])) == [name, "0.png"]


def test_an_imagefolder_of_classes(tmp_path):
    make_images(tmp_path, ["train/cat/a.png", "train/dog/b.png", "test/dog/c.png"])
    found = read_images_table(tmp_path)
    assert found.classes == ("cat", "dog")
    assert found.labels.tolist() == [1, 0, 1]
    assert found.is_test.tolist() == [True, False, False]
    assert found.candidates.tolist()[1:] == [[True, False], [False, True]]
    assert all(os.path.isfile(path) for path in found.paths())


def test_the_first_errors_are_told_in_one_line_and_the_others_counted(tmp_path):
    changes = {5: ["../a.png", "a"], **{k: [f"no{k}.png", "a"] for k in range(7, 12)}}
    table = make_table(tmp_path, changes)
    with pytest.raises(DataError) as refused:
        read_images_table(table)
    said = str(refused.value)
    assert said.startswith(f"{table} row 5: ../a.png leaves the image folder")
    assert f"{table} row 8: there is no file no8.png" in said
    assert said.endswith(
        "; and 3 more errors, which `concont data check` lists; "
        "the images may lie elsewhere: --images FOLDER says where"
    )
    with pytest.raises(DataError) as refused:
        read_images_table(table, tmp_path)
    assert str(refused.value).endswith("`concont data check` lists")
    assert "\n" not in said


@pytest.mark.parametrize("name", ["out.png", "out/s.png", "../secret/s.png", "{}/secret/s.png"])
def test_a_path_that_leaves_the_folder_is_refused(name, tmp_path):
    make_images(tmp_path / "secret", ["s.png"], start=77)
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "out.png").symlink_to(tmp_path / "secret" / "s.png")
    (photos / "out").symlink_to(tmp_path / "secret")
    table = make_table(photos, {6: [name.format(tmp_path), "a"]})
    with pytest.raises(DataError, match=r"table.csv row 6: .* leaves the image folder"):
        read_images_table(table)


def test_warnings_do_not_stop_it(tmp_path, caplog):
    changes = {5: ["0.png", "a|b"]}
    assert len(read_images_table(make_table(tmp_path, changes))) == 12
    assert "table.csv: 1 warning; `concont data check` lists it\n" in caplog.text


def test_votes_for_sets_of_many_sizes_are_those_of_a_plain_loop():
    stream = np.random.RandomState(0)
    votes = {
        (r, c): stream.randint(0, 9) for r in range(30) for c in range(7) if stream.rand() < 0.3
    }
    row, label = np.array(list(votes)).T
    sparse = module.RowVotes(row, label, np.array(list(votes.values())), 7)
    rows = stream.randint(0, 40, 50)
    expected = [[votes.get((r, c), 0) for c in range(7)] for r in rows]
    assert sparse.dense(rows).tolist() == expected


@pytest.mark.parametrize(
    "given", ["\u00e4/\u00f6.png", "a\u0308/o\u0308.png", " a\u0308/\u00f6.png "]
)
def test_a_file_is_found_whatever_the_unicode_form_of_its_name(given, tmp_path):
    real = "a\u0308/\u00f6.png"  # one as macOS writes it
    table = make_table(tmp_path, {4: [given, "a\u0308|b"], 5: ["3.png", "\u00e4|b"]})
    make_images(tmp_path, [real], start=70)
    found = read_images_table(table, unlabeled=tmp_path)
    assert found.paths()[2] == str(tmp_path / real)
    assert os.path.isfile(found.paths()[2])
    assert found.classes == ("a", "b", "c", "\u00e4")
    assert found.images.to_pylist().count(real) == 1  # not among the unlabelled ones again


def test_damage_that_only_decoding_would_show_is_not_looked_for(tmp_path):
    table = make_table(tmp_path)
    (tmp_path / "3.png").write_bytes(b"")
    shutil.copy(tmp_path / "0.png", tmp_path / "1.png")
    assert len(read_images_table(table)) == 12


def test_names_that_cannot_be_classes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 30)
    with pytest.raises(DataError, match="3 classes of 12 rows are too many"):
        read_images_table(make_table(tmp_path))
