"""The label of every training image as a finished run resolves it, and how sure it is of each."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from concont.answers.calibration import Calibration, fit_calibration
from concont.answers.review import rank_for_review
from concont.api import Run
from concont.core.controller import partial_confidence
from concont.data.problem import Problem
from concont.data.sources import UNKNOWN, Labels
from concont.device import choose_device
from concont.errors import UsageError
from concont.runs.folder import RunFolder
from concont.training import checkpoint
from concont.types import Verdict

log = logging.getLogger("concont")
Floats = NDArray[np.float32]
Booleans = NDArray[np.bool_]
OVERRULES = 0.95  # calibrated probability of one class outside the set


@dataclass(frozen=True)
class Resolution:
    """What a run holds of its N training images; row i of everything is the same image."""

    images: tuple[str, ...]  # (N,) as their table calls them, else their row in the data
    classes: tuple[str, ...]
    candidates: Booleans  # (N, C); all True = unlabelled
    label: Labels  # (N,) the resolved class: inside the set, unless that is overruled
    predicted: Labels  # (N,) the likeliest of all classes
    probability: Floats  # (N,) of the label: inside the set, or of all classes where overruled
    outside: Floats  # (N,) the mass outside the set; 0 where unlabelled
    score: Floats  # (N,) p-scores
    confident: Booleans | None  # (N,) score above its class's threshold; None: there are none
    overruled: Booleans  # (N,) the network is sure of a class outside the set
    disagreement: Floats  # (N,) share of the neighbours that were resolved otherwise
    review: Labels  # (N,) 1 = to be looked at first
    features: Floats  # (N, D) unit rows
    truth: Labels  # (N,) true labels for measuring alone, -1 unknown
    calibration: Calibration | None  # None: there is no hold-out to fit it on

    def __len__(self) -> int:
        return len(self.label)

    @property
    def partial(self) -> Booleans:
        """Which images (N,) have a candidate set that says something."""
        return ~self.candidates.all(axis=1)

    def accuracy(self, which: Booleans | None = None) -> float | None:
        """The share of right labels among these images (N,) whose truth is known, if any."""
        known = self.truth != UNKNOWN
        if which is not None:
            known = known & which
        return float((self.label == self.truth)[known].mean()) if known.any() else None
