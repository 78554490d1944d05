"""The published tables as data: every cell of `tables.yaml`, and the recipe behind each row."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from concont.errors import DataError

# Row -> the recipe laid on a data set's own, of `config/recipes/overlays/rows.yaml`; None: none is.
RECIPES: dict[str, str | None] = {
    # Tables 1 to 3
    "ConCont": None,
    "ConCont (two-branch)": "two-branch",
    "ConCont (partial only)": "partial-only",
    "DPLL": "dpll",
    "DPLL*": "dpll-star",
    "DPLL+Controller*": "dpll-controller",
    "PiCO": "pico",
    "PiCO*": "pico-star",
    "SSPL": "sspl",
    "PARM": "parm",
    "Fully Supervised": "fully-supervised",
    # Table 4
    "w/o L_part": "wo-part",
    "w/o L_reg": "wo-reg",
    "w/o L_reg'": "wo-repr",
    "w/o L_reg and L_reg'": "wo-both",
    # Table 5
    "Adaptive": None,
    "DA": "da",
    "CPL": "cpl",
    "Vanilla": "vanilla",
    "Adaptive (soft)": "adaptive-soft",
    "DA (soft)": "da-soft",
    "Vanilla (soft)": "vanilla-soft",
    # Table 6
    "Ours": None,
    "HCPN": "hcpn",
    "HCP": "hcp",
    "SupCon": "supcon",
    "UnsupCon": "unsupcon",
    "Y_true": "y-true",
}
TABLES = ("table1", "table2", "table3", "table4", "table5", "table6")
DATA = ("cifar10", "svhn", "cifar100")
_VALUE = re.compile(r"(\d{1,2}\.\d\d)±(\d\.\d\d)")


@dataclass(frozen=True)
class Cell:
    """One published accuracy in percent; mean and std are None where the paper prints `/`.

    Fully Supervised has neither `labeled` nor `q`.
    """

    table: str
    data: str
    labeled: float | None
    q: float | None
    method: str
    mean: float | None
    std: float | None

    @property
    def recipe(self) -> str:
        """What `--recipe` takes for this row, and what a record of it says: `svhn+two-branch`."""
        row = RECIPES[self.method]
        return self.data if row is None else f"{self.data}+{row}"


@cache
def published() -> tuple[Cell, ...]:
    """Every cell of the paper's results tables, row by row."""
    return parse(resources.files("concont.paper").joinpath("tables.yaml").read_text("utf-8"))


def parse(text: str) -> tuple[Cell, ...]:
    """The cells of a text written as `tables.yaml` is; refuses what cannot be in the tables."""
    cells = tuple(cell for block in yaml.safe_load(text) for cell in _read_cells(**block))
    for cell in cells:
        _refuse_impossible(cell)
    where, count = Counter(astuple(cell)[:5] for cell in cells).most_common(1)[0]
    if count > 1:
        raise DataError(f"tables.yaml has {count} cells {where}; a cell is given once")
    return cells


def _read_cells(table: str, columns: list[list[Any]], rows: list[list[str]]) -> Iterator[Cell]:
    for method, *values in rows:
        if len(values) != len(columns):
            wanted = f"{len(values)} values for {len(columns)} columns"
            raise DataError(f"tables.yaml, {table}, row {method}: {wanted}")
        for (data, labeled, q), value in zip(columns, values, strict=True):
            yield Cell(
                table, data, labeled, q, method, *_parse_value(value, f"{table}, row {method}")
            )


def _parse_value(value: object, where: str) -> tuple[float | None, float | None]:
    if value == "/":
        return None, None
    match = _VALUE.fullmatch(str(value))
    if match is None:
        raise DataError(f"tables.yaml, {where}: {value!r} is neither as 90.46±0.16 nor /")
    return float(match[1]), float(match[2])


def _refuse_impossible(cell: Cell) -> None:
    right = {
        "table": cell.table in TABLES,
        "data": cell.data in DATA,
        "method": cell.method in RECIPES,
        "labeled": cell.labeled is None or 0 < cell.labeled <= 1,
        "q": cell.q is None or 0 <= cell.q < 1,
        "labeled and q": (cell.labeled is None) == (cell.q is None),
    }
    wrong = [name for name, fine in right.items() if not fine]
    if wrong:
        raise DataError(f"tables.yaml: {', '.join(wrong)} cannot be so in {cell}")
