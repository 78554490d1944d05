"""Jobs as tasks of a Ray cluster: the one that there is, or one started here for as long."""

import logging
import os
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from concont import version
from concont.errors import ConcontError, UsageError
from concont.sweep.folder import SweepFolder
from concont.sweep.job import Job
from concont.sweep.process import Outcome, run_job

RETRIES = 5  # of a job that has lost its worker


def on_ray(
    jobs: Sequence[Job], folder: Path, parallel: int = 1, /, **options: Any
) -> Iterator[Outcome]:
    """So many at a time; a job that loses its worker goes on with another.

    All nodes must see the folder under the same path. Options are those of a Ray task.
    """
    if not jobs:
        return
    left, under_way, folder = iter(jobs), dict[Any, str](), folder.resolve()
    with _connect() as ray:
        remote = _make_task(ray, parallel, options)
        try:
            while True:
                for job in islice(left, parallel - len(under_way)):
                    SweepFolder(folder).write_settings(job)
                    under_way[remote.remote(job.key, str(folder), job.settings.own_method)] = (
                        job.key
                    )
                if not under_way:
                    return
                (done,), _ = ray.wait(list(under_way))
                yield _read_outcome(ray, done, under_way.pop(done))
        finally:  # a later sweep takes up the checkpoints of those under way
            for task in under_way:
                ray.cancel(task, force=True)


@contextmanager
def _connect() -> Iterator[Any]:
    """Ray, connected: as it is already, else to $RAY_ADDRESS or what `ray start` began, else new.

    At the end it is disconnected, and one that was started here is stopped.
    """
    try:
        import ray
    except ImportError:
        raise UsageError("--launcher ray needs Ray: pip install 'concont[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError) as error:
        raise ConcontError(f"no Ray cluster: {error}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _make_task(ray: Any, parallel: int, options: dict[str, Any]) -> Any:
    defaults = {"max_retries": RETRIES, "runtime_env": {"env_vars": worker_environment()}}
    try:
        requested = {**defaults, **share_resources(ray.nodes(), parallel), **options}
        return ray.remote(run_job).options(**requested)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--launcher ray: {error}") from None


def share_resources(nodes: Sequence[dict[str, Any]], parallel: int) -> dict[str, int]:
    """A GPU a job where there are any, and the most CPUs that let so many jobs run at once."""
    have: list[dict[str, float]] = [node["Resources"] for node in nodes if node["Alive"]]
    fit = [node for node in have if node.get("GPU", 0) >= 1]
    cpus = [int(node.get("CPU", 0)) for node in fit or have]
    sizes = range(1, max(cpus, default=0) + 1)
    share = max((n for n in sizes if sum(c // n for c in cpus) >= parallel), default=1)
    return {"num_cpus": share, "num_gpus": 1 if fit else 0}


def worker_environment() -> dict[str, str]:
    """What a worker must know of this process: our settings, and a source tree if we run from one.

    The training process of a worker finds the package by it too.
    """
    ours = {name: value for name, value in os.environ.items() if name.startswith("CONCONT_")}
    source = str(Path(version.__file__).resolve().parents[1])
    if source not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        before = os.environ.get("PYTHONPATH")
        ours["PYTHONPATH"] = os.pathsep.join([source, before] if before else [source])
    return ours


def _read_outcome(ray: Any, task: Any, key: str) -> Outcome:
    """What became of it; that Ray gave it up is a failure like any other."""
    try:
        outcome: Outcome = ray.get(task)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None) or error
        return Outcome(key, failure=f"{type(cause).__name__}: {cause}".splitlines()[0])
    return outcome
