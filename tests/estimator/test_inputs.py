from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from concont import PartialLabelClassifier
from concont.errors import DataError, NonFiniteLoss, UsageError
from concont.estimator.inputs import as_value_errors, holds_paths, read_to_fit

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


@pytest.mark.parametrize("size", [0, -3, "8", 2.5])
def test_a_size_of_images_that_is_none_is_refused(tmp_path, size):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(UsageError, match="image_size is .* it must be a number of pixels"):
        read_to_fit(PartialLabelClassifier(), [tmp_path / "a.png"], size)
