"""The data file of the paper's tables: whole, as quoted, and refused where it is damaged."""

import hashlib
import re
import subprocess
import sys
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from concont.config.recipe_files import row_names
from concont.config.resolve import resolve
from concont.errors import DataError
from concont.paper.tables import RECIPES, parse, published

# The cells as they were when they last agreed with the paper's source.
DIGEST = "0349f8597e7f21b8"

MAIN = [
    *("DPLL", "DPLL*", "PiCO", "PiCO*", "SSPL", "PARM", "DPLL+Controller*"),
    *("ConCont (partial only)", "ConCont (two-branch)", "ConCont"),
]
BOUND = "Fully Supervised"
BOUNDS = {"cifar10": 94.91, "svhn": 97.35, "cifar100": 73.56}
ROWS = {
    "table1": [*MAIN, BOUND],
    "table2": [*MAIN, BOUND],
    "table3": [*MAIN, BOUND],
    "table4": ["ConCont", "w/o L_part", "w/o L_reg", "w/o L_reg'", "w/o L_reg and L_reg'"],
    "table5": [
        *("Adaptive", "DA", "CPL", "Vanilla"),
        *("Adaptive (soft)", "DA (soft)", "Vanilla (soft)"),
    ],
    "table6": ["Ours", "HCPN", "HCP", "SupCon", "UnsupCon", "w/o L_reg'", "Y_true"],
}
C10, C100 = ("cifar10", 0.1, 0.5), ("cifar100", 0.2, 0.1)
GRIDS = {
    "table1": [("cifar10", share, q) for share in (0.2, 0.1) for q in (0.1, 0.3, 0.5, 0.7)],
    "table2": [("svhn", share, q) for share in (0.2, 0.1) for q in (0.1, 0.3, 0.5, 0.7)],
    "table3": [("cifar100", share, q) for share in (0.4, 0.2) for q in (0.05, 0.1, 0.15, 0.2)],
    "table4": [C10, C100],
    "table5": [C10, C100],
    "table6": [C10, C100],
}
COUNTS = {"table1": 81, "table2": 81, "table3": 81, "table4": 10, "table5": 14, "table6": 14}
COMPARED = ("table1", "table2", "table3")


def cell(table, place, method):
    (found,) = [
        c
        for c in published()
        if (c.table, c.data, c.labeled, c.q, c.method) == (table, *place, method)
    ]
    return found


def means(table, data, share, method):
    return tuple(
        cell(table, place, method).mean for place in GRIDS[table] if place[:2] == (data, share)
    )


def test_nothing_has_changed_since_it_agreed_with_the_paper():
    text = "\n".join(sorted(map(repr, published())))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGEST


def test_every_table_is_whole():
    assert Counter(c.table for c in published()) == COUNTS
    expected = {
        (table, *place, row)
        for table, rows in ROWS.items()
        for row in rows
        for place in GRIDS[table]
        if row != BOUND
    }
    expected |= {(f"table{i + 1}", d, None, None, BOUND) for i, d in enumerate(BOUNDS)}
    assert {(c.table, c.data, c.labeled, c.q, c.method) for c in published()} == expected


def test_twenty_four_cells_of_concont():
    main = [c for c in published() if c.table in COMPARED]
    assert sum(c.method == "ConCont" for c in main) == 24


def test_only_parm_on_cifar100_is_without_a_value():
    empty = [c for c in published() if c.mean is None]
    assert {(c.table, c.method) for c in empty} == {("table3", "PARM")}
    assert len(empty) == 8
    assert all(c.std is None for c in empty)
    assert all(c.std is not None for c in published() if c not in empty)


def test_fully_supervised():
    found = {c.data: c.mean for c in published() if c.method == BOUND}
    assert found == BOUNDS


def test_rows_quoted_from_table_1():
    assert means("table1", "cifar10", 0.1, "SSPL") == (53.17, 49.75, 46.79, 44.10)
    assert means("table1", "cifar10", 0.1, "PARM") == (50.19, 47.15, 42.16, 30.69)
    assert means("table1", "cifar10", 0.1, "ConCont") == (91.23, 90.89, 90.46, 82.20)
    quoted = {
        "ConCont": (90.46, 0.16),
        "ConCont (partial only)": (76.69, 0.33),
        "DPLL+Controller*": (85.71, 0.36),
        "DPLL*": (71.24, 0.36),
        "PiCO": (71.01, 0.68),
        "PiCO*": (38.28, 2.02),
    }
    for row, both in quoted.items():
        found = cell("table1", C10, row)
        assert (found.mean, found.std) == both


def test_rows_quoted_from_table_4():
    rows = ROWS["table4"]
    assert [cell("table4", C10, row).mean for row in rows] == [90.46, 44.32, 80.62, 86.76, 70.93]
    assert [cell("table4", C100, row).mean for row in rows] == [62.85, 18.84, 55.91, 60.05, 49.42]


