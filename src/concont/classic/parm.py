"""PARM: labels spread among the partial rows, then a linear machine and soft labels in turn."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from torch import Tensor

from concont.classic.estimator import CandidateClassifier, check_setting
from concont.classic.linear_machine import (
    Machine,
    hinge_losses,
    project_to_simplex,
    solve_machine,
)
from concont.classic.parm_rows import PreparedRows, check_feature_size, prepare_rows

GRID = (0.001, 0.01, 0.1, 1.0, 10.0)  # of lam and mu
FOLDS = 5

Start = tuple[Tensor, Tensor]  # of a machine: weights and shares


@dataclass(frozen=True)
class SolverLimits:
    """How exactly machines are to be solved, and how far soft labels must settle."""

    tolerance: float  # of a machine
    steps: int  # at most, of each
    settled_below: float  # rounds end when soft labels change by less (root of the mean square)


SEARCH_LIMITS = SolverLimits(0.03, 200, 1e-3)  # of machines that are only compared


class UninformativeWarning(UserWarning):
    """The soft labels say nothing of the rows: the best linear machine is 0."""


class PARMClassifier(CandidateClassifier):
    """Semi-supervised partial label learning by a maximum margin, PARM [1]_.

    Labels spread among the rows with a candidate set; then a linear machine (confidence-weighted
    Crammer-Singer, without a bias) and the soft labels of the unlabelled rows are fitted in turn.
    Distances are those of rows scaled to length 1; the machine sees the rows as given.

    Parameters
    ----------
    lam, mu : float or "cv", default=1.0
        What partial and unlabelled rows count against W; "cv" searches {0.001 ... 10}.
    k : int, default=8
        Neighbours of a row. Where there are fewer rows than neighbours, all of them are.
    alpha : float, default=0.95
        How much of a row's label comes from its neighbours in a round of spreading.
    gamma : float, default=0.01
        How firmly an unlabelled row's soft label is tied to those of its neighbours.
    rounds : int, default=5
        Of machine and soft labels in turn.
    tolerance, max_steps : float, default=1e-3, and int, default=1000
        A machine ends when its gap to the optimum is that share of what it gained; or it warns.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute; `auto` is a GPU where there is one.
    random_state : int or RandomState, optional
        Of the folds in a search.

    Attributes
    ----------
    coef_ : ndarray (C, D)
        The weights W of the linear machine.
    distribution_, labels_ : ndarray (N, C), ndarray (N,)
        The soft label of each training row, and its likeliest class: the set, resolved.
    lam_, mu_ : float
        As given, or as chosen by the search.
    gain_, gap_, steps_ : float, float, int
        How far the last machine is below the objective of W = 0, above its optimum; all steps.

    Notes
    -----
    The search holds out each fifth of the partial rows and sees no true label: a prediction inside
    a held-out candidate set counts 1 over the set's size. Among equals the smallest lam and mu
    win. Where most soft labels have no majority the best W is 0; `fit` then warns.

    References
    ----------
    .. [1] W. Wang and M.-L. Zhang, "Semi-Supervised Partial Label Learning via Confidence-Rated
       Margin Maximization", NeurIPS 2020.

    Examples
    --------
    >>> from concont import PARMClassifier
    >>> X = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 0.8]]
    >>> sets = [[1, 0, 0], [1, 0, 1], [1, 1, 1], [0, 1, 0], [0, 1, 1], [1, 1, 1]]
    >>> PARMClassifier(k=2, device="cpu").fit(X, sets).predict([[0.7, 0.2], [0.3, 0.9]])
    array([0, 1])
    """

    coef_: NDArray[Any]
    distribution_: NDArray[Any]
    labels_: NDArray[Any]
    lam_: float
    mu_: float
    gain_: float
    gap_: float
    steps_: int

    def __init__(
        self,
        lam: float | Literal["cv"] = 1.0,
        mu: float | Literal["cv"] = 1.0,
        k: int = 8,
        alpha: float = 0.95,
        gamma: float = 0.01,
        rounds: int = 5,
        tolerance: float = 1e-3,
        max_steps: int = 1000,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(device)
        self.lam = lam
        self.mu = mu
        self.k = k
        self.alpha = alpha
        self.gamma = gamma
        self.rounds = rounds
        self.tolerance = tolerance
        self.max_steps = max_steps
        self.random_state = random_state

    def _fit(self, x: Tensor, sets: Tensor) -> None:
        self._check_settings()
        check_feature_size(x)
        self.lam_, self.mu_ = self._search_weights(x, sets)
        prepared = prepare_rows(x, sets, self.k, self.alpha)
        limits = SolverLimits(self.tolerance, self.max_steps, -1.0)
        soft, machines = self._alternate(prepared, self.lam_, self.mu_, limits)
        last = machines[-1]
        self._warn_of_machine(last)
        self.coef_ = last.weights.cpu().numpy()
        self.gain_, self.gap_ = last.gain, last.gap
        self.steps_ = sum(machine.steps for machine in machines)
        found = torch.empty_like(soft)
        found[prepared.order] = soft
        self.distribution_ = found.cpu().numpy()
        self.labels_ = self.classes_[self.distribution_.argmax(axis=1)]

    def _scores(self, x: Tensor) -> Tensor:
        return x @ self._tensor(self.coef_).to(x.dtype).T

    def _alternate(
        self,
        prepared: PreparedRows,
        lam: float,
        mu: float,
        limits: SolverLimits,
        start: Start | None = None,
    ) -> tuple[Tensor, list[Machine]]:
        """The soft labels (N, C) of the prepared rows, and the machine of each round."""
        near = prepared.soft[prepared.partial :]
        rows = prepared.weighted(lam, mu)
        tie = mu / (2 * self.gamma * max(1, len(near)))
        soft, machines = prepared.soft.clone(), []
        for _ in range(self.rounds):
            machine = solve_machine(rows, soft, start, limits.tolerance, limits.steps)
            machines.append(machine)
            start = machine.weights, machine.shares
            slack = hinge_losses(rows.x[prepared.partial :] @ machine.weights.T)
            before, after = soft[prepared.partial :], project_to_simplex(near - tie * slack)
            moved = float(torch.linalg.vector_norm(after - before)) / max(1, after.numel()) ** 0.5
            soft[prepared.partial :] = after
            if moved <= limits.settled_below:
                break
        return soft, machines

    def _search_weights(self, x: Tensor, sets: Tensor) -> tuple[float, float]:
        """`lam` and `mu`, by cross-validation where asked for."""
        partial = ~sets.all(dim=1)
        grids = [GRID if value == "cv" else (float(value),) for value in (self.lam, self.mu)]
        if partial.all():
            grids[1] = grids[1][:1]
        pairs = [(lam, mu) for lam in grids[0] for mu in grids[1]]
        if len(pairs) == 1:
            return pairs[0]
        members = partial.nonzero().squeeze(1)
        if len(members) < 2:
            raise ValueError("lam and mu cannot be searched with a single partial row; give them")
        folds = KFold(min(FOLDS, len(members)), shuffle=True, random_state=self.random_state)
        credit = dict.fromkeys(pairs, 0.0)
        for _, held in folds.split(np.zeros(len(members))):
            self._add_credit(credit, x, sets, members[torch.from_numpy(held).to(x.device)])
        return min(pairs, key=lambda pair: (-round(credit[pair], 9), pair))

    def _add_credit(
        self, credit: dict[tuple[float, float], float], x: Tensor, sets: Tensor, held: Tensor
    ) -> None:
        """What each pair's prediction of the held-out rows, from all others, is worth.

        As long as no score reaches the margin, W only grows with lam and mu: pairs in the order
        of their ratio, each starting from the one before, cost little more than the ratios do.
        """
        kept = torch.ones_like(sets[:, 0])
        kept[held] = False
        prepared = prepare_rows(x[kept], sets[kept], self.k, self.alpha)
        start, before = None, 1.0
        for lam, mu in sorted(credit, key=lambda pair: (pair[1] / pair[0], pair)):
            if start is not None:
                start = start[0] * (lam / before), start[1]
            last = self._alternate(prepared, lam, mu, SEARCH_LIMITS, start)[1][-1]
            start, before = (last.weights, last.shares), lam
            label = (x[held] @ last.weights.T).argmax(dim=1, keepdim=True)
            inside = sets[held].gather(1, label).squeeze(1)
            credit[lam, mu] += float((inside.double() / sets[held].sum(dim=1)).sum())

    def _warn_of_machine(self, last: Machine) -> None:
        if last.worthless:
            warnings.warn(
                "the soft labels say nothing of the rows: the best linear machine is W = 0, and "
                "predictions mean nothing; give mu less weight, or smaller candidate sets",
                UninformativeWarning,
                stacklevel=4,
            )
        elif not last.converged:
            warnings.warn(
                f"after {self.max_steps} steps the machine can still be {last.gap:.2g} above its "
                f"optimum, having gained {last.gain:.2g}; scale the features or raise max_steps",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _check_settings(self) -> None:
        for name in ("k", "rounds", "max_steps"):
            check_setting(name, getattr(self, name), 1, whole=True)
        check_setting("alpha", self.alpha, 0, 1)
        for name in ("lam", "mu", "gamma", "tolerance"):
            if name not in ("lam", "mu") or getattr(self, name) != "cv":
                check_setting(name, getattr(self, name), 1e-12)
