"""`concont demo`."""

from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import app, console


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seeds data and training.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the three runs; by default under runs/.")
    ] = None,
) -> None:
    """ConCont on scikit-learn's digits beside two ways without unlabelled images; two minutes."""
    from concont.cli.demo_run import compare_systems
    from concont.runs.folder import RunFolder
    from concont.signals import stop_requests

    folder = RunFolder(out) if out else RunFolder.dated("demo")
    folder.refuse_if_used("choose another --out")
    with stop_requests() as stop:
        compare_systems(seed, folder.path, console(), stop)
