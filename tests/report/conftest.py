import pytest

from browser import open_browser


@pytest.fixture(scope="module")
def browser():
    with open_browser() as visit:
        yield visit


@pytest.fixture
def visit(browser):
    """Opens pages that are closed when the test ends."""
    pages = []

    def visit(**options):
        seen = browser(**options)
        pages.append(seen.page)
        return seen

    yield visit
    for page in pages:
        page.close()
