"""`concont predict`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, cast

import typer

from concont.cli.app import Device, app, tell
from concont.cli.run_data import OwnNetwork, file_of_code, open_run
from concont.errors import ConcontError, UsageError, printable
from concont.runs.output import refuse_output

if TYPE_CHECKING:
    from concont.answers.predict import Labeler, Prediction, Skipped

ESCAPED = "backslashreplace"  # a file name that is no valid UTF-8 is written, not fatal


class Format(StrEnum):
    """How predictions are written."""

    CSV = "csv"
    JSONL = "jsonl"


@app.command()
def predict(
    model: Annotated[
        Path, typer.Argument(help="The folder of a finished run, or a file of `concont export`.")
    ],
    images: Annotated[
        list[Path],
        typer.Argument(
            help="Image files, or folders of them; of a run on features one file of them: .npy, "
            ".npz, .mat or .csv."
        ),
    ],
    top: Annotated[int, typer.Option(min=1, help="How many classes to name an image.")] = 1,
    form: Annotated[Format, typer.Option("--format", help="CSV or JSON lines.")] = Format.CSV,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file to write; by default standard output."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    network: OwnNetwork = None,
    device: Annotated[Device, typer.Option(help="The GPU where there is one.")] = Device.AUTO,
) -> None:
    """Label images with a finished run, or without PyTorch with an ONNX file made of one."""
    from concont.answers.predict import WRITERS
    from concont.images.files import find_images

    if out is not None:
        refuse_output(out, overwrite, _list_inputs(model, images, network))
    found = find_images(images)
    results = _label(_load_labeler(model, device, network), found, top)
    skipped: list[Skipped] = []
    _write(partial(WRITERS[form], _report_skipped(results, skipped), top=top), out)
    if skipped:
        raise ConcontError(f"{len(skipped)} of {len(found)} images could not be read")


def _label(labeler: "Labeler", found: list[Path], top: int) -> "Iterator[Prediction | Skipped]":
    """What there is to say of image files, or of each row of one file of features."""
    from concont.answers.predict import predict_files, predict_rows

    if len(labeler.shape) > 1:
        return predict_files(labeler, found, top)
    from concont.data.feature_files import read_feature_file

    if len(found) > 1:
        raise UsageError("the run learned from rows of features: give one file of them")
    return predict_rows(labeler, read_feature_file(found[0], labeler.shape[0]), top)


def _list_inputs(
    model: Path, images: list[Path], network: str | None
) -> Iterator[str | Path | None]:
    """All files that are read; listed only where one of them could be the output."""
    from concont.images.files import find_images

    yield file_of_code(network)
    yield from model.iterdir() if model.is_dir() else [model]
    yield from find_images(images)


def _load_labeler(model: Path, device: Device, network: str | None) -> "Labeler":
    """A run from its folder; a file is a model, whatever it is called."""
    if model.is_file() or model.suffix == ".onnx":
        if network is not None:
            raise UsageError(f"{printable(model)} holds its network: leave --model out")
        from concont.deploy.onnx_model import load_onnx

        return load_onnx(model, device)
    return open_run(model, device, network)


def _report_skipped(
    results: "Iterable[Prediction | Skipped]", skipped: "list[Skipped]"
) -> "Iterator[Prediction]":
    """The predictions; what was skipped is told on standard error and put in the list."""
    from concont.answers.predict import Skipped

    for result in results:
        if isinstance(result, Skipped):
            tell(f"skipped {result.image}: {result.reason}", err=True)
            skipped.append(result)
        else:
            yield result


def _write(write: Callable[[TextIO], None], out: Path | None) -> None:
    """To standard output as it comes, or to a file as a whole."""
    from concont.runs.folder import write_whole

    if out is not None:
        write_whole(out, partial(_write_file, write))
        return
    screen = typer.get_text_stream("stdout", encoding="utf-8", errors=ESCAPED)
    write(cast(TextIO, PlainScreen(screen)) if screen.isatty() else screen)
    screen.flush()


@dataclass(frozen=True)
class PlainScreen:
    """Lines for a terminal, in which no name is taken for a command."""

    screen: TextIO

    def write(self, text: str) -> int:
        """Write all letters but control characters, which are named."""
        return self.screen.write("\n".join(map(printable, text.split("\n"))))


def _write_file(write: Callable[[TextIO], None], path: Path) -> None:
    with open(path, "w", encoding="utf-8", errors=ESCAPED, newline="") as file:
        write(file)
