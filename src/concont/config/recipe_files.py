"""What ships as YAML: recipes by name, and what rows and methods lay on them."""

import copy
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from concont.errors import UsageError

Plain = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """YAML 1.2's numbers: `1e-3` is one, which PyYAML alone reads as text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def read_yaml(text: str, where: str) -> Any:
    """Plain values from YAML text; `where` names it in an error."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:  # a date that is none is a ValueError
        raise UsageError(f"{where} is not valid YAML: {error}") from None


def recipe_names() -> list[str]:
    """The recipes that ship with the package."""
    folder = resources.files("concont.config") / "recipes"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".yaml"))


def read_recipe(name: str) -> Plain:
    """A shipped recipe by name, or a YAML file by path."""
    if name in recipe_names():
        return copy.deepcopy(_shipped(name))
    if Path(name).is_file():
        try:
            text = Path(name).read_text("utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"recipe {name} is not text in UTF-8") from None
    else:
        raise UsageError(
            f"no recipe {name!r}: neither a file nor one of {', '.join(recipe_names())}, "
            f"nor a row: {', '.join(row_names())}"
        )
    content = read_yaml(text, f"recipe {name}")
    if not isinstance(content, dict):
        raise UsageError(f"recipe {name} must hold sections such as 'train:', found none")
    return content


@cache
def _shipped(name: str) -> Plain:
    folder = resources.files("concont.config") / "recipes"
    text = (folder / f"{name}.yaml").read_text("utf-8")
    content: Plain = read_yaml(text, f"recipe {name}")
    return content


@cache
def overlay(name: str) -> Plain:
    """`rows` or `methods`: settings by name that are laid on a recipe."""
    folder = resources.files("concont.config") / "recipes" / "overlays"
    content: Plain = read_yaml((folder / f"{name}.yaml").read_text("utf-8"), name)
    return content


def row_names() -> list[str]:
    """The rows of the paper's tables that can be laid on a recipe."""
    return list(overlay("rows"))
