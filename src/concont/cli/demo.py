"""`concont demo`."""

from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import app, console
from concont.errors import UsageError


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seeds data and training.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder for all that it makes; by default under runs/.")
    ] = None,
    votes: Annotated[
        bool,
        typer.Option("--votes", help="From image files and votes to predictions, step by step."),
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="With --votes: make the image files and votes alone.")
    ] = False,
) -> None:
    """ConCont on scikit-learn's digits beside two ways without unlabelled images; two minutes.

    With --votes: the digits as image files, three annotators who err, and each command on the way
    to a classifier, printed and run.
    """
    from concont.runs.folder import RunFolder
    from concont.signals import stop_requests

    if files and not votes:
        raise UsageError("--files goes with --votes")
    folder = RunFolder(out) if out else RunFolder.dated("demo")
    folder.refuse_if_used("choose another --out")
    if votes:
        from concont.cli.demo_votes import introduce, make_folder, walk

        if files:
            make_folder(seed, folder.path)
            introduce(folder.path, console())
        else:
            walk(seed, folder.path, console())
        return
    from concont.cli.demo_run import compare_systems

    with stop_requests() as stop:
        compare_systems(seed, folder.path, console(), stop)
