"""Jobs as an array of a Slurm cluster, by submitit."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from concont.errors import UsageError
from concont.sweep.folder import SweepFolder
from concont.sweep.job import Job
from concont.sweep.process import Outcome, run_job

TIMEOUT = 24 * 60  # minutes of one job; what is left of it then is queued again
POLL = 5.0


class RequeuedJob:
    """`run_job` for a job that Slurm may stop: it is queued again and goes on where it was."""

    def __call__(self, key: str, folder: str, own_method: str | None) -> Outcome:
        """The job."""
        return run_job(key, folder, own_method)

    def checkpoint(self, key: str, folder: str, own_method: str | None) -> Any:
        """What submitit queues in place of a job that is preempted or out of time."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, key, folder, own_method)


def on_slurm(
    jobs: Sequence[Job],
    folder: Path,
    parallel: int = 1,
    /,
    cluster: str = "slurm",
    **options: Any,
) -> Iterator[Outcome]:
    """So many at a time; submitit's own files are in `slurm/`, and options are its parameters.

    All nodes must see the folder under the same path. Jobs that are left when this is stopped are
    cancelled.
    """
    if not jobs:
        return
    try:
        import submitit
        from submitit.helpers import as_completed
    except ImportError:
        raise UsageError("--launcher slurm needs submitit: pip install 'concont[slurm]'") from None
    folder = folder.resolve()
    defaults = {"name": "concont", "timeout_min": TIMEOUT, "gpus_per_node": 1}
    try:
        executor = submitit.AutoExecutor(folder / "slurm", cluster)
        executor.update_parameters(slurm_array_parallelism=parallel, **{**defaults, **options})
        for job in jobs:
            SweepFolder(folder).write_settings(job)
        calls = [(job.key, str(folder), job.settings.own_method) for job in jobs]
        submitted = executor.map_array(RequeuedJob(), *zip(*calls, strict=True))
    except (RuntimeError, ValueError, NameError, AssertionError) as error:
        raise UsageError(f"--launcher slurm: {str(error).splitlines()[0]}") from None
    keys = {task.job_id: job.key for task, job in zip(submitted, jobs, strict=True)}
    try:
        for task in as_completed(submitted, poll_frequency=POLL):
            yield _read_outcome(task, keys.pop(task.job_id))
    finally:
        for task in submitted:
            if task.job_id in keys:
                task.cancel()


def _read_outcome(task: Any, key: str) -> Outcome:
    """What became of it; that it was lost is a failure like any other."""
    from submitit.core.utils import UncompletedJobError

    try:
        outcome: Outcome = task.result()
    except UncompletedJobError:
        return Outcome(key, failure=f"lost by Slurm ({task.state}); see {task.paths.stderr}")
    return outcome
