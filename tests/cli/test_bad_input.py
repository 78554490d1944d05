"""Every bad input to the command: a clear line, exit code 1 or 2, and nothing written."""

import pickle

import numpy as np
import pytest

from processes import concont
from refusals import assert_refused, run_here

LABELS = np.arange(40) % 2


def sets(empty=None):
    made = np.ones((40, 2), dtype=bool)
    if empty is not None:
        made[empty] = False
    return made


# What is changed in a good file, and what the message must say.
BAD_ARRAYS = {
    "an empty candidate set": ({"candidates": sets(empty=17)}, "candidates row 17 is empty"),
    "a label out of range": (
        {"candidates": sets(), "y_train": np.where(np.arange(40) == 7, 5, LABELS)},
        "y_train row 7 is 5; it must be 0 to 1",
    ),
    "different lengths": ({"y_train": LABELS[:39]}, "y_train has 39 rows, its images 40"),
    "wrong dtype": ({"x_train": np.zeros((40, 8, 8))}, "x_train is float64"),
    "wrong shape": ({"x_train": np.zeros((40, 8, 8, 2), np.uint8)}, "(40, 8, 8, 2)"),
    "NaN": ({"y_train": np.where(LABELS == 0, np.nan, 1.0)}, "y_train has NaN in row 0"),
    "one class": ({"y_train": LABELS * 0, "y_test": np.zeros(20, int)}, "1 class"),
}


@pytest.mark.parametrize("mistake", BAD_ARRAYS)
def test_bad_arrays_are_refused_in_one_line(mistake, tmp_path, toy_arrays, monkeypatch, capsys):
    changes, message = BAD_ARRAYS[mistake]
    np.savez(tmp_path / "bad.npz", **{**toy_arrays, **changes})
    monkeypatch.chdir(tmp_path)
    refused = run_here(capsys, "train", "--data", "bad.npz")
    assert_refused(refused, 1, message, tmp_path)
    assert "bad.npz" in refused.stderr


@pytest.mark.slow
def test_a_process_refuses_bad_arrays_in_the_same_way(tmp_path, toy_arrays):
    changes, message = BAD_ARRAYS["an empty candidate set"]
    np.savez(tmp_path / "bad.npz", **{**toy_arrays, **changes})
    done = concont("train", "--data", "bad.npz", cwd=tmp_path)
    assert_refused(done, 1, message, tmp_path)
    assert "bad.npz" in done.stderr


BAD_FILES = {
    "empty": (lambda good: b"", "bad.npz: the file is empty"),
    "not an npz": (lambda good: b"hello", "bad.npz: not an .npz file"),
    "truncated": (lambda good: good[: len(good) // 2], "bad.npz: not an .npz file, or cut short"),
}


@pytest.mark.parametrize("mistake", BAD_FILES)
def test_bad_files_are_refused_in_one_line(mistake, tmp_path, toy_npz, monkeypatch, capsys):
    spoil, message = BAD_FILES[mistake]
    (tmp_path / "bad.npz").write_bytes(spoil(toy_npz.read_bytes()))
    monkeypatch.chdir(tmp_path)
    assert_refused(run_here(capsys, "train", "--data", "bad.npz"), 1, message, tmp_path)


def test_objects_are_never_unpickled(tmp_path, monkeypatch, capsys):
    bomb = np.array([{"x": 1}], dtype=object)
    np.savez(tmp_path / "bad.npz", x_train=bomb, y_train=LABELS)
    monkeypatch.chdir(tmp_path)
    refused = run_here(capsys, "train", "--data", "bad.npz")
    assert_refused(refused, 1, "bad.npz: holds Python objects, which are never read", tmp_path)


def test_a_share_outside_its_range_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    refused = run_here(capsys, "train", "--data", "digits", "--ambiguity", "1")
    assert_refused(refused, 2, "data.ambiguity is 1", tmp_path)


@pytest.mark.slow
def test_a_missing_folder_is_refused(tmp_path):
    done = concont("train", "--data", "cifar10", "--root", "nowhere", cwd=tmp_path)
    assert_refused(done, 2, "cifar10 is not under", tmp_path)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code ran')",))


def test_a_pickle_with_code_in_it_is_refused_and_runs_nothing(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name in ("train", "test"):
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    monkeypatch.chdir(tmp_path)
    refused = run_here(capsys, "train", "--data", "cifar100", "--root", ".")
    assert_refused(refused, 1, "builtins.exec is not allowed", tmp_path)


@pytest.mark.slow
def test_a_true_label_outside_its_set_is_a_warning_with_the_count(tmp_path, toy_arrays):
    wrong = sets()
    wrong[[3, 5], toy_arrays["y_train"][[3, 5]]] = False
    np.savez(tmp_path / "odd.npz", **toy_arrays, candidates=wrong)
    small = ("--set", "model.name=small", "--set", "model.width=4", "--epochs", "1")
    done = concont("train", "--data", "odd.npz", *small, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 of 40 rows have a true label outside their own candidate set" in done.stderr
