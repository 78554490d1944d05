"""The command as a whole: its options, and how it ends."""

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.lost_output import fill_closed_descriptors
from concont.errors import ConcontError, Interrupted

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train classifiers from candidate label sets and unlabelled images.",
)


class Device(StrEnum):
    """Where a network runs."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def main() -> None:
    """Run the command; a mistake or a failure is one line on standard error and an exit code."""
    fill_closed_descriptors()
    _let_threads_sleep()
    try:
        app()
    except Interrupted as error:
        typer.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except ConcontError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)


def _let_threads_sleep() -> None:
    """Threads that wait for each other soon sleep: else two trainings on the same cores starve.

    To be said before torch is imported. A short wait at full speed costs a training alone nothing.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _print_version(wanted: bool) -> None:
    if wanted:
        from concont.version import describe

        typer.echo(describe())
        raise typer.Exit


@app.callback()
def _set_common_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show and stop."),
    ] = False,
) -> None:
    """Options of the command as a whole."""


def console() -> "Console":
    """Where a command writes."""
    from rich.console import Console

    return Console()


def wide_console() -> "Console":
    """For wide tables, which a file or a pipe has room for."""
    wide = console()
    if not wide.is_terminal:
        wide.width = 200
    return wide
