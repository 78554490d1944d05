"""The methods that train a network, a file each: the file's name is what `--method` calls it."""

import importlib
import pkgutil
from dataclasses import is_dataclass
from functools import cache
from typing import Any

from concont.types import Method


def method_names() -> list[str]:
    """What the files are called; none of them is imported, which would take PyTorch's seconds."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


@cache
def load_method(name: str) -> type[Method]:
    """The class of a file that has the file's name."""
    module = importlib.import_module(f"{__name__}.{name}")
    found: list[Any] = [
        kind
        for kind in vars(module).values()
        if is_dataclass(kind)
        and kind.__module__ == module.__name__
        and getattr(kind, "name", None) == name
    ]
    if len(found) != 1:
        raise ImportError(f"{module.__file__} must hold one dataclass whose name is {name!r}")
    kind: type[Method] = found[0]
    return kind
