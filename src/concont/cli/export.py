"""`concont export`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concont.cli.app import app
from concont.cli.run_data import (
    DataNow,
    ImagesNow,
    OwnNetwork,
    list_run_inputs,
    open_run,
    read_problem,
)
from concont.errors import UsageError, printable
from concont.runs.output import refuse_output

if TYPE_CHECKING:
    from concont.deploy.export import Exported

MANY = 2000  # images that take more than a moment to measure


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
    card: Annotated[
        bool,
        typer.Option(
            "--card/--no-card", help="Write MODEL_CARD.md beside the file.", show_default=False
        ),
    ] = True,
    data: DataNow = None,
    images: ImagesNow = None,
    model: OwnNetwork = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there.")
    ] = False,
) -> None:
    """Export a finished run to one file, checked against the run on images of its data.

    An exported model takes uint8 images, N x H x W x channels, and gives logits and probabilities.
    """
    from concont.deploy.export import export_run
    from concont.deploy.model_card import NAME, refuse_card, write_card
    from concont.deploy.wording import describe_check, describe_quantised

    trained = open_run(run, network=model)
    refuse_output(out, overwrite, list_run_inputs(trained, data, model))
    if card and out.name == NAME:
        raise UsageError(f"{printable(out)} is what the card is called; choose another name")
    if card:
        refuse_card(out.with_name(NAME), overwrite)
    moved = data is not None or images is not None
    problem = read_problem(trained, data, images) if moved or int8 else None
    exported = export_run(trained, out, form.value, licence, int8, problem)
    typer.echo(describe_check(exported.checked))
    if exported.quantised is not None:
        typer.echo(describe_quantised(exported.quantised))
    typer.echo(f"{printable(out)}: {form.value}, {out.stat().st_size / 1e6:.2f} MB")
    if card:
        _announce_figures(exported)
        typer.echo(f"{printable(write_card(trained, exported))}: what it is, and its limits")


def _announce_figures(exported: "Exported") -> None:
    """The card's figures may take minutes on a CPU."""
    held = None if exported.problem is None else exported.problem.test_images
    if held is not None and len(held) > MANY:
        told = f"measuring {len(held):,} images for the card; --no-card writes none"
        typer.echo(told, err=True)
