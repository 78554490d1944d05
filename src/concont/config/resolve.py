"""From built-in defaults, a recipe, flags and `--set` to checked settings, in that order."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from concont.config.layers import (
    USUAL_METHOD,
    Layer,
    drop_unused,
    expand,
    last_method,
    layers_for,
    merge,
    merge_layers,
)
from concont.config.own_data import choose_recipe, complete_recipe
from concont.config.recipe_files import (
    Recipe,
    read_recipe,
    read_rows,
    recipe_names,
    row_names,
)
from concont.config.registry import (
    HOW,
    is_reference,
    load_reference,
    load_registered,
    registered_names,
    same_method,
)
from concont.config.validate import check_section, drop_retired, get_section, suggest
from concont.config.yaml_text import DEEPEST, read_yaml, read_yaml_file
from concont.data.own_data import OwnData, measure_data
from concont.errors import UsageError
from concont.nets.weights import identify_weights
from concont.runs.model_settings import Model
from concont.runs.settings import (
    DATA_PATHS,
    NAMED_SOURCES,
    NOT_RUN,
    Data,
    MethodSource,
    Optimizer,
    Settings,
    Train,
    UnloadedMethod,
    code_name,
)
from concont.runs.view_settings import Views
from concont.types import Named, Plain

log = logging.getLogger("concont")
SECTIONS: dict[str, type] = {
    "data": Data,
    "views": Views,
    "model": Model,
    "optimizer": Optimizer,
    "train": Train,
}


def write_yaml(settings: Settings) -> str:
    """The complete configuration as text that `--recipe` reads back."""
    return yaml.safe_dump(settings.as_dict(), sort_keys=False, default_flow_style=None)


def parse_assignments(assignments: Iterable[str]) -> Plain:
    """`["train.epochs=5", ...]` as nested sections."""
    result: Plain = {}
    for text in assignments:
        path, equals, value = text.partition("=")
        names = path.strip().split(".")
        if not equals or not 2 <= len(names) <= DEEPEST or not all(names):
            raise UsageError(f"--set {text}: write it as section.key=value, e.g. train.epochs=5")
        inner = result
        for name in names[:-1]:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise UsageError(f"--set {text}: {name} is set to a value already")
        inner[names[-1]] = read_yaml(value, f"--set {text}")
    return result


def resolve(
    flags: Mapping[str, Any],
    recipe: str | None = None,
    assignments: Iterable[str] = (),
    code: str | None = None,
    own: OwnData | None = None,
) -> Settings:
    """The settings of a run: defaults, then the recipe, then flags and `--set`.

    A recipe is a data set's, a row of the paper's tables laid on it, both joined by `+`, or a file;
    where none is given, the data's own, or the one that suits it.
    code: the method that the user asked to run; another one's code, whoever names it, is not run.
    own: data that is no file; where it is one, the file is looked at.
    """
    asked = expand(merge(flags, parse_assignments(assignments)))
    source = get_section(asked, "data").get("source")
    known = source if source in NAMED_SOURCES and source in recipe_names() else None
    if own is None and known is None and source:
        own = _look_at(asked)
    usual = known or ("default" if own is None else _recipe_for(asked, own))
    name, rows = _split_rows(recipe, usual)
    recipes, row = read_recipe(name), _merge_rows(rows)
    chosen = last_method([*(each.content for each in recipes), row, asked])
    for each in rows:
        if read_rows()[each]["method"]["name"] != chosen:
            message = f"recipe {each} is not a row of method {chosen}; leave one of them out"
            raise UsageError(message)
    kind, method_source = _find_method(chosen, code)
    if kind is None:
        raise UsageError(f"{chosen} {NOT_RUN} {chosen}")
    layers = [*layers_for(kind, chosen, recipes), Layer(row), Layer(asked)]
    if own is not None:
        _add_what_data_decides(layers, recipes, own)
    plain = merge_layers(layers, {**SECTIONS, "method": kind})
    label = "+".join([recipes[-1].label, *rows])
    settings = _check(plain, kind, method_source, label)
    model = identify_weights(settings.model)
    return replace(settings, data=_absolute(settings.data), model=model)


def _look_at(asked: Mapping[str, Any]) -> OwnData | None:
    """What the data of these settings is like; None where there is none to look at."""
    section = get_section(asked, "data")
    return measure_data(check_section("data", Data, section))


def _add_what_data_decides(layers: list[Layer], recipes: Sequence[Recipe], own: OwnData) -> None:
    """Put what follows from the data above the package's recipes and below the user's words."""
    place = sum(2 for recipe in recipes if recipe.shipped)  # each with what the method brings
    usual, said = (
        get_section(reduce(merge, (layer.content for layer in part), Plain()), "train")
        for part in (layers[:place], layers[place:])
    )
    check_section("train", Train, said)
    names = [recipe.name for recipe in recipes]
    layers.insert(place, Layer(complete_recipe(names, own, usual, said)))


def _recipe_for(asked: Mapping[str, Any], own: OwnData) -> str:
    """The recipe for data of one's own on the device of these settings."""
    from concont.device import choose_device

    device = check_section("train", Train, get_section(asked, "train")).device
    return choose_recipe(own, choose_device(device).type)


