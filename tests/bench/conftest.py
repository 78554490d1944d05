import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    """Batches this small are slower on more, and far slower on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
