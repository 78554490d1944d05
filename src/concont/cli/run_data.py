"""The data of a run, for commands that read it again: where it lies now, what must stay."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.errors import DataError, UsageError

if TYPE_CHECKING:
    from torch import nn

    from concont.api import Run
    from concont.data.problem import Problem
    from concont.runs.settings import Data

CURE = "if the run's data was moved, say where it lies now: --data, and --images of a table"

DataNow = Annotated[
    str | None,
    typer.Option("--data", help="Where the run's data lies now; by default where it lay."),
]
OwnNetwork = Annotated[
    str | None,
    typer.Option("--model", help="The run's network of your own: path/to/file.py:make."),
]
ImagesNow = Annotated[
    str | None,
    typer.Option("--images", help="Where a table's images lie now; by default where they lay."),
]


def open_run(path: Path, device: str = "auto", network: str | None = None) -> "Run":
    """A finished run; network: FILE.py:make, where it trained one of the user's own."""
    from concont.run import load

    return load(path, device=device, model=None if network is None else make_network(network))


def make_network(reference: str) -> "nn.Module":
    """What the user's own code makes; a run gives it its weights."""
    from concont.config.own_network import load_network

    return load_network(reference)[0]


def read_problem(run: "Run", data: str | None, images: str | None) -> "Problem":
    """What a run learned from; where that is not found, how to say where it lies now."""
    try:
        return run.read_problem(data, images)
    except (UsageError, DataError) as error:
        raise type(error)(f"{error}; {CURE}") from None


def list_inputs(data: "Data") -> list[str | None]:
    """The files that may be read for these settings."""
    return [data.source, data.candidates, data.votes, f"{data.root}/{data.source}.npz"]


def list_run_inputs(
    run: "Run", data: str | None, network: str | None = None
) -> list[str | Path | None]:
    """The files of a run, of its data and of its network, which no output may replace."""
    kept = run.settings
    files = [data, *list_inputs(kept.data), kept.model.weights_file, kept.model.start]
    return [*files, file_of_code(network), *run.path.iterdir()]


def file_of_code(reference: str | None) -> str | None:
    """The file of FILE.py:make; None of a module."""
    place = (reference or "").rpartition(":")[0]
    return place if place.endswith(".py") else None
