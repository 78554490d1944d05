"""A run of either kind, with a network or without, through one door."""

from collections.abc import Callable, Iterator

from torch import nn

from concont.classic.options import Classic
from concont.config.recipe_files import read_yaml
from concont.config.resolve import check
from concont.data.sources import Dataset
from concont.errors import UsageError
from concont.runs.folder import RunFolder
from concont.runs.settings import Settings
from concont.training import classic_run, network_run
from concont.training import prepare as network_job
from concont.training.loop import Progress

Job = network_job.Job | classic_run.Fit


def prepare(
    settings: Settings,
    folder: RunFolder,
    data: Dataset | None = None,
    model: nn.Module | None = None,
) -> Job:
    """A job that is ready to start: everything checked, nothing written."""
    if not isinstance(settings.method, Classic):
        return network_job.prepare(settings, folder, data, model)
    if model is not None:
        raise UsageError(f"{settings.method.name} trains no network; leave the model out")
    return classic_run.prepare(settings, folder, data)


def reopen(folder: RunFolder, method: str | None = None) -> Job:
    """A run that was started before and not finished; method: the user's own, where it has one."""
    path = folder.require("config.yaml")
    settings = check(read_yaml(path.read_text("utf-8"), str(path)), method)
    if isinstance(settings.method, Classic):
        return classic_run.prepare(settings, folder, resumed=True)
    return network_job.reopen(folder, method=method)


def execute(job: Job, stop: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
    """Run it to its end, writing its folder on the way."""
    return (
        classic_run.execute(job)
        if isinstance(job, classic_run.Fit)
        else network_run.execute(job, stop)
    )
