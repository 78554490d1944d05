"""`concont reproduce`."""

import math
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.app import app
from concont.cli.results import FOLDER, Folder, show_cells, show_drawn
from concont.errors import ConcontError, Interrupted, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from concont.paper.plan import Job
    from concont.sweep.estimate import Rates
    from concont.sweep.ledger import Ledger
    from concont.sweep.process import Outcome


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
    from concont.paper.plan import BUDGETS, cells_of, choose, most_wanted, plan
    from concont.sweep.launch import chosen, here
    from concont.sweep.ledger import Ledger
    from concont.sweep.process import Sweep
    from concont.sweep.schedule import missing, run, run_within

    if budget not in BUDGETS:
        raise UsageError(f"no budget {budget!r}; there are {', '.join(BUDGETS)}")
    _refuse_beside_next(target == "next", minutes, launcher, parallel)
    where = chosen(launcher, launcher_options or [])
    where = here if budget == "smoke" and launcher == "local" else where
    wanted = cells_of("all" if target == "next" else target)
    wanted = choose(wanted, _names(methods), _names(cells))
    jobs = plan(wanted, BUDGETS[budget], _numbers(seeds), root)
    ledger = Ledger(Sweep(folder).ledger)
    left = missing(jobs, ledger)
    typer.echo(f"{_count(jobs)}, {len(jobs) - len(left)} done, {len(left)} to run")
    if BUDGETS[budget].stands_in:
        typer.echo("digits stand in for the paper's data")
    timed = _timed(ledger, target == "next")
    if minutes is None:
        _show_times(left, timed, dry_run)
        outcomes = run(left, folder, where, parallel)
    else:
        left = _with_data(most_wanted(left), root)
        _show_fitting(left, folder, minutes, timed, dry_run)
        outcomes = run_within(left, folder, minutes, timed)
    if dry_run:
        return
    if target != "next" and launcher == "local":
        _find_data(left, root)
    failed = _follow(left, outcomes)
    if target != "next":
        shown = list(dict.fromkeys(cell for job in jobs for cell in job.cells))
        show_cells(shown, ledger)
        _draw([cell.table for cell in shown], ledger, folder / "figures")
    if failed:
        raise ConcontError(f"{_count(failed)} failed; their output is under {folder}")


def _draw(tables: "Sequence[str]", ledger: "Ledger", folder: Path) -> None:
    try:
        show_drawn(tables, ledger, folder)
    except UsageError as error:  # the results are there all the same
        typer.echo(f"not drawn: {error}", err=True)


def _refuse_beside_next(asked: bool, minutes: float | None, launcher: str, parallel: int) -> None:
    if asked != (minutes is not None):
        raise UsageError("next and --minutes go together: concont reproduce next --minutes 25")
    if minutes is not None and not 0 < minutes < math.inf:
        raise UsageError(f"--minutes {minutes:g}: there must be some")
    if asked and (launcher, parallel) != ("local", 1):
        raise UsageError("next runs on this machine: leave out --launcher and --parallel")


def _timed(ledger: "Ledger", here_alone: bool) -> "Rates":
    """Of runs on this device, and to plan with, of one H200."""
    from concont.sweep.estimate import TIMED, device_name, rates

    found = rates(ledger.records(), device_name())
    return found if here_alone else {**TIMED, **found}


def _with_data(jobs: "Sequence[Job]", root: str | None) -> "list[Job]":
    """Those whose data is here; what is missing is said once."""
    kept, missing = list["Job"](), dict[str, str]()
    for job in jobs:
        try:
            _find_data([job], root)
            kept.append(job)
        except UsageError as error:
            missing[job.settings.data.source] = str(error)
    for message in missing.values():
        typer.echo(f"left out: {message}", err=True)
    return kept


def _find_data(jobs: "Sequence[Job]", root: str | None) -> None:
    """Missing data is said once, before anything starts."""
    from concont.data.named import NAMED, default_root, require_source

    for source in dict.fromkeys(job.settings.data.source for job in jobs):
        if source in NAMED:
            require_source(source, Path(root) if root else default_root())


def _show_fitting(
    jobs: "Sequence[Job]", folder: Path, minutes: float, timed: "Rates", in_full: bool
) -> None:
    """What fits into the time."""
    from concont.sweep.estimate import device_name, kind_of
    from concont.sweep.schedule import fitting

    fit = fitting(jobs, folder, minutes, timed)
    typer.echo(f"in {minutes:g} minutes: about {_count(fit)}")
    if in_full:
        _list(fit, timed)
    if any(kind_of(job.settings) not in timed for job in jobs):
        typer.echo(
            f"some were never timed on {device_name()} and are left alone; a run of the method "
            "that `concont reproduce` ends here times it"
        )


def _show_times(jobs: "Sequence[Job]", timed: "Rates", in_full: bool) -> None:
    """The GPU time of these."""
    from concont.sweep.estimate import seconds

    times = [seconds(job.settings, timed) for job in jobs]
    total, unknown = sum(t for t in times if t is not None), sum(t is None for t in times)
    if in_full:
        _list(jobs, timed)
    if total:
        rest = f", and {unknown} never timed" if unknown else ""
        long = f"{total / 3600:.1f} GPU-hours" if total >= 3600 else f"{total / 60:.0f} GPU-minutes"
        typer.echo(f"about {long}{rest}")


def _list(jobs: "Sequence[Job]", timed: "Rates") -> None:
    from concont.sweep.estimate import seconds

    for job in jobs:
        time = seconds(job.settings, timed)
        took = "not timed yet" if time is None else f"{time / 60:.1f} min"
        command = " ".join(["concont train", *job.arguments])
        typer.echo(f"{job.key}  {took:>13}  {job.name}\n    {command}")


def _follow(left: "Sequence[Job]", outcomes: "Generator[Outcome, None, None]") -> "list[Outcome]":
    """Tell how each job ended; those that failed. Stopped, it stops what is under way."""
    from concont.cli.display import percent
    from concont.signals import stop_requests

    names, failed = {job.key: job.name for job in left}, []
    try:
        with stop_requests(at_once=True), closing(outcomes):
            for outcome in outcomes:
                if outcome.record is None:
                    failed.append(outcome)
                    typer.echo(f"failed: {names[outcome.key]}: {outcome.failure}", err=True)
                else:
                    found = percent(outcome.record["accuracy_last"])
                    typer.echo(f"{names[outcome.key]}: {found}, {outcome.record['seconds']:.0f} s")
    except KeyboardInterrupt:
        raise Interrupted("stopped; the same command goes on where it was") from None
    return failed


def _count(jobs: "Sequence[object]") -> str:
    return "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    try:
        return [int(name) for name in _names(text)]
    except ValueError:
        raise UsageError(f"--seeds {text}: write whole numbers, as 1,2,3") from None
