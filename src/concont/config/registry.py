"""Which methods there are: those of the package by name, and a user's own by file and class.

Only the name of a method that a user gives is ever turned into code that runs. What a recipe, a run
folder or a record names is not, unless the user has named the same.
"""

import hashlib
import importlib
import importlib.util
import inspect
import logging
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from concont.classic.options import CLASSICS
from concont.errors import UsageError
from concont.methods import load_method, method_names
from concont.runs.settings import MethodSource, code_name
from concont.types import Method, Named

log = logging.getLogger("concont")
HOW = "path/to/file.py:Class or package.module:Class"


def registered_names() -> list[str]:
    """The methods of the package, with a network and without."""
    return [*method_names(), *CLASSICS]


def load_registered(name: str) -> type[Any]:
    """The class of one of them."""
    return CLASSICS[name] if name in CLASSICS else load_method(name)


def is_reference(name: object) -> bool:
    """Whether this names code by its file or module, and not a method of the package."""
    return isinstance(name, str) and ":" in name


def same_method(one: object, other: object) -> bool:
    """Whether two names mean one method, wherever a file of that name lies."""
    if is_reference(one) and is_reference(other):
        return code_name(str(one)) == code_name(str(other))
    return one == other


def load_reference(reference: str) -> tuple[type[Any], MethodSource]:
    """The class that FILE.py:Class or package.module:Class names; this runs the file's code."""
    kind, source = load_code(reference, "method", HOW)
    if not isinstance(kind, type):
        place, _, name = source.reference.rpartition(":")
        raise UsageError(f"{place} holds no class {name}")
    _refuse_no_method(kind, source.reference)
    return kind, source


def load_code(reference: str, what: str, how: str) -> tuple[Any, MethodSource]:
    """What such a name stands for, None if nothing, and where it lies; this runs the file's code.

    what, how: that it is to be, and how to write it, for an error.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise UsageError(f"{what} {reference!r}: write it as {how}")
    if place.endswith(".py"):
        path = Path(place).absolute()
        place = str(path)
        code = _read_code(path)
        module = _run_file(path, code)
    else:
        module = _import(place)
        code = _read_code(Path(module.__file__ or place))
    found = getattr(module, name, None)
    return found, MethodSource(f"{place}:{name}", hashlib.sha256(code).hexdigest()[:16])


def _read_code(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # to read a pipe may never end
        raise UsageError(f"{path}: not a plain file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None


def _run_file(path: Path, code: bytes) -> ModuleType:
    """The very bytes whose digest is kept, as a module that later look-ups by name can find."""
    name = f"concont_method_{path.stem}_{hashlib.sha256(code).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(compile(code, str(path), "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        raise _cannot_import(str(path), error) from error
    return module


def _import(name: str) -> ModuleType:
    """A module of what is installed, or of the working folder."""
    folder = str(Path.cwd())
    sys.path.append(folder)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise _cannot_import(name, error) from error
    finally:
        sys.path.remove(folder)


def _cannot_import(place: str, error: Exception) -> UsageError:
    said = " ".join(str(error).split())
    return UsageError(f"{place} cannot be imported: {type(error).__name__}: {said}")


def _refuse_no_method(kind: type[Any], reference: str) -> None:
    """A class that cannot be trained is refused before anything else happens."""
    if not is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise UsageError(f"{reference} must be a frozen dataclass, whose fields are its settings")
    parts = [name for base in (Named, Method) for name in vars(base) if not name.startswith("_")]
    missing = [name for name in parts if not hasattr(kind, name)]
    if missing:
        raise UsageError(
            f"{reference} is no method: it has no {', '.join(missing)}; what it does not need "
            "to say itself it has from concont.types.MethodDefaults"
        )
    taken = list(inspect.signature(getattr(kind, "judge")).parameters)  # noqa: B009
    if taken[4:5] != ["weights"]:
        raise UsageError(
            f"{reference}: its judge must take (probs, candidates, state, weights), where weights "
            "are those of votes, or None"
        )
    if kind.trainer != "network":  # type: ignore[attr-defined]
        raise UsageError(f"{reference}: its trainer must be 'network', not {kind.trainer!r}")  # type: ignore[attr-defined]
    name = getattr(kind, "name")  # noqa: B009
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
        raise UsageError(f"{reference} is called {name!r}; its name must be a word")
    if name in registered_names():
        raise UsageError(f"{reference} is called {name}, as a method of the package: rename it")
    if any(field.name == "digest" for field in fields(kind)):
        raise UsageError(f"{reference}: a setting cannot be called digest, which is the code's")
