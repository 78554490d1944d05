from pathlib import Path

import numpy as np
import pytest
import torch

from concont.errors import DataError, NonFiniteLoss
from concont.estimator.inputs import as_value_errors, holds_paths

PATHS = ["a.png", "b.png"]


@pytest.mark.parametrize(
    "X", [PATHS, tuple(PATHS), np.array(PATHS), np.array([Path("a.png")], dtype=object)]
)
def test_paths(X):
    assert holds_paths(X)


@pytest.mark.parametrize(
    "X", ["a.png", [[1.0, 2.0]], np.zeros((2, 2)), torch.zeros(2, 2), [], np.array([["a", "b"]]), 3]
)
def test_what_is_no_list_of_paths(X):
    assert not holds_paths(X)


def test_only_what_the_user_gave_becomes_a_value_error():
    with pytest.raises(ValueError, match="wrong") as caught, as_value_errors():
        raise DataError("wrong")
    assert isinstance(caught.value.__cause__, DataError)
    with pytest.raises(NonFiniteLoss), as_value_errors():
        raise NonFiniteLoss("lost")
