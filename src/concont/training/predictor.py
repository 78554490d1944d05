"""What a trained method can be asked, with a network or without."""

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from concont.data.mapped_arrays import RowsOf
from concont.data.sources import Inputs, Labels, check_inputs
from concont.errors import DataError


class Predictor(Protocol):
    """Labels images, or rows of features; made by training or read back from a run folder."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Their names, in the order of the labels and of the probabilities."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input: (H, W, channels) of an image, or (D,) of a row of features."""
        ...

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        ...

    @property
    def gives_probabilities(self) -> bool:
        """Whether the method says more than a label."""
        ...

    def predict_proba(self, inputs: ArrayLike) -> NDArray[np.float32]:
        """Class probabilities (M, C); a UsageError where the method gives labels alone."""
        ...

    def scores_and_features(
        self, inputs: Inputs | RowsOf
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Class scores (M, C) and features (M, dim) of images that may be more than fit in memory.

        The softmax of the scores are the probabilities.
        """
        ...

    def predict(self, inputs: ArrayLike) -> Labels:
        """The class (M,) of each input, by its place in `classes`."""
        ...

    def evaluate(self, inputs: ArrayLike, labels: Labels) -> dict[str, Any]:
        """Figures of `training.quality` on inputs with these true labels (M,)."""
        ...

    def weights(self) -> dict[str, Tensor]:
        """All that was learned, by name: what `model.safetensors` holds."""
        ...


def check_inputs_fit(inputs: ArrayLike, shape: tuple[int, ...], where: str = "predict") -> Inputs:
    """Images (M, H, W, channels) or features (M, D); refused unless each has the shape."""
    array = check_inputs(np.asarray(inputs), "images", where)
    if array.shape[1:] != shape:
        raise DataError(f"the images are {array.shape[1:]}; the run learned from {shape}")
    return array
