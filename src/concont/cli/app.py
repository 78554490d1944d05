"""The command as a whole: its options, and how it ends."""

import logging
import os
import sys
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.lost_output import fill_closed_descriptors
from concont.errors import ConcontError, Interrupted, printable
from concont.memory import tells_of_full_memory

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train classifiers from candidate label sets and unlabelled images.",
)


TRAINING = (
    *("torch", "torchvision", "sklearn", "scipy", "pyarrow", "pydantic", "yaml"),
    *("safetensors", "tensorboard", "filelock", "jinja2", "krippendorff", "numpy", "PIL"),
)
# By extra of the package: what is imported of it, the most telling first.
EXTRAS = {
    "predict": ("onnxruntime", "numpy", "PIL"),
    "serve": ("fastapi", "uvicorn", "python_multipart", "onnxruntime", "numpy", "PIL"),
    "train": TRAINING,
    "export": (*TRAINING, "onnx", "onnxscript", "onnxruntime"),
}


class Device(StrEnum):
    """Where a network runs."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def main() -> None:
    """Run the command; a mistake or a failure is one line on standard error and an exit code."""
    fill_closed_descriptors()
    _let_threads_sleep()
    if logging.lastResort is not None:  # what prints warnings where nobody asked for more
        logging.lastResort.setFormatter(PlainFormatter())
    try:
        app()
    except Interrupted as error:
        tell(error, err=True)
        sys.exit(error.exit_code)
    except ConcontError as error:
        first, *more = error.args
        tell(f"error: {first}", *more, err=True)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        tell(f"error: {_name_extra(error)}", err=True)
        sys.exit(1)
    except OSError as error:
        tell(f"error: {error}", err=True)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        if not tells_of_full_memory(error):
            raise
        first, *_ = str(error).splitlines() or [type(error).__name__]
        tell(f"error: there is too little memory: {first}", err=True)
        sys.exit(1)


def tell(*lines: object, err: bool = False) -> None:
    """Lines on standard output or standard error, whatever the names in them are."""
    typer.echo("\n".join(map(printable, lines)), err=err)


class PlainFormatter(logging.Formatter):
    """A line without control characters, whatever is logged."""

    def format(self, record: logging.LogRecord) -> str:
        """The message alone."""
        return printable(record.getMessage())


def _name_extra(error: ModuleNotFoundError) -> str:
    """What to install for a command that lacks a library; raised again if it is none of ours."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    missing = (error.name or "").partition(".")[0]
    for extra in (command, "train", *EXTRAS):
        if missing in EXTRAS.get(extra, ()):
            first = next(name for name in EXTRAS[extra] if name == missing or not find_spec(name))
            return f"concont {command} needs {first}: pip install 'concont[{extra}]'"
    raise error


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
