"""Where jobs run. A launcher takes jobs and gives outcomes as they come."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from concont.config.yaml_text import read_yaml
from concont.errors import UsageError
from concont.sweep.job import Job
from concont.sweep.launch_local import on_this_machine
from concont.sweep.launch_ray import on_ray
from concont.sweep.launch_slurm import on_slurm
from concont.sweep.process import Outcome, run_job_in_this_process

Launcher = Callable[[Sequence[Job], Path, int], Iterator[Outcome]]


def in_this_process(jobs: Sequence[Job], folder: Path, parallel: int = 1) -> Iterator[Outcome]:
    """One after another, without a process each."""
    for job in jobs:
        yield run_job_in_this_process(job, folder)


LAUNCHERS: dict[str, Launcher] = {"local": on_this_machine, "ray": on_ray, "slurm": on_slurm}


def choose_launcher(name: str, options: Sequence[str] = ()) -> Launcher:
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
