"""What a run's controller says of every training image once the run has ended."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from concont.data.placement import TrainingSet
from concont.training.evaluate import predict_on_ranks
from concont.training.state import TrainState
from concont.types import Method, Verdict

POINTS = 100  # of a precision-recall curve: recall 1 %, 2 %, ... 100 %


def judge_training_rows(
    method: Method, state: TrainState, data: TrainingSet
) -> dict[str, Any] | None:
    """Pseudo-labels by class, and how well scores tell right ones; None without a controller.

    The images as they are, by the network that is evaluated and the thresholds at the end.
    """
    if method.thresholds(state.method_state) is None:
        return None
    probs = predict_on_ranks(state.nets.modules["online"], data.images)
    verdict = method.judge(probs, data.candidates, state.method_state, data.weights)
    return None if verdict is None else describe_verdict(verdict, data.truth)


def describe_verdict(verdict: Verdict, truth: Tensor) -> dict[str, Any]:
    """A verdict on N rows in figures; those that need true labels (N,) are null without any."""
    known, classes = truth >= 0, verdict.probs.shape[1]
    right = known & (verdict.label == truth)

    def count(which: Tensor) -> list[int]:
        return torch.bincount(verdict.label[which], minlength=classes).tolist()

    chosen = verdict.probs.gather(1, verdict.label[:, None])[:, 0]
    scores = {"p_score": verdict.score, "max_probability": chosen}
    return {
        "pseudo_labels": count(torch.ones_like(known)),
        "confident": count(verdict.confident),
        "confident_right": count(verdict.confident & right) if known.all() else None,
        "precision": {
            name: precision_at_recalls(right[known].cpu().numpy(), score[known].cpu().numpy())
            for name, score in scores.items()
        },
    }


def precision_at_recalls(right: NDArray[np.bool_], score: NDArray[Any]) -> list[float] | None:
    """Of the highest scores, the share that is right, where so many of all right ones are in."""
    from sklearn.metrics import precision_recall_curve

    if not right.any():
        return None
    shares, recall, _ = precision_recall_curve(right, score)  # recall falls
    wanted = np.arange(1, POINTS + 1) / POINTS
    reached = len(recall) - np.searchsorted(recall[::-1], wanted) - 1
    return [round(float(share), 4) for share in shares[reached]]
