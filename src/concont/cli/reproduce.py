"""`concont reproduce`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.app import app
from concont.cli.results import FOLDER, Folder, show_cells
from concont.errors import ConcontError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from concont.repro.estimate import Rates
    from concont.repro.ledger import Ledger
    from concont.repro.paper import Cell
    from concont.repro.plan import Job
    from concont.repro.work import Outcome


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
    launcher: Annotated[
        str,
        typer.Option(help="Where jobs run: local; ray, a cluster or this machine; slurm."),
    ] = "local",
    launcher_options: Annotated[
        list[str] | None,
        typer.Option(
            "--launcher-options",
            help="For Ray's tasks or for submitit, e.g. slurm_partition=gpu; repeatable.",
        ),
    ] = None,
    parallel: Annotated[int, typer.Option(min=1, help="Jobs at a time.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan with its GPU-hours and stop.")
    ] = False,
    root: Annotated[str | None, typer.Option(help="Where named sources lie.")] = None,
    folder: Folder = FOLDER,
) -> None:
    """Run what a table or figure of the paper still lacks, and print ours beside it.

    What is finished is never run again: a sweep that was stopped goes on where it was. `next` runs
    the most wanted missing jobs in the time that there is.
    """
    from concont.repro.estimate import device_name, rates
    from concont.repro.launch import chosen, here
    from concont.repro.ledger import Ledger
    from concont.repro.plan import BUDGETS, cells_of, choose, most_wanted, plan
    from concont.repro.sweep import missing, run, run_within
    from concont.repro.work import Sweep

    if budget not in BUDGETS:
        raise UsageError(f"no budget {budget!r}; there are {', '.join(BUDGETS)}")
    _refuse_beside_next(target == "next", minutes, launcher, parallel)
    wanted = cells_of("all" if target == "next" else target)
    wanted = choose(wanted, _names(methods), _names(cells))
    jobs = plan(wanted, BUDGETS[budget], _numbers(seeds), root)
    ledger = Ledger(Sweep(folder).ledger)
    left = missing(jobs, ledger)
    left = most_wanted(left) if target == "next" else left
    measured = rates(ledger.records(), device_name())
    _show_plan(jobs, left, measured, dry_run)
    if BUDGETS[budget].stands_in:
        typer.echo("digits stand in for the paper's data")
    if dry_run:
        return
    where = chosen(launcher, launcher_options or [])
    where = here if budget == "smoke" and launcher == "local" else where
    if minutes is None:
        outcomes = run(left, folder, where, parallel)
    else:
        outcomes = run_within(left, folder, minutes, measured)
    failed = _follow(left, outcomes)
    if target != "next":
        shown = list(dict.fromkeys(cell for job in jobs for cell in job.cells))
        show_cells(shown, ledger)
        _draw(shown, ledger, folder)
    if failed:
        raise ConcontError(f"{failed} of {len(left)} jobs failed; their output is under {folder}")


def _refuse_beside_next(asked: bool, minutes: float | None, launcher: str, parallel: int) -> None:
    if asked != (minutes is not None):
        raise UsageError("next and --minutes go together: concont reproduce next --minutes 25")
    if asked and (launcher, parallel) != ("local", 1):
        raise UsageError("next runs on this machine: leave out --launcher and --parallel")


def _draw(cells: "Sequence[Cell]", ledger: "Ledger", folder: Path) -> None:
    """The figures to which these cells belong, as far as the ledger has them."""
    from concont.repro.figures import FIGURES, draw

    wanted = {cell.table for cell in cells}
    for name, figure in FIGURES.items():
        if figure.target in wanted:
            try:
                paths = draw(name, ledger.records(), folder / "figures")
            except UsageError as error:  # the results are there all the same
                typer.echo(f"not drawn: {error}", err=True)
                return
            for path in paths:
                typer.echo(f"drawn: {path}")


def _follow(left: "Sequence[Job]", outcomes: "Iterable[Outcome]") -> int:
    """Tell how each job ended; how many failed."""
    from concont.display import percent

    names, failed = {job.key: job.name for job in left}, 0
    for outcome in outcomes:
        if outcome.record is None:
            failed += 1
            typer.echo(f"failed: {names[outcome.key]}: {outcome.failure}", err=True)
        else:
            found = percent(outcome.record["accuracy_last"])
            typer.echo(f"{names[outcome.key]}: {found}, {outcome.record['seconds']:.0f} s")
    return failed


def _show_plan(
    jobs: "Sequence[Job]", left: "Sequence[Job]", measured: "Rates", in_full: bool
) -> None:
    from concont.repro.estimate import seconds

    times = [seconds(job.settings, measured) for job in left]
    known = sum(time for time in times if time is not None)
    unknown = sum(time is None for time in times)
    if in_full:
        for job, time in zip(left, times, strict=True):
            took = "not timed yet" if time is None else f"{time / 60:.1f} min"
            command = " ".join(["concont train", *job.arguments])
            typer.echo(f"{job.key}  {took:>13}  {job.name}\n    {command}")
    rest = f" and {unknown} that were never timed" if unknown else ""
    typer.echo(
        f"{len(jobs)} jobs, {len(jobs) - len(left)} done, {len(left)} to run: about "
        f"{known / 3600:.1f} GPU-hours{rest}"
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    try:
        return [int(name) for name in _names(text)]
    except ValueError:
        raise UsageError(f"--seeds {text}: write whole numbers, as 1,2,3") from None
