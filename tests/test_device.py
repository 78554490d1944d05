import pytest
import torch

from concont.device import choose_device
from concont.errors import UsageError


def test_the_device():
    assert choose_device("cpu") == torch.device("cpu")
    if not torch.cuda.is_available():
        assert choose_device("auto") == torch.device("cpu")
        with pytest.raises(UsageError, match="no CUDA device"):
            choose_device("cuda")
