import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from concont.errors import DataError, UsageError
from concont.tables.files import read_cells

ROWS = [["a.png", "cat|dog"], ["b.png", ""], ["c, d.png", "dog"]]


def read(path, wanted=None):
    cells = read_cells(path, wanted)
    return {name: column.to_pylist() for name, column in cells.columns.items()}, cells


@pytest.fixture
def csv(tmp_path):
    def write(content):
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


GOOD = 'image,candidates\na.png,cat|dog\nb.png,\n"c, d.png",dog\n'
FORMS = {
    "plain": GOOD,
    "a mark at the start": "\ufeff" + GOOD,
    "Windows line ends": GOOD.replace("\n", "\r\n"),
    "old Macintosh line ends": GOOD.replace("\n", "\r"),
    "no line end at the end": GOOD[:-1],
    "semicolons": "image;candidates\na.png;cat|dog\nb.png;\nc, d.png;dog\n",
    "tabs": "image\tcandidates\na.png\tcat|dog\nb.png\t\nc, d.png\tdog\n",
    "spaces in the header": GOOD.replace("image,candidates", " image , candidates "),
    "quotes": 'image,candidates\n"a.png","cat|dog"\n"b.png",""\n"c, d.png","dog"\n',
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_csv_is_the_same_table(form, csv):
    columns, cells = read(csv(FORMS[form]))
    assert cells.names == ("image", "candidates")
    assert [list(row) for row in zip(*columns.values(), strict=True)] == ROWS
    assert cells.rows.tolist() == [2, 3, 4]


def test_only_the_columns_that_are_asked_for_are_read(csv):
    columns, cells = read(csv("x,image,y\n1,a,2\n,b,\n"), ("image", "votes"))
    assert columns == {"image": ["a", "b"]}
    assert cells.names == ("x", "image", "y")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_are_counted_as_lines_whatever_lies_between(end, csv):
    text = 'image,x\n\na,1\n\n\n"b\nc",2\nd,"3 ""big"" ones"\n,\nlast,4\n\n'
    columns, cells = read(csv(text.replace("\n", end)))
    assert [name.replace("\r", "") for name in columns["image"]] == ["a", "b\nc", "d", "last"]
    assert columns["x"][2] == '3 "big" ones'
    assert cells.rows.tolist() == [3, 6, 8, 10]


def test_a_lone_quotation_mark_within_a_cell_is_a_letter(csv):
    columns, cells = read(csv('image,x\na,5" disk\nb,2\n'))
    assert columns["x"] == ['5" disk', "2"]
    assert cells.rows.tolist() == [2, 3]


def test_rows_with_too_few_or_too_many_cells_are_named(csv):
    columns, cells = read(csv("image,x\na,1\n\nb\nc,1,2\n  \nd,4\n"))
    assert columns["image"] == ["a", "d"]
    assert cells.rows.tolist() == [2, 7]
    assert cells.misfits == (
        (4, "has 1 cell, the header has 2"),
        (5, "has 3 cells, the header has 2"),
    )


@pytest.mark.parametrize("text", ["image,x\n", "image,x", "image,x\n\n\r\n"])
def test_a_header_alone_is_a_table_without_rows(text, csv):
    columns, cells = read(csv(text))
    assert columns == {"image": [], "x": []}
    assert len(cells) == 0


BAD = {
    "empty": (b"", "table.csv: the file is empty"),
    "UTF-16": ("image,x\na,1\n".encode("utf-16"), "table.csv: is in UTF-16"),
    "Latin-1": (
        "image,x\na,1\nb,Käse\n".encode("latin-1"),
        "table.csv row 3: byte 0xe4 is no UTF-8",
    ),
    "an open quote": ('image,x\na,1\nb,"2\nc,3\n', r"a quotation mark is not closed .* line 3"),
    "two columns of one name": ("image,x,x\na,1,2\n", "more than one column is called 'x'"),
    "two columns without a name": ("image,,\na,1,2\n", "more than one column has no name"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_what_is_no_table_is_refused(mistake, csv):
    content, message = BAD[mistake]
    with pytest.raises(DataError, match=message) as refused:
        read_cells(csv(content))
    assert "\n" not in str(refused.value)


def test_files_that_are_not_there_or_of_another_kind_are_refused(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        read_cells(tmp_path / "no.csv")
    with pytest.raises(UsageError, match="must end in .csv or .parquet"):
        read_cells(tmp_path / "table.xlsx")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(DataError, match="bad.parquet: cannot be read as Parquet"):
        read_cells(tmp_path / "bad.parquet")


def test_parquet_columns_of_every_sensible_type_become_text(tmp_path):
    table = pa.table(
        {
            "image": pa.array(["a", "b", None]).dictionary_encode(),
            "candidates": pa.array([["cat", "dog"], [], None]),
            "votes": pa.array([[2, 1], [], None], pa.large_list(pa.int64())),
            "whole": pa.array([3.0, None, np.nan]),
            "broken": pa.array([0.5, 1.0, None]),
            "label": pa.array([7, None, 9], pa.int8()),
            "text": pa.array(["x", "y", "z"], pa.large_string()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    columns, cells = read(tmp_path / "t.parquet")
    assert columns == {
        "image": ["a", "b", ""],
        "candidates": ["cat|dog", "", ""],
        "votes": ["2|1", "", ""],
        "whole": ["3", "", ""],
        "broken": ["0.5", "1", ""],
        "label": ["7", "", "9"],
        "text": ["x", "y", "z"],
    }
    assert cells.rows.tolist() == [1, 2, 3]


def test_a_name_with_a_bar_within_a_list_is_told_with_its_row(tmp_path):
    names = [["a", "b"], ["a|b"], None, ["c", "x|y", "d|"]]
    columns = {"image": ["0", "1", "2", "3"], "candidates": names, "more": [["|"], [], [], []]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    columns, cells = read(tmp_path / "t.parquet", ("image", "candidates"))
    assert columns == {"image": ["0", "2"], "candidates": ["a|b", ""]}
    assert cells.rows.tolist() == [1, 3]
    assert cells.misfits == (
        (2, "'a|b' in its candidates holds a |"),
        (4, "'x|y' in its candidates holds a |"),
    )


def test_a_parquet_column_that_is_no_text_is_refused(tmp_path):
    pq.write_table(pa.table({"image": [{"bytes": b"x"}]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"column image holds struct<bytes: binary>, where text,"):
        read_cells(tmp_path / "t.parquet")
    day = datetime.date(2024, 2, 3)
    pq.write_table(pa.table({"image": ["a"], "day": [day]}), tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet")[0]["day"] == ["2024-02-03"]


def test_the_apostrophe_before_a_formula_is_no_part_of_a_csv_cell(csv):
    columns, _ = read(csv("image,'=who,'x\n'-a.png,'@b|c,'d\n-1,'-1,''=e\n"))
    assert columns == {"image": ["-a.png", "-1"], "=who": ["@b|c", "'-1"], "'x": ["'d", "'=e"]}


def test_a_cell_of_parquet_is_what_it_is(tmp_path):
    pq.write_table(pa.table({"image": ["'=a.png"]}), tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet")[0] == {"image": ["'=a.png"]}


def test_text_that_is_no_utf8_is_refused_in_parquet(tmp_path):
    """Found by `make fuzz`: Parquet's text is taken at its word unless it is looked at."""
    path, text = tmp_path / "t.parquet", pa.array([b"caf\xe9.png"], pa.binary()).view(pa.string())
    pa.parquet.write_table(pa.table({"image": text}), path)
    with pytest.raises(DataError, match=r"t\.parquet: cannot be read as Parquet"):
        read_cells(path)
    pa.parquet.write_table(pa.table({"image_name": ["a.png"]}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"image_name", b"image\xff\xfename"[:10]))
    with pytest.raises(DataError, match=r"t\.parquet: cannot be read as Parquet"):
        read_cells(path)