def test_concont_is_not_the_best_row_in_eight_cells():
    others = {}
    for table in COMPARED:
        for place in GRIDS[table]:
            best = max((cell(table, place, row) for row in MAIN), key=lambda c: c.mean or 0)
            if best.method != "ConCont":
                others[place] = (best.method, best.mean)
    assert others == {
        ("cifar10", 0.2, 0.1): ("DPLL+Controller*", 92.95),
        ("cifar10", 0.2, 0.3): ("DPLL+Controller*", 92.50),
        ("svhn", 0.2, 0.3): ("ConCont (two-branch)", 96.98),
        ("svhn", 0.2, 0.5): ("ConCont (partial only)", 95.96),
        ("svhn", 0.1, 0.1): ("ConCont (two-branch)", 96.72),
        ("cifar100", 0.4, 0.05): ("DPLL+Controller*", 70.17),
        ("cifar100", 0.4, 0.15): ("ConCont (two-branch)", 66.03),
        ("cifar100", 0.2, 0.05): ("DPLL+Controller*", 65.20),
    }


@pytest.mark.parametrize(
    ("table", "place", "ahead", "behind", "by"),
    [
        ("table1", ("cifar10", 0.1, 0.1), "ConCont", "DPLL*", 5.99),
        ("table1", ("cifar10", 0.1, 0.3), "ConCont", "DPLL*", 10.32),
        ("table1", ("cifar10", 0.1, 0.5), "ConCont", "DPLL", 16.37),
        ("table5", C10, "Adaptive", "DA", 1.38),
        ("table5", C100, "Adaptive", "DA", 1.81),
        ("table6", C10, "Ours", "HCP", 0.70),
        ("table6", C10, "Y_true", "Ours", 0.20),
        ("table6", C100, "Ours", "HCPN", 0.35),
    ],
)
def test_differences_that_the_papers_text_names(table, place, ahead, behind, by):
    found = cell(table, place, ahead).mean - cell(table, place, behind).mean
    assert found == pytest.approx(by, abs=1e-9)


def test_a_row_that_stands_in_two_tables_has_the_same_values_in_both():
    for place, table in ((C10, "table1"), (C100, "table3")):
        own = cell(table, place, "ConCont")
        for other, row in (("table4", "ConCont"), ("table5", "Adaptive"), ("table6", "Ours")):
            found = cell(other, place, row)
            assert (found.mean, found.std) == (own.mean, own.std)
        once, again = (cell(name, place, "w/o L_reg'") for name in ("table4", "table6"))
        assert (once.mean, once.std) == (again.mean, again.std)


def test_every_row_has_a_recipe_that_is_there():
    assert set(RECIPES) == {row for rows in ROWS.values() for row in rows}
    own = [row for row, recipe in RECIPES.items() if recipe is None]
    named = [recipe for recipe in RECIPES.values() if recipe is not None]
    assert own == ["ConCont", "Adaptive", "Ours"]
    assert len(set(named)) == len(named)
    assert (RECIPES["SSPL"], RECIPES["PARM"]) == ("sspl", "parm")
    assert set(named) <= set(row_names())


def test_the_page_gives_every_row_the_same_recipe():
    page = (Path(__file__).parents[2] / "docs" / "compared.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*) \|$", page.split("## ")[1], re.M)[1:]
    cells = [row.split(" | ") for row in rows]
    there = {}
    for names, recipes in [half for row in cells for half in (row[:2], row[2:])]:
        found = [None] if recipes == "the data set's own" else re.findall(r"`([\w-]+)`", recipes)
        there.update(zip(names.split(", "), found, strict=False))  # the other reading is no row
    assert there == {row: recipe for row, recipe in RECIPES.items() if row in there}
    assert set(RECIPES) - set(there) == {"Adaptive", "Ours"}


@pytest.mark.parametrize("data", BOUNDS)
def test_a_cell_names_the_recipe_that_its_record_will(data):
    for recipe, found in {c.recipe: c for c in published() if c.data == data}.items():
        assert resolve({"data": {"source": data}}, RECIPES[found.method]).recipe == recipe


def shipped():
    return resources.files("concont.paper").joinpath("tables.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("90.83±0.05", "90.83", "table1, row ConCont \\(two-branch\\): 90.83 is neither"),
        ("90.83±0.05", "190.83±0.05", "'190.83±0.05' is neither"),
        ("90.83±0.05, ", "", "row ConCont \\(two-branch\\): 3 values for 4 columns"),
        ("[HCP, ", "[HCPN, ", "2 cells \\('table6', 'cifar10', 0.1, 0.5, 'HCPN'\\)"),
        ("[HCP, ", "[HPC, ", "method cannot be so in .*HPC"),
        ("[svhn, 0.2, 0.1]", "[svhn, 20, 0.1]", "labeled cannot be so"),
        ("[svhn, 0.2, 0.1]", "[svhn, 0.2, 1.0]", "q cannot be so"),
        ("[svhn, null, null]", "[svhn, null, 0.1]", "labeled and q cannot be so"),
        ("[svhn, null, null]", "[mnist, null, null]", "data cannot be so"),
        ("table: table6", "table: table7", "table cannot be so"),
    ],
)
def test_what_cannot_be_in_the_tables_is_refused(old, new, said):
    assert old in shipped()
    with pytest.raises(DataError, match=said):
        parse(shipped().replace(old, new, 1))


def test_reading_needs_no_torch():
    ask = (
        "import sys; from concont.paper.tables import published; published();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", ask], check=False).returncode == 0
