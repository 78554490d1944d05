"""From built-in defaults, a recipe, flags and `--set` to checked settings, in that order."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError

from concont.classic.options import CLASSICS
from concont.config.recipe_files import overlay, read_recipe, read_yaml, recipe_names, row_names
from concont.errors import UsageError
from concont.methods import METHODS
from concont.runs.settings import NAMED_VIEWS, Data, Model, Optimizer, Settings, Train, Views
from concont.types import Named

SECTIONS: dict[str, type] = {
    "data": Data,
    "views": Views,
    "model": Model,
    "optimizer": Optimizer,
    "train": Train,
}
Plain = dict[str, Any]
PAPER = ("cifar10", "cifar100", "svhn")


def write_yaml(settings: Settings) -> str:
    """The complete configuration as text that `--recipe` reads back."""
    return yaml.safe_dump(settings.as_dict(), sort_keys=False, default_flow_style=None)


def parse_assignments(assignments: Iterable[str]) -> Plain:
    """`["train.epochs=5", ...]` as nested sections."""
    result: Plain = {}
    for text in assignments:
        path, equals, value = text.partition("=")
        names = path.strip().split(".")
        if not equals or len(names) < 2 or not all(names):
            raise UsageError(f"--set {text}: write it as section.key=value, e.g. train.epochs=5")
        inner = result
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise UsageError(f"--set {text}: {name} is set to a value already")
        inner[names[-1]] = read_yaml(value, f"--set {text}")
    return result


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Plain:
    """`over` laid on `base`, section by section; what both hold as mappings is merged."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def resolve(
    flags: Mapping[str, Any], recipe: str | None = None, assignments: Iterable[str] = ()
) -> Settings:
    """The settings of a run: defaults, then the recipe, then flags and `--set`.

    A recipe is a data set's, a row of the paper's tables laid on it, both joined by `+`, or a file.
    """
    asked = expand(merge(flags, parse_assignments(assignments)))
    source = _section(asked, "data").get("source")
    own = source if source in recipe_names() else "default"
    name, rows = _layers(recipe, own)
    over = expand(merge(_overlaid(rows), asked))
    base = expand(read_recipe(name))
    chosen = _section(over, "method").get("name")
    for row in rows:
        if overlay("rows")[row]["method"]["name"] != chosen:
            raise UsageError(f"recipe {row} is not a row of method {chosen}; leave one of them out")
    if isinstance(chosen, str) and chosen != _section(base, "method").get("name", "concont"):
        base = expand(_for_method(base, chosen, name))
    label = "+".join([_label(name), *rows])
    settings = check({**merge(base, over), "recipe": label})
    return replace(settings, data=_absolute(settings.data))


