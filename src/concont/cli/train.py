"""`concont train`."""

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from concont.cli.app import app, tell
from concont.cli.execute import resume_run, start_run
from concont.cli.ranked import on_every_rank
from concont.config.registry import HOW, registered_names
from concont.errors import UsageError, printable
from concont.ranks import world

OWN_NETWORK = "path/to/file.py:make, which returns a torch.nn.Module that gives features"

if TYPE_CHECKING:
    from concont.runs.settings import Settings


class Fit(StrEnum):
    """How an image is made square."""

    CROP = "crop"
    PAD = "pad"
    STRETCH = "stretch"


class TrainCommand(TyperCommand):
    """`--unlabeled DIR` names further images; without a folder after it, it is a switch."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual, with the one form turned into an option of its own."""
        told = list(args)
        for place, word in enumerate(args):
            following = args[place + 1 : place + 2]
            if word == "--unlabeled" and following and not following[0].startswith("-"):
                told[place] = "--unlabeled-images"
            elif word.startswith("--unlabeled="):
                told[place] = word.replace("--unlabeled", "--unlabeled-images", 1)
        return super().parse_args(ctx, told)


@app.command(cls=TrainCommand)
@on_every_rank
def train(
    data: Annotated[
        str | None,
        typer.Option(
            help="A source of `concont datasets`; an .npz or a .mat; a table of images, .csv or "
            ".parquet; a folder of images. Not with --resume."
        ),
    ] = None,
    images: Annotated[
        str | None, typer.Option(help="The folder of a table's images; else the table's own.")
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option(
            help="Annotators' votes on the images of the folder --data, .csv or .parquet."
        ),
    ] = None,
    unlabeled_images: Annotated[
        str | None,
        typer.Option(help="A folder of further images that nobody labelled; or --unlabeled DIR."),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(help="Side in pixels that images are given; else their own, at most 64."),
    ] = None,
    fit: Annotated[
        Fit | None, typer.Option(help="How images are made square: crop, pad or stretch.")
    ] = None,
    root: Annotated[
        str | None, typer.Option(help="Where named sources lie; else $CONCONT_DATA, or a cache.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch a named source that is not there.")
    ] = False,
    recipe: Annotated[
        str | None, typer.Option(help="Settings by name or YAML file; by default the data's own.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(registered_names())}; or one of your own: {HOW}.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help=f"A network of your own: {OWN_NETWORK}.")
    ] = None,
    labeled: Annotated[
        float | None,
        typer.Option(help="Images that keep a candidate set: a share up to 1, or a count."),
    ] = None,
    ambiguity: Annotated[
        float | None, typer.Option(help="q: the chance that a wrong label joins a set.")
    ] = None,
    unlabeled: Annotated[
        bool | None,
        typer.Option(
            "--unlabeled/--no-unlabeled",
            help="Use the other images, without labels.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seeds everything.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Instead of --epochs: as many as fit into this time.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    compile_: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile",
            help="Compile the step; by default on a GPU only.",
            show_default=False,
        ),
    ] = None,
    deterministic: Annotated[
        bool | None, typer.Option("--deterministic", help="Refuse operations that are not.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, section.key=value; repeatable.")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A finished run, whose weights and settings the new one starts with; other "
            "options are laid over them. Not with --recipe.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Train exactly these settings, a complete config.yaml; takes no other option but "
            "--out, --overwrite, and --method and --model for code of your own."
        ),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Show the merged settings and stop.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The run folder; by default a dated one under runs/.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in --out.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with the run in this folder; takes no other option but --method and "
            "--model, which code of your own needs."
        ),
    ] = None,
) -> None:
    """Train a classifier and write a run folder."""
    flags: dict[str, dict[str, Any]] = {
        "data": {
            "source": data,
            "root": root,
            "images": images,
            "votes": votes,
            "unlabeled_images": unlabeled_images,
            "image_size": image_size,
            "fit": fit,
            "labeled": labeled,
            "ambiguity": ambiguity,
            "unlabeled": unlabeled,
            "seed": seed,
        },
        "method": {"name": method},
        "train": {
            "seed": seed,
            "epochs": epochs,
            "device": device,
            "compile": compile_,
            "deterministic": deterministic,
        },
    }
    given = {
        section: {key: value for key, value in values.items() if value is not None}
        for section, values in flags.items()
    }
    _check_minutes(minutes, epochs)
    named = any((given["data"], given["train"], recipe, start, assignments, print_config, minutes))
    if config is not None:
        if named or resume or download:
            raise UsageError(
                "--config takes no other option but --out, --overwrite, --method and --model"
            )
        from concont.config.resolve import read_settings

        start_run(read_settings(config, method), out, overwrite, network=model)
        return
    if resume is not None:
        if named or download or out or overwrite:
            raise UsageError(
                "--resume takes the settings of its run; give no other option with it but --method "
                "and --model"
            )
        resume_run(resume, method, model)
        return
    if start is not None:
        _refuse_beside_start(start, recipe, out)
    if download and not print_config:
        with world.lead_first("download"):
            _download(data or "", root)
    settings = _resolve(given, recipe, assignments or [], start)
    if print_config:
        from concont.config.resolve import write_yaml

        typer.echo(write_yaml(settings), nl=False)
        return
    start_run(settings, out, overwrite, minutes, model)


def _check_minutes(minutes: float | None, epochs: int | None) -> None:
    if minutes is not None and epochs is not None:
        raise UsageError("--minutes takes the place of --epochs; give one of them")
    if minutes is not None and not 0 < minutes < math.inf:
        raise UsageError(f"--minutes is {minutes:g}; it must be above 0")


def _download(source: str, root: str | None) -> None:
    from concont.data.named import default_root, download_source

    download_source(source, Path(root) if root else default_root())


def _refuse_beside_start(start: Path, recipe: str | None, out: Path | None) -> None:
    if recipe is not None:
        raise UsageError("--from takes the settings of its run; leave out --recipe")
    if out is not None and out.resolve() == start.resolve():
        raise UsageError(f"--out {printable(out)} is the run to start from; choose another folder")


def _resolve(
    flags: dict[str, Any], recipe: str | None, assignments: list[str], start: Path | None
) -> "Settings":
    from concont.config.resolve import resolve
    from concont.config.start import resolve_start

    code = flags["method"].get("name")
    if start is None:
        settings = resolve(flags, recipe, assignments, code=code)
    else:
        settings = resolve_start(start, flags, assignments, code)
    _tell_unused(flags["train"], settings)
    return settings


def _tell_unused(flags: dict[str, Any], settings: "Settings") -> None:
    """Flags that say how to train a network mean nothing to a method that trains none."""
    for name in ("epochs", "compile", "deterministic"):
        if name in flags and not settings.has_epochs:
            tell(f"{settings.method.name} trains no network: --{name} is not used", err=True)
