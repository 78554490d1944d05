"""How fast a run will train: a few steps timed before it starts, which leave no trace in it."""

import copy
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from concont.errors import UsageError, printable
from concont.ranks import world as ranks
from concont.runs.settings import Settings
from concont.training.evaluate import predict_proba
from concont.training.memory import full_memory_in_words
from concont.training.network_run import NetworkRun
from concont.training.step import Step

LONG_ENOUGH = 2.0  # seconds of timed steps
FEW, MANY = 2, 20  # timed steps: at least, at most
WARM_UP = {"cpu": 1, "cuda": 6}  # steps before: a GPU's are compiled and captured in them
EVALUATING = 0.1  # of the time, at most, where the schedule is to fit it
MOST_EPOCHS = 10**9
LONG = 3600.0  # seconds from which on a CPU is the wrong place
ADVICE = (
    "That is long for a CPU: --minutes M fits the schedule to your time, a smaller --image-size "
    "makes each step cheaper; a GPU, or --method sspl on a CPU, may be the better choice."
)
PROBED = {"cpu": 100, "cuda": 2000}  # images of the test set that are predicted


@dataclass(frozen=True)
class Pace:
    """Seconds of one step and of one evaluation."""

    step: float
    evaluation: float

    def seconds(self, epochs: int, steps: int, evaluate_every: int) -> float:
        """Of so many epochs of so many steps."""
        evaluations = -(-epochs // evaluate_every)
        return epochs * steps * self.step + evaluations * self.evaluation

    def most_epochs(self, seconds: float, steps: int, evaluate_every: int) -> int:
        """How many epochs fit into so many seconds; at least 0."""
        each = steps * self.step + self.evaluation / evaluate_every
        most = int(seconds / each)
        while most and self.seconds(most, steps, evaluate_every) > seconds:
            most -= 1
        return most


def measure_pace(run: NetworkRun) -> tuple[NetworkRun, Pace]:
    """Time a few steps and a piece of an evaluation; the run is then as it was, but for its clock.

    The time counts as the run's own: on a GPU most of it goes into compiling the step, which the
    run that is returned goes on with.
    """
    state, began = run.state, time.perf_counter()
    step = Step(run.settings, state, run.data, n_partial=run.order.leading_partial)
    start = copy.deepcopy(state.state_dict())
    pace = Pace(_time_step(run, step), _time_evaluation(run))
    state.rewind(start)
    spent = ranks.slowest(time.perf_counter() - began)
    state.seconds += spent
    state.spent["first_step"] += spent
    return replace(run, step=step), pace


def announce(run: NetworkRun, minutes: float | None = None) -> tuple[NetworkRun, str]:
    """The run with its steps timed, and what it will train, on what, and for how long, in words.

    minutes: fit the schedule to that time, in place of the epochs that were set.
    """
    ranks.agree({"--minutes": minutes})  # which is no setting
    with full_memory_in_words(run.settings, run.state, run.data, run.order):
        run, pace = measure_pace(run)
    if minutes is not None:
        run = fit_into(run, pace, minutes)
    return run, describe(run, pace)


def describe(run: NetworkRun, pace: Pace) -> str:
    """What will be trained, on what, and how long that will take."""
    settings, problem, device = run.settings, run.problem, run.data.device
    weights = sum(p.numel() for p in run.state.nets.modules["online"].parameters())
    size = problem.images.shape[1:3]
    inputs = f"rows of {size[0]} features" if len(size) == 1 else "images of {} x {}".format(*size)
    where = f"{_count(torch.get_num_threads(), 'thread')} of the CPU"
    if device.type == "cuda":
        where = torch.cuda.get_device_name(device)
    if ranks.size() > 1:
        where = f"{ranks.size()} ranks, each on {where}"
    done = run.state.step // run.order.steps
    left = pace.seconds(run.epochs - done, run.order.steps, settings.train.evaluate_every)
    begun = f", {done} of them done" if done else ""
    length = f"{_count(run.epochs, 'epoch')} of {_count(run.order.steps, 'step')}{begun}"
    line = (
        f"{settings.method.name} trains {_name_network(settings, run)} ({weights:,} weights) on "
        f"{where}: {len(problem.rows):,} {inputs}, {problem.n_partial:,} with "
        f"candidate sets, {length}; about {in_words(left)}"
    )
    lines = [line, *_describe_start(run)]
    return "\n".join([*lines, ADVICE] if device.type == "cpu" and left > LONG else lines)


def _describe_start(run: NetworkRun) -> list[str]:
    if run.carried is None:
        return []
    n_classes, path = len(run.problem.classes), Path(run.settings.model.start or "")
    known = f"{run.carried} of {n_classes} classes are known there, {n_classes - run.carried} new"
    return [f"starts from {printable(path.parent)}: {known}"]


def in_words(seconds: float) -> str:
    """A length of time as a person says it."""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.{1 if seconds < 10 * size else 0}f} {unit}"
    return f"{math.ceil(seconds)} seconds" if seconds > 1 else "a second"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _name_network(settings: Settings, run: NetworkRun) -> str:
    foreign = getattr(run.state.nets.modules["online"], "foreign", False)
    return "a network of your own" if foreign else settings.model.name


def fit_into(run: NetworkRun, pace: Pace, minutes: float) -> NetworkRun:
    """The same run with as many epochs as fit into so many minutes, those it took included."""
    train, steps = run.settings.train, run.order.steps
    left = 60 * minutes - run.state.seconds
    most = pace.most_epochs(left, steps, evaluate_every=MOST_EPOCHS)  # with one evaluation
    every = max(train.evaluate_every, math.ceil(most * pace.evaluation / (EVALUATING * left)))
    epochs = pace.most_epochs(left, steps, every)
    if epochs < 1:
        least = (run.state.seconds + pace.seconds(1, steps, 1)) / 60
        raise UsageError(
            f"--minutes {minutes:g}: one epoch takes about {least:.1f} minutes; give it more, or "
            "train a smaller network or on smaller images"
        )
    fitted = replace(train, epochs=epochs, evaluate_every=every)
    return replace(run, settings=replace(run.settings, train=fitted))


def _time_step(run: NetworkRun, step: Step) -> float:
    """Seconds of a step once it is warm: the middle one of those that were timed."""
    device, times = run.data.device, list[float]()
    plan = run.order.epoch(0)
    rows, images = plan.to(device), run.data.batches(plan)
    for number in range(WARM_UP[device.type] + MANY):
        place = number % len(plan)
        if number and place == 0:
            images = run.data.batches(plan)
        began = time.perf_counter()
        step(rows[place], next(images), lr=0.0)
        _wait_for(device)
        took = ranks.slowest(time.perf_counter() - began)
        if device.type == "cpu" and took > LONG_ENOUGH:
            return took  # nothing is compiled, so the first is as good as any
        if number >= WARM_UP[device.type]:
            times.append(took)
        if len(times) >= FEW and sum(times) > LONG_ENOUGH:
            break
    return sorted(times)[len(times) // 2]


def _time_evaluation(run: NetworkRun) -> float:
    """Seconds of an evaluation of every network, from a part of the images."""
    if run.test is None:
        return 0.0
    images = run.test.images
    probe = next(iter(images.split(PROBED[run.data.device.type])))
    networks = run.state.nets.modules.values()
    began = time.perf_counter()
    for network in networks:
        predict_proba(network, probe)
    _wait_for(run.data.device)
    taken = ranks.slowest(time.perf_counter() - began)
    return taken * images.shape[0] / len(probe) / ranks.size()


def _wait_for(device: torch.device) -> None:
    ranks.wait_for_all()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
