"""Settings as people write them in Python, as plain values."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from concont.config.layers import merge
from concont.config.yaml_text import DEEPEST
from concont.errors import UsageError
from concont.types import Plain

TOO_DEEP = f"settings are nested more than {DEEPEST} deep"


def to_plain(settings: Mapping[str, Any], depth: int = 0) -> Plain:
    """The same with NumPy's numbers, tensors of one number, tuples and paths as what YAML knows.

    A name with dots stands for nested ones: `{"train.epochs": 3}` is `{"train": {"epochs": 3}}`.
    """
    if not isinstance(settings, Mapping):
        kind = type(settings).__name__
        raise UsageError(f"settings are given by name, as a dict, and not as {kind}")
    plain: Plain = {}
    for name, value in settings.items():
        if not isinstance(name, str):
            raise UsageError(f"settings have names; {name!r} is none")
        *sections, last = name.split(".")
        if len(sections) > DEEPEST:
            raise UsageError(TOO_DEEP)
        value = _to_plain_value(value, depth + 1)
        for section in reversed((*sections, last)):
            value = {section: value}
        plain = merge(plain, value)
    return plain


def _to_plain_value(value: Any, depth: int) -> Any:
    if depth > DEEPEST:  # or one that holds itself
        raise UsageError(TOO_DEEP)
    if isinstance(value, Mapping):
        return to_plain(value, depth)
    if isinstance(value, list | tuple):
        return [_to_plain_value(each, depth + 1) for each in value]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):  # of NumPy or PyTorch
        return value.tolist()
    return value
