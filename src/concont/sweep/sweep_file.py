"""A sweep written as a file: settings laid on a recipe, varied by axes, by runs and by seeds."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from concont.config.layers import expand, merge
from concont.config.recipe_files import refuse_other_files
from concont.config.resolve import resolve
from concont.config.yaml_text import DEEPEST, read_yaml_file
from concont.errors import UsageError
from concont.sweep.job import Job

Plain = dict[str, Any]
MOST_JOBS = 10_000


@dataclass(frozen=True)
class SweepFile:
    """What the file says; every run of it is trained at every point of the axes with every seed."""

    base: Plain = field(default_factory=dict)  # sections of settings, and `recipe` below them
    axes: dict[str, list[Any]] = field(default_factory=dict)  # values by setting: `train.epochs`
    runs: list[Plain] = field(default_factory=lambda: [{}])  # as the base, which they are laid on
    seeds: list[int | None] = field(default_factory=lambda: [None])  # None: as the settings say


def read_jobs(path: Path, root: str | None = None, method: str | None = None) -> list[Job]:
    """The jobs of a file, one seed of all before the next; those with equal settings are one.

    root: where named data lies, in place of what the file says. method: where the file names none;
    code of the user's own is run only if it is named here.
    """
    content = read_yaml_file(path, str(path))
    try:
        jobs = list(make_jobs(parse(content), root, method))
    except UsageError as error:
        raise UsageError(*(f"{path}: {line}" for line in error.args)) from None
    return list({job.key: job for job in reversed(jobs)}.values())[::-1]  # of equals the first


def parse(content: Any) -> SweepFile:
    """The file from plain values; refuses what is not written as it must be."""
    if not isinstance(content, Mapping) or not content:
        raise UsageError(f"a sweep holds {', '.join(CHECKS)}; found none of them")
    for key, value in content.items():
        if key not in CHECKS:
            raise UsageError(f"unknown key {key}; a sweep holds {', '.join(CHECKS)}")
        CHECKS[key](value)
    for setting in ("data.seed", "train.seed"):
        if "seeds" in content and setting in content.get("axes", {}):
            raise UsageError(f"axes.{setting}: seeds sets it too; leave one of them out")
    return SweepFile(**content)


def make_jobs(
    sweep: SweepFile, root: str | None = None, method: str | None = None
) -> Iterator[Job]:
    """Complete settings for each combination."""
    points = math.prod(len(values) for values in sweep.axes.values())
    n_jobs = points * len(sweep.runs) * len(sweep.seeds)
    if n_jobs > MOST_JOBS:
        raise UsageError(f"it asks for {n_jobs:,} runs; the most are {MOST_JOBS:,}")
    usual: Plain = {} if method is None else {"method": {"name": method}}
    for seed, run, values in product(sweep.seeds, sweep.runs, product(*sweep.axes.values())):
        point = dict(zip(sweep.axes, values, strict=True))
        if root is not None:
            point["data.root"] = root
        if seed is not None:
            point |= {"data.seed": seed, "train.seed": seed}
        own = {key: value for key, value in run.items() if key != "name"}
        plain = usual
        for layer in (sweep.base, own, *(_nest(key, value) for key, value in point.items())):
            plain = merge(plain, expand(dict(layer)))
        recipe = plain.pop("recipe", None)
        if not isinstance(recipe, str | None):
            raise UsageError(f"recipe is {_show(recipe)}; it must be a name or a file")
        if recipe is not None:
            refuse_other_files(recipe, "the sweep names")
        settings = resolve(plain, recipe, code=method)
        varied = [f"{key}={_show(point[key])}" for key in sweep.axes]
        words = [run.get("name") or settings.recipe, *varied, f"seed {settings.train.seed}"]
        yield Job(settings, ", ".join(words))


def _check_base(base: Any) -> None:
    if not isinstance(base, Mapping):
        raise UsageError(f"base is {_show(base)}; it must hold settings")


def _check_axes(axes: Any) -> None:
    if not isinstance(axes, Mapping) or not axes:
        raise UsageError("axes must hold settings with a list of values, as train.epochs: [3, 5]")
    for key, values in axes.items():
        if key != "recipe" and not 1 <= str(key).count(".") < DEEPEST:
            raise UsageError(f"axes.{key}: write a setting as section.key, as method.threshold")
        if not isinstance(values, list) or not values:
            raise UsageError(f"axes.{key} is {_show(values)}; it must be a list of values")


def _check_runs(runs: Any) -> None:
    if not isinstance(runs, list) or not runs:
        raise UsageError(f"runs is {_show(runs)}; it must be a list of settings")
    for number, run in enumerate(runs, 1):
        if not isinstance(run, Mapping):
            raise UsageError(f"run {number} of runs is {_show(run)}; it must hold settings")
        if not isinstance(run.get("name", ""), str):
            raise UsageError(f"run {number} of runs: its name is {_show(run['name'])}, no text")


def _check_seeds(seeds: Any) -> None:
    if not isinstance(seeds, list) or not seeds or any(type(seed) is not int for seed in seeds):
        raise UsageError(f"seeds is {_show(seeds)}; it must be a list of whole numbers, as [1, 2]")


CHECKS = {"base": _check_base, "axes": _check_axes, "runs": _check_runs, "seeds": _check_seeds}


def _nest(key: str, value: Any) -> Plain:
    """`views.strong.draws` and 2 as `{"views": {"strong": {"draws": 2}}}`."""
    for part in reversed(key.split(".")):
        value = {part: value}
    nested: Plain = value
    return nested


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
