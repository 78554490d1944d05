"""The named data sets: where each is looked for under a root, and how its files are read."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.cache import cache_folder
from concont.data.mat import load_matlab
from concont.data.pickled_arrays import unpickle_arrays
from concont.errors import ConcontError, DataError, UsageError, printable

Arrays = dict[str, NDArray[Any]]
CIFAR_LABELS = range(100)
CIFAR10_TRAIN = tuple(f"data_batch_{n}" for n in range(1, 6))
FASHION_MNIST_FILES = (
    "train-images-idx3",
    "train-labels-idx1",
    "t10k-images-idx3",
    "t10k-labels-idx1",
)


@dataclass(frozen=True)
class NamedSource:
    """A source that has a name of its own."""

    n_train: int
    n_test: int
    shape: tuple[int, ...]
    n_classes: int
    files: tuple[str, ...]  # torchvision's layout under the root: all must be there
    read: Callable[[Path], Arrays]  # from those files
    download: Callable[[Path], None]


def default_root() -> Path:
    """`$CONCONT_DATA`, else a folder in the user's cache."""
    named = os.environ.get("CONCONT_DATA")
    return Path(named) if named else cache_folder()


def _read_cifar(root: Path, train: tuple[str, ...], test: tuple[str, ...], key: bytes) -> Arrays:
    arrays: Arrays = {}
    for split, names in (("train", train), ("test", test)):
        images, labels = [], []
        for name in names:
            content = unpickle_arrays(root / name)
            missing = [wanted.decode() for wanted in (b"data", key) if wanted not in content]
            if missing:
                raise DataError(f"{root / name}: no {' and no '.join(missing)} in it")
            images.append(_to_pixels(content[b"data"], root / name))
            labels += _to_labels(content[key], root / name)
        pixels = np.concatenate(images).transpose(0, 2, 3, 1)
        arrays[f"x_{split}"] = np.ascontiguousarray(pixels)
        arrays[f"y_{split}"] = np.array(labels, dtype=np.int64)
    return arrays


def _to_pixels(values: Any, where: Path) -> NDArray[Any]:
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.shape[1] != 3 * 32 * 32:
        raise DataError(f"{where}: data is no matrix of {3 * 32 * 32} columns")
    return values.reshape(-1, 3, 32, 32)


def _to_labels(values: Any, where: Path) -> list[int]:
    most = len(CIFAR_LABELS)
    if not isinstance(values, list) or not all(value in CIFAR_LABELS for value in values):
        raise DataError(f"{where}: its labels are no list of numbers from 0 to {most - 1}")
    return values


def _read_class_names(path: Path, key: bytes) -> Arrays:
    """CIFAR's class names, where the file that holds them is there."""
    if not path.is_file():
        return {}
    names = unpickle_arrays(path).get(key)
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise DataError(f"{path}: no list of names called {key.decode()} in it")
    return {"classes": np.array([name.decode("utf-8", "replace") for name in names])}


def _read_cifar10(root: Path) -> Arrays:
    folder = root / "cifar-10-batches-py"
    arrays = _read_cifar(folder, CIFAR10_TRAIN, ("test_batch",), b"labels")
    return arrays | _read_class_names(folder / "batches.meta", b"label_names")


def _read_cifar100(root: Path) -> Arrays:
    folder = root / "cifar-100-python"
    arrays = _read_cifar(folder, ("train",), ("test",), b"fine_labels")
    return arrays | _read_class_names(folder / "meta", b"fine_label_names")


def _read_svhn(root: Path) -> Arrays:
    arrays: Arrays = {}
    for split in ("train", "test"):
        path = root / f"{split}_32x32.mat"
        content = load_matlab(path, ("X", "y"))
        if len(content) < 2 or content["X"].ndim != 4:
            raise DataError(f"{path}: not SVHN's file: no X of four dimensions, or no y")
        arrays[f"x_{split}"] = np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2))
        arrays[f"y_{split}"] = content["y"].reshape(-1).astype(np.int64) % 10  # 10 stands for 0
    return arrays


def _read_fashion(root: Path) -> Arrays:
    from torchvision.datasets import FashionMNIST

    arrays: Arrays = {}
    for split in ("train", "test"):
        try:
            part = FashionMNIST(str(root), train=split == "train")
        except Exception as error:  # a damaged IDX file fails in many ways
            where, reason = root / "FashionMNIST", printable(error) or type(error).__name__
            raise DataError(f"{where}: not its files, or cut short ({reason})") from None
        arrays[f"x_{split}"] = part.data.numpy()
        arrays[f"y_{split}"] = part.targets.numpy().astype(np.int64)
    arrays["classes"] = np.array(FashionMNIST.classes)
    return arrays


def _make_download(kind: str) -> Callable[[Path], None]:
    def download(root: Path) -> None:
        from torchvision import datasets

        root.mkdir(parents=True, exist_ok=True)
        for train in (True, False):
            which: dict[str, Any] = {"train": train}
            if kind == "SVHN":
                which = {"split": "train" if train else "test"}
            getattr(datasets, kind)(str(root), download=True, **which)

    return download


NAMED: dict[str, NamedSource] = {
    "cifar10": NamedSource(
        n_train=50_000,
        n_test=10_000,
        shape=(32, 32, 3),
        n_classes=10,
        files=tuple(f"cifar-10-batches-py/{name}" for name in (*CIFAR10_TRAIN, "test_batch")),
        read=_read_cifar10,
        download=_make_download("CIFAR10"),
    ),
    "cifar100": NamedSource(
        n_train=50_000,
        n_test=10_000,
        shape=(32, 32, 3),
        n_classes=100,
        files=("cifar-100-python/train", "cifar-100-python/test"),
        read=_read_cifar100,
        download=_make_download("CIFAR100"),
    ),
    "svhn": NamedSource(
        n_train=73_257,
        n_test=26_032,
        shape=(32, 32, 3),
        n_classes=10,
        files=("train_32x32.mat", "test_32x32.mat"),
        read=_read_svhn,
        download=_make_download("SVHN"),
    ),
    "fashion-mnist": NamedSource(
        n_train=60_000,
        n_test=10_000,
        shape=(28, 28),
        n_classes=10,
        files=tuple(f"FashionMNIST/raw/{name}-ubyte" for name in FASHION_MNIST_FILES),
        read=_read_fashion,
        download=_make_download("FashionMNIST"),
    ),
}


def find_source(name: str, root: Path) -> Path | None:
    """What would be read under a root: `NAME.npz`, else torchvision's files, else nothing."""
    archive, files = root / f"{name}.npz", NAMED[name].files
    if archive.is_file():
        return archive
    return root / files[0] if all((root / file).is_file() for file in files) else None


def download_source(name: str, root: Path) -> None:
    """Have torchvision download a named data set, unless it is there already."""
    if name in NAMED and find_source(name, root) is None:
        try:
            NAMED[name].download(root)
        except (OSError, RuntimeError) as error:
            raise ConcontError(f"{name} could not be downloaded to {root}: {error}") from None


def require_source(name: str, root: Path) -> Path:
    """What would be read; refused with a cure where nothing is there."""
    path = find_source(name, root)
    if path is None:
        raise UsageError(
            f"{name} is not under {root}: neither {name}.npz nor {NAMED[name].files[0]}; "
            "say where it lies with --root, or let `concont train --download` fetch it"
        )
    return path


def read_source(name: str, root: Path) -> Arrays | Path:
    """A source's arrays from torchvision's files, or the path of its `.npz`."""
    path = require_source(name, root)
    return path if path.suffix == ".npz" else NAMED[name].read(root)
