"""Images that look alike to the network, and whether they were resolved alike."""

import numpy as np
from numpy.typing import NDArray

NEIGHBOURS = 10
MOST_COMPARED = 50_000  # images: of more, a sample is what all are compared with
Floats = NDArray[np.float32]


def to_unit_rows(features: Floats) -> Floats:
    """Features (N, D) of length 1, so that distances are angles; a row of zeros stays one."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    rows: Floats = features / np.maximum(lengths, np.finfo(np.float32).tiny)
    return rows


def count_neighbours(features: Floats, labels: NDArray[np.int64], n_classes: int) -> Floats:
    """Of each image's nearest other images, the share (N, C) that was resolved to each class.

    features (N, D): unit rows; labels (N,): as resolved. All zeros where there is no other image.
    """
    from sklearn.neighbors import NearestNeighbors

    compared = np.arange(len(labels))
    if len(compared) > MOST_COMPARED:
        chosen = np.random.RandomState(0).choice(len(compared), MOST_COMPARED, replace=False)
        compared = np.sort(chosen)
    k = min(NEIGHBOURS, len(compared) - 1)
    shares = np.zeros((len(labels), n_classes), np.float32)  # (N, C)
    if k < 1:
        return shares
    index = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(features[compared])
    near = compared[index.kneighbors(features, return_distance=False)]  # (N, k + 1)
    others = near != np.arange(len(labels))[:, None]
    others[others.all(axis=1), -1] = False  # the image itself is not among them: drop the farthest
    row, place = np.nonzero(others)
    np.add.at(shares, (row, labels[near[row, place]]), 1 / k)
    return shares
