from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

from concont.errors import DataError, NonFiniteLoss
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


WRONG = {
    "a file that is missing": (["none.png"], None),
    "images that are floats": (np.zeros((3, 9, 9)), None),
    "a wrong size": (["none.png"], 0),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_images_that_cannot_be_read_leave_the_earlier_fit_as_it_was(wrong):
    model = BaseEstimator()
    model.n_features_in_, model.feature_names_in_ = 2, np.array(["a", "b"], dtype=object)
    before = dict(vars(model))
    with pytest.raises((DataError, ValueError)):
        read_to_fit(model, *WRONG[wrong])
    assert vars(model) == before
    read_to_fit(model, np.zeros((3, 9, 9), np.uint8), None)
    assert not vars(model)


def test_rows_tell_how_many_features_they_have():
    model = BaseEstimator()
    model.n_features_in_, model.feature_names_in_ = 2, np.array(["a", "b"], dtype=object)
    read_to_fit(model, np.zeros((3, 4)), None)
    assert vars(model) == {"n_features_in_": 4}
