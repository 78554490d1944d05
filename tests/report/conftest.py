import pytest

from browser import open_browser


@pytest.fixture(scope="module")
def visit():
    with open_browser() as visit:
        yield visit
