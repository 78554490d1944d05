"""`concont export`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.app import app
from concont.errors import printable

if TYPE_CHECKING:
    from concont.deploy.check import Comparison
    from concont.deploy.quantise import Quantised


class Form(StrEnum):
    """What a network is exported to."""

    ONNX = "onnx"
    TORCHSCRIPT = "torchscript"
    SAFETENSORS = "safetensors"


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")],
    form: Annotated[
        Form, typer.Option("--format", help="What to write: a model, or the weights alone.")
    ] = Form.ONNX,
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit weights and activations; for ONNX.")
    ] = False,
    licence: Annotated[
        str | None, typer.Option(help="Of the model: a name such as MIT, or a sentence.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there.")
    ] = False,
) -> None:
    """Export a finished run to one file, checked against the run on images of its data.

    An exported model takes uint8 images, N x H x W x channels, and gives logits and probabilities.
    """
    from concont.api import load
    from concont.deploy.export import export_run, refuse_output
    from concont.runs.folder import RunFolder

    RunFolder(run).require("summary.json")
    refuse_output(out, run, overwrite)
    exported = export_run(load(run, device="cpu"), out, form.value, licence, int8)
    typer.echo(describe_check(exported.checked))
    if exported.quantised is not None:
        typer.echo(describe_quantised(exported.quantised))
    typer.echo(f"{printable(out)}: {form.value}, {out.stat().st_size / 1e6:.2f} MB")


def describe_check(found: "Comparison") -> str:
    """How the file was compared with the network, and what was found."""
    unread = "; the run's own could not be read" if found.kind == "random" else ""
    return (
        f"answers as the run: largest difference {found.difference:.1e} on {found.images} "
        f"{_name_kind(found.kind)} images in batches of 1, 2 and 7{unread}"
    )


def describe_quantised(found: "Quantised") -> str:
    """Both models side by side."""
    from concont.cli.display import percent

    on = f"{found.measured_on:,} {_name_kind(found.kind)} images"
    lines = [f"calibrated on {found.calibrated_on} training images; on {on}:"]
    for name, size, accuracy in (
        ("float", found.bytes_float, found.accuracy_float),
        ("int8", found.bytes_int8, found.accuracy_int8),
    ):
        said = "" if accuracy is None else f", accuracy {percent(accuracy)}"
        lines.append(f"  {name:5} {size / 1e6:.2f} MB{said}")
    return "\n".join([*lines, f"  the same label on {percent(found.agreement)}"])


def _name_kind(kind: str) -> str:
    return "held-out" if kind == "holdout" else kind
