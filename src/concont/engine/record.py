"""What a run leaves behind: the files of its folder, from first to last."""

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from concont import version
from concont.config import write_yaml
from concont.engine.setup import Job
from concont.runs import write_whole
from concont.settings import NAMED_SOURCES


class Recorder:
    """Writes a job's folder: what it is, a line an evaluation, and at the end the result."""

    def __init__(self, job: Job) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.job, folder = job, job.folder
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.write_text("config.yaml", write_yaml(job.settings))  # first: it makes this a run
        if job.resumed:
            folder.cut_metrics(job.state.step)
        folder.write_json("environment.json", self._environment())
        folder.write_json("data.json", describe_data(job))
        write_whole(folder / "candidates.npz", self._write_candidates)
        self.events = SummaryWriter(str(folder.path), purge_step=job.state.step + 1)

    def add(self, row: Mapping[str, Any]) -> None:
        """A line of metrics, and the same for TensorBoard."""
        self.job.folder.append_metrics(dict(row))
        scalars = {name: value for name, value in row.items() if isinstance(value, float)}
        for label, value in enumerate(row["thresholds"] or ()):
            scalars[f"threshold/{label}"] = value
        for name, value in scalars.items():
            self.events.add_scalar(name, value, row["step"])

    def finish(self) -> None:
        """The trained networks, then the summary that marks the run as finished."""
        from safetensors.torch import save_file

        weights = {
            f"{name}.{key}": tensor.contiguous()
            for name, module in self.job.state.nets.modules.items()
            for key, tensor in module.state_dict().items()
        }
        folder = self.job.folder
        write_whole(folder / "model.safetensors", lambda path: save_file(weights, path))
        folder.write_json("summary.json", summarize(self.job))

    def close(self) -> None:
        """Let go of the open files."""
        self.events.close()

    def _environment(self) -> dict[str, Any]:
        """This start's environment; those of earlier starts of the same run stay below it."""
        folder, now = self.job.folder, environment(self.job.data.device)
        if not self.job.resumed or not (folder / "environment.json").is_file():
            return now
        before = folder.read_json("environment.json")
        return {**now, "earlier": [*before.pop("earlier", []), before]}

    def _write_candidates(self, path: Path) -> None:
        problem = self.job.problem
        with open(path, "wb") as file:
            np.savez_compressed(file, rows=problem.rows, candidates=problem.candidates)


def summarize(job: Job) -> dict[str, Any]:
    """The run in one record."""
    settings, rows = job.settings, job.folder.metrics()
    data, last, spent = settings.data, rows[-1], job.state.spent
    return {
        "method": settings.method.name,
        "recipe": settings.recipe,
        "data": data.source if data.source in NAMED_SOURCES else job.problem.digest,
        "labeled": data.labeled,
        "ambiguity": data.ambiguity,
        "unlabeled": data.unlabeled,
        "seed": settings.train.seed,
        "data_seed": data.seed,
        "epochs": settings.train.epochs,
        "steps": job.state.step,
        "batch_size": job.order.batch_size,
        "evaluated_on": job.problem.evaluated_on,
        "accuracy_last": last["accuracy"],
        "accuracy_best": last["accuracy_best"],
        "accuracy_momentum": last["accuracy_momentum"],
        "seconds": job.state.seconds,
        "seconds_by": {**spent, "other": job.state.seconds - sum(spent.values())},
        "settings_hash": settings.hash(job.problem.digest, job.problem.sets_hash),
    }


def describe_data(job: Job) -> dict[str, Any]:
    """What a later prediction must know of the data."""
    problem, (mean, std) = job.problem, job.moments
    return {
        "classes": list(problem.classes),
        "shape": list(problem.images.shape[1:]),
        "normalisation": {"mean": mean.tolist(), "std": std.tolist()},
        "digest": problem.digest,
        "sets_hash": problem.sets_hash,
        "n_train": len(problem.rows),
        "n_partial": problem.n_partial,
        "n_test": 0 if problem.test_labels is None else len(problem.test_labels),
        "evaluated_on": problem.evaluated_on,
    }


def cpu_name() -> str:
    """The processor's own name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def environment(device: torch.device) -> dict[str, Any]:
    """What a figure depends on besides the settings."""
    found, clean = version.commit()
    return {
        "concont": version.__version__,
        "commit": found,
        "clean": clean,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cpu": cpu_name(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "command": sys.argv,
    }
