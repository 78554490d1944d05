from pathlib import Path

import numpy as np
import pytest
import torch

from concont.config.plain_values import to_plain
from concont.errors import UsageError


def test_values_of_every_kind_become_plain():
    given = {
        "train": {"epochs": np.int64(3), "compile": np.bool_(True), "seed": torch.tensor(2)},
        "optimizer": {"lr": np.float32(0.5)},
        "views": {"weak": {"crop": (0.9, np.float64(1.0))}, "sizes": np.array([1, 2])},
        "data": {"source": Path("a") / "b.npz", "labeled": None},
    }
    plain = to_plain(given)
    assert plain == {
        "train": {"epochs": 3, "compile": True, "seed": 2},
        "optimizer": {"lr": 0.5},
        "views": {"weak": {"crop": [0.9, 1.0]}, "sizes": [1, 2]},
        "data": {"source": "a/b.npz", "labeled": None},
    }
    assert type(plain["train"]["epochs"]) is int
    assert type(plain["train"]["compile"]) is bool


def test_names_with_dots_are_nested():
    given = {"train.epochs": 3, "train": {"seed": 1}, "method.trust": np.float64(0.5)}
    assert to_plain(given) == {"train": {"epochs": 3, "seed": 1}, "method": {"trust": 0.5}}
    with pytest.raises(UsageError, match="settings have names; 3 is none"):
        to_plain({3: 4})


def test_settings_that_hold_themselves_or_are_no_names_are_refused():
    own, inner = {}, []
    own["train"] = own
    inner.append(inner)
    for deep in (own, {"views": inner}, {"a." * 5000 + "b": 1}):
        with pytest.raises(UsageError, match="settings are nested more than 20 deep"):
            to_plain(deep)
    with pytest.raises(UsageError, match="settings are given by name, as a dict, and not as list"):
        to_plain([("train", 1)])
