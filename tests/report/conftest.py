import pytest

from browser import open_browser
from concont.report.page import render
from made_runs import BINS, make_measured, make_page_of, make_quality, make_resolution, make_run


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


@pytest.fixture
def write(tmp_path):
    def write(page, name="page.html"):
        path = tmp_path / name
        path.write_text(render(page), "utf-8")
        return path.as_uri()

    return write


@pytest.fixture
def whole(tmp_path, write):
    """The page of a run with all of its parts."""
    measured = make_measured(make_resolution(n=60), quality=make_quality(), bins=BINS)
    return write(make_page_of(make_run(tmp_path / "run"), measured))
