"""How far annotators agree: on the whole, on which classes, and who stands apart."""

from dataclasses import dataclass
from typing import Any

import krippendorff
import numpy as np
from scipy import sparse

from concont.tables.sets import Integers
from concont.tables.votes import Counts, Votes, count_votes

N_SHOWN = 10  # pairs of classes, annotators
FEW = 5  # votes: annotators with fewer are shown only where nobody has more
ROOM = 2**24  # numbers that the library may hold: images x classes x classes


@dataclass(frozen=True)
class Confusion:
    """Two classes that were voted for on the same image."""

    first: str
    second: str
    images: int  # on which both were voted for
    share: float  # of the images on which either was


@dataclass(frozen=True)
class Annotator:
    """How often one annotator says what most of the others say."""

    name: str
    votes: int  # on images on which others voted, too
    agreement: float  # share of them that are for the others' first choice, or one of them


@dataclass(frozen=True)
class Agreement:
    """What the votes on a folder's images say of each other."""

    images: int  # in the folder
    voted: int  # images with a vote
    votes: int
    annotators: int
    classes: int
    set_size: float  # candidates on average, of the images with a vote
    unanimous: float | None  # share of the images with two votes or more, for one class alone
    alpha: float | None  # Krippendorff's, nominal: 1 agree, 0 as by chance; None: it has no value
    confusions: tuple[Confusion, ...]  # the most images first
    apart: tuple[Annotator, ...]  # the annotators who agree least with the others


def measure_agreement(votes: Votes, chosen: Counts) -> Agreement:
    """Figures of some votes; chosen: the candidates that were made of them."""
    counts = count_votes(votes)
    n_classes = np.bincount(counts.image, minlength=len(votes.images))
    n_votes = np.bincount(votes.image, minlength=len(votes.images))
    several = n_votes >= 2
    voted = int((n_votes > 0).sum())
    return Agreement(
        images=len(votes.images),
        voted=voted,
        votes=len(votes.image),
        annotators=len(votes.annotators),
        classes=len(votes.classes),
        set_size=len(chosen.image) / voted,
        unanimous=float((n_classes[several] == 1).mean()) if several.any() else None,
        alpha=measure_alpha(to_matrix(counts, votes)),
        confusions=_find_confusions(votes, counts),
        apart=_find_apart(votes, counts),
    )


def to_matrix(counts: Counts, votes: Votes) -> Any:
    """Counts as a sparse matrix, images x classes."""
    shape = (len(votes.images), len(votes.classes))
    return sparse.csr_array((counts.votes, (counts.image, counts.label)), shape=shape)


def measure_alpha(counts: Any, room: int = ROOM) -> float | None:
    """Krippendorff's alpha of nominal values from counts (N, C); None where it has no value."""
    counts = counts[np.flatnonzero(counts.sum(axis=1) >= 2)]  # a lone vote cannot be compared
    counts = counts[:, np.flatnonzero(counts.sum(axis=0) > 0)]
    n_images, n_classes = counts.shape
    if n_images == 0 or n_classes < 2:
        return None
    if n_images * n_classes**2 <= room:
        value = krippendorff.alpha(value_counts=counts.toarray(), level_of_measurement="nominal")
        return float(value)
    # The library holds a matrix of classes for each image. Of nominal values only the votes of
    # each class and the pairs that agree matter, which can be summed without one.
    weight = 1 / (counts.sum(axis=1) - 1)
    agreeing = float((counts.multiply(counts - counts.sign()).sum(axis=1) * weight).sum())
    totals = counts.sum(axis=0).astype(float)
    n = float(totals.sum())
    by_chance = float((totals * (totals - 1)).sum() / (n - 1))
    return 1 - (n - agreeing) / (n - by_chance)


def _find_confusions(votes: Votes, counts: Counts) -> tuple[Confusion, ...]:
    named = to_matrix(counts, votes).sign().astype(np.int64)  # (images, C)
    both = sparse.triu(named.T @ named, k=1).tocoo()
    alone = named.sum(axis=0)
    order = np.lexsort([both.col, both.row, -both.data])[:N_SHOWN]
    found = zip(both.row[order], both.col[order], both.data[order].tolist(), strict=True)
    return tuple(
        Confusion(votes.classes[a], votes.classes[b], n, n / int(alone[a] + alone[b] - n))
        for a, b, n in found
    )


def _find_apart(votes: Votes, counts: Counts) -> tuple[Annotator, ...]:
    compared, agreeing = _compare_with_others(votes, counts)
    shown = compared >= FEW if (compared >= FEW).any() else compared > 0
    share = agreeing / np.maximum(compared, 1)
    order = np.lexsort([-compared, share])
    chosen = [k for k in order.tolist() if shown[k]][:N_SHOWN]
    return tuple(Annotator(votes.annotators[k], int(compared[k]), float(share[k])) for k in chosen)


def _compare_with_others(votes: Votes, counts: Counts) -> tuple[Integers, Integers]:
    """Of each annotator: votes where others voted, too, and those for the others' first choice."""
    n_annotators, n_classes = len(votes.annotators), len(votes.classes)
    pairs, own = np.unique(votes.image * n_annotators + votes.annotator, return_inverse=True)
    ones = np.ones(len(own), np.int64)
    said = sparse.csr_array((ones, (own, votes.label)), shape=(len(pairs), n_classes))
    others = (to_matrix(counts, votes)[pairs // n_annotators] - said).tocsr()  # (pairs, C)
    best = others.max(axis=1).toarray().ravel()  # the others' votes for their first choice
    same = np.asarray(others[own, votes.label]).ravel()
    known = best[own] > 0
    agrees = known & (same == best[own])
    compared = np.bincount(votes.annotator[known], minlength=n_annotators)
    return compared, np.bincount(votes.annotator[agrees], minlength=n_annotators)
