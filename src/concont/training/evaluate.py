"""Accuracy of a network on held images."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from concont.data.placement import Resident, Streamed, place_images, to_floats
from concont.data.problem import Problem
from concont.nets.network import Network
from concont.ranks import world
from concont.ranks.tensors import share, sum_over_ranks

AT_ONCE = 1000  # divides the paper's test sets: one shape for cuDNN to choose algorithms for
PIXELS = AT_ONCE * 64 * 64  # at once; of larger images there are fewer
AnyImages = Tensor | Resident | Streamed  # (M, channels, H, W) uint8, or features (M, D)


@dataclass(frozen=True)
class TestSet:
    """Images that a run is measured on, on the training device where they fit."""

    __test__ = False  # not a test class
    images: AnyImages
    labels: Tensor | None  # (M,) None: only sets are known
    candidates: Tensor | None = None  # (M, C) bool, drawn as the training sets were, or their own

    @classmethod
    def of(cls, problem: Problem, device: torch.device, memory_share: float) -> "TestSet | None":
        """A problem's test images, or hold-out; None where it has neither."""
        if problem.test_images is None or problem.evaluated_on is None:
            return None
        images = place_images(problem.test_images, device, memory_share)
        known = (problem.test_labels, problem.test_candidates)
        return cls(images, *(None if k is None else torch.from_numpy(k).to(device) for k in known))


def predict_proba(network: nn.Module, images: AnyImages) -> Tensor:
    """Class probabilities (M, C) of uint8 images, with BatchNorm's running statistics."""
    (probs,) = _apply(network, images, lambda chunk: (network(chunk).softmax(dim=1),))
    return probs


def predict_on_ranks(network: nn.Module, images: AnyImages) -> Tensor:
    """The same, to be asked for on every rank at once: each predicts a part of the images."""
    rows, ranks = images.shape[0], world.size()
    if ranks == 1 or rows < ranks or isinstance(images, Tensor):
        return predict_proba(network, images)
    share(network.buffers())  # BatchNorm's averages may be each rank's own
    at_once = min(count_at_once(images), rows // ranks)
    chunks = images.split(at_once, world.rank(), ranks)
    (own,) = _apply(network, images, lambda chunk: (network(chunk).softmax(dim=1),), chunks)
    owner = torch.arange(rows, device=own.device) // at_once % ranks
    probs = own.new_zeros(rows, own.shape[1])
    probs[owner == world.rank()] = own
    world.wait_for_all()
    return sum_over_ranks(probs)


def count_at_once(images: AnyImages) -> int:
    """How many images pass a network together."""
    return max(1, min(AT_ONCE, PIXELS // math.prod(images.shape[2:])))


def predict_with_features(network: Network, images: AnyImages) -> tuple[Tensor, Tensor]:
    """Class scores (M, C) and features (M, dim) of uint8 images, float32 in main memory."""

    def read(chunk: Tensor) -> tuple[Tensor, Tensor]:
        (features,) = network.features(chunk)
        return network.logits(features).cpu(), features.float().cpu()

    scores, features = _apply(network, images, read)
    return scores, features


@torch.no_grad()
def _apply(
    network: nn.Module,
    images: AnyImages,
    read: Callable[[Tensor], tuple[Tensor, ...]],
    chunks: Iterable[Tensor] | None = None,
) -> list[Tensor]:
    """What is read off a network in evaluation, of uint8 images in chunks, in [0, 1]."""
    was_training = network.training
    network.eval()
    own = next(network.parameters(), None)
    device = images.device if own is None else own.device  # images may lie in main memory
    chunks = images.split(count_at_once(images)) if chunks is None else chunks
    parts = [read(to_floats(chunk.to(device))) for chunk in chunks]
    network.train(was_training)
    return [torch.cat(part) for part in zip(*parts, strict=True)]


def accuracy(network: nn.Module, test: TestSet) -> tuple[float, float | None]:
    """Share of the images whose likeliest class is the true one: of all, and of the candidates.

    The second says how well labels are picked out of sets that the network never learned from.
    """
    probs, labels = predict_on_ranks(network, test.images), test.labels
    assert labels is not None
    sets = [None] if test.candidates is None else [None, test.candidates]
    shares = []
    for inside in sets:
        seen = probs if inside is None else probs.masked_fill(~inside, -1.0)
        shares.append((seen.argmax(dim=1) == labels).double().mean().item())
    return shares[0], shares[1] if len(shares) > 1 else None


def measure_on_sets(network: nn.Module, test: TestSet) -> dict[str, float]:
    """What can be told of images of which candidate sets alone are known.

    How much of the probability falls on the set, and of how many the likeliest class is in it.
    """
    assert test.candidates is not None
    return score_sets(predict_proba(network, test.images), test.candidates)


def score_sets(probs: Tensor, candidates: Tensor) -> dict[str, float]:
    """The same from probabilities (M, C), for which labels as one-hot rows may stand."""
    inside = candidates.gather(1, probs.argmax(dim=1, keepdim=True))
    return {
        "probability_on_sets": (probs * candidates).sum(dim=1).double().mean().item(),
        "share_in_sets": inside.double().mean().item(),
    }
