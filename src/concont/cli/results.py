"""`concont results`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concont.cli.app import app, tell
from concont.cli.table import Column, print_table
from concont.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from concont.paper.tables import Cell
    from concont.sweep.ledger import Ledger

Row = dict[str, Any]
FOLDER = Path("reproduction")
Folder = Annotated[
    Path, typer.Option(help="The folder of the sweep: its ledger, runs and results.")
]
group = typer.Typer(invoke_without_command=True, no_args_is_help=False)
app.add_typer(group, name="results")


@group.callback()
def results(
    context: typer.Context,
    against: Annotated[
        str | None, typer.Option(help="paper: its tables with ours beside them.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Mean, spread and number by these: method.threshold,train.epochs.")
    ] = "",
    table: Annotated[str | None, typer.Option(help="Of the paper: table1 to figure-pr.")] = None,
    method: Annotated[str | None, typer.Option(help="Only this method, by its name.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Only this recipe: cifar10+dpll.")] = None,
    data: Annotated[str | None, typer.Option(help="Only this data set.")] = None,
    seed: Annotated[int | None, typer.Option(help="Only this seed.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Only runs of this length.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that is known, as JSON.")] = False,
    figures: Annotated[
        Path | None, typer.Option(help="Draw the figures that these runs give, into this folder.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace figures that are there.")
    ] = False,
    folder: Folder = FOLDER,
) -> None:
    """Show finished runs, one by one or grouped, or the paper's tables with ours beside them."""
    if context.invoked_subcommand is not None:
        return
    from concont.sweep.folder import SweepFolder
    from concont.sweep.ledger import Ledger

    _refuse_wrong_options(against, by, table, figures is not None, as_json)
    ledger = Ledger(SweepFolder(folder).ledger)
    _refuse_unknown_method(method, ledger)
    filters = {"method": method, "recipe": recipe, "data": data, "seed": seed, "epochs": epochs}
    if figures is not None:
        _draw_every_figure(ledger, figures, overwrite, filters)
    elif by:
        _show_groups(ledger.records(**filters), by, as_json)
    elif against is None:
        _show_records(ledger.records(**filters), as_json)
    else:
        from concont.paper.plan import cells_of

        cells = [c for c in cells_of(table or "all") if data in (None, c.data)]
        if not cells:
            raise UsageError(f"--data {data}: the paper has nothing of it there")
        show_cells(cells, ledger, as_json, with_own_rows=True, **filters)


def _refuse_unknown_method(method: str | None, ledger: "Ledger") -> None:
    """A method is one of the package, or one of the user's own that has a run here."""
    from concont.config.registry import registered_names

    if method is None or method in registered_names():
        return
    known = dict.fromkeys([*registered_names(), *(r["method"] for r in ledger.records())])
    if method not in known:
        raise UsageError(f"no method {method!r}; there are {', '.join(known)}")


def _refuse_wrong_options(
    against: str | None, by: str, table: str | None, figures: bool, json_: bool
) -> None:
    if figures and (json_ or against is not None or by):
        raise UsageError("--figures draws; leave out --json, --against and --by")
    if by and against is not None:
        raise UsageError("--by groups the runs, --against compares them; leave one of them out")
    if against is None and table is not None:
        raise UsageError("--table goes with --against paper")
    if against not in (None, "paper"):
        raise UsageError(f"--against {against}: there is only the paper")


@group.command()
def merge(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Records (.json), ledgers, run folders, sweeps, or folders of them."),
    ],
    folder: Folder = FOLDER,
) -> None:
    """Take results from elsewhere into the ledger; those that are there already are left out."""
    from concont.sweep.folder import SweepFolder
    from concont.sweep.ledger import Ledger
    from concont.sweep.merge import collect_records, refuse_false_claims

    ledger = Ledger(SweepFolder(folder).ledger)
    records = [record for source in sources for record in collect_records(source)]
    refuse_false_claims(records, ledger.keys())
    added = ledger.add(records)
    typer.echo(f"{added} added, {len(records) - added} known already")


@group.command()
def forget(
    runs: Annotated[
        list[str], typer.Argument(help="Hashes as `concont results` shows them.", metavar="HASH")
    ],
    why: Annotated[str, typer.Option(help="Kept beside the record.")] = "",
    folder: Folder = FOLDER,
) -> None:
    """Take runs out of the results; their records are kept in the ledger as forgotten."""
    from concont.display import percent
    from concont.sweep.folder import SweepFolder
    from concont.sweep.ledger import Ledger

    sweep = SweepFolder(folder)
    for key in runs:
        record = Ledger(sweep.ledger).forget(key, why)
        what = "a damaged row"
        if record is not None:
            found = percent(record["accuracy_last"])
            what = f"{record['recipe']}, seed {record['seed']}, {found}"
        tell(f"forgotten: {key}, {what}")
        if sweep.holds_result(key):
            tell(f"{sweep.result(key)} still holds it, and the next sweep takes it up again")


