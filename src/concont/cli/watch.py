"""`concont watch`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.app import app, console
from concont.errors import printable

if TYPE_CHECKING:
    from concont.report.watched import Watch


@app.command()
def watch(
    path: Annotated[
        Path, typer.Argument(help="The folder of a run, now or soon, or a folder of runs.")
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where the page is served; 0: a free port.")
    ] = 8790,
    open_it: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open a browser; by default on a terminal."),
    ] = None,
    tui: Annotated[bool, typer.Option("--tui", help="In the terminal, without a page.")] = False,
) -> None:
    """Follow runs while they train: a page on this machine that updates itself, or a table."""
    from concont.report.watched import Watch
    from concont.signals import stop_requests

    runs = Watch(path)
    if next(iter(runs.read()), None) is None:
        typer.echo(f"there is no run in {printable(path)} yet: waiting for one")
    try:
        with stop_requests(at_once=True):
            if tui:
                from concont.cli.watch_terminal import show_runs

                show_runs(runs, console())
            else:
                _serve(runs, port, open_it)
    except KeyboardInterrupt:
        typer.echo("stopped watching")


def _serve(runs: "Watch", port: int, open_it: bool | None) -> None:
    from concont.report.live import LivePage, PageServer

    with PageServer(LivePage(runs), port) as server:
        typer.echo(f"watching {printable(runs.path)} on {server.url}; Ctrl-C ends it")
        if console().is_terminal if open_it is None else open_it:
            import webbrowser

            webbrowser.open(server.url)
        server.serve_forever(poll_interval=0.2)
