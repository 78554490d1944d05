"""Settings laid one over the other: recipes, what a method brings to them, a row, flags."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import reduce
from operator import getitem
from typing import Any

from concont.config.recipe_files import Recipe
from concont.config.registry import same_method
from concont.config.validate import drop_retired, get_section
from concont.errors import UsageError
from concont.runs.model_settings import OF_FEATURES, Model
from concont.runs.settings import forget
from concont.runs.view_settings import NAMED_VIEWS, Views, list_idle
from concont.types import Plain, find_unused

USUAL_METHOD = "concont"


@dataclass(frozen=True)
class Layer:
    """Some settings, by section."""

    content: Plain
    # Sections in which what has no effect is no mistake, but left from another choice.
    borrowed: frozenset[str] = frozenset()


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Plain:
    """`over` laid on `base`, section by section; what both hold as mappings is merged."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def expand(plain: Mapping[str, Any]) -> Plain:
    """The same with the names of views replaced by all of their values."""
    values = {}
    for kind, variants in NAMED_VIEWS.items():
        name = get_section(plain, "views").get(kind)
        if not isinstance(name, str):
            continue
        if name not in variants:
            raise UsageError(
                f"views.{kind} is {name!r}; it must be one of {', '.join(variants)}, or settings"
            )
        values[kind] = asdict(variants[name])
    return merge(plain, {"views": values}) if values else dict(plain)


def last_method(contents: Iterable[Mapping[str, Any]]) -> Any:
    """The method that the last of them which names one names."""
    named = [get_section(content, "method").get("name") for content in contents]
    return next((name for name in reversed(named) if name is not None), USUAL_METHOD)


def layers_for(kind: type[Any], name: Any, recipes: Sequence[Recipe]) -> list[Layer]:
    """Recipes, root first, as layers for a method, each with what the method brings to it.

    Of the settings of another method those are kept that belong to the data, not to the method.
    """
    shared = {each.name for each in fields(kind) if each.metadata.get("shared")}
    layers: list[Layer] = []
    written_for: Any = USUAL_METHOD
    for recipe in recipes:
        content = expand(drop_retired(recipe.content) if recipe.is_config else recipe.content)
        own = dict(get_section(content, "method"))
        written_for = own.pop("name", written_for)
        borrowed = set(content) if recipe.is_config else set()
        if not same_method(written_for, name):
            own = {key: value for key, value in own.items() if key in shared}
            borrowed.add("method")
        content["method"] = {"name": name, **own}
        layers.append(Layer(content, frozenset(borrowed)))
        if recipe.shipped:
            layers.append(Layer(expand(kind.brings.get(recipe.name, {}))))
    return layers


def merge_layers(layers: Sequence[Layer], kinds: Mapping[str, type]) -> Plain:
    """One over the other, without what has no effect; refuses it where it never had any.

    What a recipe says of its own network or loss goes without a word where a later layer chooses
    another one.
    """
    merged = _merge_all(layers)
    for section, kind in kinds.items():
        values = get_section(merged, section)
        defaults = {each.name: each.default for each in fields(kind)}
        for name in find_unused(kind, values):
            if values.get(name, defaults[name]) != defaults[name]:
                _refuse_unused(layers, section, name, kind)
    _refuse_idle_views(layers, merged)
    return drop_unused(merged, kinds)


def drop_unused(plain: Mapping[str, Any], kinds: Mapping[str, type]) -> Plain:
    """The same without the settings that have no effect."""
    kept = dict(plain)
    for section, kind in kinds.items():
        values = get_section(plain, section)
        unused = find_unused(kind, values)
        kept[section] = {key: value for key, value in values.items() if key not in unused}
    if "views" in plain:
        kept["views"] = copy.deepcopy(dict(get_section(plain, "views")))
    for path in list_idle(_learns_of_features(plain)):
        forget(kept, ("views", *path))
    return kept


def _learns_of_features(plain: Mapping[str, Any]) -> bool:
    return get_section(plain, "model").get("name") == OF_FEATURES


def _refuse_idle_views(layers: Sequence[Layer], merged: Plain) -> None:
    """Refuse what was said of views for another kind of input than the network's.

    As with other settings, what a recipe says goes without a word where a later layer chooses
    another network.
    """
    usual = asdict(Views())
    for path in list_idle(_learns_of_features(merged)):
        said = [n for n, layer in enumerate(layers) if _look_up(layer.content, path) is not None]
        value = _look_up(merged, path)
        if not said or value is None or _same(value, reduce(getitem, path, usual)):
            continue
        then = _merge_all(layers[: said[-1] + 1])
        if "views" in layers[said[-1]].borrowed or path not in list_idle(_learns_of_features(then)):
            continue
        name = get_section(then, "model").get("name", Model.name)
        raise UsageError(f"views.{'.'.join(path)} has no effect with model.name {name}")


def _look_up(content: Plain, path: tuple[str, ...]) -> Any:
    """A setting of the views as a layer has it; None where it says nothing of it."""
    found: Any = get_section(content, "views")
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _same(value: Any, other: Any) -> bool:
    """Whether they are equal, YAML's lists taken for tuples."""
    return bool((tuple(value) if isinstance(value, list) else value) == other)


def _refuse_unused(layers: Sequence[Layer], section: str, name: str, kind: type) -> None:
    """Refuse a setting that had no effect even when it was said last."""
    said = [n for n, layer in enumerate(layers) if name in get_section(layer.content, section)]
    if section in layers[said[-1]].borrowed:
        return
    then = get_section(_merge_all(layers[: said[-1] + 1]), section)
    other = find_unused(kind, then).get(name)
    if other is not None:
        chosen = then.get(other, getattr(kind, other))
        raise UsageError(f"{section}.{name} has no effect with {section}.{other} {chosen}")


def _merge_all(layers: Sequence[Layer]) -> Plain:
    return reduce(merge, (layer.content for layer in layers), Plain())