def check(plain: Mapping[str, Any], code: str | None = None) -> Settings:
    """Typed settings from stored ones: a run's `config.yaml`, or those in a record.

    What earlier versions wrote is read: a setting that is gone, or has no effect, is left out. A
    method of the user's own stays unloaded unless the user has named it, as `code`.
    """
    plain = drop_retired(plain)
    name = get_section(plain, "method").get("name", USUAL_METHOD)
    if code is not None and not same_method(name, code):
        raise UsageError(f"this was trained with method {name}, not with {code}")
    kind, source = _find_method(name, code)
    plain = drop_unused(plain, SECTIONS if kind is None else {**SECTIONS, "method": kind})
    return _check(plain, kind, source, str(plain.get("recipe", "default")))


def read_settings(path: Path, code: str | None = None) -> Settings:
    """The settings of a file such as `config.yaml`; what it leaves out has its default.

    Nothing else is laid on it: no recipe, whatever the file calls its own. code: as in `check`.
    """
    content = read_yaml_file(path, str(path))
    if not isinstance(content, Mapping) or not content:
        raise UsageError(f"{path} must hold sections such as 'train:', found none")
    try:
        settings = check(expand(dict(content)), code)
    except UsageError as error:
        raise UsageError(*(f"{path}: {line}" for line in error.args)) from None
    return replace(settings, data=_absolute(settings.data))


def _check(
    plain: Mapping[str, Any], kind: type | None, source: MethodSource | None, label: str
) -> Settings:
    """Refuses unknown keys, wrong types, values out of range; adds what the method decides."""
    known = [*SECTIONS, "method", "recipe"]
    for name in plain:
        if name not in known:
            raise UsageError(f"unknown section {name}{suggest(str(name), known)}")
    method, source = _check_method(get_section(plain, "method"), kind, source)
    sections = {
        name: check_section(name, each, get_section(plain, name)) for name, each in SECTIONS.items()
    }
    if method.fully_supervised:
        everything = replace(sections["data"], labeled=None, ambiguity=None, unlabeled=True)
        sections["data"] = replace(everything, at_least_two=False, noise=0.0, candidates=None)
    if sections["data"].unlabeled is None:
        wanted = method.wants_unlabeled or sections["data"].unlabeled_images is not None
        sections["data"] = replace(sections["data"], unlabeled=wanted)
    return Settings(method=method, recipe=label, method_source=source, **sections)


def _check_method(
    values: Mapping[str, Any], kind: type | None, source: MethodSource | None
) -> tuple[Named, MethodSource | None]:
    """The method's settings, and where its code lies if not in the package."""
    if kind is not None and source is None:
        return check_section("method", kind, values), None
    own = {key: value for key, value in values.items() if key not in ("name", "digest")}
    if kind is None or source is None:
        stored = MethodSource(str(values["name"]), str(values.get("digest", "")))
        return UnloadedMethod(code_name(stored.reference), own), stored
    if values.get("digest", source.digest) != source.digest:
        log.warning("%s has changed since these settings were written", source.reference)
    return check_section("method", kind, own), source


def _find_method(name: Any, code: str | None) -> tuple[type[Any] | None, MethodSource | None]:
    """The class of a method, and where it lies if not in the package; None where it may not run."""
    if isinstance(name, str) and name in registered_names():
        return load_registered(name), None
    if not is_reference(name):
        known = ", ".join(registered_names())
        raise UsageError(f"method.name is {name!r}; it must be one of {known}, or {HOW}")
    if code is None or not same_method(name, code):
        return None, None
    return load_reference(code)


def _split_rows(recipe: str | None, own: str) -> tuple[str, list[str]]:
    """The recipe to begin with, and the rows to lay on it."""
    if recipe is None or Path(recipe).is_file():
        return recipe or own, []
    parts = recipe.split("+")
    rows = [part for part in parts if part in row_names()]
    bases = [part for part in parts if part not in rows]
    if len(bases) > 1:
        raise UsageError(f"recipe {recipe}: {' and '.join(bases)} cannot both be begun with")
    return (bases[0] if bases else own), rows


def _merge_rows(rows: list[str]) -> Plain:
    known = read_rows()
    if len({known[row]["method"]["name"] for row in rows}) > 1:
        raise UsageError(f"{' and '.join(rows)} are rows of different methods")
    return expand(reduce(merge, (known[row] for row in rows), Plain()))


def _absolute(data: Data) -> Data:
    """Paths that any working folder can resume from; a source that is no path is a name."""
    names = ("candidates", *DATA_PATHS)
    paths: Plain = {name: getattr(data, name) and _full(getattr(data, name)) for name in names}
    is_path = data.source not in NAMED_SOURCES and (
        Path(data.source).suffix or Path(data.source).is_dir()
    )
    source = _full(data.source) if data.source and is_path else data.source
    return replace(data, source=source, **paths)


def _full(path: str) -> str:
    return str(Path(path).absolute())
