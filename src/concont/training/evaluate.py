"""Accuracy of a network on held images."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from concont.data.placement import Resident, Streamed, place_images
from concont.data.problem import Problem

AT_ONCE = 1000  # divides the paper's test sets: one shape for cuDNN to choose algorithms for
PIXELS = AT_ONCE * 64 * 64  # at once; of larger images there are fewer
AnyImages = Tensor | Resident | Streamed  # (M, channels, H, W) uint8


@dataclass(frozen=True)
class TestSet:
    """Images that a run is measured on, on the training device where they fit."""

    __test__ = False  # not a test class
    images: AnyImages
    labels: Tensor  # (M,)
    candidates: Tensor | None = None  # (M, C) bool, drawn as the training sets were

    @classmethod
    def of(cls, problem: Problem, device: torch.device, memory_share: float) -> "TestSet | None":
        """A problem's test images, or hold-out; None where it has neither."""
        if problem.test_images is None or problem.test_labels is None:
            return None
        images = place_images(problem.test_images, device, memory_share)
        sets = problem.test_candidates
        return cls(
            images,
            torch.from_numpy(problem.test_labels).to(device),
            None if sets is None else torch.from_numpy(sets).to(device),
        )


@torch.no_grad()
def predict_proba(network: nn.Module, images: AnyImages) -> Tensor:
    """Class probabilities (M, C) of uint8 images, with BatchNorm's running statistics."""
    was_training = network.training
    network.eval()
    own = next(network.parameters(), None)
    device = images.device if own is None else own.device  # images may lie in main memory
    height, width = images.shape[2:]
    chunks = images.split(max(1, min(AT_ONCE, PIXELS // (height * width))))
    parts = [network(chunk.to(device).float() / 255).softmax(dim=1) for chunk in chunks]
    network.train(was_training)
    return torch.cat(parts)


def accuracy(network: nn.Module, test: TestSet) -> tuple[float, float | None]:
    """Share of the images whose likeliest class is the true one: of all, and of the candidates.

    The second says how well labels are picked out of sets that the network never learned from.
    """
    probs = predict_proba(network, test.images)
    sets = [None] if test.candidates is None else [None, test.candidates]
    shares = []
    for inside in sets:
        seen = probs if inside is None else probs.masked_fill(~inside, -1.0)
        shares.append((seen.argmax(dim=1) == test.labels).double().mean().item())
    return shares[0], shares[1] if len(shares) > 1 else None
