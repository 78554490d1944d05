"""SSPL: labels spread over graphs inside and between the partial and the unlabelled rows."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from concont.classic.estimator import CandidateClassifier, check_setting
from concont.classic.graph import (
    Graph,
    compute_gram,
    count_rows_at_once,
    find_neighbours,
    find_other_neighbours,
    nnls_weights,
    scale_to_unit_length,
    solve_nonnegative,
)


class SSPLClassifier(CandidateClassifier):
    """Semi-supervised partial label learning by propagation, SSPL [1]_.

    Labels spread over graphs of nearest neighbours, inside and between the rows with a candidate
    set and those without, and never leave a set. A new row gets the class whose members among
    its neighbours make it up best. A row's length says nothing: all are scaled to 1.

    Parameters
    ----------
    k : int, default=10
        Neighbours of a row in each graph; among its own kind itself is one of them. Where there
        are fewer rows than neighbours, all of them are.
    alpha : float, default=0.7
        How far a round goes along the graphs from partial rows, from 0 to 1.
    beta : float, default=0.25
        The same from unlabelled rows; reached over the first half of the rounds.
    r : float, default=0.7
        The partial neighbours' part in a prediction. Without unlabelled rows it is 1.
    rounds : int, default=100
        How often labels spread at most.
    tolerance : float, default=1e-4
        Rounds end when one changes the labels of all rows by less (Frobenius norm).
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute; `auto` is a GPU where there is one.

    Attributes
    ----------
    classes_ : ndarray (C,)
        The classes: 0 to C - 1 where `fit` was given candidate sets.
    distribution_ : ndarray (N, C)
        How much of each class every training row has, inside its candidate set.
    labels_ : ndarray (N,)
        The likeliest class of each training row: its candidate set, resolved.
    n_iter_ : int
        How many rounds were made.
    n_features_in_ : int
        D, the features of a row.

    See Also
    --------
    concont.PARMClassifier : A linear classifier from the same kind of sets.

    References
    ----------
    .. [1] Q.-W. Wang, Y.-F. Li and Z.-H. Zhou, "Partial Label Learning with Unlabeled Data",
       IJCAI 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from concont import SSPLClassifier
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.8, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 0.8]])
    >>> sets = np.array([[1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 1, 0], [1, 1, 1]])
    >>> model = SSPLClassifier(k=3, device="cpu").fit(X, sets)  # rows 2 and 5 are unlabelled
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1])
    >>> model.predict([[0.7, 0.2], [0.3, 0.9]])
    array([0, 1])
    """

    distribution_: NDArray[Any]
    labels_: NDArray[Any]
    n_iter_: int

    def __init__(
        self,
        k: int = 10,
        alpha: float = 0.7,
        beta: float = 0.25,
        r: float = 0.7,
        rounds: int = 100,
        tolerance: float = 1e-4,
        device: str = "auto",
    ) -> None:
        super().__init__(device)
        self.k = k
        self.alpha = alpha
        self.beta = beta
        self.r = r
        self.rounds = rounds
        self.tolerance = tolerance

    def _fit(self, x: Tensor, sets: Tensor) -> None:
        self._check_settings()
        x = scale_to_unit_length(x)
        partial = ~sets.all(dim=1)
        found = torch.empty_like(sets, dtype=x.dtype)
        found[partial], found[~partial] = self._spread(x[partial], x[~partial], sets[partial])
        found = _normalise_inside(found, sets)
        label = found.argmax(dim=1).cpu().numpy()
        self.distribution_ = found.cpu().numpy()
        self.labels_ = self.classes_[label]
        self._rows, self._label, self._partial = x.cpu().numpy(), label, partial.cpu().numpy()

    def _spread(self, x_p: Tensor, x_u: Tensor, sets: Tensor) -> tuple[Tensor, Tensor]:
        """How much of each class the partial (P, C) and the unlabelled rows (U, C) have."""
        pp, uu = _make_own_graph(x_p, self.k), _make_own_graph(x_u, self.k)
        pu, up = _make_graph(x_p, x_u, self.k), _make_graph(x_u, x_p, self.k)
        classes = sets.shape[1]
        first = _normalise_inside(x_p.new_ones(sets.shape), sets)
        f_p, f_u = first, x_u.new_full((len(x_u), classes), 1 / classes)
        for t in range(1, self.rounds + 1):
            self.n_iter_, before = t, torch.cat([f_p, f_u])
            f_p = self.alpha * (pp @ f_p) + (1 - self.alpha) * first
            f_u = self.alpha * (up @ f_p) + (1 - self.alpha) * f_u
            f_p = _normalise_inside(f_p, sets)
            beta = self.beta * t / self.rounds if t <= self.rounds / 2 else self.beta
            f_u = beta * (uu @ f_u) + (1 - beta) * f_u
            f_p = _normalise_inside(beta * (pu @ f_u) + (1 - beta) * f_p, sets)
            if torch.linalg.matrix_norm(torch.cat([f_p, f_u]) - before) < self.tolerance:
                break
        # A class in no candidate set has no mass before or after: its factor is 0.
        mass = f_p.sum(dim=0)
        factor = torch.where(mass > 0, first.sum(dim=0) / mass, 0.0)
        return f_p * factor, f_u * factor

    def _scores(self, x: Tensor) -> Tensor:
        """Minus the residuals (N, C): how ill each class's neighbours alone make up the row."""
        x, rows, label = (
            scale_to_unit_length(x),
            self._tensor(self._rows),
            self._tensor(self._label),
        )
        partial = self._tensor(self._partial)
        near_p, near_u = (
            _find_nearest_among(x, rows, partial, self.k),
            _find_nearest_among(x, rows, ~partial, self.k),
        )
        r = 1.0 if partial.all() else self.r
        index = torch.cat([near_p, near_u], dim=1)
        scores = x.new_empty((len(x), len(self.classes_)), dtype=torch.float64)
        block_size = count_rows_at_once(index.shape[1], x.shape[1], 3 * len(self.classes_))
        for start in range(0, len(x), block_size):
            block = slice(start, start + block_size)
            products, right = compute_gram(x[block], rows[index[block]])
            weights = _weigh_neighbours(products, right, near_p.shape[1], r)
            zeros = torch.zeros_like(scores[block])
            parts = _sum_by_class(products, right, weights, label[index[block]], zeros)
            square = x[block].double().square().sum(dim=1, keepdim=True) + parts
            scores[block] = -square.clamp(min=0).sqrt()
        return scores

    def _check_settings(self) -> None:
        check_setting("k", self.k, 2, whole=True)
        check_setting("rounds", self.rounds, 1, whole=True)
        check_setting("tolerance", self.tolerance, 0)
        for name in ("alpha", "beta", "r"):
            check_setting(name, getattr(self, name), 0, 1)


