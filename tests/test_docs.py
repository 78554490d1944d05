"""The pages of docs/ hold together, and the site is built from them and the code."""

import doctest
import re
from pathlib import Path

import pytest

import concont

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target


PUBLIC = [name for name in concont.__all__ if name not in ("__version__", "classic", "Run")]
NAMES = {**{name: getattr(concont, name) for name in PUBLIC}, "gist": concont.classic.gist}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    item = NAMES[name]
    (found,) = (t for t in doctest.DocTestFinder(recurse=False).find(item, name) if t.examples)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(found, out=said.append).failed == 0, "".join(said)
