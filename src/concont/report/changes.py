"""Which settings of a run its user chose: those that differ from its recipe's."""

from pathlib import Path
from typing import Any

from concont.config.resolve import check, read_settings, resolve
from concont.errors import ConcontError
from concont.report.record import NOT_TOLD
from concont.runs.settings import Settings
from concont.sweep.groups import flatten

Changes = dict[str, tuple[Any, Any]]  # by setting: its value, and the usual one


def find_changes(config: Path) -> tuple[str, Changes]:
    """What the settings of a `config.yaml` are compared with, and those that differ from it."""
    settings = read_settings(config)
    usual, what = _find_usual(settings)
    theirs = {name: value for name, value in flatten(usual).items() if name not in NOT_TOLD}
    return what, {
        name: (value, theirs[name])
        for name, value in flatten(settings).items()
        if name in theirs and theirs[name] != value
    }


def _find_usual(settings: Settings) -> tuple[Settings, str]:
    """The same settings without what the user said, and what those are called."""
    if settings.own_method is not None:
        return check({}), "the built-in defaults"
    method = {"method": {"name": settings.method.name}}
    try:
        return resolve(method, recipe=settings.recipe), f"the recipe {settings.recipe}"
    except ConcontError:  # a file of the user's, of which a run keeps the name alone
        return check(method), "the built-in defaults"
