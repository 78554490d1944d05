"""The settings of a run that starts from the weights of a finished one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from concont.config.layers import merge
from concont.config.resolve import parse_assignments, read_settings, resolve
from concont.config.validate import get_section
from concont.data.own_data import TABLES, holds_image_files
from concont.errors import UsageError, printable
from concont.nets.weights import WEIGHTS
from concont.runs.folder import RunFolder
from concont.runs.settings import Data, Settings
from concont.types import Plain


def resolve_start(
    path: Path,
    flags: Mapping[str, Any],
    assignments: Iterable[str] = (),
    code: str | None = None,
) -> Settings:
    """The settings of the run in `path`, then flags and `--set`, and its weights to start from.

    code: as in `resolve`.
    """
    run = RunFolder(path)
    base = read_settings(run.require("config.yaml"))
    _refuse_without_weights(run, base)
    asked = merge(flags, parse_assignments(assignments))
    data: Plain = {}
    source = get_section(asked, "data").get("source")
    if source is not None:
        data = _keep_what_fits(base.data, str(source), run.read_json("data.json")["shape"])
    start = {"start": str(path / WEIGHTS), "start_digest": None}
    asked = merge({"data": data, "model": start}, asked)
    settings = resolve(asked, str(path / "config.yaml"), code=code)
    if not settings.has_epochs:
        raise UsageError(f"{settings.method.name} trains no network: leave out --from")
    return replace(settings, recipe=base.recipe)


def _refuse_without_weights(run: RunFolder, base: Settings) -> None:
    where = printable(run.path)
    if not base.has_epochs:
        raise UsageError(f"{where} is of {base.method.name}, which trains no network to start from")
    if not run.finished:
        raise UsageError(f"{where} is not finished; first go on with it: --resume {where}")


def _keep_what_fits(data: Data, source: str, shape: list[int]) -> Plain:
    """How a new source is read: without the old one's files, but those that go with a table.

    Image files get the size that the run has learned from.
    """
    files = holds_image_files(source)
    tables = source.lower().endswith(TABLES) and data.source.lower().endswith(TABLES)
    return {
        "images": data.images if tables else None,
        "unlabeled_images": data.unlabeled_images if tables else None,
        "votes": None,
        "min_votes": 1,
        "candidates": None,
        "image_size": shape[0] if files else None,
        "fit": data.fit if files else "crop",
    }
