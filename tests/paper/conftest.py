import pytest

from sweeps import made_up_record


@pytest.fixture
def made_up():
    return made_up_record
