"""Settings as one list: each value by the name that `--set` takes."""

from collections.abc import Mapping
from typing import Any

from concont.runs.settings import (
    DATA_PATHS,
    NO_EFFECT_ON_RESULT,
    Settings,
    code_name,
    forget,
)
from concont.types import Plain

# Where things lie on a user's machine, and what changes no result, is told to nobody else. What was
# read from there is known by its digest.
UNTOLD = {
    *("recipe", "data.source", "data.candidates", "model.weights", "model.start"),
    *(f"data.{name}" for name in DATA_PATHS),
    *(f"train.{name}" for name in NO_EFFECT_ON_RESULT),
}


def flatten(plain: Mapping[str, Any], prefix: str = "") -> Plain:
    """The values of nested sections: `{"train": {"epochs": 5}}` as `{"train.epochs": 5}`."""
    flat: Plain = {}
    for name, value in plain.items():
        inner = isinstance(value, Mapping)
        flat |= flatten(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value}
    return flat


def flatten_settings(settings: Settings) -> Plain:
    """Recipe and values of the sections that the method looks at."""
    plain = settings.as_dict()
    return flatten({name: plain[name] for name in ("recipe", *settings.method.sections)})


def list_told(settings: Settings) -> Plain:
    """Those of them that have an effect on the run, and say nothing of the machine."""
    plain = settings.as_dict()
    for path in settings.list_unused():
        forget(plain, path)
    plain = {name: plain[name] for name in settings.method.sections}
    return drop_untold(flatten(plain))


def list_places(settings: Settings) -> list[str]:
    """The paths among them."""
    data = vars(settings.data)
    found = [data[name] for name in ("source", "candidates", *DATA_PATHS)]
    if settings.model.own is not None:
        found.append(settings.model.own.rpartition(":")[0])
    return [path for path in (*found, *settings.model.files.values()) if path]


def drop_untold(flat: Mapping[str, Any]) -> Plain:
    """A flat list without what is told to nobody; a method of the user's own without its folder."""
    told = {name: value for name, value in flat.items() if name not in UNTOLD}
    if "method.name" in told:
        told["method.name"] = shorten_method(str(told["method.name"]))
    if told.get("model.own") is not None:
        told["model.own"] = code_name(str(told["model.own"]))
    return told


def shorten_method(name: str) -> str:
    """What a method is called: FILE.py:Class without the file's folder, or a registered name."""
    return code_name(name) if ":" in name else name