def _normalise_inside(values: Tensor, sets: Tensor) -> Tensor:
    """A distribution over each row's candidates, in proportion to values; uniform if all are 0."""
    inside = values * sets
    inside = torch.where(inside.any(dim=1, keepdim=True), inside, sets.to(values))
    return inside / inside.sum(dim=1, keepdim=True)


def _make_graph(queries: Tensor, points: Tensor, k: int) -> Graph:
    _, index = find_neighbours(queries, points, min(k, len(points)))
    return Graph(index, nnls_weights(queries, points, index))


def _make_own_graph(points: Tensor, k: int) -> Graph:
    _, index = find_other_neighbours(points, max(1, min(k, len(points))))
    return Graph(index, nnls_weights(points, points, index))


def _find_nearest_among(x: Tensor, rows: Tensor, chosen: Tensor, k: int) -> Tensor:
    """The nearest rows (N, k) among those chosen (a mask of rows)."""
    members = chosen.nonzero().squeeze(1)
    return members[find_neighbours(x, rows[members], min(k, len(members)))[1]]


def _weigh_neighbours(products: Tensor, right: Tensor, partial: int, r: float) -> Tensor:
    """Weights (Q, k) of the neighbours, of whom so many come first from the partial side."""
    inner = solve_nonnegative(products[:, :partial, :partial], right[:, :partial])
    outer = solve_nonnegative(products[:, partial:, partial:], right[:, partial:])
    return torch.cat([r * inner, (1 - r) * outer], dim=1)


def _sum_by_class(
    products: Tensor, right: Tensor, weights: Tensor, label: Tensor, zeros: Tensor
) -> Tensor:
    """The square of x - sum(w n) over the neighbours n of each class, less that of x: (Q, C).

    A neighbour's part in it is w (sum of w' n'n over its class - 2 xn).
    """
    same = label[:, :, None] == label[:, None, :]
    crossed = ((products * same) @ weights[:, :, None]).squeeze(2)
    return zeros.scatter_add(1, label, weights * (crossed - 2 * right))
