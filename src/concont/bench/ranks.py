"""What a step on several ranks would take: measured here on one, with messages by calculation."""

import logging
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from concont.bench.step_timing import StepRunner, make_random_dataset, prepare_on_all_rows
from concont.bench.timing import time_steady_ms
from concont.cores import count_cores
from concont.data.sources import Dataset
from concont.device import choose_device
from concont.errors import Interrupted
from concont.runs.settings import Settings
from concont.training.cuda_speed import Captured
from concont.training.recorder import describe_environment

FLOAT = 4  # bytes
A_MACHINE = 8  # ranks that a machine has, beyond which messages leave it


@dataclass(frozen=True)
class Link:
    """What ranks are taken to be connected by."""

    gb_per_s: float  # that a rank sends and receives at once
    latency_us: float  # of a message between two ranks


WITHIN, BETWEEN = Link(200.0, 10.0), Link(25.0, 30.0)  # one machine's GPUs; machines


@dataclass(frozen=True)
class Messages:
    """What a step exchanges."""

    gradients: int  # bytes, of the weights that learn
    row: int  # bytes of a row that every rank is to see: keys, labels, what tables keep
    statistics: int  # bytes of BatchNorm's sums
    n_statistics: int  # messages that they come in, each waited for


def choose_link(ranks: int, gb_per_s: float | None = None, latency_us: float | None = None) -> Link:
    """The usual one for so many ranks, but for what is given."""
    usual = WITHIN if ranks <= A_MACHINE else BETWEEN
    return Link(gb_per_s or usual.gb_per_s, latency_us or usual.latency_us)


def calculate_messages_ms(
    messages: Messages, rows: int, ranks: int, link: Link
) -> dict[str, float]:
    """Milliseconds of a step's messages of each kind, `rows` a rank; none beside the computation.

    Sums go round a ring, each rank sending 2 (N - 1) / N of their bytes; of rows each rank receives
    all others'. A message takes log2 N times the latency besides.
    """
    hops = math.ceil(math.log2(ranks)) * link.latency_us / 1000
    ms_per_byte = 1000 / (link.gb_per_s * 1e9)
    round_trip = 2 * (ranks - 1) / ranks * ms_per_byte
    return {
        "gradients": hops + messages.gradients * round_trip,
        # Once for the loss, once to be kept; and the figures of the log.
        "rows": 3 * hops + 2 * (ranks - 1) * rows * messages.row * ms_per_byte,
        "statistics": messages.n_statistics * hops + messages.statistics * round_trip,
    }


def measure_messages(runner: StepRunner) -> Messages:
    """The sizes of what one step of this run would exchange; the step is taken without learning."""
    run, step, method = runner.run, runner.step, runner.run.settings.network_method
    seen: list[int] = []  # BatchNorm's channels, a pass each

    def note(norm: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if norm.training and isinstance(norm, _BatchNorm):
            seen.extend([norm.num_features] * (2 if output.requires_grad else 1))

    norms = [m for net in run.state.nets.modules.values() for m in net.modules()]
    handles = [m.register_forward_hook(note) for m in norms if isinstance(m, _BatchNorm)]
    index, images = next(runner.batches)
    draws = step.draw(len(index))
    with torch.no_grad():
        batch = step.batch(index, step.render_views(images, draws))
    out = method.losses(run.state.nets, run.state.method_state, batch)
    for handle in handles:
        handle.remove()
    out.total.backward()  # type: ignore[no-untyped-call]
    learned = [p for p in run.state.nets.modules["online"].parameters() if p.grad is not None]
    found = Messages(
        gradients=sum(p.numel() for p in learned) * FLOAT,
        row=sum(t.nbytes for t in out.to_commit.values()) // len(index),
        statistics=sum(2 * channels + 1 for channels in seen) * FLOAT,
        n_statistics=len(seen),
    )
    run.state.optimizer.zero_grad()
    return found


def estimate_ranks(
    settings: Settings, rows: int, size: int, calls: int, ranks: int, link: Link
) -> dict[str, Any]:
    """A step on one rank, measured, and what it would take on so many, calculated.

    `more_rows`: each rank has a whole batch; `same_rows`: its part of one, if that is two rows.
    Efficiency: images a second of each rank, by those of one alone with the whole batch.
    """
    data, batch = make_random_dataset(rows, size), min(settings.train.batch_size, rows)
    each = {"more_rows": batch, "same_rows": batch // ranks}
    calculated = {
        name: _estimate(settings, data, own, calls, ranks, link)
        for name, own in each.items()
        if own >= 2
    }
    alone = batch / calculated["more_rows"]["compute_ms"] * 1000
    for found in calculated.values():
        found["efficiency"] = found["images_per_s"] / ranks / alone
    return {
        "ranks": ranks,
        "link": asdict(link),
        "method": settings.method.name,
        "network": settings.model.name,
        "image_size": size,
        "calculated": calculated,
        "environment": describe_environment(choose_device(settings.train.device)),
    }


def _estimate(
    settings: Settings, data: Dataset, own: int, calls: int, ranks: int, link: Link
) -> dict[str, Any]:
    train = replace(settings.train, batch_size=own)
    runner = StepRunner(prepare_on_all_rows(replace(settings, train=train), data))
    messages = measure_messages(runner)
    for _ in range(Captured.WARM_UP + 1):
        runner()
    ms = time_steady_ms(runner, runner.run.data.device, calls)
    parts = calculate_messages_ms(messages, own, ranks, link)
    total = ms + sum(parts.values())
    return {
        "rows_of_a_rank": own,
        "messages": asdict(messages),
        "compute_ms": ms,
        "message_ms": parts,
        "step_ms": total,
        "images_per_s": own * ranks / total * 1000,
    }


def run_on_ranks(ranks: int, words: Sequence[str]) -> int:
    """The command in so many processes on this machine, by torchrun; the exit code of its ranks."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, count_cores() // ranks)))
    launch = ["--standalone", "--nproc-per-node", str(ranks), "-m", "concont", *words]
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # rank 0 says why
    try:
        run(parse_args(launch))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        return max(1, int(failure.exitcode))  # below 0 where a signal ended it
    except SignalException as error:
        raise Interrupted("stopped") from error
    return 0
