import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread):
    """Batches this small are slower on more, and far slower on a busy machine."""