def read_settings(path: Path) -> Settings:
    """The settings of a file such as `config.yaml`; what it leaves out has its default.

    Nothing else is laid on it: no recipe, whatever the file calls its own.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    content = read_yaml(text, str(path))
    if not isinstance(content, Mapping) or not content:
        raise UsageError(f"{path} must hold sections such as 'train:', found none")
    try:
        settings = check(expand(dict(content)))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return replace(settings, data=_absolute(settings.data))


def every_method() -> dict[str, type[Any]]:
    """The settings of every method by name, with a network or without."""
    return {**METHODS, **CLASSICS}


def _layers(recipe: str | None, own: str) -> tuple[str, list[str]]:
    """The recipe to begin with, and the rows to lay on it."""
    if recipe is None or Path(recipe).is_file():
        return recipe or own, []
    parts = recipe.split("+")
    rows = [part for part in parts if part in row_names()]
    bases = [part for part in parts if part not in rows]
    if len(bases) > 1:
        raise UsageError(f"recipe {recipe}: {' and '.join(bases)} cannot both be begun with")
    return (bases[0] if bases else own), rows


def _overlaid(rows: list[str]) -> Plain:
    known, result = overlay("rows"), Plain()
    if len({known[row]["method"]["name"] for row in rows}) > 1:
        raise UsageError(f"{' and '.join(rows)} are rows of different methods")
    for row in rows:
        result = merge(result, known[row])
    return result


def _for_method(base: Plain, method: str, recipe: str) -> Plain:
    """A recipe for another method than its own.

    Its method settings go, but for thresholds, the queue and the key network's pace, which belong
    to the data and the length of a run. On the paper's data sets the
    method's own views, optimiser and batch are laid on it.
    """
    known = every_method()
    taken = {f.name for f in fields(known[method])} if method in known else set()
    kept = {
        key: value
        for key, value in _section(base, "method").items()
        if key.startswith(("threshold", "queue", "momentum")) and key in taken
    }
    base = {**base, "method": kept}
    if recipe not in PAPER:
        return base
    wanted = overlay("methods").get(method, {})
    return merge(merge(base, expand(wanted.get("any", {}))), expand(wanted.get(recipe, {})))


def expand(plain: Plain) -> Plain:
    """The same with the names of views replaced by all of their values."""
    values = {}
    for kind, variants in NAMED_VIEWS.items():
        name = _section(plain, "views").get(kind)
        if not isinstance(name, str):
            continue
        if name not in variants:
            raise UsageError(
                f"views.{kind} is {name!r}; it must be one of {', '.join(variants)}, or settings"
            )
        values[kind] = asdict(variants[name])
    return merge(plain, {"views": values}) if values else plain


def _absolute(data: Data) -> Data:
    """Paths that any working folder can resume from; a source without a suffix is a name."""
    source = _full(data.source) if Path(data.source).suffix else data.source
    root, candidates = (path and _full(path) for path in (data.root, data.candidates))
    return replace(data, source=source, root=root, candidates=candidates)


def _full(path: str) -> str:
    return str(Path(path).absolute())


def check(plain: Mapping[str, Any]) -> Settings:
    """Typed settings from plain values; refuses unknown keys, wrong types, values out of range."""
    known = [*SECTIONS, "method", "recipe"]
    for name in plain:
        if name not in known:
            raise UsageError(f"unknown section {name}{_nearest(str(name), known)}")
    method = _check_method(plain)
    sections = {name: _check_section(name, kind, plain) for name, kind in SECTIONS.items()}
    if method.reads_truth:  # a bound: every image, with its true label
        everything = replace(sections["data"], labeled=None, ambiguity=None, unlabeled=True)
        sections["data"] = replace(everything, at_least_two=False, candidates=None)
    if sections["data"].unlabeled is None:
        sections["data"] = replace(sections["data"], unlabeled=method.wants_unlabeled)
    return Settings(method=method, recipe=str(plain.get("recipe", "default")), **sections)


def _check_method(plain: Mapping[str, Any]) -> Named:
    name = _section(plain, "method").get("name", "concont")
    known = every_method()
    if not isinstance(name, str) or name not in known:
        raise UsageError(f"method.name is {name!r}; it must be one of {', '.join(known)}")
    method: Named = _check_section("method", known[name], plain)
    return method


def _check_section(name: str, kind: type, plain: Mapping[str, Any]) -> Any:
    values = _section(plain, name)
    _refuse_unknown(kind, values, name)
    try:
        # JSON's strict mode: no text for a number, no number for a bool, but lists for tuples.
        return _adapter(kind).validate_json(json.dumps(values, default=str), strict=True)
    except ValidationError as error:
        found = groupby(error.errors(), lambda each: _path(name, values, each["loc"]))
        raise UsageError("\n".join(_explain(path, *errors) for path, errors in found)) from None


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _section(plain: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    values = plain.get(name) or {}
    if not isinstance(values, Mapping):
        raise UsageError(f"section {name} is {values!r}; it must hold key: value lines")
    return values


def _refuse_unknown(kind: type, values: Mapping[str, Any], path: str) -> None:
    hints = get_type_hints(kind)
    known = [f.name for f in fields(kind)]
    for key, value in values.items():
        if key not in known:
            raise UsageError(f"unknown setting {path}.{key}{_nearest(str(key), known)}")
        if is_dataclass(hints[key]) and isinstance(value, Mapping):
            _refuse_unknown(hints[key], value, f"{path}.{key}")


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


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"


def _label(recipe: str) -> str:
    """How a record calls a recipe: its name, never a path."""
    return recipe if recipe in recipe_names() else Path(recipe).stem
