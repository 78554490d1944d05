"""The Python interface: train from settings or own arrays, load a run, predict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from concont.classic.options import Classic
from concont.config.recipe_files import read_yaml
from concont.config.resolve import check, resolve
from concont.data import sources
from concont.data.placement import to_images
from concont.data.problem import pose
from concont.device import choose_device
from concont.errors import DataError, UsageError
from concont.nets.network import Network, build
from concont.runs.folder import RunFolder
from concont.runs.settings import Settings
from concont.training import classic_run
from concont.training.either import execute, prepare
from concont.training.evaluate import predict_proba
from concont.training.quality import count, measure

if TYPE_CHECKING:
    from concont.classic.estimator import CandidateClassifier


@dataclass(frozen=True)
class Run:
    """A finished run, read back from its folder."""

    path: Path
    settings: Settings
    summary: dict[str, Any]
    data: dict[str, Any]  # data.json
    network: Network | None  # of a method that trains one
    classifier: "CandidateClassifier | None" = None  # of one that does not

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, in the order of the probabilities."""
        return tuple(self.data["classes"])

    def require_network(self) -> Network:
        """The network, which probabilities come from."""
        if self.network is None:
            name = self.settings.method.name
            raise UsageError(f"{name} gives no probabilities; in Python, Run.predict gives labels")
        return self.network

    def predict_proba(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Class probabilities (M, C) of images, M x H x W or M x H x W x 3, uint8."""
        network = self.require_network()
        on_device = to_images(self._check(images), network.mean.device)
        result: NDArray[np.float32] = predict_proba(network, on_device).float().cpu().numpy()
        return result

    def predict(self, images: NDArray[Any]) -> NDArray[np.int64]:
        """The class (M,) of each image, or row of features, by its place in `classes`."""
        if self.classifier is None:
            likeliest: NDArray[np.int64] = self.predict_proba(images).argmax(axis=1)
            return likeliest
        from concont.classic.descriptor import gist

        return self._label(self.classifier, images, gist)

    def _label(
        self,
        classifier: "CandidateClassifier",
        images: NDArray[Any],
        describe: Callable[..., NDArray[Any]],
    ) -> NDArray[np.int64]:
        """The classes of rows of features, or of images by the features that `describe` gives."""
        method, rows = self.settings.method, self._check(images)
        assert isinstance(method, Classic)
        if rows.ndim > 2:
            rows = describe(rows, size=method.size, device=classifier.device)
        labels: NDArray[np.int64] = classifier.predict(rows)
        return labels

    def _check(self, images: NDArray[Any]) -> NDArray[Any]:
        array = sources.check_inputs(np.asarray(images), "images", "predict")
        if list(array.shape[1:]) != self.data["shape"]:
            expected = tuple(self.data["shape"])
            raise DataError(f"the images are {array.shape[1:]}; the run learned from {expected}")
        return array

    def evaluate(self, source: str | None = None) -> dict[str, Any]:
        """Figures of `training.quality` on the run's own test images, or on another source's."""
        if source is None:
            own = self.settings.data
            problem = pose(sources.load(own.source, own.root), own)
            if problem.digest != self.data["digest"]:
                raise DataError(f"{self.path} was trained on other data than what is there now")
            images, labels, on = problem.test_images, problem.test_labels, problem.evaluated_on
        else:
            other = sources.load(source, self.settings.data.root)
            if other.classes != self.classes:
                raise DataError(f"{source} has other classes than the run: {other.classes}")
            images, labels, on = other.x_test, other.y_test, "test"
        if images is None or labels is None:
            raise DataError("there is no test set to measure on")
        if self.classifier is not None:
            from concont.classic.features import features  # kept on disk, unlike those to predict

            counts = count(self._label(self.classifier, images, features), labels, self.classes)
            return {"on": on, **counts, "calibration_error": None}
        return {"on": on, **measure(self.predict_proba(images), labels, self.classes)}


def train(
    config: Settings | Mapping[str, Any] | str,
    *,
    data: Mapping[str, Any] | None = None,
    model: nn.Module | None = None,
    out: str | Path | None = None,
) -> Run:
    """Train and return the finished run.

    config: settings, nested plain values such as `{"train": {"epochs": 5}}` laid over the
    recipe of their data, or the name or path of a recipe. data: own arrays by the names of an
    `.npz`. model: own network that returns features (B, dim). out: the run folder, new.
    """
    if isinstance(config, str):
        settings = resolve({}, recipe=config)
    elif isinstance(config, Settings):
        settings = config
    else:
        plain = dict(config)
        settings = resolve(plain, recipe=plain.pop("recipe", None))
    folder = RunFolder(out) if out is not None else RunFolder.dated(settings.method.name)
    folder.refuse_if_used()
    own = None if data is None else sources.from_arrays(data)
    if own is not None:  # known by its content, whatever recipe it is trained with
        settings = replace(settings, data=replace(settings.data, source="", root=None))
    job = prepare(settings, folder, own, model)
    for _ in execute(job):
        pass
    return load(folder.path, model=model)


def load(path: str | Path, *, device: str = "auto", model: nn.Module | None = None) -> Run:
    """Read a finished run back; `model` is the own network it was trained with, if any."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = RunFolder(path)
    summary, data = folder.read_json("summary.json"), folder.read_json("data.json")
    config = folder.require("config.yaml")
    settings = check(read_yaml(config.read_text("utf-8"), str(config)))
    path = folder.require("model.safetensors")
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path} is damaged: {error}") from None
    if isinstance(settings.method, Classic):
        arrays = {name: tensor.numpy() for name, tensor in weights.items()}
        fitted = classic_run.restore(settings, arrays, device)
        return Run(folder.path, settings, summary, data, None, fitted)
    height, width, channels = data["shape"]
    moments = data["normalisation"]
    network = build(
        settings.model,
        (channels, height, width),
        len(data["classes"]),
        (torch.tensor(moments["mean"]), torch.tensor(moments["std"])),
        settings.train.seed,
        model,
    )
    prefix = "online."
    own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
    try:
        network.load_state_dict(own)
    except RuntimeError:
        raise UsageError(
            f"{folder.path} holds no network that its settings describe; if it is one of your own, "
            "use concont.load(..., model=...) in Python"
        ) from None
    return Run(folder.path, settings, summary, data, network.to(choose_device(device)).eval())
