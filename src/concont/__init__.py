"""Learning from ambiguous labels: candidate sets, unlabelled images, and the ConCont method.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concont.version import __version__

if TYPE_CHECKING:
    from concont import classic
    from concont.answers.resolution import resolve
    from concont.api import train
    from concont.classic.parm import PARMClassifier
    from concont.classic.scores import set_score
    from concont.classic.sspl import SSPLClassifier
    from concont.core.balance import AdaptiveThresholds
    from concont.core.contrast import contrast_masks
    from concont.core.controller import partial_confidence
    from concont.core.losses import contrastive_loss, partial_cross_entropy
    from concont.data.targets import as_sets
    from concont.estimator.classifier import PartialLabelClassifier
    from concont.run import Run, load

_WHERE = {
    "AdaptiveThresholds": "core.balance",
    "PARMClassifier": "classic.parm",
    "PartialLabelClassifier": "estimator.classifier",
    "Run": "run",
    "SSPLClassifier": "classic.sspl",
    "as_sets": "data.targets",
    "contrast_masks": "core.contrast",
    "contrastive_loss": "core.losses",
    "load": "run",
    "resolve": "answers.resolution",
    "partial_confidence": "core.controller",
    "partial_cross_entropy": "core.losses",
    "set_score": "classic.scores",
    "train": "api",
}

__all__ = [
    "AdaptiveThresholds",
    "PARMClassifier",
    "PartialLabelClassifier",
    "Run",
    "SSPLClassifier",
    "__version__",
    "as_sets",
    "classic",
    "contrast_masks",
    "contrastive_loss",
    "load",
    "partial_confidence",
    "partial_cross_entropy",
    "resolve",
    "set_score",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "classic":
        return import_module("concont.classic")
    if name not in _WHERE:
        raise AttributeError(f"module 'concont' has no attribute {name!r}")
    return getattr(import_module(f"concont.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
