"""A finished run, read back from its folder: what it predicts, and how good it is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from concont.data import sources
from concont.data.given import to_array
from concont.data.own_data import holds_image_files, load_data, load_labelled_images
from concont.data.problem import Problem, make_problem
from concont.errors import DataError, UsageError, printable
from concont.images.files import Fit
from concont.runs.folder import RunFolder
from concont.runs.settings import Data, Settings
from concont.runs.summary import Summary
from concont.training.evaluate import score_sets
from concont.training.predictor import Predictor, check_inputs_fit
from concont.training.trainers import read_run_settings, trainer_of


@dataclass(frozen=True)
class Run:
    """A finished run, read back from its folder."""

    path: Path
    settings: Settings
    summary: Summary
    data: dict[str, Any]  # data.json
    predictor: Predictor

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, in the order of the probabilities."""
        return self.predictor.classes

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input: (H, W, channels) of an image, or (D,) of a row of features."""
        return self.predictor.shape

    @property
    def fit(self) -> Fit:
        """How an image file is given that shape."""
        stated: Fit = self.data.get("fit", "stretch")  # not stated where a run was given pixels
        return stated

    @property
    def gives_probabilities(self) -> bool:
        """Whether its method says more than a label."""
        return self.predictor.gives_probabilities

    def predict_proba(self, images: ArrayLike) -> NDArray[np.float32]:
        """Class probabilities (M, C) of images, M x H x W or M x H x W x 3, uint8."""
        return self.predictor.predict_proba(images)

    def predict(self, images: ArrayLike) -> NDArray[np.int64]:
        """The class (M,) of each image, or row of features, by its place in `classes`."""
        return self.predictor.predict(images)

    def evaluate(
        self,
        images: str | Path | ArrayLike | None = None,
        labels: ArrayLike | None = None,
        *,
        folder: str | Path | None = None,
    ) -> dict[str, Any]:
        """Figures of `training.quality`: on the run's own test images, or on others.

        Where sets alone are known of the images that the run held out, `probability_on_sets` and
        `share_in_sets` instead.

        images: a data source, whose test set is taken (of a table without one, all rows that have a
        label), or images (or rows of features), whose true labels (M,) then go with them. folder:
        where a table's images lie.
        """
        if images is None or isinstance(images, str | Path):
            if labels is not None:
                raise UsageError("labels go with images of your own; a data source has its labels")
            if images is None and self.summary.evaluated_on == "sets":
                return self._evaluate_on_sets()
            inputs, truth, on = self._read_test_set(images, folder)
        else:
            inputs, on = check_inputs_fit(images, self.predictor.shape, "evaluate"), "given"
            truth = self._check_labels(labels, len(inputs))
        if inputs is None or truth is None:
            raise DataError("there is no test set to measure on")
        return {"on": on, **self.predictor.evaluate(inputs, truth)}

    def read_history(self) -> list[dict[str, Any]]:
        """The lines of metrics, first to last."""
        return RunFolder(self.path).metrics()

    def read_problem(self, source: str | None = None, images: str | None = None) -> Problem:
        """What the run learned from and is measured on; refused if it is other data now.

        source, images: where the data and a table's images lie now, if not where they lay.
        """
        own = self.settings.data
        there = replace(own, source=source or own.source, images=images or own.images)
        if not there.source:
            raise UsageError("the run learned from arrays, so its images cannot be read again")
        problem = make_problem(load_data(there), own)
        RunFolder(self.path).refuse_other_data(problem.digest, there.source)
        return problem

    def _evaluate_on_sets(self) -> dict[str, Any]:
        """What can be told of the images that were held out with their candidate sets."""
        problem = self._read_own_problem()
        held, sets = np.asarray(problem.test_images), problem.test_candidates
        assert sets is not None
        chances = self.gives_probabilities
        one_hot = np.eye(len(self.classes))
        probs = self.predict_proba(held) if chances else one_hot[self.predict(held)]
        figures: dict[str, Any] = score_sets(torch.from_numpy(probs), torch.from_numpy(sets))
        if not chances:
            figures["probability_on_sets"] = None
        return {"on": "sets", "n": len(held), **figures}

    def _read_own_problem(self) -> Problem:
        if not self.settings.data.source:
            raise UsageError("the run learned from arrays; give some: evaluate(images, labels)")
        return self.read_problem()

    def _read_test_set(
        self, source: str | Path | None, folder: str | Path | None = None
    ) -> tuple[sources.Inputs | None, sources.Labels | None, str | None]:
        """The test images of a source, their labels, and what they are; None: as in training."""
        own = self.settings.data
        if source is None:
            problem = self._read_own_problem()
            held = problem.test_images
            inputs = None if held is None else np.asarray(held)
            return inputs, problem.test_labels, problem.evaluated_on
        if holds_image_files(str(source)):
            data = Data(
                str(source),
                images=None if folder is None else str(folder),
                image_size=self.data["shape"][0],
                fit=self.fit,
            )
            pixels, truth = load_labelled_images(data, self.classes)
            return pixels, truth, "given"
        other = sources.load(str(source), own.root)
        if other.classes != self.classes:
            raise DataError(f"{source} has other classes than the run: {other.classes}")
        return other.x_test, other.y_test, "test"

    def _check_labels(self, labels: ArrayLike | None, rows: int) -> sources.Labels:
        if labels is None:
            raise UsageError("give the true labels of the images, too: evaluate(images, labels)")
        given = to_array(labels, "labels", "evaluate")
        truth = sources.check_test_labels(given, rows, "labels", "evaluate")
        sources.check_range(truth, len(self.classes), "labels", "evaluate")
        return truth


def load(path: str | Path, *, device: str = "auto", model: nn.Module | None = None) -> Run:
    """Read a finished run back from its folder.

    Parameters
    ----------
    path : str or Path
        The run folder.
    device : {"auto", "cpu", "cuda"}
        Where to predict; `auto` is a GPU where there is one.
    model : nn.Module, optional
        The own network that it was trained with, if any; a copy gets the run's weights.

    Returns
    -------
    Run
        The same that `train` returned.

    Examples
    --------
    >>> import concont, numpy as np
    >>> config = {"recipe": "digits", "train": {"epochs": 1, "device": "cpu"}}
    >>> path = concont.train(config, out="second").path
    >>> concont.load(path).predict_proba(np.zeros((2, 8, 8), dtype=np.uint8)).shape
    (2, 10)
    """
    from safetensors import SafetensorError
    from safetensors.torch import load as load_weights

    folder = RunFolder(path)
    summary, data = folder.read_summary(), folder.read_data()
    folder.require_whole("summary.json", "data.json", "model.safetensors")
    settings = read_run_settings(folder)
    try:
        # In memory: `load_file` maps the file, which another process may cut short.
        weights = load_weights(folder.require("model.safetensors").read_bytes())
    except SafetensorError as error:
        raise folder.describe_damage("model.safetensors", error) from None
    _refuse_non_finite(folder, weights)
    predictor = trainer_of(settings).restore(settings, data, weights, device, model)
    return Run(folder.path, settings, summary, data, predictor)


def _refuse_non_finite(folder: RunFolder, weights: Mapping[str, Tensor]) -> None:
    """With such a weight every prediction would be NaN."""
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise DataError(
                f"{folder.path} holds weights that are no finite numbers, first in "
                f"{printable(name)}: its training went wrong; train it again"
            )
