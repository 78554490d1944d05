"""The Python interface: train from settings or own arrays; `Run` and `load` are `concont.run`'s."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from concont.config.own_network import take_network
from concont.config.plain_values import to_plain
from concont.config.resolve import resolve
from concont.config.validate import get_section
from concont.data import sources
from concont.data.accept import accept_arrays
from concont.data.own_data import OwnData
from concont.display import find_screen, show_progress
from concont.errors import UsageError
from concont.global_state import kept_global_state
from concont.run import Run, load
from concont.runs.folder import RunFolder
from concont.runs.settings import Settings
from concont.training.trainers import (
    PreparedRun,
    read_run_settings,
    reopen_run,
    trainer_of,
)
from concont.types import Plain

__all__ = ["Run", "load", "train"]


def train(
    config: Settings | Mapping[str, Any] | str | Path | None = None,
    *,
    data: Mapping[str, Any] | None = None,
    model: nn.Module | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    progress: bool | None = None,
) -> Run:
    """Train and return the finished run.

    The process's random streams and determinism are afterwards as they were.

    Parameters
    ----------
    config : Settings, mapping, str or Path
        Nested plain values such as `{"train": {"epochs": 5}}`, or `{"train.epochs": 5}`, laid over
        the recipe of their data or the one that their key `recipe` names; a recipe's name or path;
        or complete settings.
    data : mapping of arrays, optional
        Own arrays by the names of an `.npz`: `x_train`, and `candidates` or `y_train`. Also lists,
        tensors and DataFrames; candidates in every form that `PartialLabelClassifier` takes.
    model : nn.Module, optional
        An own network that turns images (B, channels, H, W) into features (B, dim).
    out : str or Path, optional
        The run folder, new; by default a dated one under `runs/`.
    resume : str or Path, optional
        The folder of a run that was killed, to go on with exactly where its last checkpoint is; in
        the place of `config` and `out`. Arrays, an own network and `{"method": {"name": ...}}` of
        an own method are given again, since a run folder holds none. A finished run is loaded.
    progress : bool, optional
        Whether to show progress, on standard error; by default where a person watches.

    Returns
    -------
    Run
        With its folder, its settings, its summary, and what it takes to predict.

    References
    ----------
    .. [1] "Controller-Guided Partial Label Consistency Regularization with Unlabeled Data",
       AAAI 2024, https://doi.org/10.1609/aaai.v38i14.29484: what is trained by default.

    Examples
    --------
    >>> import concont
    >>> config = {"recipe": "digits", "train": {"epochs": 1, "device": "cpu"}}
    >>> concont.train(config, out="first").summary["steps"]
    22
    """
    if data is not None and not isinstance(data, Mapping):
        raise UsageError(
            f"data holds arrays by name, x_train and candidates; this is {type(data).__name__}. "
            "A file is named in the settings: data.source"
        )
    own = None if data is None else sources.from_arrays(accept_arrays(data))
    with kept_global_state(), torch.inference_mode(False), torch.enable_grad():
        if resume is None:
            run, model = _prepare({} if config is None else config, own, model, out)
        else:
            folder = RunFolder(resume)
            code = _find_method_alone(config, out)
            if folder.finished:
                device = read_run_settings(folder).train.device
                return load(folder.path, device=device, model=model)
            run = reopen_run(folder, own, model, code)
        _execute(run, progress)
        return load(run.folder.path, device=run.settings.train.device, model=model)


def _prepare(
    config: Settings | Mapping[str, Any] | str | Path,
    own: sources.Dataset | None,
    model: nn.Module | None,
    out: str | Path | None,
) -> tuple[PreparedRun, nn.Module | None]:
    """A new run that is ready to start, and its own network, if it has one."""
    plain: Plain = {}
    if isinstance(config, Settings):
        settings = config
    else:
        plain = _read_config(config)
        code = get_section(plain, "method").get("name")  # a caller may name code to run
        like = None if own is None else OwnData(len(own.x_train), own.x_train.shape[1:])
        settings = resolve(plain, recipe=plain.pop("recipe", None), code=code, own=like)
    if own is None and not settings.data.source:
        raise UsageError("there is no data: give arrays as data=..., or a source as data.source")
    folder = RunFolder(out) if out is not None else RunFolder.dated(settings.method.name)
    folder.refuse_if_used()
    if own is not None:  # known by its content, whatever recipe it is trained with
        settings = replace(settings, data=replace(settings.data, source="", root=None))
    if model is None:  # a caller may name the code of a network, too
        settings, model = take_network(settings, get_section(plain, "model").get("own"))
    return trainer_of(settings).prepare(settings, folder, own, model), model


def _read_config(config: Mapping[str, Any] | str | Path) -> Plain:
    """Settings as nested plain values; a text or a path is the recipe's."""
    if isinstance(config, str | Path):
        return {"recipe": str(config)}
    return to_plain(config)


def _find_method_alone(config: Any, out: str | Path | None) -> str | None:
    """The own method that a resumed run may execute, which is all that may be said of it."""
    plain = to_plain(config) if isinstance(config, Mapping) else config
    method = plain.get("method", {}) if isinstance(plain, dict) else {}
    said = plain not in (None, {}) and plain != {"method": {"name": method.get("name")}}
    if said or out is not None:
        raise UsageError("resume takes the settings and the folder of its run; leave out the rest")
    name: str | None = method.get("name")
    return name


def _execute(run: PreparedRun, progress: bool | None) -> None:
    screen = find_screen(progress)
    if screen is None:
        for _ in run.execute():
            pass
    else:
        show_progress(run.execute(), run.epochs, run.settings.method.name, screen)
