"""Named sources read from small files in the layout of the real ones."""

import pickle
import struct
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from concont.data import named
from concont.data.named import NAMED, default_root, download_source, find_source, read_source
from concont.data.sources import load
from concont.errors import ConcontError, DataError, UsageError

STREAM = np.random.RandomState(0)
SMALL = {"cifar10": (100, 20), "cifar100": (30, 12), "svhn": (7, 7), "fashion-mnist": (9, 9)}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """The sources with as few images as are written here."""
    for name, (train, test) in SMALL.items():
        monkeypatch.setitem(NAMED, name, replace(NAMED[name], n_train=train, n_test=test))


def batch(rows, key):
    pixels = STREAM.randint(0, 256, (rows, 3072)).astype(np.uint8)
    return {b"data": pixels, key: [int(k) for k in np.arange(rows) % 10]}


def dump(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=4))


def write_cifar10(root):
    folder = root / "cifar-10-batches-py"
    parts = [batch(20, b"labels") for _ in range(6)]
    for name, part in zip((*named.CIFAR10_TRAIN, "test_batch"), parts, strict=True):
        dump(folder / name, part)
    dump(folder / "batches.meta", {b"label_names": [f"name{k}".encode() for k in range(10)]})
    return parts


def as_images(pixels):
    return pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def test_cifar10_is_read_from_torchvisions_layout(tmp_path):
    parts = write_cifar10(tmp_path)
    data = load("cifar10", str(tmp_path))
    expected = as_images(np.concatenate([part[b"data"] for part in parts[:5]]))
    assert np.array_equal(data.x_train, expected)
    assert np.array_equal(data.x_test, as_images(parts[5][b"data"]))
    assert data.y_train.tolist() == [k % 10 for k in range(20)] * 5
    assert data.classes[3] == "name3"


def test_the_same_content_has_the_same_digest_in_either_form(tmp_path):
    write_cifar10(tmp_path / "folder")
    one = load("cifar10", str(tmp_path / "folder"))
    (tmp_path / "archive").mkdir()
    np.savez(
        tmp_path / "archive" / "cifar10.npz",
        x_train=one.x_train,
        y_train=one.y_train.astype(np.uint8),
        x_test=one.x_test,
        y_test=one.y_test,
    )
    assert load("cifar10", str(tmp_path / "archive")).digest == one.digest


def test_a_named_data_set_of_another_size_is_refused(tmp_path, monkeypatch):
    write_cifar10(tmp_path)
    for sizes in ({"n_train": 50_000}, {"n_test": 10_000}):
        monkeypatch.setitem(NAMED, "cifar10", replace(NAMED["cifar10"], **sizes))
        with pytest.raises(DataError, match=r"cifar10 under .* has 100 .* and 20 .* be (\d+) and"):
            load("cifar10", str(tmp_path))


def test_cifar100_has_its_fine_labels(tmp_path):
    for name, rows in (("train", 30), ("test", 12)):
        part = batch(rows, b"fine_labels") | {b"coarse_labels": [0] * rows}
        dump(tmp_path / "cifar-100-python" / name, part)
    data = load("cifar100", str(tmp_path))
    assert len(data.x_train) == 30
    assert data.y_test.tolist() == [k % 10 for k in range(12)]


def test_the_label_10_of_svhn_is_0(tmp_path):
    for split in ("train", "test"):
        pixels = STREAM.randint(0, 256, (32, 32, 3, 7)).astype(np.uint8)
        labels = np.array([[10], [1], [2], [9], [10], [3], [4]], dtype=np.uint8)
        savemat(tmp_path / f"{split}_32x32.mat", {"X": pixels, "y": labels})
    data = load("svhn", str(tmp_path))
    assert data.y_train.tolist() == [0, 1, 2, 9, 0, 3, 4]
    assert np.array_equal(data.x_test[5], pixels[..., 5])


def write_idx(path, array):
    kind = {np.dtype("uint8"): 8}[array.dtype]
    header = struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + array.tobytes())


def test_fashion_mnist_is_read_from_its_idx_files(tmp_path):
    raw = tmp_path / "FashionMNIST" / "raw"
    images = STREAM.randint(0, 256, (9, 28, 28)).astype(np.uint8)
    labels = np.arange(9, dtype=np.uint8)
    for split in ("train", "t10k"):
        write_idx(raw / f"{split}-images-idx3-ubyte", images)
        write_idx(raw / f"{split}-labels-idx1-ubyte", labels)
    data = load("fashion-mnist", str(tmp_path))
    assert np.array_equal(data.x_train[..., 0], images)
    assert data.classes[1] == "Trouser"


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code ran')",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(Bomb()), "builtins.exec is not allowed"),
        (pickle.dumps([1, 2]), "not one of CIFAR's files"),
        (pickle.dumps({b"data": 1}), "no labels in it"),
        (b"", "cut short"),
        (b"\x1f\x8b\x08 a gzip file", "not one of CIFAR's files"),
    ],
    ids=["code", "a list", "no labels", "empty", "gzip"],
)
def test_a_cifar_file_that_is_none_is_refused_and_runs_nothing(tmp_path, content, message):
    write_cifar10(tmp_path)
    path = tmp_path / "cifar-10-batches-py" / "data_batch_2"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        load("cifar10", str(tmp_path))
    assert "data_batch_2" in str(caught.value)


def test_a_truncated_cifar_or_svhn_file_is_named(tmp_path):
    write_cifar10(tmp_path)
    path = tmp_path / "cifar-10-batches-py" / "test_batch"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DataError, match="test_batch: .* cut short"):
        load("cifar10", str(tmp_path))
    for split in ("train", "test"):
        (tmp_path / f"{split}_32x32.mat").write_bytes(b"MATLAB no more")
    with pytest.raises(DataError, match=r"train_32x32\.mat: not a MATLAB file"):
        load("svhn", str(tmp_path))


@pytest.mark.parametrize("name", NAMED)
def test_a_source_that_is_not_there_says_where_it_was_looked_for(name, tmp_path):
    assert find_source(name, tmp_path) is None
    with pytest.raises(
        UsageError, match=f"{name} is not under .*{name}.npz nor .*--root.*--download"
    ):
        read_source(name, tmp_path)


def test_the_root_is_the_environments_or_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CONCONT_DATA", str(tmp_path / "here"))
    assert default_root() == tmp_path / "here"
    monkeypatch.delenv("CONCONT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "concont"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cifar10", "CIFAR10"),
        ("cifar100", "CIFAR100"),
        ("svhn", "SVHN"),
        ("fashion-mnist", "FashionMNIST"),
    ],
)
def test_downloads_go_through_torchvision(name, kind, tmp_path, monkeypatch):
    from torchvision import datasets

    asked = []
    monkeypatch.setattr(datasets, kind, lambda root, **options: asked.append((root, options)))
    download_source(name, tmp_path / "new")
    splits = [{"split": "train"}, {"split": "test"}]
    both = splits if name == "svhn" else [{"train": True}, {"train": False}]
    assert asked == [(str(tmp_path / "new"), {"download": True, **which}) for which in both]

    def fails(root, **options):
        raise RuntimeError("no network")

    monkeypatch.setattr(datasets, kind, fails)
    with pytest.raises(ConcontError, match=f"{name} could not be downloaded to .*: no network"):
        download_source(name, tmp_path)
    np.savez(tmp_path / f"{name}.npz", x=1)
    download_source(name, tmp_path)  # it is there: nothing is asked for
