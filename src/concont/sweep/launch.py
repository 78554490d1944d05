"""Where jobs run. A launcher takes jobs and gives outcomes as they come."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from concont.config.recipe_files import read_yaml
from concont.errors import UsageError
from concont.paper.plan import Job
from concont.sweep.launch_local import local
from concont.sweep.launch_ray import on_ray
from concont.sweep.launch_slurm import on_slurm
from concont.sweep.process import Outcome, perform_here

Launcher = Callable[[Sequence[Job], Path, int], Iterator[Outcome]]


def here(jobs: Sequence[Job], folder: Path, parallel: int = 1) -> Iterator[Outcome]:
    """One after another in this process."""
    for job in jobs:
        yield perform_here(job, folder)


LAUNCHERS: dict[str, Launcher] = {"local": local, "ray": on_ray, "slurm": on_slurm}


def chosen(name: str, options: Sequence[str] = ()) -> Launcher:
    """The launcher of this name, with `key=value` options for what it runs on."""
    if name not in LAUNCHERS:
        raise UsageError(f"no launcher {name!r}; there are {', '.join(LAUNCHERS)}")
    if options and name == "local":
        raise UsageError("--launcher local takes no --launcher-options")
    given = {}
    for text in options:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"--launcher-options {text}: write key=value, as slurm_partition=gpu")
        given[key] = read_yaml(value, f"--launcher-options {text}")
    return partial(LAUNCHERS[name], **given)
