import numpy as np
import pytest

from concont.errors import DataError
from concont.estimator.trained import KEY, Trained, read_trained, seal

DATA = {
    **{"classes": ["a", "b"], "shape": [4], "normalisation": None, "digest": "x", "n_train": 2},
    **{"sets_hash": "y", "n_partial": 2, "n_test": 0, "evaluated_on": None},
}


def test_arrays_and_values_come_back(tmp_path):
    weights = {"online.a": np.arange(3.0, dtype=np.float32), "online.n": np.array(5)}
    trained = Trained({"method": {"name": "concont"}}, DATA, weights)
    trained.write(tmp_path / "file", {"params": {"epochs": 3}}, {"labels": np.array([1, 0])})
    found, more, arrays = read_trained(tmp_path / "file")
    assert (found.settings, found.data) == (trained.settings, DATA)
    assert more == {"params": {"epochs": 3}}
    assert arrays["labels"].tolist() == [1, 0]
    for name, each in weights.items():
        assert np.array_equal(found.weights[name], each)
        assert found.weights[name].shape == each.shape


def test_a_tensor_of_another_kind_is_refused(tmp_path):
    from safetensors.numpy import save_file

    trained = Trained({}, DATA, {})
    trained.write(tmp_path / "file", {}, {})
    from safetensors import safe_open

    with safe_open(tmp_path / "file", framework="numpy") as file:
        text = file.metadata()[KEY].partition(" ")[2]
    odd = {"odd": np.zeros(2)}
    save_file(odd, tmp_path / "file", {KEY: seal(text, odd)})
    with pytest.raises(DataError, match="it holds odd"):
        read_trained(tmp_path / "file")
