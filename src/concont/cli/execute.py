"""What starts, resumes and shows a run of `concont train`."""

from pathlib import Path
from typing import TYPE_CHECKING

from concont.cli.app import console, tell
from concont.cli.lost_output import output_may_end
from concont.cli.table import print_line
from concont.errors import ConcontError, Interrupted, UsageError, printable
from concont.ranks import world

if TYPE_CHECKING:
    from concont.data.sources import Dataset
    from concont.runs.folder import RunFolder
    from concont.runs.settings import Data, Settings
    from concont.runs.summary import Summary
    from concont.training.trainers import PreparedRun


@output_may_end()
def start_run(
    settings: "Settings",
    out: Path | None,
    overwrite: bool,
    minutes: float | None = None,
    network: str | None = None,
) -> None:
    """Train with these settings.

    minutes: fit the schedule to that time; network: FILE.py:make of one of the user's own.
    """
    from concont.config.own_network import take_network
    from concont.nets.network import refuse_unknown_network
    from concont.runs.folder import RunFolder
    from concont.training.trainers import is_to_be_resumed, trainer_of

    if not settings.data.source:
        raise UsageError("say what to train on: --data NAME or FILE; see `concont datasets`")
    if world.size() > 1 and not settings.has_epochs:
        raise UsageError(f"{settings.method.name} trains no network: start it without torchrun")
    folder = RunFolder(out) if out else RunFolder.dated(settings.method.name)
    if is_to_be_resumed(folder, settings, minutes):
        resume_run(folder.path, settings.own_method, network)
        return
    if world.leads():  # which alone writes
        _refuse_folder(folder, overwrite)
    settings, own = take_network(settings, network)
    if settings.has_epochs and own is None:
        refuse_unknown_network(settings.model)  # before images are read, which may take long
    data = load_showing_progress(settings.data)
    run = trainer_of(settings).prepare(settings, folder, data, own)
    run = _announce(run, minutes)
    if overwrite and world.leads():
        folder.clear()  # not before all that could be refused was
    _execute(run)


def _refuse_folder(folder: "RunFolder", overwrite: bool) -> None:
    """A folder that cannot be written to, or not without being asked."""
    if not overwrite:
        folder.refuse_if_used(
            f"go on with --resume {folder.path}, start it afresh with --overwrite, "
            "or choose another --out"
        )
        return
    folder.refuse_if_not_a_run()
    if folder.path.is_dir():
        folder.lock.acquire(folder.path)


def load_showing_progress(data: "Data") -> "Dataset":
    """The data of these settings; where image files have to be read, a bar or a line says so."""
    from rich.progress import Progress

    from concont.training.ranks import load_on_ranks

    screen = console()
    bars = Progress(console=screen, transient=True)

    def report(done: int, total: int) -> None:
        if not bars.task_ids:  # not before there is something to read
            bars.add_task("reading images", total=total)
            if screen.is_terminal:
                bars.start()
            else:
                screen.print(f"reading {total:,} images", highlight=False)
        bars.update(bars.task_ids[0], completed=done, total=total)

    try:
        return load_on_ranks(data, report)
    finally:
        if screen.is_terminal:
            bars.stop()


@output_may_end()
def resume_run(path: Path, method: str | None, network: str | None = None) -> None:
    """Go on with a run that was not finished; method, network: the user's code that it may run."""
    from concont.config.own_network import take_network
    from concont.runs.folder import RunFolder
    from concont.training.trainers import read_run_settings, reopen_run

    folder = RunFolder(path)
    folder.require("config.yaml")
    if folder.finished:
        summary = folder.read_summary()
        tell(f"{path} is finished: {_result(summary)}")
        return
    _, own = take_network(read_run_settings(folder), network)
    _execute(_announce(reopen_run(folder, model=own, method=method)))


def _announce(run: "PreparedRun", minutes: float | None = None) -> "PreparedRun":
    """Say what will be trained and for how long; returns the run as it will be trained."""
    from concont.signals import stop_requests
    from concont.training.trainers import trainer_of

    try:
        with stop_requests(at_once=True):
            run, line = trainer_of(run.settings).announce(run, minutes)
    except KeyboardInterrupt:
        raise Interrupted("stopped before the first step") from None
    if line:
        tell(*line.splitlines())
    return run


def _execute(run: "PreparedRun") -> None:
    from concont.display import show_progress
    from concont.runs.resuming import resume_command
    from concont.signals import stop_requests

    screen = console()
    try:
        with stop_requests(at_once=run.epochs is None) as stop:
            show_progress(run.execute(stop), run.epochs, run.settings.method.name, screen)
            if not world.leads():
                return
    except KeyboardInterrupt:
        begun = (run.folder / "config.yaml").is_file()
        command = resume_command(run.folder.path, run.settings)
        cure = f"; go on with: {command}" if begun else ""
        raise Interrupted(f"stopped{cure}") from None
    except OSError as error:
        command = resume_command(run.folder.path, run.settings)
        where = f"{printable(error.filename)}: " if error.filename else ""
        begun = (run.folder / "config.yaml").is_file()
        cure = f"; mend this, then go on with: {command}" if begun else ""
        raise ConcontError(f"{where}{error.strerror or error}{cure}") from None
    result = _result(run.folder.read_summary())
    print_line(result, screen)
    print_line(f"Run: {run.folder.path}", screen)


def _result(summary: "Summary") -> str:
    from concont.display import percent

    if summary.share_in_sets is not None:
        return f"{_describe_on_sets(summary)}, {summary.seconds:.0f} s"
    if summary.accuracy_last is None:
        return f"trained for {summary.seconds:.0f} s; there is no test set to measure on"
    found = f"{summary.evaluated_on} accuracy {percent(summary.accuracy_last)}"
    if summary.epochs is not None:
        found += f" at the last epoch, {percent(summary.accuracy_best)} at the best"
    return f"{found}, {summary.seconds:.0f} s"


def _describe_on_sets(summary: "Summary") -> str:
    from concont.display import percent

    found = f"{percent(summary.share_in_sets)} of the labels lie in their held-out sets"
    if summary.probability_on_sets is None:
        return found
    return f"{found}, {percent(summary.probability_on_sets)} of the probability"
