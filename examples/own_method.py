"""A method of your own in one file: mix each candidate set with what the network thinks of it.

A method is a frozen dataclass whose fields are its settings; `losses` turns a batch into a loss.
Views, networks, checkpoints and logging come from the package. From the shell:

    concont train --data digits --method examples/own_method.py:Softened --set method.trust=0.7
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import concont
from concont.core.losses import inside_softmax, soft_cross_entropy, uniform_over
from concont.types import Batch, MethodDefaults, Nets, Share, State, StepOut


@dataclass(frozen=True)
class Softened(MethodDefaults):
    """Cross-entropy to a mixture: equal candidates, and the network's own opinion of them."""

    name: Literal["softened"] = "softened"
    trust: Share = 0.9  # in the network's opinion, against equal candidates

    views = ("weak",)

    def losses(self, nets: Nets, state: State, batch: Batch) -> StepOut:
        """The mean over the rows that have a candidate set."""
        (features,) = nets.online.features(batch.views["weak"])
        logits = nets.online.logits(features)  # (B, C)
        opinion = inside_softmax(logits.detach(), batch.candidates)
        target = uniform_over(batch.candidates).lerp(opinion, self.trust)
        partial = ~batch.candidates.all(dim=1)  # (B,)
        rows = soft_cross_entropy(logits, target) * partial
        loss = rows.sum() / partial.sum().clamp(min=1)
        return StepOut(total=loss, terms={"loss_part": loss.detach()})


def train(trust: float, folder: Path) -> float:
    """The test accuracy on digits, of which each has a candidate set."""
    config = {
        "recipe": "digits",
        "data": {"labeled": 1.0, "ambiguity": 0.5},
        "method": {"name": f"{__file__}:Softened", "trust": trust},
        "train": {"epochs": 8, "evaluate_every": 8, "device": "cpu"},
    }
    return concont.train(config, out=folder).summary["accuracy_last"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        equal, mixed = (train(trust, Path(folder) / str(trust)) for trust in (0.0, 0.9))
    print(f"equal candidates: {100 * equal:.1f} %")
    print(f"with the network's opinion: {100 * mixed:.1f} %")
