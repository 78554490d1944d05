"""What `sweep` and `reproduce` share: options, the plan shown, jobs followed to their end."""

import math
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.app import tell
from concont.cli.lost_output import output_may_end
from concont.errors import ConcontError, Interrupted, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from concont.runs.settings import Settings
    from concont.sweep.estimate import Rates
    from concont.sweep.job import Job
    from concont.sweep.launch import Launcher
    from concont.sweep.ledger import Ledger
    from concont.sweep.process import Outcome

LauncherName = Annotated[
    str, typer.Option(help="Where jobs run: local; ray, a cluster or this machine; slurm.")
]
LauncherOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--launcher-options",
        help="For Ray's tasks or for submitit, e.g. slurm_partition=gpu; repeatable.",
    ),
]
Parallel = Annotated[int, typer.Option(min=1, help="Jobs at a time.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the plan with its GPU-hours and stop.")
]
Root = Annotated[str | None, typer.Option(help="Where named sources lie.")]


@dataclass(frozen=True)
class RunOptions:
    """Where jobs run, and for how long."""

    folder: Path
    launcher: "Launcher"
    finds_data: bool = True  # the jobs run on this machine, so that it has to have their data
    parallel: int = 1
    minutes: float | None = None  # None: until all are done
    try_untimed: bool = False  # within these minutes, also jobs like which nothing was timed
    dry_run: bool = False


def refuse_beside_minutes(minutes: float | None, launcher: str, parallel: int) -> None:
    """The clock watches one process of this machine at a time."""
    if minutes is None:
        return
    if not 0 < minutes < math.inf:
        raise UsageError(f"--minutes {minutes:g}: there must be some")
    if (launcher, parallel) != ("local", 1):
        raise UsageError("--minutes runs on this machine: leave out --launcher and --parallel")


@output_may_end()
def run_jobs(jobs: "Sequence[Job]", options: RunOptions) -> "list[Outcome]":
    """Run those that are missing from the ledger and tell how each ended; those that failed.

    Jobs come most wanted first.
    """
    from concont.sweep.folder import SweepFolder
    from concont.sweep.ledger import Ledger
    from concont.sweep.schedule import find_missing, run, run_within

    ledger = Ledger(SweepFolder(options.folder).ledger)
    left = find_missing(jobs, ledger)
    typer.echo(f"{count_jobs(jobs)}, {len(jobs) - len(left)} done, {len(left)} to run")
    rates = _rates(ledger, of_this_device_alone=options.minutes is not None)
    if options.minutes is None:
        _show_times(left, rates, options.dry_run)
        outcomes = run(left, options.folder, options.launcher, options.parallel)
    else:
        left = _leave_out_without_data(left)
        _show_fitting(left, options, options.minutes, rates)
        outcomes = run_within(left, options.folder, options.minutes, rates, options.try_untimed)
    if options.dry_run:
        return []
    if options.minutes is None and options.finds_data:
        _find_data(left)
    return follow(left, outcomes)


def follow(left: "Sequence[Job]", outcomes: "Generator[Outcome, None, None]") -> "list[Outcome]":
    """Tell how each job ended; those that failed. Stopped, it stops what is under way."""
    from concont.display import percent
    from concont.signals import stop_requests

    names, failed = {job.key: job.name for job in left}, []
    try:
        with stop_requests(at_once=True), closing(outcomes):
            for outcome in outcomes:
                name = names.pop(outcome.key)
                if outcome.record is None:
                    failed.append(outcome)
                    tell(f"failed: {name}: {outcome.failure}", err=True)
                else:
                    found = percent(outcome.record["accuracy_last"])
                    tell(f"{name}: {found}, {outcome.record['seconds']:.0f} s")
    except KeyboardInterrupt:
        raise Interrupted("stopped; the same command goes on where it was") from None
    if names:
        typer.echo(f"{count_jobs(names)} left; the same command goes on where it was")
    return failed


def report_failed(failed: "Sequence[Outcome]", folder: Path) -> None:
    """An error that ends the command, where there were any."""
    if failed:
        raise ConcontError(f"{count_jobs(failed)} failed; their output is under {folder}")


def count_jobs(jobs: "Sequence[object] | dict[str, str]") -> str:
    """`1 job`, `2 jobs`."""
    return "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"


def _rates(ledger: "Ledger", of_this_device_alone: bool) -> "Rates":
    """Of runs on this device; unless the clock goes by them, also of one H200, to plan with."""
    from concont.sweep.estimate import H200_RATES, device_name, measure_rates

    found = measure_rates(ledger.records(), device_name())
    return found if of_this_device_alone else {**H200_RATES, **found}


def _leave_out_without_data(jobs: "Sequence[Job]") -> "list[Job]":
    """Those whose data is on this machine; what is missing is said once."""
    kept, missing = list["Job"](), dict[str, str]()
    for job in jobs:
        try:
            _find_data([job])
            kept.append(job)
        except UsageError as error:
            missing[job.settings.data.source] = str(error)
    for message in missing.values():
        tell(f"left out: {message}", err=True)
    return kept


def _find_data(jobs: "Sequence[Job]") -> None:
    """Missing data is said once, before anything starts."""
    from concont.data.named import NAMED, default_root, require_source

    for source, root in dict.fromkeys((j.settings.data.source, j.settings.data.root) for j in jobs):
        if source in NAMED:
            require_source(source, Path(root) if root else default_root())


def _show_fitting(
    jobs: "Sequence[Job]", options: RunOptions, minutes: float, rates: "Rates"
) -> None:
    """What fits into the time."""
    from concont.sweep.estimate import device_name, kind_of
    from concont.sweep.schedule import jobs_that_fit

    fitting = jobs_that_fit(jobs, options.folder, minutes, rates)
    typer.echo(f"in {minutes:g} minutes: about {count_jobs(fitting)}")
    if options.dry_run:
        _list(fitting, rates)
    if all(kind_of(job.settings) in rates for job in jobs):
        return
    if options.try_untimed:
        typer.echo(f"some were never timed on {device_name()}: the first is tried, and times them")
    else:
        typer.echo(
            f"some were never timed on {device_name()} and are left alone; a run of the method "
            "that ends here times it"
        )


def _show_times(jobs: "Sequence[Job]", rates: "Rates", in_full: bool) -> None:
    """The GPU time of these."""
    from concont.sweep.estimate import estimate_seconds

    times = [estimate_seconds(job.settings, rates) for job in jobs]
    total, unknown = sum(t for t in times if t is not None), sum(t is None for t in times)
    if in_full:
        _list(jobs, rates)
    if total:
        rest = f", and {unknown} never timed" if unknown else ""
        long = f"{total / 3600:.1f} GPU-hours" if total >= 3600 else f"{total / 60:.0f} GPU-minutes"
        typer.echo(f"about {long}{rest}")


def _list(jobs: "Sequence[Job]", rates: "Rates") -> None:
    from concont.sweep.estimate import estimate_seconds

    for job in jobs:
        time = estimate_seconds(job.settings, rates)
        took = "not timed yet" if time is None else f"{time / 60:.1f} min"
        tell(f"{job.key}  {took:>13}  {job.name}", f"    recipe {_describe(job.settings)}")


def _describe(settings: "Settings") -> str:
    """`cifar10+wo-reg, 60 epochs`; without a network there are none."""
    if not settings.has_epochs:
        return settings.recipe
    epochs = settings.train.epochs
    return f"{settings.recipe}, {epochs} epoch{'' if epochs == 1 else 's'}"
