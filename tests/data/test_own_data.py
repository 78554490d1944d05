"""Data of a user's own: looked at before it is loaded, and loaded."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from concont.config.resolve import resolve
from concont.data.own_data import (
    OwnData,
    choose_size,
    holds_image_files,
    load_data,
    measure_data,
    open_table,
)
from concont.data.problem import make_problem
from concont.errors import DataError, UsageError
from concont.images.files import read_image
from concont.runs.settings import Data
from image_tables import TWO_COLUMNS, make_images, make_odd_table, make_table, write_csv

FULL = ("image", "candidates", "votes", "label", "split")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CONCONT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table(tmp_path):
    """Six images: four to train on, one of them unlabelled, and two to test."""
    rows = [
        ("0.png", "a|b", "2|1", "", ""),
        ("4.png", "", "", "b", "test"),
        ("1.png", "b", "3", "b", "train"),
        ("2.png", "", "", "", ""),
        ("5.png", "", "", "a", "test"),
        ("3.png", "c|a", "1|1", "", ""),
    ]
    make_images(tmp_path / "photos", [row[0] for row in rows])
    return write_csv(tmp_path / "table.csv", rows, FULL)


def settings(table, **more):
    return Data(str(table), images=str(table.parent / "photos"), **more)


def test_a_table_becomes_pixels_sets_and_a_test_set(table):
    data = load_data(settings(table, image_size=12, fit="pad"))
    names = ["0.png", "1.png", "2.png", "3.png", "4.png", "5.png"]  # those to test come last
    pixels = [read_image(table.parent / "photos" / n, (12, 12), 3, "pad") for n in names]
    assert np.array_equal(np.concatenate([data.x_train, data.x_test]), np.stack(pixels))
    assert data.classes == ("a", "b", "c")
    sets = [[1, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1]]
    assert data.candidates.tolist() == np.array(sets, bool).tolist()
    assert data.y_train.tolist() == [-1, 1, -1, -1]
    assert data.y_test.tolist() == [1, 0]
    assert data.fit == "pad"
    assert data.names == ("0.png", "1.png", "2.png", "3.png")
    problem = make_problem(data, resolve({}, "paper").data)
    assert problem.n_partial == 3
    assert (problem.evaluated_on, problem.fit) == ("test", "pad")
    assert problem.names == data.names
    some = make_problem(data, replace(resolve({}, "paper").data, unlabeled=False))
    assert some.names == ("0.png", "1.png", "3.png")


def test_the_identity_of_the_data_is_its_content_wherever_it_lies(table, tmp_path):
    first = load_data(settings(table, image_size=8)).digest
    other = tmp_path / "elsewhere"
    (table.parent / "photos").rename(other)
    moved = load_data(Data(str(table), images=str(other), image_size=8))
    assert moved.digest == first
    assert load_data(Data(str(table), images=str(other), image_size=9)).digest != first
    stretched = Data(str(table), images=str(other), image_size=8, fit="stretch")
    assert load_data(stretched).digest != first
    text = table.read_text()
    for before, after in (("c|a,1", "c|b,1"), ("test", "train"), ("5.png,,,a", "5.png,,,c")):
        assert before in text
        table.write_text(text.replace(before, after, 1))
        assert load_data(Data(str(table), images=str(other), image_size=8)).digest != first
    table.write_text(text)
    Image.fromarray(np.zeros((6, 8, 3), np.uint8)).save(other / "2.png")
    assert load_data(Data(str(table), images=str(other), image_size=8)).digest != first


def test_reading_is_reported_and_done_once(table):
    heard = []
    load_data(settings(table, image_size=8), lambda done, total: heard.append((done, total)))
    assert heard[-1] == (6, 6)
    heard.clear()
    load_data(settings(table, image_size=8), lambda done, total: heard.append((done, total)))
    assert heard == []


def test_the_size_is_the_images_own_but_never_large(tmp_path, table):
    assert measure_data(settings(table)) == OwnData(
        4, (8, 8, 3), True
    )  # 6 x 8 pixels, and at least 8
    assert measure_data(settings(table, image_size=40)) == OwnData(4, (40, 40, 3), True)
    assert load_data(settings(table)).x_train.shape == (4, 8, 8, 3)
    sizes = {"tall.png": (50, 30), "wide.png": (40, 70), "large.png": (900, 800)}
    for name, (width, height) in sizes.items():
        Image.new("RGB", (width, height)).save(tmp_path / "photos" / name)
    write_csv(table, [("tall.png", "a"), ("wide.png", "b")])
    assert choose_size(open_table(settings(table))) == 35
    tests = [("large.png", "", "a", "test"), ("0.png", "", "b", "test")]  # which do not count
    rows = [("tall.png", "a", "", ""), ("wide.png", "b", "", ""), *tests]
    write_csv(table, rows, ("image", "candidates", "label", "split"))
    assert choose_size(open_table(settings(table))) == 35
    write_csv(table, [("large.png", "a"), ("wide.png", "b")])
    assert choose_size(open_table(settings(table))) == 64
    (tmp_path / "photos" / "wide.png").write_bytes(b"no image")
    assert choose_size(open_table(settings(table))) == 64


def test_a_copy_of_a_test_image_is_not_trained_on(table, tmp_path):
    shutil.copy(tmp_path / "photos" / "5.png", tmp_path / "photos" / "3.png")
    with pytest.raises(DataError) as refused:
        load_data(settings(table, image_size=8))
    assert str(refused.value) == (
        f"{table} row 6: 5.png is to be tested on, and has the same content as {table} row 7: "
        "3.png, which is to be trained on"
    )


def test_a_table_that_is_measured_and_then_loaded_is_read_once(table, caplog):
    table.write_text(table.read_text() + "0.png,a|b,2|1,,\n")  # a row twice is a warning
    for _ in range(2):
        resolve({"data": vars(settings(table))})
    load_data(settings(table, image_size=8))
    assert caplog.text.count("`concont data check` lists them") == 1


def test_votes_on_a_folder_are_the_table_that_from_votes_writes(tmp_path):
    make_images(tmp_path / "photos", ["0.png", "1.png", "2.png"])
    make_images(tmp_path / "more", ["3.png"], start=3)
    rows = [("0.png", "ann", "x"), ("0.png", "bob", "y"), ("1.png", "ann", "y")]
    votes = write_csv(tmp_path / "votes.csv", rows, ("image", "annotator", "label"))
    data = Data(str(tmp_path / "photos"), votes=str(votes), unlabeled_images=str(tmp_path / "more"))
    table = open_table(data)
    assert table.candidates.tolist() == [[True, True], [False, True], [True, True], [True, True]]
    assert table.votes.dense(np.arange(4)).tolist() == [[1, 1], [0, 1], [0, 0], [0, 0]]
    assert [path.rsplit("/", 2)[-2:] for path in table.paths()][-1] == ["more", "3.png"]
    assert load_data(data).x_train.shape == (4, 8, 8, 3)
    written = write_csv(
        tmp_path / "table.csv",
        [("0.png", "x|y", "1|1"), ("1.png", "y", "1"), ("2.png", "", "")],
        ("image", "candidates", "votes"),
    )
    same = Data(str(written), images=str(tmp_path / "photos"))
    alone = Data(str(tmp_path / "photos"), votes=str(votes))
    assert load_data(same).digest == load_data(alone).digest
    for wrong, message in (
        (Data(str(written), votes=str(votes)), "--votes go with a folder of images"),
        (
            Data(str(tmp_path / "photos"), votes=str(votes), images=str(tmp_path)),
            "leave out --images",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            open_table(wrong)


def test_what_only_image_files_have_is_refused_of_arrays(toy_npz):
    wrong = {"images": "photos", "votes": "v.csv", "image_size": 8, "fit": "pad"}
    for name, value in wrong.items():
        with pytest.raises(UsageError, match=f"data.{name} goes with a table or a folder"):
            load_data(Data(str(toy_npz), **{name: value}))
    assert load_data(Data(str(toy_npz))).fit is None


def test_a_folder_that_is_not_there_is_told(tmp_path):
    missing = Data(source=str(tmp_path / "photos"), votes="votes.csv")
    with pytest.raises(UsageError, match="photos' is neither: there is no such file or folder"):
        load_data(missing)
    with pytest.raises(UsageError, match="'digits' is neither$"):
        load_data(replace(missing, source="digits"))


def test_a_name_is_never_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    (tmp_path / "photos").mkdir()
    assert not holds_image_files("digits")
    assert holds_image_files("photos")
    assert resolve({"data": {"source": "digits"}}).data.source == "digits"


def test_arrays_in_a_file_are_measured_without_reading_them(tmp_path, toy_npz):
    assert measure_data(Data(str(toy_npz))) == OwnData(40, (8, 8), False)
    cut = tmp_path / "cut.npz"
    cut.write_bytes(toy_npz.read_bytes()[:100])
    assert measure_data(Data(str(cut))) is None
    assert measure_data(Data("cifar10")) is None


def test_features_in_a_file_are_measured_without_reading_them(tmp_path):
    np.savez(tmp_path / "rows.npz", x_train=np.zeros((5, 3)))
    savemat(tmp_path / "rows.mat", {"data": np.zeros((6, 4))})
    for name, rows, size in (("rows.npz", 5, 3), ("rows.mat", 6, 4)):
        found = measure_data(Data(str(tmp_path / name)))
        assert found == OwnData(rows, (size,))
        assert found.of_features
    assert not OwnData(5, (8, 8, 1)).of_features
    savemat(tmp_path / "other.mat", {"rows": np.zeros((6, 4))})
    (tmp_path / "empty.mat").touch()
    for name in ("other.mat", "empty.mat", "none.mat"):
        assert measure_data(Data(str(tmp_path / name))) is None


ERRORS = [name for name, (_, severity, *_) in TWO_COLUMNS.items() if severity == "error"]


@pytest.mark.parametrize("problem", ERRORS)
def test_an_error_of_the_table_stops_the_loading_with_file_and_row(problem, tmp_path):
    table = make_odd_table(tmp_path, problem)
    with pytest.raises(DataError) as refused:
        load_data(Data(str(table), image_size=8))
    message = str(refused.value)
    assert f"{table} row 5" in message
    assert "\n" not in message
    kept = [path.name for path in (tmp_path / "cache").rglob("*.npy")]
    assert all(name.endswith(".part.npy") for name in kept)  # what could be decoded


def test_a_warning_does_not(tmp_path, caplog):
    table = make_table(tmp_path / "photos", {5: ["0.png", "b|a"]})
    assert len(load_data(Data(str(table), image_size=8)).x_train) == 12
    assert "1 warning; `concont data check` lists it" in caplog.text
