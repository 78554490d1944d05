"""Backbones of the timm package, which is imported only when one of them is asked for."""

import logging
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from concont.errors import ConcontError, DataError, UsageError
from concont.nets.backbones import Shape
from concont.nets.weights import list_names, refuse_changed_weights, refuse_other_names
from concont.runs.model_settings import TIMM, Model

CURE = "pip install 'concont[timm]'"


def import_timm() -> Any:
    """The package, or a line that says how to get it."""
    try:
        import timm
    except ImportError:
        raise UsageError(f"a {TIMM}NAME needs the package timm: {CURE}") from None
    # They tell of every file and every attempt; what goes wrong is told here.
    for name in ("timm", "huggingface_hub"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return timm


def refuse_unknown_model(model: Model) -> None:
    """A name that timm does not have is refused with the nearest; so is one of weights unknown."""
    timm, name = import_timm(), _name_of(model)
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        raise UsageError(f"timm has no model {name!r}{_suggest(architecture, timm.list_models())}")
    tags = [
        each.partition(".")[2] for each in timm.list_models(f"{architecture}.*", pretrained=True)
    ]
    if tag and tag not in tags:
        raise UsageError(f"timm has no weights {tag!r} of {architecture}{_suggest(tag, tags)}")


def make_timm_backbone(model: Model, shape: Shape, load_weights: bool = True) -> nn.Module:
    """timm's model for images of `shape` (channels, H, W), without its classifier, pooled.

    load_weights: those that the settings name, if any; else random ones, to be replaced.
    """
    refuse_unknown_model(model)
    options = {"num_classes": 0, "in_chans": shape[0]} | _size_option(model, shape)
    backbone = _create(model, shape, options)
    _refuse_size(backbone, model, shape)
    if not load_weights or model.weights is None:
        return backbone
    if model.weights_file is None:
        return _create_pretrained(model, options)
    return _create_from_file(model, shape, options, backbone.state_dict())


def pretrained_moments(model: Model, channels: int) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each channel that the model's own weights were learned with."""
    known = _read_cfg(model)
    mean, std = (torch.tensor(known[name], dtype=torch.float32) for name in ("mean", "std"))
    if channels == len(mean):
        return mean, std
    return mean.mean().repeat(channels), std.mean().repeat(channels)


def _name_of(model: Model) -> str:
    return model.name.removeprefix(TIMM)


def _suggest(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else "; timm.list_models() names all"


def _read_cfg(model: Model) -> dict[str, Any]:
    found = import_timm().get_pretrained_cfg(_name_of(model))
    return dict(found.to_dict()) if found is not None else {}


def _size_option(model: Model, shape: Shape) -> dict[str, Any]:
    """A model of a fixed size is told another one."""
    known = _read_cfg(model)
    fixed = known.get("fixed_input_size") and tuple(known["input_size"][1:]) != shape[1:]
    return {"img_size": shape[1:]} if fixed else {}


def _create(model: Model, shape: Shape, options: dict[str, Any], **weights: Any) -> nn.Module:
    """timm's model; where it cannot be told its size, one clear line."""
    try:
        found: nn.Module = import_timm().create_model(_name_of(model), **options, **weights)
    except (TypeError, ValueError, AssertionError, ZeroDivisionError) as error:
        if "img_size" not in options:
            raise
        raise _wrong_size(model, shape, error) from None
    return found


def _create_pretrained(model: Model, options: dict[str, Any]) -> nn.Module:
    try:
        found: nn.Module = import_timm().create_model(_name_of(model), pretrained=True, **options)
    except Exception as error:  # whatever can go wrong on the way to a file elsewhere
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ConcontError(
            f"no pretrained weights of {model.name}: {said}; where there is no network, fetch "
            "them elsewhere and give the file: model.weights=FILE.safetensors"
        ) from None
    return found


def _create_from_file(
    model: Model, shape: Shape, options: dict[str, Any], wanted: Iterable[str]
) -> nn.Module:
    """timm adapts what the file holds to the number of channels and to the size."""
    path = Path(model.weights_file or "")
    refuse_changed_weights(model.weights_digest, path)
    heads = _read_cfg(model).get("classifier") or ()
    refuse_other_names(path, wanted, (heads,) if isinstance(heads, str) else heads)
    where = {"file": str(path), "num_classes": -1}  # so that timm drops any classifier
    try:
        return _create(model, shape, options, pretrained=True, pretrained_cfg_overlay=where)
    except (RuntimeError, KeyError) as error:
        lines = [line.strip() for line in str(error).splitlines()]
        sizes = [line.removeprefix("size mismatch for ") for line in lines if "mismatch" in line]
        why = f"other sizes: {list_names(sizes)}" if sizes else str(error)
        raise DataError(f"weights {path} do not fit {model.name}: {why}") from None


def _refuse_size(backbone: nn.Module, model: Model, shape: Shape) -> None:
    try:
        with torch.no_grad():
            backbone.eval()(torch.zeros(2, *shape))
    except (RuntimeError, AssertionError, ValueError) as error:
        raise _wrong_size(model, shape, error) from None


def _wrong_size(model: Model, shape: Shape, error: Exception) -> UsageError:
    known, (height, width) = _read_cfg(model), shape[1:]
    own_height, own_width = known.get("input_size", (3, 224, 224))[1:]
    said = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return UsageError(
        f"{model.name} cannot take images of {height} x {width}; it was made for "
        f"{own_height} x {own_width}: --image-size {own_width} ({said})"
    )
