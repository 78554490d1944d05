"""What a training has learned, as plain values: in memory, pickled, or in a single file."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from concont.config.resolve import check
from concont.data.sources import digest
from concont.errors import DataError, UsageError, printable
from concont.runs.contents import check_data
from concont.runs.folder import write_whole
from concont.training.predictor import Predictor
from concont.training.trainers import trainer_of

KEY = "concont"  # of the metadata in a file
KINDS = {"settings": dict, "data": dict, "more": dict}


@dataclass(frozen=True)
class Trained:
    """All that it takes to predict, as arrays and what JSON knows: nothing in it is code."""

    settings: dict[str, Any]  # as in config.yaml
    data: dict[str, Any]  # as in data.json
    weights: Mapping[str, NDArray[Any]]  # as in model.safetensors

    def make_predictor(self, device: str = "auto", network: nn.Module | None = None) -> Predictor:
        """What predicts with it; network: the own one that it was trained with, if any."""
        settings = check(self.settings)
        weights = {name: torch.from_numpy(np.array(each)) for name, each in self.weights.items()}
        restore = trainer_of(settings).restore
        return restore(settings, self.data, weights, device, network)

    def write(self, path: Path, more: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """One file of safetensors; more: what else JSON is to hold, and further arrays."""
        from safetensors.numpy import save

        tensors = {f"weights.{name}": each for name, each in self.weights.items()}
        tensors |= {f"more.{name}": each for name, each in arrays.items()}
        whole = {name: np.asarray(each, order="C") for name, each in tensors.items()}
        said = {"settings": self.settings, "data": self.data, "more": dict(more)}
        content = save(whole, {KEY: seal(json.dumps(said, default=_to_json), whole)})
        write_whole(path, lambda place: _write_bytes(place, content))


def read_trained(path: Path) -> tuple[Trained, dict[str, Any], dict[str, NDArray[Any]]]:
    """What `write` wrote: the trained model, what else JSON holds, and the further arrays."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise UsageError(f"{printable(path)}: no such file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise _describe_damage(path, error) from None
    content = _read_metadata(path, metadata, tensors)
    parts: dict[str, dict[str, NDArray[Any]]] = {"weights": {}, "more": {}}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind not in parts:
            raise _describe_damage(path, f"it holds {name}")
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise DataError(f"{printable(path)} holds {printable(name)}, which is not finite")
        parts[kind][rest] = tensor
    trained = Trained(content["settings"], content["data"], parts["weights"])
    return trained, content["more"], parts["more"]


def seal(text: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """JSON behind the checksum of the whole file: else a flipped bit would go without a word."""
    return f"{hashlib.sha256(f'{text} {digest(tensors)}'.encode()).hexdigest()} {text}"


def _read_metadata(
    path: Path, metadata: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    if KEY not in metadata:
        raise DataError(f"{printable(path)} was not written by `save` of a concont classifier")
    text = metadata[KEY].partition(" ")[2]
    if metadata[KEY] != seal(text, tensors):
        raise _describe_damage(path, "it does not fit its checksum")
    try:
        content = json.loads(text)
        for name, kind in KINDS.items():
            if not isinstance(content[name], kind):
                raise ValueError(f"{name} is no {kind.__name__}")
        check_data(json.dumps(content["data"]))
    except (ValueError, KeyError, TypeError, RecursionError, DataError) as error:
        raise _describe_damage(path, error) from None
    found: dict[str, Any] = content
    return found


def _describe_damage(path: Path, problem: object) -> DataError:
    return DataError(f"{printable(path)} is damaged: {printable(problem)}")


def _to_json(value: Any) -> Any:
    """A parameter that JSON does not know: a path, a number of NumPy; else nothing, as a stream."""
    if isinstance(value, PurePath):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else None


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
