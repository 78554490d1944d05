"""`concont sweep`."""

from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import app
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


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="A YAML file: base, axes, runs, seeds.")],
    folder: Annotated[
        Path, typer.Option(help="The folder of the sweep: its ledger, runs and results.")
    ],
    minutes: Annotated[
        float | None,
        typer.Option(help="Start what will end within so many; stop what was never timed then."),
    ] = None,
    launcher: LauncherName = "local",
    launcher_options: LauncherOptions = None,
    parallel: Parallel = 1,
    dry_run: DryRun = False,
    root: Root = None,
    method: Annotated[
        str | None,
        typer.Option(help="For runs that name none; a method of your own as FILE.py:Class."),
    ] = None,
) -> None:
    """Run a list or a grid of settings.

    What is finished is never run again: a sweep that was stopped goes on where it was. Compare the
    runs with `concont results --folder DIR --by SETTINGS`.
    """
    from concont.sweep.launch import choose_launcher
    from concont.sweep.sweep_file import read_jobs

    refuse_beside_minutes(minutes, launcher, parallel)
    options = RunOptions(
        folder,
        choose_launcher(launcher, launcher_options or []),
        launcher == "local",
        parallel,
        minutes,
        try_untimed=True,
        dry_run=dry_run,
    )
    report_failed(run_jobs(read_jobs(file, root, method), options), folder)
