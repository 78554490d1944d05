import hypothesis
import numpy as np
import pytest
import torch

from pictures import save_image

# How long an example takes depends on the machine; what it computes does not.
hypothesis.settings.register_profile("here", deadline=None, max_examples=40)
hypothesis.settings.load_profile("here")


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def one_thread():
    """PyTorch computes on one thread, as ranks do; on more, sums round otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def toy_arrays():
    """Forty 8 x 8 grey images of two easy classes, with a test set."""
    stream = np.random.RandomState(0)
    labels = np.arange(60) % 2
    images = stream.randint(0, 60, (60, 8, 8)).astype(np.uint8)
    images[labels == 1, :, 4:] += 150
    return {
        "x_train": images[:40],
        "y_train": labels[:40],
        "x_test": images[40:],
        "y_test": labels[40:],
    }


@pytest.fixture
def toy_npz(tmp_path, toy_arrays):
    path = tmp_path / "toy.npz"
    np.savez(path, **toy_arrays)
    return path


@pytest.fixture
def toy_config():
    """Settings under which forty tiny images train in a moment."""
    return {
        "data": {"labeled": 0.5, "ambiguity": 0.3},
        "views": {
            "flip": False,
            "weak": {"crop": [0.9, 1.0]},
            "strong": {"crop": [0.8, 1.0], "operations": ["rotate", "contrast"], "draws": 1},
        },
        "model": {"name": "small", "width": 4, "hidden": 8, "embedding": 8},
        "method": {"name": "concont", "queue": 32, "momentum": 0.9},
        "optimizer": {"lr": 0.05},
        "train": {"epochs": 3, "batch_size": 16, "device": "cpu", "checkpoint_every": 0},
    }


@pytest.fixture
def save(tmp_path):
    """Save an array or an image under a name in a folder `images`; returns its path."""
    return lambda name, content, **options: save_image(
        tmp_path / "images" / name, content, **options
    )


@pytest.fixture
def uncompiled(monkeypatch):
    """A fast step that is captured and, to save time, not compiled."""
    for module in ("step", "cuda_speed"):
        monkeypatch.setattr(f"concont.training.{module}.compiled", lambda part, *rest: part)