def show_cells(
    cells: "Sequence[Cell]",
    ledger: "Ledger",
    as_json: bool = False,
    with_own_rows: bool = False,
    **filters: Any,
) -> None:
    """The paper's cells with ours beside them; blank where nothing was run.

    with_own_rows: and runs of recipes that are not the paper's, in rows of their own.
    """
    from concont.paper.comparison import compare, own_rows
    from concont.paper.plan import STAND_IN

    records = ledger.records(**filters)
    rows = compare(cells, records) + (own_rows(cells, records) if with_own_rows else [])
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    names = ("row", "data", "share", "q", "paper", "ours", "gap", "seeds", "epochs")
    columns = [Column(name, name in ("row", "data")) for name in names]
    for name in dict.fromkeys(row["table"] for row in rows):
        own = [row for row in rows if row["table"] == name]
        digits = any(row["data"] == STAND_IN for row in own)
        title = f"{name}, digits standing in: not the paper's data" if digits else name
        print_table(title, columns, [_format_row(row) for row in own])


def show_drawn(
    tables: "Iterable[str]", ledger: "Ledger", folder: Path, overwrite: bool, **filters: Any
) -> int:
    """Draw the figures of these tables, as far as the ledger has them; how many files."""
    from concont.paper.figures import FIGURES, draw

    wanted, drawn, records = set(tables), 0, ledger.records(**filters)
    for name, figure in FIGURES.items():
        if figure.target in wanted:
            for path in draw(name, records, folder, overwrite):
                tell(f"drawn: {path}")
                drawn += 1
    return drawn


def _draw_every_figure(
    ledger: "Ledger", folder: Path, overwrite: bool, filters: dict[str, Any]
) -> None:
    from concont.paper.plan import TARGETS

    if not show_drawn(TARGETS, ledger, folder, overwrite, **filters):
        tell(f"nothing to draw in {ledger.path}", err=True)


def _format_row(row: Row) -> list[str]:
    share = "" if row["labeled"] is None else f"{row['labeled']:.0%}"
    q = "" if row["q"] is None else f"{row['q']:g}"
    paper, ours = (_format_spread(row[f"{w}_mean"], row[f"{w}_std"]) for w in ("paper", "ours"))
    both = row["paper_mean"] is not None and row["ours_mean"] is not None
    gap = f"{row['ours_mean'] - row['paper_mean']:+.2f}" if both else ""
    seeds = ",".join(map(str, row["seeds"] or []))
    return [row["method"], row["data"], share, q, paper, ours, gap, seeds, str(row["epochs"] or "")]


def _format_spread(mean: float | None, std: float | None) -> str:
    if mean is None:
        return ""
    return f"{mean:.2f}" if std is None else f"{mean:.2f}±{std:.2f}"


def _show_groups(records: "Sequence[Row]", by: str, as_json: bool) -> None:
    """Accuracies are shares in JSON, as in a record, and percent in a table."""
    from concont.sweep.groups import group_records

    names = [name.strip() for name in by.split(",") if name.strip()]
    groups = group_records(records, list(dict.fromkeys(names)))
    if as_json:
        typer.echo(json.dumps(groups.rows, indent=1))
    elif groups.rows:
        _print_groups(groups.rows, " and ".join(groups.evaluated_on))
    else:
        typer.echo("no run of these in the ledger", err=True)
    if groups.differing:
        tell(f"also differing inside the groups: {', '.join(groups.differing)}", err=as_json)
    if groups.left_out:
        why = "no accuracy, or settings that this version cannot read"
        typer.echo(f"left out: {groups.left_out} with {why}", err=True)


def _print_groups(rows: "Sequence[Row]", evaluated_on: str) -> None:
    names = [name for name in rows[0] if name not in ("accuracy_mean", "accuracy_std", "n")]
    cells = []
    for row in rows:
        spread = row["accuracy_std"] and 100 * row["accuracy_std"]
        values = ["-" if row[name] is None else row[name] for name in names]
        cells.append((*values, _format_spread(100 * row["accuracy_mean"], spread), row["n"]))
    columns = [Column(name, _holds_words(rows, name)) for name in names]
    columns += [Column("accuracy"), Column("n")]
    print_table(f"accuracy in %, on {evaluated_on}", columns, cells)


def _holds_words(rows: "Sequence[Row]", name: str) -> bool:
    return any(isinstance(row[name], str) for row in rows)


def _show_records(records: "Sequence[Row]", as_json: bool) -> None:
    if as_json:
        lines = ",\n".join(json.dumps(record) for record in records)  # a run a line
        typer.echo(f"[\n{lines}\n]")
        return
    if not records:
        typer.echo("no run of these in the ledger", err=True)
        return
    from concont.display import percent
    from concont.sweep.record import key_of

    names = ("settings", "recipe", "share", "q", "seed", "epochs", "last", "best", "s", "on")
    cells = []
    for r in records:
        where = r["environment"]
        source = f"{where.get('device')}, {where.get('commit')}"
        row = [key_of(r), *(r[k] for k in ("recipe", "labeled", "ambiguity", "seed"))]
        row += [r["epochs"] or "", percent(r["accuracy_last"]), percent(r["accuracy_best"])]
        row += [f"{r['seconds']:.0f}", source if where.get("clean") else f"{source}, not clean"]
        cells.append(row)
    print_table("", [Column(name, name in ("recipe", "on")) for name in names], cells)
