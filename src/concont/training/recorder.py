"""What a run leaves behind: the files of its folder, from first to last."""

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from concont import version
from concont.config.resolve import write_yaml
from concont.data.problem import Problem
from concont.nets.network import Moments
from concont.runs.folder import RunFolder
from concont.runs.settings import NAMED_SOURCES, Settings
from concont.runs.summary import Summary

COLUMNS = (  # in every line of metrics, null where they do not apply; a method may report more
    "epoch",
    "step",
    "seconds",
    "images_per_s",
    "loss",
    "loss_part",
    "loss_reg",
    "loss_contrast",
    "confident",
    "pseudo_accuracy",
    "confident_precision",
    "thresholds",
    "accuracy",
    "accuracy_best",
    "accuracy_momentum",
    "probability_on_sets",
    "share_in_sets",
)


class Recorder:
    """Writes a run's folder: what it is, a line an evaluation, and at the end the result.

    It has the folder for itself until it is closed. `since`: the step at which an earlier start of
    the same run is taken up; None: a new one.
    """

    def __init__(
        self,
        folder: RunFolder,
        settings: Settings,
        problem: Problem,
        device: torch.device,
        moments: Moments | None = None,
        since: int | None = None,
    ) -> None:
        self.folder, self.settings, self.problem = folder, settings, problem
        folder.claim(new=since is None)
        try:
            self._write_start(device, moments, since)
        except BaseException:
            folder.lock.release()
            raise

    def _write_start(
        self, device: torch.device, moments: Moments | None, since: int | None
    ) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder, settings, problem = self.folder, self.settings, self.problem
        folder.checksums.settle()
        folder.checksums.expect_settings(settings.hash(problem.digest, problem.sets_hash))
        folder.write_text("config.yaml", write_yaml(settings))  # first: it makes this a run
        if since is not None:
            folder.cut_metrics(since)
        folder.write_json("environment.json", self._describe_starts(device, since is not None))
        folder.write_json("data.json", describe_data(problem, moments))
        folder.write("candidates.npz", lambda path: problem.sets.save(path, problem.rows))
        self.events = SummaryWriter(str(folder.path), purge_step=(since or 0) + 1)

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a line of metrics, whatever its names are, and the same for TensorBoard."""
        line = {**dict.fromkeys(COLUMNS), **row}
        self.folder.append_metrics(line)
        scalars = {name: value for name, value in line.items() if isinstance(value, float)}
        for label, value in enumerate(line["thresholds"] or ()):
            scalars[f"threshold/{label}"] = value
        for name, value in scalars.items():
            self.events.add_scalar(name, value, line["step"])

    def finish(
        self,
        weights: Mapping[str, Tensor],
        *,
        seconds: float,
        seconds_by: dict[str, float],
        epochs: int | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Write what was learned, then the summary, which marks the run as finished.

        details: what the summary of this kind of run tells beside what every run's does.
        """
        from safetensors.torch import save

        tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
        self.folder.write("model.safetensors", lambda path: _write(path, save(tensors)))
        settings, problem, lines = self.settings, self.problem, self.folder.metrics()
        if not lines:
            raise self.folder.describe_damage("metrics.jsonl", "its lines are gone")
        last = lines[-1]
        data = settings.data
        summary = Summary(
            method=settings.method.name,
            recipe=settings.recipe,
            data=data.source if data.source in NAMED_SOURCES else problem.digest,
            labeled=data.labeled,
            ambiguity=data.ambiguity,
            unlabeled=bool(data.unlabeled),
            seed=settings.train.seed,
            data_seed=data.seed,
            settings_hash=settings.hash(problem.digest, problem.sets_hash),
            evaluated_on=problem.evaluated_on,
            accuracy_last=last["accuracy"],
            accuracy_best=last["accuracy_best"],
            accuracy_momentum=last["accuracy_momentum"],
            probability_on_sets=last.get("probability_on_sets"),
            share_in_sets=last.get("share_in_sets"),
            epochs=epochs,
            steps=steps,
            batch_size=batch_size,
            seconds=seconds,
            seconds_by=seconds_by,
            details=details or {},
        )
        self.folder.write_summary(summary)

    def close(self) -> None:
        """Let go of the open files, and of the folder."""
        try:
            self.events.close()
        finally:
            self.folder.lock.release()

    def _describe_starts(self, device: torch.device, resumed: bool) -> dict[str, Any]:
        """This start's environment; those of earlier starts of the same run stay below it."""
        now = describe_environment(device)
        if not resumed or not (self.folder / "environment.json").is_file():
            return now
        before = self.folder.read_environment()
        return {**now, "earlier": [*before.pop("earlier", []), before]}


class SilentRecorder:
    """The same of a rank that writes nothing, since rank 0 does."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def finish(self, weights: Mapping[str, Tensor], **figures: Any) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


AnyRecorder = Recorder | SilentRecorder


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def describe_data(problem: Problem, moments: Moments | None) -> dict[str, Any]:
    """What a later prediction must know of the data."""
    scale = None
    if moments is not None:
        scale = dict(zip(("mean", "std"), (m.tolist() for m in moments), strict=True))
    return {
        "classes": list(problem.classes),
        "shape": list(problem.images.shape[1:]),
        **({} if problem.fit is None else {"fit": problem.fit}),
        "normalisation": scale,
        "digest": problem.digest,
        "sets_hash": problem.sets_hash,
        "n_train": len(problem.rows),
        "n_partial": problem.n_partial,
        "n_test": problem.n_measured,
        "evaluated_on": problem.evaluated_on,
    }


def read_cpu_name() -> str:
    """The processor's own name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def describe_environment(device: torch.device) -> dict[str, Any]:
    """What a figure depends on besides the settings."""
    found, clean = version.commit()
    return {
        "concont": version.__version__,
        "commit": found,
        "clean": clean,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        **({"timm": sys.modules["timm"].__version__} if "timm" in sys.modules else {}),
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cpu": read_cpu_name(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "command": sys.argv,
    }
