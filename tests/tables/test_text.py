import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from concont.errors import DataError, UsageError
from concont.tables.problems import Problems
from concont.tables.text import COLUMNS, read_text
from image_tables import make_images, write_csv


def read(source, images=None, unlabeled=None):
    text = read_text(source, images, unlabeled, Problems())
    rows = zip(*(text.cells[name].to_pylist() for name in ("image", *COLUMNS)), strict=True)
    return text, [row[:3] + row[4:] for row in rows]  # image, candidates, label, split


def test_paths_start_from_the_table_or_from_a_given_folder(tmp_path):
    table = write_csv(tmp_path / "tables" / "t.csv", [["./x/a.png", " cat | dog "]])
    text, rows = read(table)
    assert rows == [("x/a.png", "cat | dog", "", "")]
    assert text.path(0) == tmp_path / "tables" / "x" / "a.png"
    assert text.place(0) == (table, 2)
    (tmp_path / "photos").mkdir()
    assert read(table, tmp_path / "photos")[0].path(0) == tmp_path / "photos" / "x" / "a.png"
    with pytest.raises(UsageError, match="nowhere: no such folder"):
        read(table, tmp_path / "nowhere")


def test_spaces_around_an_image_are_left_out_unless_its_file_is_called_so(tmp_path):
    make_images(tmp_path, [" odd.png", "a.png"])
    rows = [[" ./a.png ", "x"], [" odd.png", "x"], ["odd.png", "x"], ["  ", "x"], [" no.png", "x"]]
    images = [row[0] for row in read(write_csv(tmp_path / "t.csv", rows))[1]]
    assert images == ["a.png", " odd.png", "odd.png", "", "no.png"]


@pytest.mark.parametrize("header", [("image", "annotator", "label"), ("image", "Ann", "Bob")])
def test_a_file_of_votes_is_no_table_and_the_line_says_what_to_do(header, tmp_path):
    problems = Problems()
    rows = [["a.png", "ann", "cat"]]
    read_text(write_csv(tmp_path / "votes.csv", rows, header), None, None, problems)
    (kind,) = problems.kinds
    assert (kind.severity, kind.kind) == ("error", "column")
    assert "--data FOLDER --votes FILE" in kind.problems[0].message
    assert "`concont data from-votes`" in kind.problems[0].message


def test_a_table_may_name_the_annotator_beside_the_candidates(tmp_path):
    header, problems = ("image", "annotator", "candidates"), Problems()
    read_text(write_csv(tmp_path / "t.csv", [["a.png", "x", "y"]], header), None, None, problems)
    assert problems.kinds == ()


def test_a_table_of_labels_alone_has_sets_of_one(tmp_path):
    table = write_csv(tmp_path / "t.csv", [["a.png", "cat"], ["b.png", ""]], ("image", "label"))
    assert read(table)[1] == [("a.png", "cat", "cat", ""), ("b.png", "", "", "")]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_imagefolder_with_metadata(form, tmp_path):
    rows = [["a.png", "cat|dog"], ["deep/b.png", ""]]
    if form == "csv":
        write_csv(tmp_path / "metadata.csv", rows, ("file_name", "candidates"))
    else:
        columns = {"file_name": ["a.png", "deep/b.png"], "candidates": ["cat|dog", None]}
        pq.write_table(pa.table(columns), tmp_path / "metadata.parquet")
    text, found = read(tmp_path)
    assert found == [("a.png", "cat|dog", "", ""), ("deep/b.png", "", "", "")]
    assert text.path(1) == tmp_path / "deep" / "b.png"
    (tmp_path / "metadata.csv").touch()
    (tmp_path / "metadata.parquet").touch()
    with pytest.raises(DataError, match="holds both metadata.csv and metadata.parquet"):
        read(tmp_path)


def test_an_imagefolder_of_train_and_test_with_metadata_or_folders_of_classes(tmp_path):
    write_csv(
        tmp_path / "train" / "metadata.csv", [["a.png", "cat|dog"]], ("file_name", "candidates")
    )
    make_images(tmp_path / "test", ["cat/b.png", "dog/deep/c.png"])
    text, rows = read(tmp_path)
    assert rows == [
        ("cat/b.png", "cat", "cat", "test"),
        ("dog/deep/c.png", "dog", "dog", "test"),
        ("a.png", "cat|dog", "", "train"),
    ]
    assert text.place(2) == (tmp_path / "train" / "metadata.csv", 2)
    assert text.place(1) == (tmp_path / "test" / "dog" / "deep" / "c.png", None)
    (tmp_path / "validation").mkdir()
    with pytest.raises(DataError, match="validation: neither train nor test"):
        read(tmp_path)


def test_a_folder_for_each_class(tmp_path):
    make_images(tmp_path, ["train/b.png", "dog/c.png"])  # a railway's, and no split
    assert read(tmp_path)[1] == [
        ("dog/c.png", "dog", "dog", ""),
        ("train/b.png", "train", "train", ""),
    ]
    make_images(tmp_path, ["loose.png"])
    problems = Problems()
    read_text(tmp_path, None, None, problems)
    (kind,) = problems.kinds
    said = "lies in no class's folder (votes on the images of a folder are given with --votes FILE)"
    assert str(kind.problems[0]) == f"{tmp_path / 'loose.png'}: {said}"
    with pytest.raises(UsageError, match="leave out --images"):
        read(tmp_path, tmp_path)


def test_a_folder_of_images_alone_is_no_imagefolder(tmp_path):
    make_images(tmp_path, ["a.png"])
    with pytest.raises(DataError, match="metadata.parquet or a folder of .*with --votes FILE"):
        read(tmp_path)


def test_unlabelled_images_of_a_folder_follow_but_for_those_that_are_there(tmp_path):
    table = write_csv(tmp_path / "t.csv", [["photos/a.png", "x|y"]])
    make_images(tmp_path / "photos", ["a.png", "b.png", "deep/c.png"])
    os.symlink(tmp_path / "photos", tmp_path / "also")
    for folder in ("photos", "also"):
        text, rows = read(table, unlabeled=tmp_path / folder)
        assert [row[0] for row in rows] == ["photos/a.png", "b.png", "deep/c.png"]
        assert text.path(2) == tmp_path / folder / "deep" / "c.png"
        assert rows[2][1:] == ("", "", "")
        assert text.place(2)[1] is None
