"""Files of weights that a network starts from: safetensors alone, which run no code."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from concont.errors import DataError, UsageError
from concont.runs.model_settings import Model

SHOWN = 3  # names of weights in an error
WEIGHTS = "model.safetensors"  # of a run


def identify_weights(model: Model) -> Model:
    """The same settings with full paths of the files and the digests of their content."""
    if model.start is not None:
        start = find_run_weights(model.start)
        alone = replace(model, weights=None, weights_digest=None)
        return replace(alone, start=str(start), start_digest=digest_file(start))
    if model.weights_file is None:
        return replace(model, weights_digest=None, start_digest=None)
    path = Path(model.weights_file).absolute()
    return replace(model, weights=str(path), weights_digest=digest_file(path))


def find_run_weights(start: str) -> Path:
    """The file of weights of a run that is named by its folder, or by this file."""
    path = Path(start).absolute()
    return path / WEIGHTS if path.is_dir() else path


def digest_file(path: Path) -> str:
    """Sixteen digits that stand for the content."""
    if path.exists() and not path.is_file():  # a pipe or a device may never end
        raise UsageError(f"weights {path}: no file")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise UsageError(f"weights {path}: {error.strerror or error}") from None


def refuse_changed_weights(known: str | None, path: Path) -> None:
    """What the settings name must be what they were written with; known: its digest then."""
    if known not in (None, digest_file(path)):
        raise DataError(f"weights {path} have changed since these settings were written")


def refuse_other_names(path: Path, wanted: Iterable[str], ignored: tuple[str, ...]) -> None:
    """The file must hold every weight that is wanted, and no other but those of `ignored` parts."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            found = set(file.keys())
    except SafetensorError as error:
        raise DataError(f"weights {path} are damaged, or no safetensors file: {error}") from None
    parts = tuple(f"{part}." for part in ignored)
    missing = sorted(set(wanted) - found)
    unknown = sorted(name for name in found - set(wanted) if not name.startswith(parts))
    for names, what in ((missing, "lack"), (unknown, "hold, and the model does not,")):
        if names:
            raise DataError(f"weights {path} do not fit: they {what} {list_names(names)}")


def list_names(names: list[str]) -> str:
    """The first few, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
