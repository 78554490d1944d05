"""Wherever a file is read, a pickle that would run code runs none."""

import io
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import concont
from concont.classic.features import compute_features
from concont.data.candidate_file import read_candidate_sets
from concont.data.own_data import load_data
from concont.data.sources import load
from concont.errors import ConcontError
from concont.images.cache import load_images
from concont.runs.settings import Data
from concont.sweep.merge import collect_records
from pictures import save_image
from refusals import run_here


class Planted:
    """What leaves a folder behind when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def mark(tmp_path):
    """Where the folder would be; it must not be there in the end."""
    path = tmp_path / "code-ran"
    yield path
    assert not path.exists()


@pytest.fixture
def forms(mark):
    """The same as a plain pickle, as torch saves one, and among the objects of an npz or npy."""
    zipped, npz, npy = io.BytesIO(), io.BytesIO(), io.BytesIO()
    torch.save({"nets": Planted(mark), "step": 1}, zipped)
    legacy = io.BytesIO()
    torch.save(Planted(mark), legacy, _use_new_zipfile_serialization=False)
    objects = np.array([Planted(mark)], dtype=object)
    names = ("x_train", "y_train", "candidates", "labeled", "data", "hash", "classes")
    np.savez(npz, **dict.fromkeys(names, objects))
    np.save(npy, objects)
    return {
        "pickle": pickle.dumps(Planted(mark)),
        "torch": zipped.getvalue(),
        "old torch": legacy.getvalue(),
        "npz": npz.getvalue(),
        "npy": npy.getvalue(),
    }


FORMS = ("pickle", "torch", "old torch", "npz", "npy")


def test_the_planted_code_would_run(tmp_path):
    """Else the rest of this page proves nothing."""
    pickle.loads(pickle.dumps(Planted(tmp_path / "ran")))
    assert (tmp_path / "ran").is_dir()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run on images that lie in a file."""
    folder = tmp_path_factory.mktemp("run")
    x, y = np.random.RandomState(0).randint(0, 255, (24, 8, 8), np.uint8), np.arange(24) % 2
    np.savez(folder / "toy.npz", x_train=x, y_train=y, x_test=x[:4], y_test=y[:4])
    small = {"name": "small", "width": 4, "hidden": 8, "embedding": 8}
    config = {
        "data": {"source": str(folder / "toy.npz")},
        "model": small,
        "method": {"queue": 16},
        "train": {"epochs": 2, "batch_size": 12, "device": "cpu", "checkpoint_every": 0},
    }
    return concont.train(config, out=folder / "run").path


