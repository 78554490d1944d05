"""`concont reproduce`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.app import app, tell
from concont.cli.results import FOLDER, Folder, show_cells, show_drawn
from concont.cli.run_jobs import (
    DryRun,
    LauncherName,
    LauncherOptions,
    Parallel,
    Root,
    RunOptions,
    refuse_beside_minutes,
    report_failed,
    run_jobs,
)
from concont.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from concont.sweep.ledger import Ledger


@app.command()
def reproduce(
    target: Annotated[
        str, typer.Argument(help="table1 to table6, figure1, figure-pr, all; or next.")
    ],
    cells: Annotated[
        str, typer.Option(help="Columns as data:share:q, comma-separated: cifar10:0.1:0.5,svhn.")
    ] = "",
    methods: Annotated[str, typer.Option(help="Rows, comma-separated: ConCont,DPLL*.")] = "",
    seeds: Annotated[str, typer.Option(help="Comma-separated; by default the budget's.")] = "",
    budget: Annotated[
        str,
        typer.Option(
            help="smoke: digits stand in, 2 epochs; short: 60 epochs, one seed; paper: 800 epochs, "
            "three seeds."
        ),
    ] = "short",
    minutes: Annotated[
        float | None, typer.Option(help="With next: start what will end within so many.")
    ] = None,
    launcher: LauncherName = "local",
    launcher_options: LauncherOptions = None,
    parallel: Parallel = 1,
    dry_run: DryRun = False,
    root: Root = None,
    folder: Folder = FOLDER,
) -> None:
    """Run what a table or figure of the paper still lacks, and print ours beside it.

    What is finished is never run again: a sweep that was stopped goes on where it was. `next` runs
    the most wanted missing jobs in the time that there is.
    """
    from concont.paper.plan import BUDGETS, cells_of, choose_cells, most_wanted, plan
    from concont.sweep.folder import SweepFolder
    from concont.sweep.launch import choose_launcher, in_this_process
    from concont.sweep.ledger import Ledger

    if budget not in BUDGETS:
        raise UsageError(f"no budget {budget!r}; there are {', '.join(BUDGETS)}")
    if (target == "next") != (minutes is not None):
        raise UsageError("next and --minutes go together: concont reproduce next --minutes 25")
    refuse_beside_minutes(minutes, launcher, parallel)
    chosen = choose_launcher(launcher, launcher_options or [])
    smoke = BUDGETS[budget].stands_in
    if smoke and launcher == "local":
        chosen = in_this_process
    wanted = cells_of("all" if target == "next" else target)
    wanted = choose_cells(wanted, _split(methods), _split(cells))
    planned = plan(wanted, BUDGETS[budget], _parse_seeds(seeds), root)
    jobs = list(planned) if minutes is None else most_wanted(planned)
    if smoke:
        typer.echo("digits stand in for the paper's data")
    options = RunOptions(folder, chosen, launcher == "local", parallel, minutes, dry_run=dry_run)
    failed = run_jobs(jobs, options)
    if minutes is None and not dry_run:
        ledger = Ledger(SweepFolder(folder).ledger)
        shown = list(dict.fromkeys(cell for filled in planned.values() for cell in filled))
        show_cells(shown, ledger)
        _draw([cell.table for cell in shown], ledger, folder / "figures")
    report_failed(failed, folder)


def _draw(tables: "Sequence[str]", ledger: "Ledger", folder: Path) -> None:
    try:
        show_drawn(tables, ledger, folder, overwrite=True)
    except UsageError as error:  # the results are there all the same
        tell(f"not drawn: {error}", err=True)


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parse_seeds(text: str) -> list[int]:
    try:
        return [int(name) for name in _split(text)]
    except ValueError:
        raise UsageError(f"--seeds {text}: write whole numbers, as 1,2,3") from None
