"""Runs a job: trains, records, checkpoints, and stops cleanly when asked."""

import time
from collections.abc import Callable, Iterator

from torch import Tensor

from concont.errors import Interrupted, NonFiniteLoss
from concont.training import checkpoint
from concont.training.loop import Progress, fit
from concont.training.prepare import Job
from concont.training.pseudo_labels import judge
from concont.training.recorder import Recorder


def execute(job: Job, stop: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
    """Train to the end, writing the run folder on the way; asks `stop` after every step."""
    folder, state, every = job.folder, job.state, job.settings.train.checkpoint_every
    since = state.step if job.resumed else None
    recorder = Recorder(folder, job.settings, job.problem, job.data.device, job.moments, since)
    saved_at = time.perf_counter()
    try:
        for progress in fit(job.settings, state, job.data, job.order, job.test):
            if progress.row is not None:
                recorder.add(progress.row)
            ended = progress.step == progress.total
            due = progress.epoch_end and time.perf_counter() - saved_at >= every
            stopping = not ended and stop()
            if due or stopping or ended:
                state.meter.check()  # never a checkpoint of a broken run
                checkpoint.save(folder, state.state_dict())
                saved_at = time.perf_counter()
            yield progress
            if stopping:
                raise Interrupted(
                    f"stopped after step {state.step} of {progress.total}; "
                    f"go on with: concont train --resume {folder.path}"
                )
        _judge(job)
        recorder.finish(
            _weights(job),
            epochs=job.settings.train.epochs,
            steps=state.step,
            batch_size=job.order.batch_size,
            seconds=state.seconds,
            seconds_by={**state.spent, "other": state.seconds - sum(state.spent.values())},
        )
    except NonFiniteLoss as error:
        path = folder / checkpoint.CURRENT
        last = f"the last good checkpoint is {path}" if path.exists() else "no checkpoint yet"
        raise NonFiniteLoss(f"{error}; {last}") from None
    finally:
        recorder.close()


def _judge(job: Job) -> None:
    began = time.perf_counter()
    found = judge(job)
    if found is not None:
        job.folder.write_json("verdict.json", found)
    job.state.seconds += time.perf_counter() - began


def _weights(job: Job) -> dict[str, Tensor]:
    return {
        f"{name}.{key}": tensor
        for name, module in job.state.nets.modules.items()
        for key, tensor in module.state_dict().items()
    }
