"""A run's network as a file in one of three formats, images in and probabilities out.

Rows of features are taken in place of images where the network learned of them.
"""

import copy
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from concont import version
from concont.api import Run
from concont.data.placement import channels_first, to_floats
from concont.deploy import checksum
from concont.deploy.description import LOGITS, PROBABILITIES, Description
from concont.errors import ConcontError, UsageError
from concont.training.network_run import NetworkPredictor

EXAMPLES = 2  # images that the network is traced with; one would fix the batch
OPSET = 20
TOO_LARGE = 2**31  # bytes that one ONNX file cannot hold

Compute = Callable[[NDArray[Any]], list[NDArray[np.float32]]]  # images -> the two answers


class Deployed(nn.Module):
    """The network with all that lies between an image's pixels and its probabilities."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Class scores and probabilities (N, C) of uint8 images (N, H, W, channels)."""
        planes = channels_first(images).contiguous()
        logits: Tensor = self.network(to_floats(planes))
        return logits, logits.softmax(dim=1)

    @torch.no_grad()
    def compute(self, images: NDArray[Any]) -> list[NDArray[np.float32]]:
        """The same from arrays to arrays."""
        return [answer.numpy() for answer in self(torch.from_numpy(images))]


@dataclass(frozen=True)
class Format:
    """How a network is written to a file, and how what was written is run again."""

    write: Callable[[Deployed, Description, Path], None]
    reopen: Callable[[Path, Deployed], Compute]


def make_deployable(run: Run) -> Deployed:
    """A copy of the run's network, on the CPU and ready to predict."""
    network = copy.deepcopy(_find_network(run)).cpu().eval()
    # Else the order in memory would be written into the graph.
    return Deployed(network.to(memory_format=torch.contiguous_format)).eval()


def describe_run(run: Run, licence: str | None) -> Description:
    """What the file will say of itself; no path among it."""
    of_features = len(run.shape) == 1
    height, width, channels = (None, None, None) if of_features else run.shape
    commit, clean = version.commit()
    return Description(
        classes=run.classes,
        height=height,
        width=width,
        channels=channels,
        fit=run.fit,
        normalisation=run.data["normalisation"],
        model=_describe_network(run),
        concont=version.__version__,
        commit=commit if clean or commit is None else f"{commit}, modified",
        settings_hash=run.summary.settings_hash,
        data_digest=run.data["digest"],
        licence=licence,
        features=run.shape[0] if of_features else None,
    )


def write_onnx(module: Deployed, description: Description, path: Path) -> None:
    """The graph and its weights as one ONNX file, its checksum at the end."""
    import onnx

    with quiet():
        program = torch.onnx.export(
            module,
            (_examples(description),),
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            input_names=[description.goes_in],
            output_names=[LOGITS, PROBABILITIES],
            dynamic_shapes={"images": {0: torch.export.Dim("batch")}},
        )
    assert program is not None
    model = program.model_proto
    _remove_traces(model)
    onnx.helper.set_model_props(model, description.as_texts())
    if model.ByteSize() + checksum.SIZE >= TOO_LARGE:
        raise ConcontError("the network has over 2 GB, more than one ONNX file can hold")
    path.write_bytes(checksum.add_checksum(model.SerializeToString()))


def reopen_onnx(path: Path, module: Deployed) -> Compute:
    """The file, run by ONNX Runtime."""
    from concont.deploy.onnx_model import load_onnx

    return load_onnx(path, "cpu").compute


def write_torchscript(module: Deployed, description: Description, path: Path) -> None:
    """The traced module; its description is the extra file `concont.json`."""
    extra = {"concont.json": json.dumps(description.as_texts())}
    with quiet():
        traced = torch.jit.trace(module, _examples(description))  # type: ignore[no-untyped-call]
        content = io.BytesIO()  # a full disk is then an OSError, as everywhere
        torch.jit.save(traced, content, _extra_files=extra)
    path.write_bytes(content.getvalue())


def reopen_torchscript(path: Path, module: Deployed) -> Compute:
    """The file, run by PyTorch."""
    with quiet():
        loaded = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def compute(images: NDArray[Any]) -> list[NDArray[np.float32]]:
        with quiet():
            return [answer.numpy() for answer in loaded(torch.from_numpy(images))]

    return compute


def write_safetensors(module: Deployed, description: Description, path: Path) -> None:
    """The weights alone, by the names that the network has for them."""
    from safetensors.torch import save

    tensors = {name: t.contiguous() for name, t in module.network.state_dict().items()}
    path.write_bytes(save(tensors, metadata=description.as_texts()))


def reopen_safetensors(path: Path, module: Deployed) -> Compute:
    """The same network with the weights of the file."""
    from safetensors.torch import load_file

    again = copy.deepcopy(module)
    again.network.load_state_dict(load_file(path))
    return again.compute


FORMATS = {
    "onnx": Format(write_onnx, reopen_onnx),
    "torchscript": Format(write_torchscript, reopen_torchscript),
    "safetensors": Format(write_safetensors, reopen_safetensors),
}


@contextmanager
def quiet() -> Iterator[None]:
    """What the libraries tell their own developers is not for who exports a model."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _describe_network(run: Run) -> dict[str, Any]:
    """Its settings, none of them a path; a user's own network has none."""
    if getattr(_find_network(run), "foreign", False):
        return {"name": "a network of the user's own"}
    model: dict[str, Any] = run.settings.as_dict()["model"]
    del model["start"]  # a path; its digest stands beside it
    if run.settings.model.weights_file is not None:
        model["weights"] = PurePath(run.settings.model.weights_file).name
    return model


def _find_network(run: Run) -> nn.Module:
    if not isinstance(run.predictor, NetworkPredictor):
        name = run.settings.method.name
        raise UsageError(f"{name} trains no network, so there is nothing to export")
    return run.predictor.networks["online"]


def _examples(description: Description) -> Tensor:
    kind = torch.uint8 if description.features is None else torch.float32
    return torch.zeros((EXAMPLES, *description.shape), dtype=kind)


def _remove_traces(model: Any) -> None:
    """Forget where in whose source code each node comes from."""
    graph = model.graph
    parts = (graph.node, graph.input, graph.output, graph.initializer, graph.value_info)
    for each in (model, graph, *(item for part in parts for item in part)):
        del each.metadata_props[:]
