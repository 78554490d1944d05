"""Networks and batches small enough to follow by hand."""

import torch
import torch.nn.functional as F

from concont.types import Batch

B, C, D = 6, 4, 5


class LinearNet:
    """Class scores and embeddings straight off the pixels; remembers what passed together."""

    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.scores = torch.randn(9, C, generator=generator, dtype=torch.float64)
        self.body = torch.randn(9, D, generator=generator, dtype=torch.float64)
        self.passes = []

    def features(self, *views):
        self.passes.append(len(views))
        return tuple(view.flatten(1) for view in views)

    def logits(self, features):
        return features @ self.scores

    def embed(self, features):
        return F.normalize(features @ self.body, dim=1)


def problem(seed=0):
    generator = torch.Generator().manual_seed(seed)
    candidates = torch.rand(B, C, generator=generator) < 0.5
    candidates[torch.arange(B), torch.randint(C, (B,), generator=generator)] = True
    candidates[:2] = True
    views = {
        name: torch.randn(B, 1, 3, 3, generator=generator, dtype=torch.float64)
        for name in ("weak", "strong", "strong2")
    }
    truth = torch.randint(C, (B,), generator=generator)
    return Batch(torch.arange(B), candidates, views, truth)


class OnePass(LinearNet):
    """Remembers all rows of its last pass as one tensor, whose gradient tells who carries loss."""

    def features(self, *views):
        self.rows = torch.cat(views).detach().requires_grad_()
        return super().features(*self.rows.split([len(view) for view in views]))


def partial_last(batch):
    """The same rows, those with a candidate set last; and how many these are."""
    partial = ~batch.candidates.all(dim=1)
    order = partial.int().argsort(stable=True)
    views = {name: view[order] for name, view in batch.views.items()}
    rows = Batch(batch.index[order], batch.candidates[order], views, batch.truth[order])
    return rows, int(partial.sum())
