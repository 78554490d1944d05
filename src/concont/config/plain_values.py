"""Settings as people write them in Python, as plain values."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from concont.config.layers import merge
from concont.errors import UsageError
from concont.types import Plain


def to_plain(settings: Mapping[str, Any]) -> Plain:
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
        first, dot, rest = name.partition(".")
        plain = merge(plain, {first: to_plain({rest: value}) if dot else _to_plain_value(value)})
    return plain


def _to_plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return to_plain(value)
    if isinstance(value, list | tuple):
        return [_to_plain_value(each) for each in value]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):  # of NumPy or PyTorch
        return value.tolist()
    return value
