"""Which images a person should look at first, and which are worth labelling next."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
MISSED = 0.01  # of the sets: about what three annotators give who are right in 80 %
POOL = 10  # times as many images as are asked for are considered, those to be looked at first
MOST_GROUPS = 500  # of more images each group gives several


def rank_for_review(
    probs: Floats, neighbours: Floats, candidates: NDArray[np.bool_], label: Integers
) -> Integers:
    """The place (N,) of each image in the list of those to look at, from 1: the most doubtful.

    The evidence for a class is the mean of its probability (N, C) and of its share among the
    neighbours (N, C). By Bayes' rule, with a set that misses the truth with chance `MISSED`, the
    doubt in a label is 1 minus its part of all evidence, where that for classes outside the set
    weighs `MISSED`. So another candidate that comes close, a prediction outside the set and
    neighbours that were resolved otherwise bring an image to the front.
    """
    weight = np.where(candidates, 1.0, MISSED)  # (N, C)
    evidence = (probs + neighbours) / 2 * weight
    rows = np.arange(len(label))
    doubt = 1 - evidence[rows, label] / evidence.sum(axis=1)
    ranks = np.empty(len(doubt), np.int64)
    ranks[np.argsort(-doubt, kind="stable")] = np.arange(1, len(doubt) + 1)
    return ranks


def choose_batch(review: Integers, features: Floats, budget: int) -> Integers:
    """The rows (budget,) to have labelled next, the most doubtful first.

    The first of the review list (N,) are grouped by their features (N, D), as many groups as there
    are images to choose, up to `MOST_GROUPS`; the groups give their most doubtful image in turn, so
    that no mistake is chosen twice while others are not chosen at all (Zhdanov, 2019,
    arXiv:1901.05954).
    """
    listed = np.argsort(review)  # the first to look at first
    pool = listed[: POOL * budget]
    if len(pool) <= budget:
        return np.asarray(pool)
    group = _group(features[pool], min(budget, MOST_GROUPS))
    turn = np.empty(len(pool), np.int64)  # an image's place in its own group
    for k in range(group.max() + 1):
        turn[group == k] = np.arange((group == k).sum())
    chosen = np.lexsort([np.arange(len(pool)), turn])[:budget]
    rows: Integers = pool[np.sort(chosen)]
    return rows


def _group(rows: Floats, groups: int) -> Integers:
    """Which group each row is in, by k-means."""
    from sklearn.cluster import KMeans

    distinct = len(np.unique(rows, axis=0))
    found = KMeans(min(groups, distinct), n_init=1, max_iter=30, random_state=0).fit_predict(rows)
    return np.asarray(found, dtype=np.int64)