@pytest.fixture
def run(trained, tmp_path):
    """A copy of it, which may be spoilt."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("finished", [True, False], ids=["finished", "unfinished"])
def test_in_place_of_a_runs_files(form, finished, run, forms, capsys, tmp_path):
    for name in ("checkpoint.pt", "checkpoint.previous.pt", "model.safetensors", "candidates.npz"):
        (run / name).write_bytes(forms[form])
    if not finished:
        (run / "summary.json").unlink()
    image = tmp_path / "a.png"
    save_image(image, np.zeros((8, 8), np.uint8))
    words = [("train", "--resume", run), ("evaluate", run), ("predict", run, image)]
    words += [("resolve", run), ("data", "candidates", "--read", run / "candidates.npz")]
    words += [("results", "merge", run, "--folder", tmp_path / "r")]
    words += [("train", "--data", "digits", "--from", run, "--out", tmp_path / "other")]
    for each in words:
        done = run_here(capsys, *each)
        allowed = finished and each[0] in ("train", "results") and "--from" not in each
        assert done.returncode in ((0, 1, 2) if allowed else (1, 2)), each


@pytest.mark.parametrize("name", ["config.yaml", "data.json", "summary.json", "metrics.jsonl"])
@pytest.mark.parametrize("form", FORMS)
def test_in_place_of_a_runs_texts(form, name, run, forms):
    (run / name).write_bytes(forms[form])
    if name == "metrics.jsonl":
        (run / "summary.json").unlink()
    with pytest.raises((ConcontError, UnicodeDecodeError)):
        concont.load(run)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["x.npz", "x.mat", "t.csv", "t.parquet"])
def test_as_data(form, name, forms, tmp_path):
    path = tmp_path / name
    path.write_bytes(forms[form])
    with pytest.raises(ConcontError):
        load_data(Data(str(path), images=str(tmp_path) if name.startswith("t") else None))


def test_among_the_arrays_of_an_npz(mark, tmp_path):
    path, x = tmp_path / "x.npz", np.zeros((4, 8, 8), np.uint8)
    arrays = {"x_train": x, "y_train": np.arange(4) % 2, "notes": np.array([Planted(mark)])}
    np.savez(path, **arrays)
    assert len(load(str(path)).classes) == 2  # of a name that nobody asked for
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.pkl", pickle.dumps(Planted(mark)))
    assert len(load(str(path)).classes) == 2
    np.savez(path, **{**arrays, "classes": np.array([Planted(mark)] * 2)})
    with pytest.raises(ConcontError, match="Python objects, which are never read"):
        load(str(path))


@pytest.mark.parametrize("name", ["cifar-10-batches-py/data_batch_1", "cifar-100-python/train"])
def test_in_cifars_files(name, forms, tmp_path):
    folder = (tmp_path / name).parent
    folder.mkdir()
    names = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch", "train", "test"]
    for each in (*names, "batches.meta", "meta"):
        (folder / each).write_bytes(forms["pickle"])
    with pytest.raises(ConcontError, match=r"\.mkdir is not allowed"):
        load("cifar10" if "10-" in name else "cifar100", str(tmp_path))


@pytest.mark.parametrize("form", FORMS)
def test_as_a_file_of_candidate_sets_or_of_weights(form, forms, tmp_path):
    (tmp_path / "sets.npz").write_bytes(forms[form])
    with pytest.raises(ConcontError):
        read_candidate_sets(tmp_path / "sets.npz")
    (tmp_path / "w.safetensors").write_bytes(forms[form])
    config = {"data": {"source": "digits"}, "train": {"device": "cpu"}}
    model = {"name": "timm:resnet10t", "weights": str(tmp_path / "w.safetensors")}
    with pytest.raises(ConcontError):
        concont.train({**config, "model": model}, out=tmp_path / "run")


@pytest.mark.parametrize("form", FORMS)
def test_in_the_caches(form, forms, tmp_path, monkeypatch):
    monkeypatch.setenv("CONCONT_CACHE", str(tmp_path / "cache"))
    images = np.random.RandomState(1).randint(0, 255, (3, 16, 16, 1)).astype(np.uint8)
    paths = [tmp_path / f"{k}.png" for k in range(3)]
    for path, image in zip(paths, images, strict=True):
        save_image(path, image[..., 0])

    def decode():
        return load_images(paths, (16, 16), 1, "crop").pixels

    before = compute_features(images, 16, "cpu"), np.array(decode())
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} == {".npy", ".json"}
    for path in kept:
        path.write_bytes(forms[form])
    after = compute_features(images, 16, "cpu"), np.array(decode())
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["record.json", "ledger.sqlite", "record"])
def test_as_a_record_or_a_ledger(form, name, forms, tmp_path):
    (tmp_path / name).write_bytes(forms[form])
    with pytest.raises(ConcontError):
        collect_records(tmp_path / name)


def test_yaml_makes_no_objects(mark, capsys, tmp_path):
    text = f"train: !!python/object/apply:os.mkdir ['{mark}']"
    assert yaml.unsafe_load(text.replace(str(mark), str(tmp_path / "other"))) == {"train": None}
    (tmp_path / "r.yaml").write_text(text)
    for words in (("--recipe", tmp_path / "r.yaml"), ("--set", text.replace(": ", ".epochs=", 1))):
        assert run_here(capsys, "train", "--data", "digits", *words).returncode == 2
    record = tmp_path / "r.json"
    record.write_text(json.dumps({"settings": text}))
    with pytest.raises(ConcontError):
        collect_records(record)
