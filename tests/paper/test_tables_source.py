"""The data file against the paper's source, where that is at hand."""

import os
import re
from pathlib import Path

import pytest

from concont.paper.tables import Cell, published
from paper.test_tables import BOUND, COMPARED

BESIDE = Path(__file__).parents[2].parent / "shared" / "paper" / "concont.tex"
SOURCE = Path(os.environ.get("CONCONT_PAPER", BESIDE))

# How the paper's source names tables and data, and dresses its cells.
LABELS = {
    "result1": "table1",
    "result2": "table2",
    "result3": "table3",
    "ab": "table4",
    "ab_pl": "table5",
    "ab_cont": "table6",
}
NAMES = {"CIFAR-10": "cifar10", "SVHN": "svhn", "CIFAR-100": "cifar100"}
PLACE = re.compile(r"(?P<data>[A-Z]+(?:-\d+)?) \((?P<share>\d+)%(?:, q=(?P<q>[\d.]+))?\)")
PAINT = [
    (r"\\(?:top|mid|bottom)rule|\\cmidrule\(l\)\{2-6\}|\\cellcolor\{Gray\}", ""),
    (r"\\makecell\{([^{}]*?) *\\\\ *([^{}]*)\}", r"\1 \2"),
    (r"\\mathcal\{L\}_\{\\textrm\{(\w+)\}\}", r"L_\1"),
    (r"\\textbf\{([^{}]*)\}", r"\1"),
    (r"\\multirow\{\d+\}\{\*\}\{([^{}]*)\}", r"\1"),
    (r"\\multicolumn\{4\}\{c\}\{([^{}]*)\}", r"\1"),
    (r"\\([%_])", r"\1"),
    (r"\\pm", "±"),
    (r"\$", ""),
]


def lines_of(tabular):
    """The rows of a tabular as lists of plain texts."""
    for pattern, plain in PAINT:
        tabular = re.sub(pattern, plain, tabular)
    rows = [[text.strip() for text in row.split("&")] for row in tabular.split(r"\\")]
    assert not any("\\" in text for row in rows for text in row)  # all of it is understood
    return [row for row in rows if row != [""]]


def places(text):
    return [(NAMES[m["data"]], int(m["share"]) / 100, m["q"]) for m in PLACE.finditer(text)]


def value(text):
    if text == "/":
        return None, None
    mean, std = re.fullmatch(r"(\d+\.\d\d)%?±(\d+\.\d\d)%", text).groups()
    return float(mean), float(std)


def main_cells(table, head, *rows):
    """Tables 1 to 3: data and share stand before the first row of a block, q in the header."""
    ambiguities = [float(text.removeprefix("q=")) for text in head[2:]]
    for place, method, *values in rows:
        if place:
            ((data, share, _),) = places(place)
        if len(values) == 1:
            assert method == BOUND
            yield Cell(table, data, None, None, method, *value(values[0]))
            continue
        for q, text in zip(ambiguities, values, strict=True):
            yield Cell(table, data, share, q, method, *value(text))


def ablation_cells(table, head, *rows):
    """Tables 4 to 6: data, share and q all stand in the header."""
    columns, seen = [place for text in head[1:] for place in places(text)], set()
    for method, *values in rows:
        # Table 5 prints its soft row as a second Adaptive.
        name = f"{method} (soft)" if method in seen else method
        seen.add(method)
        for (data, share, q), text in zip(columns, values, strict=True):
            yield Cell(table, data, share, float(q), name, *value(text))


def printed(source):
    """All cells of all tables of the paper's source."""
    cells = []
    for text in re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", source, re.DOTALL):
        (label,) = re.findall(r"\\label\{(\w+)\}", text)
        (tabular,) = re.findall(r"\\toprule(.*)\\end\{tabular\}", text, re.DOTALL)
        kind = main_cells if label.startswith("result") else ablation_cells
        cells += kind(LABELS[label], *lines_of(tabular))
    return cells


@pytest.fixture
def source():
    if not SOURCE.is_file() and "CONCONT_PAPER" not in os.environ:
        pytest.skip("the paper's source is not beside the repository")
    return SOURCE.read_text("utf-8")


def test_every_printed_cell_is_here_and_no_other(source):
    there, here = printed(source), published()
    assert len(there) == len(here)
    assert [cell for cell in there if cell not in here] == []
    assert [cell for cell in here if cell not in there] == []


def test_a_block_spans_the_rows_that_are_here(source):
    """What `multirow` says, which the reading above passes over; the last block has the bound."""
    rows = {(c.data, c.labeled, c.method) for c in published() if c.table in COMPARED}
    blocks = re.findall(r"\\multirow\{(\d+)\}\{\*\}\{([\w-]+) \((\d+)\\%\)\}", source)
    assert len(blocks) == 6
    for i, (span, name, share) in enumerate(blocks):
        inside = [row for row in rows if row[:2] == (NAMES[name], int(share) / 100)]
        assert int(span) == len(inside) + i % 2
