"""From what is asked for to jobs: every run that a table or figure needs, once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from concont.config.resolve import resolve
from concont.errors import UsageError
from concont.paper.tables import TABLES, Cell, published
from concont.runs.settings import Settings
from concont.sweep.job import Job

STAND_IN = "digits"


@dataclass(frozen=True)
class Budget:
    """How long each run is, and how often it is repeated."""

    epochs: int | None  # None: as the recipe has it
    seeds: tuple[int, ...]
    stands_in: bool = False  # digits for every data set, one cell a row


BUDGETS = {
    "smoke": Budget(epochs=2, seeds=(1,), stands_in=True),
    "short": Budget(epochs=60, seeds=(1,)),
    "paper": Budget(epochs=None, seeds=(1, 2, 3)),
}

# Figure 1's values are in no table, and its q is not stated: 0.5 is ours.
_SHARES = tuple(
    Cell("figure1", "cifar10", share, 0.5, row, None, None)
    for row in ("ConCont", "DPLL", "PiCO")
    for share in (1.0, 0.5, 0.2, 0.1)
)
# Runs of Table 3, looked at more closely.
_CURVES = tuple(Cell("figure-pr", "cifar100", 0.4, q, "ConCont", None, None) for q in (0.05, 0.1))
TARGETS = (*TABLES, "figure1", "figure-pr", "all")
# What `reproduce next` takes first.
FIRST = ("table4", "table1", "table3", "table2", "figure-pr", "table5", "table6", "figure1")


Column = tuple[str | None, float | None, float | None]  # data, share, q; None: any
# The jobs of some cells, and the cells that each gives a seed to.
Plan = dict[Job, tuple[Cell, ...]]


def cells_of(target: str) -> tuple[Cell, ...]:
    """The cells of a table or figure, or of all."""
    if target not in TARGETS:
        raise UsageError(f"no {target!r} in the paper; there are {', '.join(TARGETS)}")
    every = (*published(), *_SHARES, *_CURVES)
    return tuple(cell for cell in every if target in ("all", cell.table))


def choose_cells(
    cells: Iterable[Cell], methods: Sequence[str] = (), only: Sequence[str] = ()
) -> tuple[Cell, ...]:
    """Those of these rows (`DPLL*`) and columns (`cifar10:0.1:0.5`, any part may be left out)."""
    left = tuple(cells)
    for name in methods:
        if all(cell.method != name for cell in left):
            rows = ", ".join(dict.fromkeys(cell.method for cell in left))
            raise UsageError(f"no row {name!r} here; there are {rows}")
    left = tuple(cell for cell in left if not methods or cell.method in methods)
    columns = [_parse_column(text) for text in only]
    for text, column in zip(only, columns, strict=True):
        if not any(_is_in(cell, column) for cell in left):
            raise UsageError(f"no cell in {text}; write data:share:q, as cifar10:0.1:0.5")
    return tuple(c for c in left if not columns or any(_is_in(c, column) for column in columns))


def plan(
    cells: Iterable[Cell], budget: Budget, seeds: Sequence[int] = (), root: str | None = None
) -> Plan:
    """The runs of these cells, seed by seed; a run that several cells share is one job."""
    wanted = _stand_ins(cells) if budget.stands_in else tuple(cells)
    jobs, filled = dict[str, Job](), dict[str, list[Cell]]()
    for seed in dict.fromkeys(seeds or budget.seeds):
        for cell in wanted:
            settings = settings_of(cell, seed, budget.epochs, root)
            job = Job(settings, _name(cell, seed))
            jobs.setdefault(job.key, job)
            filled.setdefault(job.key, []).append(cell)
    return {job: tuple(filled[key]) for key, job in jobs.items()}


def _name(cell: Cell, seed: int) -> str:
    """For people: `ConCont, cifar10, 10%, q = 0.5, seed 1`."""
    share = [] if cell.labeled is None else [f"{cell.labeled:.0%}", f"q = {cell.q}"]
    return ", ".join([cell.method, cell.data, *share, f"seed {seed}"])


@cache
def settings_of(cell: Cell, seed: int, epochs: int | None, root: str | None = None) -> Settings:
    """The complete settings of a cell's run."""
    data = {"source": cell.data, "labeled": cell.labeled, "ambiguity": cell.q, "seed": seed}
    flags: dict[str, dict[str, Any]] = {
        "data": {**data, "root": root},
        "train": {"seed": seed, "epochs": epochs},
    }
    given = {
        name: {k: v for k, v in section.items() if v is not None} for name, section in flags.items()
    }
    return resolve(given, cell.recipe)


def most_wanted(planned: Mapping[Job, Sequence[Cell]]) -> list[Job]:
    """One seed of all before the next; ConCont, its parts and the bound before the rest."""

    def rank(job: Job) -> tuple[int, bool, int]:
        cell = min(planned[job], key=lambda cell: FIRST.index(cell.table))
        core = cell.table == "table4" or cell.method in ("ConCont", "Fully Supervised")
        return job.settings.train.seed, not core, FIRST.index(cell.table)

    return sorted(planned, key=rank)


def _stand_ins(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """One cell a row, of digits with their own share and q: they prove the path, not the paper."""
    rows: dict[str, Cell] = {}
    for cell in cells:
        rows.setdefault(cell.recipe.partition("+")[2], cell)
    return tuple(Cell(c.table, STAND_IN, None, None, c.method, None, None) for c in rows.values())


def _parse_column(text: str) -> Column:
    data, share, q = ([*text.split(":"), "", ""])[:3]
    try:
        column = data or None, float(share) if share else None, float(q) if q else None
    except ValueError:
        column = None
    if column is None or text.count(":") > 2:
        raise UsageError(f"--cells {text}: write data:share:q, as cifar10:0.1:0.5")
    return column


def _is_in(cell: Cell, column: Column) -> bool:
    own = (cell.data, cell.labeled, cell.q)
    return all(want is None or want == have for want, have in zip(column, own, strict=True))
