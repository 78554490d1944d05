"""Writes the tables of measurements in README.md and docs/ from the records, in place.

python benchmarks/tables.py

A table stands between `<!-- table NAME -->` and `<!-- end -->`; NAME is a function of
one of the tables_*.py, which read benchmarks/results/.
tests/test_figures.py asks that every page is what this would write.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import tables_accuracy  # noqa: F401  (they list their tables)
import tables_answers  # noqa: F401
import tables_features  # noqa: F401
import tables_ranks  # noqa: F401
import tables_recipe  # noqa: F401
import tables_speed  # noqa: F401
from tables_common import ROOT, TABLES, Rows

MARKED = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(rows: Rows) -> str:
    """The table in Markdown."""
    header, *body = rows
    lines = [header, ["---"] * len(header), *body]
    return "".join(
        "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n" for cells in lines
    )


def fill(page: str) -> str:
    """The page with its marked tables as the records have them."""
    return MARKED.sub(lambda m: m[1] + "\n" + render(TABLES[m[2]]()) + "\n" + m[3], page)


def pages() -> Iterator[Path]:
    """All that may hold figures."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))


def main() -> None:
    for path in pages():
        before = path.read_text("utf-8")
        after = fill(before)
        if after != before:
            path.write_text(after, "utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
