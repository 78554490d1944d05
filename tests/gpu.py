"""What the tests that need a GPU share."""

import numpy as np
import pytest
import torch

from concont.config.resolve import resolve
from concont.data.sources import from_arrays
from concont.runs.folder import RunFolder
from concont.training.prepare import prepare

NEEDS_GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),  # torch's own, of itself
    pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype"),
]
GPU = torch.device("cuda")


def job(config, arrays, folder="unused", model=None, **train):
    config = {**config, "train": {**config["train"], "device": "cuda", "compile": False, **train}}
    return prepare(resolve(config), RunFolder(folder), from_arrays(arrays), model)


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "concont"]


def stripes(rows, size):
    labels = np.arange(rows) % 2
    images = np.random.RandomState(0).randint(0, 60, (rows, size, size)).astype(np.uint8)
    images[labels == 1, :, size // 2 :] += 150
    return {"x_train": images, "y_train": labels}


def online_weights(ready):
    return torch.cat([p.detach().flatten() for p in ready.state.nets.online.parameters()])
