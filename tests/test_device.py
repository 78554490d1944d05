import pytest
import torch

from concont.device import choose_device
from concont.errors import UsageError


@pytest.mark.parametrize("there", [True, False])
def test_auto_is_the_gpu_where_there_is_one(there, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: there)
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto") == torch.device("cuda" if there else "cpu")


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match="no CUDA device"):
        choose_device("cuda")


@pytest.mark.parametrize("name", ["tpu", "cuda:0", "", None])
def test_other_names_are_refused(name):
    with pytest.raises(UsageError, match="must be 'auto', 'cpu' or 'cuda', not"):
        choose_device(name)
