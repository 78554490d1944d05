"""What is written in YAML: recipes by name or file, what they extend, and the paper's rows."""

import copy
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from concont.config.yaml_text import read_yaml, read_yaml_file
from concont.errors import UsageError
from concont.types import Plain

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Recipe:
    """One recipe, without those that it extends."""

    name: str  # of a shipped one; of a file its path
    shipped: bool
    content: Plain  # sections

    @property
    def label(self) -> str:
        """How a record calls it: a name, never a path."""
        return self.name if self.shipped else Path(self.name).stem

    @property
    def is_config(self) -> bool:
        """Whether this is a run's `config.yaml`, which says what recipe it came from."""
        return "recipe" in self.content


def recipe_names() -> list[str]:
    """The recipes that ship with the package."""
    folder = resources.files("concont.config") / "recipes"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".yaml"))


def read_recipe(name: str) -> list[Recipe]:
    """A shipped recipe by name, or a YAML file by path, after those that it extends, root first."""
    found: list[Recipe] = []
    extended: str | None = name
    while extended is not None:
        place = _find(extended, found[-1] if found else None)
        shipped = place in recipe_names()
        seen = [each.name for each in found]
        if place in seen or (not shipped and Path(place).resolve() in map(_resolved, seen)):
            raise UsageError(f"recipe {name} extends itself: {' -> '.join([*seen, place])}")
        content = copy.deepcopy(_shipped(place)) if shipped else _read_file(place)
        extended = content.pop("extends", None)
        if extended is not None and not isinstance(extended, str):
            raise UsageError(f"recipe {place} extends {extended!r}; give a recipe's name or file")
        found.append(Recipe(place, shipped, content))
    return found[::-1]


@cache
def read_rows() -> Plain:
    """The rows of the paper's tables: settings by name that are laid on a recipe."""
    folder = resources.files("concont.config") / "recipes" / "overlays"
    content: Plain = read_yaml((folder / "rows.yaml").read_text("utf-8"), "rows")
    return content


def row_names() -> list[str]:
    """What these are called."""
    return list(read_rows())


def _find(name: str, child: Recipe | None) -> str:
    """A shipped recipe's name, or the path of a file, as seen from the recipe that extends it."""
    if name in recipe_names():
        return name
    path = Path(name)
    if child is not None and not child.shipped:
        path = Path(child.name).parent / path
    if child is not None:
        refuse_other_files(path, f"recipe {child.name} extends")
    if path.is_file():
        return str(path)
    choice = f"neither a file nor one of {', '.join(recipe_names())}"
    if child is not None:
        raise UsageError(f"recipe {child.name} extends {name!r}, which is {choice}")
    raise UsageError(f"no recipe {name!r}: {choice}, nor a row: {', '.join(row_names())}")


def refuse_other_files(name: str | Path, who: str) -> None:
    """A file that another file names as a recipe: else that one could have any file read.

    Parts of it would then be shown in an error.
    """
    path = Path(name)
    if path.suffix not in SUFFIXES and path.is_file():
        raise UsageError(f"{who} {path}; a file of settings must end in .yaml or .yml")


def _resolved(name: str) -> Path:
    return Path(name).resolve()


def _read_file(name: str) -> Plain:
    content = read_yaml_file(Path(name), f"recipe {name}")
    if not isinstance(content, dict):
        raise UsageError(f"recipe {name} must hold sections such as 'train:', found none")
    return content


@cache
def _shipped(name: str) -> Plain:
    folder = resources.files("concont.config") / "recipes"
    text = (folder / f"{name}.yaml").read_text("utf-8")
    content: Plain = read_yaml(text, f"recipe {name}")
    return content
