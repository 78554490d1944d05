"""A network of the user's own by FILE.py:make, for the command line.

As with methods, only code that the user names is ever run, never what a run folder names.
"""

import logging
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from concont.config.registry import load_code
from concont.errors import UsageError, printable
from concont.rng import SEEDING, derive
from concont.runs.model_settings import Model
from concont.runs.settings import MethodSource, Settings, code_name

log = logging.getLogger("concont")
HOW = "path/to/file.py:make or package.module:make"


def load_network(reference: str, seed: int = 1) -> tuple[nn.Module, MethodSource]:
    """What the function, or the class, that it names returns; its first weights are of the seed."""
    make, source = load_code(reference, "network", HOW)
    if not callable(make):
        place, _, name = source.reference.rpartition(":")
        raise UsageError(f"{printable(place)} holds no function {name}")
    with SEEDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "own network"))
        made = _call(make, reference)
    if not isinstance(made, nn.Module):
        raise UsageError(
            f"{printable(reference)} must return a torch.nn.Module, not {type(made).__name__}"
        )
    return made, source


def take_network(settings: Settings, reference: str | None) -> tuple[Settings, nn.Module | None]:
    """The network that the user named, and the settings with its name; None where there is none.

    Refused where the settings name code of their own, and the user has not named it.
    """
    if reference is None:
        refuse_unnamed(settings.model)
        return settings, None
    if not settings.has_epochs:
        raise UsageError(f"{settings.method.name} trains no network; leave --model out")
    network, source = load_network(reference, settings.train.seed)
    return replace(settings, model=_name(settings.model, reference, source)), network


def refuse_unnamed(model: Model) -> None:
    """Code that settings name is not run for that."""
    if model.own is not None:
        named = printable(code_name(model.own))
        raise UsageError(
            f"{named} is a network of your own, which is run only if you name it: --model "
            "FILE.py:make; in Python, give the module: model=..."
        )


def describe_network(model: nn.Module) -> str:
    """Which class a module is of, as `package.module:Class`."""
    return f"{type(model).__module__}:{type(model).__qualname__}"


def _name(model: Model, reference: str, source: MethodSource) -> Model:
    """With the name and the digest of the code; it may have moved, or changed with a warning."""
    known = model.own
    if known is not None and model.own_digest is None:
        return model  # given as a module, in Python
    if known is not None and code_name(known) != code_name(reference):
        raise UsageError(
            f"this was trained with network {printable(known)}, not with {printable(reference)}"
        )
    if model.own_digest not in (None, source.digest):
        log.warning("%s has changed since these settings were written", source.reference)
    return replace(model, own=source.reference, own_digest=source.digest)


def _call(make: Any, reference: str) -> Any:
    try:
        return make()
    except Exception as error:
        said = printable(" ".join(str(error).split()))
        raise UsageError(f"{reference} fails: {type(error).__name__}: {said}") from error
