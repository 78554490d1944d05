"""Which settings of a run its user chose: those that its recipe does not give for such data."""

from pathlib import Path
from typing import Any

from concont.config.flat_settings import drop_untold, flatten_settings, list_told
from concont.config.resolve import check, resolve
from concont.data.candidate_file import read_candidate_sets
from concont.data.own_data import OwnData
from concont.errors import ConcontError
from concont.runs.folder import RunFolder
from concont.runs.settings import NAMED_SOURCES, Settings
from concont.types import Plain

Changes = dict[str, tuple[Any, Any]]  # by setting: its value, and the usual one
# Of the training: what the later ones follow from, where a recipe leaves them to the data.
FOLLOWED = ("batch_size", "epochs")


def find_changes(path: Path, settings: Settings) -> tuple[str, Changes]:
    """What the settings of the run in `path` are compared with, and those that differ from it.

    What the recipe makes of the data, and of what the user chose, is no choice of the user's.
    """
    what, usual = _list_usual(settings, read_size(path))
    own = list_told(settings)
    return what, {
        name: (value, usual[name])
        for name, value in own.items()
        if name in usual and usual[name] != value
    }


def read_size(path: Path) -> OwnData | None:
    """What the data of a run is like, by its folder; None where it does not say it yet."""
    folder = RunFolder(path)
    if not (folder / "data.json").is_file():
        return None
    data = folder.read_json("data.json")
    try:
        rows = len(read_candidate_sets(folder / "candidates.npz").labeled)  # used or not
    except ConcontError:
        rows = data.get("n_train", 1)
    return OwnData(rows, tuple(data.get("shape", ())), from_files="fit" in data)


def _list_usual(settings: Settings, size: OwnData | None) -> tuple[str, Plain]:
    """What the comparison is called, and the settings without what the user said."""
    if settings.own_method is not None:  # its code is not run, so its own settings are unknown
        usual = _list_all(check({}))
        kept = {name: own for name, own in usual.items() if not name.startswith("method.")}
        return "the built-in defaults", kept
    method = {"name": settings.method.name}
    try:
        return f"the recipe {settings.recipe}", _list_recipe(settings, size)
    except ConcontError:  # a file of the user's, of which a run keeps the name alone
        return "the built-in defaults", _list_all(check({"method": method}))


def _list_recipe(settings: Settings, size: OwnData | None) -> Plain:
    """What its recipe gives for such data, each value as it follows from the user's choices."""
    named = settings.data.source in NAMED_SOURCES
    flags: Plain = {"method": {"name": settings.method.name}}
    if named:
        flags["data"] = {"source": settings.data.source}
    usual = _resolve(settings, flags, None if named else size)
    said: Plain = {}
    for name in FOLLOWED if settings.has_epochs and not named else ():
        said[name] = getattr(settings.train, name)
        then = _resolve(settings, {**flags, "train": said}, size)
        chosen = {f"train.{each}": usual[f"train.{each}"] for each in said}
        usual = {**then, **chosen}
    return usual


def _resolve(settings: Settings, flags: Plain, size: OwnData | None) -> Plain:
    return _list_all(resolve(flags, recipe=settings.recipe, own=size))


def _list_all(settings: Settings) -> Plain:
    """Those without an effect, too: what the user chose may give them one."""
    return drop_untold(flatten_settings(settings))
