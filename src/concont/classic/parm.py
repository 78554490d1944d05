"""PARM: labels spread among the partial rows, then a linear machine and soft labels in turn."""

import warnings
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from torch import Tensor
from torch.nn.functional import normalize

from concont.classic.estimator import CandidateClassifier, check_setting
from concont.classic.graph import Graph, neighbours, other_neighbours
from concont.classic.machine import Machine, Rows, hinges, project, solve

GRID = (0.001, 0.01, 0.1, 1.0, 10.0)  # of lam and mu
FOLDS = 5
SPREAD_ROUNDS, SPREAD_END = 200, 0.01
ROUGH = 0.03  # tolerance of the machines that only a search compares


class PARMClassifier(CandidateClassifier):
    """Partial label learning with unlabelled rows by a maximum margin (Wang and Zhang, 2020).

    lam, mu: what the partial and the unlabelled rows count against |W|^2 / 2, or "cv" to take
    those of {0.001 ... 10} for which most held-out candidate sets (five folds of the partial
    rows) hold the prediction; among equals the smallest. k: neighbours of a row, alpha: how far a
    round of spreading goes, gamma: how firmly an unlabelled row's soft label is tied to its
    neighbours', rounds: of machine and soft labels in turn. tolerance: of the machine's optimum,
    as a share of what it gains. Distances are those of rows scaled to length 1; the machine, which
    has no bias, sees the rows as given.

    After `fit`: `coef_` (C, D); `distribution_` (N, C), the soft label of each training row, and
    `labels_` (N,), its likeliest class; `gap_`: how far the last machine's objective can be above
    its optimum, `gain_`: how far it is below that of W = 0; `lam_`, `mu_`: what was chosen.
    """

    coef_: NDArray[Any]
    distribution_: NDArray[Any]
    labels_: NDArray[Any]
    gap_: float
    gain_: float
    lam_: float
    mu_: float

    def __init__(
        self,
        lam: float | Literal["cv"] = 1.0,
        mu: float | Literal["cv"] = 1.0,
        k: int = 8,
        alpha: float = 0.95,
        gamma: float = 0.01,
        rounds: int = 5,
        tolerance: float = 1e-3,
        device: str = "auto",
        random_state: int | None = None,
    ) -> None:
        super().__init__(device)
        self.lam = lam
        self.mu = mu
        self.k = k
        self.alpha = alpha
        self.gamma = gamma
        self.rounds = rounds
        self.tolerance = tolerance
        self.random_state = random_state

    def _fit(self, x: Tensor, sets: Tensor) -> None:
        self._check_settings()
        partial = ~sets.all(dim=1)
        self.lam_, self.mu_ = self._search(x, sets, partial)
        soft, machine = self._alternate(x, sets, partial, self.lam_, self.mu_, self.tolerance)
        if machine.worthless or not machine.weights.any():
            text = "PARM: labels this ambiguous leave the best linear machine at 0: one class wins"
            warnings.warn(text, stacklevel=3)
        elif not machine.converged:
            text = (
                f"PARM: stopped {machine.gap / machine.gain:.1%} of its gain short of the optimum"
            )
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        self.coef_ = machine.weights.cpu().numpy()
        self.gap_, self.gain_ = machine.gap, machine.gain
        self.distribution_ = soft.cpu().numpy()
        self.labels_ = self.classes_[soft.argmax(dim=1).cpu().numpy()]

    def _scores(self, x: Tensor) -> Tensor:
        return x @ self._tensor(self.coef_).to(x.dtype).T

    def _alternate(
        self, x: Tensor, sets: Tensor, partial: Tensor, lam: float, mu: float, tolerance: float
    ) -> tuple[Tensor, Machine]:
        """The soft labels (N, C) of all rows and the last machine."""
        unit = normalize(x)
        f_p = spread(unit[partial], sets[partial].to(x.dtype), self.k, self.alpha)
        near = _near(unit[~partial], unit[partial], self.k) @ f_p
        soft = torch.empty_like(sets, dtype=x.dtype)
        soft[partial], soft[~partial] = f_p, near
        cost = torch.where(partial, lam / len(f_p), mu / max(1, len(near))).to(x.dtype)
        rows, start = Rows.of(x, cost), None
        for _ in range(self.rounds):
            machine = solve(rows, soft, start, tolerance)
            start = (machine.weights, machine.shares)
            slack = hinges(x[~partial] @ machine.weights.T)
            soft[~partial] = project(near - mu / (2 * self.gamma * max(1, len(near))) * slack)
        return soft, machine

    def _search(self, x: Tensor, sets: Tensor, partial: Tensor) -> tuple[float, float]:
        """`lam` and `mu`, by cross-validation where asked for; no true label is looked at."""
        lams, mus = (GRID if v == "cv" else (float(v),) for v in (self.lam, self.mu))
        pairs = [(lam, mu) for lam in lams for mu in mus]
        if len(pairs) == 1:
            return pairs[0]
        members = partial.nonzero().squeeze(1).cpu().numpy()
        folds = KFold(min(FOLDS, len(members)), shuffle=True, random_state=self.random_state)
        held = [torch.from_numpy(members[part]).to(x.device) for _, part in folds.split(members)]
        hits = [sum(self._hits(x, sets, partial, part, *pair) for part in held) for pair in pairs]
        return pairs[int(np.argmax(hits))]

    def _hits(
        self, x: Tensor, sets: Tensor, partial: Tensor, held: Tensor, lam: float, mu: float
    ) -> int:
        """In how many of the held-out rows' candidate sets the prediction lies."""
        kept = torch.ones_like(partial)
        kept[held] = False
        _, machine = self._alternate(x[kept], sets[kept], partial[kept], lam, mu, ROUGH)
        label = (x[held] @ machine.weights.T).argmax(dim=1)
        return int(sets[held].gather(1, label[:, None]).sum())

    def _check_settings(self) -> None:
        check_setting("k", self.k, 1, whole=True)
        check_setting("rounds", self.rounds, 1, whole=True)
        check_setting("alpha", self.alpha, 0, 1)
        for name in ("gamma", "tolerance"):
            check_setting(name, getattr(self, name), 1e-12)
        for name in ("lam", "mu"):
            if getattr(self, name) != "cv":
                check_setting(name, getattr(self, name), 1e-12)


def spread(unit: Tensor, members: Tensor, k: int, alpha: float) -> Tensor:
    """Soft labels (P, C) of the partial rows: a row's candidates, as its neighbours have them."""
    squared, index = other_neighbours(unit, min(k + 1, len(unit)))
    graph = _weighted(squared, index)
    soft = members / members.sum(dim=1, keepdim=True)
    for _ in range(SPREAD_ROUNDS):
        before = torch.linalg.matrix_norm(soft)
        inside = members * (alpha * (graph @ soft) + (1 - alpha) * soft)
        soft = inside / inside.sum(dim=1, keepdim=True)
        if abs(float(torch.linalg.matrix_norm(soft) - before)) < SPREAD_END:
            break
    return soft


def _near(queries: Tensor, points: Tensor, k: int) -> Graph:
    return _weighted(*neighbours(queries, points, min(k, len(points))))


def _weighted(squared: Tensor, index: Tensor) -> Graph:
    weight = (-squared / 2).exp()
    return Graph(index, weight / weight.sum(dim=1, keepdim=True))
