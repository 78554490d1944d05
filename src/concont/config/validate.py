"""Plain values of a section as a typed record, or one line a mistake."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import groupby
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from concont.errors import UsageError
from concont.types import Plain

# What YAML reads as a truth value, in the words that a setting's text may be.
BOOLEANS = {True: ("true", "yes", "on"), False: ("false", "no", "off")}
# Settings of earlier versions: dropped where a run or record holds them, refused in a user's hand.
RETIRED = {
    "train.skip_idle": "method.weak_rows=partial, with method.teacher=momentum, spares more",
}


def get_section(plain: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section of settings, empty where there is none."""
    values = plain.get(name) or {}
    if not isinstance(values, Mapping):
        raise UsageError(f"section {name} is {values!r}; it must hold key: value lines")
    return values


def check_section(name: str, kind: type, values: Mapping[str, Any]) -> Any:
    """The record of this kind; refuses unknown keys, wrong types, values out of range."""
    _refuse_unknown(kind, values, name)
    values = _with_words(kind, values)
    try:
        # JSON's strict mode: no text for a number, no number for a bool, but lists for tuples.
        return _adapter(kind).validate_json(json.dumps(values, default=str), strict=True)
    except ValidationError as error:
        found = groupby(error.errors(), lambda each: _path(name, values, each["loc"]))
        raise UsageError(*(_explain(path, *errors) for path, errors in found)) from None


def drop_retired(plain: Mapping[str, Any]) -> Plain:
    """Stored settings without those that are gone."""
    return {
        name: {k: v for k, v in values.items() if f"{name}.{k}" not in RETIRED}
        if isinstance(values, Mapping)
        else values
        for name, values in plain.items()
    }


def suggest(name: str, known: list[str]) -> str:
    """The nearest name, or all there are, as the end of a line that refuses one."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _refuse_unknown(kind: type, values: Mapping[str, Any], path: str) -> None:
    hints = get_type_hints(kind)
    known = [f.name for f in fields(kind)]
    for key, value in values.items():
        if f"{path}.{key}" in RETIRED:
            raise UsageError(f"there is no {path}.{key} any more: {RETIRED[f'{path}.{key}']}")
        if key not in known:
            raise UsageError(f"unknown setting {path}.{key}{suggest(str(key), known)}")
        if is_dataclass(hints[key]) and isinstance(value, Mapping):
            _refuse_unknown(hints[key], value, f"{path}.{key}")


def _with_words(kind: type, values: Mapping[str, Any]) -> Plain:
    """The same with words that YAML read as a truth value or a number turned back into words."""
    hints = get_type_hints(kind)
    return {key: _word(value, _words(hints[key])) for key, value in values.items()}


def _word(value: Any, words: frozenset[str]) -> Any:
    if isinstance(value, bool):
        return next((word for word in BOOLEANS[value] if word in words), value)
    return str(value) if isinstance(value, int | float) and str(value) in words else value


def _words(hint: Any) -> frozenset[str]:
    """The texts that a setting of this type may be."""
    if get_origin(hint) is Literal:
        return frozenset(word for word in get_args(hint) if isinstance(word, str))
    if get_origin(hint) in (Union, UnionType):
        return frozenset().union(*(_words(part) for part in get_args(hint)))
    return frozenset()


def _path(path: str, values: Any, where: tuple[int | str, ...]) -> str:
    """The setting that an error is in; below a plain value pydantic names the kinds it may be."""
    for part in where:
        inner = dict(enumerate(values)) if isinstance(values, list | tuple) else values
        if isinstance(inner, Mapping):
            path, values = f"{path}.{part}", inner.get(part)
    return path


def _explain(path: str, error: Any, *others: Any) -> str:
    """What is wrong with a setting; `others`: with the other kinds of value that it may be."""
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":
        return f"{path}: {message}"
    rest = "".join(f", or {other['msg'].removeprefix('Input should be ')}" for other in others)
    return f"{path} is {json.dumps(error['input'])}: {message[0].lower()}{message[1:]}{rest}"
