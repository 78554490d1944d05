"""What starts, resumes and shows a run of `concont train`."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from concont.cli.app import console
from concont.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from concont.data.sources import Dataset
    from concont.runs.settings import Data, Settings
    from concont.runs.summary import Summary
    from concont.training.trainers import PreparedRun


def start_run(
    settings: "Settings", out: Path | None, overwrite: bool, minutes: float | None = None
) -> None:
    """Train with these settings; minutes: fit the schedule to that time."""
    from concont.runs.folder import RunFolder
    from concont.training.trainers import trainer_of

    if not settings.data.source:
        raise UsageError("say what to train on: --data NAME or FILE; see `concont datasets`")
    folder = RunFolder(out) if out else RunFolder.dated(settings.method.name)
    if overwrite:
        folder.refuse_if_not_a_run()
    else:
        folder.refuse_if_used(
            f"go on with --resume {folder.path}, start it afresh with --overwrite, "
            "or choose another --out"
        )
    run = trainer_of(settings).prepare(settings, folder, load_showing_progress(settings.data))
    if overwrite:
        folder.clear()
    _execute(run, minutes)


def load_showing_progress(data: "Data") -> "Dataset":
    """The data of these settings; on a terminal with a bar while image files are read."""
    from rich.progress import Progress

    from concont.data.own_data import load_data

    screen = console()
    with ExitStack() as opened:
        bars: Progress | None = None

        def report(done: int, total: int) -> None:
            nonlocal bars
            if bars is None:  # not before there is something to read
                bars = opened.enter_context(Progress(console=screen, transient=True))
                bars.add_task("reading images", total=total)
            bars.update(bars.task_ids[0], completed=done, total=total)

        return load_data(data, report if screen.is_terminal else None)


def resume_run(path: Path, method: str | None) -> None:
    """Go on with a run that was not finished."""
    from concont.runs.folder import RunFolder
    from concont.training.trainers import reopen_run

    folder = RunFolder(path)
    folder.require("config.yaml")
    if folder.finished:
        summary = folder.read_summary()
        typer.echo(f"{path} is finished: {_result(summary)}")
        return
    _execute(reopen_run(folder, method=method))


def _execute(run: "PreparedRun", minutes: float | None = None) -> None:
    from concont.cli.display import show_progress
    from concont.signals import stop_requests
    from concont.training.trainers import trainer_of

    screen = console()
    try:
        with stop_requests(at_once=True):  # nothing is written yet
            run, line = trainer_of(run.settings).announce(run, minutes)
        if line:
            screen.print(line, soft_wrap=True, highlight=False, markup=False)
        with stop_requests(at_once=run.epochs is None) as stop:
            show_progress(run.execute(stop), run.epochs, run.settings.method.name, screen)
    except KeyboardInterrupt:
        begun = (run.folder / "config.yaml").is_file()
        command = run.folder.resume_command(run.settings.own_method)
        cure = f"; go on with: {command}" if begun else ""
        raise Interrupted(f"stopped{cure}") from None
    result = _result(run.folder.read_summary())
    screen.print(f"{result}\nRun: {run.folder.path}", soft_wrap=True, highlight=False)


def _result(summary: "Summary") -> str:
    from concont.cli.display import percent

    if summary.accuracy_last is None:
        return f"trained for {summary.seconds:.0f} s; there is no test set to measure on"
    found = f"{summary.evaluated_on} accuracy {percent(summary.accuracy_last)}"
    if summary.epochs is not None:
        found += f" at the last epoch, {percent(summary.accuracy_best)} at the best"
    return f"{found}, {summary.seconds:.0f} s"
