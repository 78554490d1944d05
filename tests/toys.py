"""Networks and batches small enough to follow by hand."""

from dataclasses import fields, replace

import torch
import torch.nn.functional as F

from concont.methods import load_method, method_names
from concont.types import Batch

B, C, D, N = 6, 4, 5, 11


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


def problem(seed=0, epoch=0, epochs=10):
    """A batch of all rows, in order; the first two have no candidate set."""
    generator = torch.Generator().manual_seed(seed)
    candidates = torch.rand(B, C, generator=generator) < 0.5
    candidates[torch.arange(B), torch.randint(C, (B,), generator=generator)] = True
    candidates[:2] = True
    views = {
        name: torch.randn(B, 1, 3, 3, generator=generator, dtype=torch.float64)
        for name in ("weak", "strong", "strong2")
    }
    truth = torch.randint(C, (B,), generator=generator)
    return Batch(torch.arange(B), candidates, views, truth, *clock(epoch, epochs))


def clock(epoch, epochs):
    return torch.tensor([epoch, epochs], dtype=torch.float64).unbind()


def all_sets(seed=0):
    """The candidate sets (N, C) of a training set: some full, some of one label, some between."""
    generator = torch.Generator().manual_seed(seed)
    sets = torch.rand(N, C, generator=generator) < 0.5
    sets[torch.arange(N), torch.randint(C, (N,), generator=generator)] = True
    sets[:3] = True
    sets[3:5] = torch.eye(C, dtype=torch.bool)[:2]
    return sets


def visit(sets, seed=0, epoch=0, epochs=10):
    """A batch of some rows of a training set, in an order of its own."""
    generator = torch.Generator().manual_seed(seed)
    index = torch.randperm(len(sets), generator=generator)[:B]
    return replace(problem(seed, epoch, epochs), index=index, candidates=sets[index])


def double(state):
    """The same in float64, to be held against an oracle."""
    return {k: v.double() if v.is_floating_point() else v for k, v in state.items()}


def near(found, expected, tolerance=1e-9):
    wanted = torch.tensor(expected, dtype=torch.float64)
    return torch.allclose(found.double(), wanted, rtol=tolerance, atol=tolerance)


def scores(net, batch, name):
    """What a network scores a view of a batch, as plain numbers."""
    return net.logits(batch.views[name].flatten(1)).tolist()


def uniform(sets):
    """1 / |Y| on the candidates, 0 elsewhere."""
    return [[member / sum(row) for member in row] for row in sets.tolist()]


# Ways in which a method may be asked for besides plainly: settings of the method section.
WAYS = {
    "concont-fixed": {"name": "concont", "balance": "fixed"},
    "concont-da": {"name": "concont", "balance": "da", "pseudo": "soft"},
    "concont-cpl": {"name": "concont", "balance": "cpl"},
    "concont-true": {"name": "concont", "selection": "true"},
    "concont-trust": {"name": "concont", "trust": 0.9},
    "dpll-controlled": {"name": "dpll", "controlled": True},
    "dpll-cpl": {"name": "dpll", "controlled": True, "balance": "cpl"},
}
# Every method of the package, whatever files there are, and these.
EVERY = {**{name: {"name": name} for name in method_names()}, **WAYS}


def small_queue(method):
    """The same with fewer keys, where it keeps any, which follow sooner."""
    known = {field.name for field in fields(load_method(method["name"]))}
    return {**method, **{k: v for k, v in {"queue": 24, "momentum": 0.9}.items() if k in known}}


def row_tables(method, candidates, dim):
    """The names of what it keeps for every row of a training set (N, C), N unlike other sizes."""
    state = method.init_state(candidates, dim)
    return {name for name, kept in state.items() if kept.ndim and len(kept) == len(candidates)}


class OnePass(LinearNet):
    """Remembers all rows of its last pass as one tensor, whose gradient tells who carries loss."""

    def features(self, *views):
        self.rows = torch.cat(views).detach().requires_grad_()
        return super().features(*self.rows.split([len(view) for view in views]))


def partial_first(batch):
    """The same rows, those with a candidate set first; and how many these are."""
    partial = ~batch.candidates.all(dim=1)
    order = (~partial).int().argsort(stable=True)
    views = {name: view[order] for name, view in batch.views.items()}
    rows = replace(
        batch,
        index=batch.index[order],
        candidates=batch.candidates[order],
        views=views,
        truth=batch.truth[order],
    )
    return rows, int(partial.sum())
