"""A run of either kind, with a network or without, through one door."""

from collections.abc import Callable, Iterator

from torch import nn

from concont.classic.options import Classic
from concont.config import check
from concont.data.sources import Dataset
from concont.engine import classic, run, setup
from concont.engine.loop import Progress
from concont.errors import UsageError
from concont.recipes.shelf import read_yaml
from concont.runs import RunFolder
from concont.settings import Settings

Job = setup.Job | classic.Fit


def prepare(
    settings: Settings,
    folder: RunFolder,
    data: Dataset | None = None,
    model: nn.Module | None = None,
) -> Job:
    """A job that is ready to start: everything checked, nothing written."""
    if not isinstance(settings.method, Classic):
        return setup.prepare(settings, folder, data, model)
    if model is not None:
        raise UsageError(f"{settings.method.name} trains no network; leave the model out")
    return classic.prepare(settings, folder, data)


def reopen(folder: RunFolder) -> Job:
    """A run that was started before and not finished."""
    path = folder.require("config.yaml")
    settings = check(read_yaml(path.read_text("utf-8"), str(path)))
    if isinstance(settings.method, Classic):
        return classic.prepare(settings, folder, resumed=True)
    return setup.reopen(folder)


def execute(job: Job, stop: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
    """Run it to its end, writing its folder on the way."""
    return classic.execute(job) if isinstance(job, classic.Fit) else run.execute(job, stop)
