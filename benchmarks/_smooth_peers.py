"""Peers for smooth losses, with a penalty of l1 |w|_1 + l2/2 |w|^2 and the mean loss.

What they are given is what they like best (CSC for coordinate descent), and that is made before the clock starts. liblinear
penalises the intercept and celer has none, so problems they take part in have none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ._contest import Peer, fitted

TOLERANCES = tuple(10.0**-k for k in range(1, 13))


@dataclass(frozen=True)
class Smooth:
    A: Any
    b: np.ndarray
    loss: (
        str  # "logistic" (labels -1, 1), "squared" (half of it) or "multinomial" (labels 0, 1, ...)
    )
    l1: float = 0.0
    l2: float = 0.0
    intercept: bool = True

    @cached_property
    def columns(self) -> Any:
        return self.A.tocsc() if hasattr(self.A, "tocsc") else np.asfortranarray(self.A)

    def value(self, x: np.ndarray) -> float:
        from scipy.special import logsumexp

        features = self.A.shape[1]
        x = x.reshape(-1, features + self.intercept)
        w, z = (
            x[:, :features],
            self.A @ x[:, :features].T + (x[:, features] if self.intercept else 0.0),
        )
        if self.loss == "multinomial":
            losses = logsumexp(z, axis=1) - z[np.arange(len(z)), self.b]
        elif self.loss == "logistic":
            losses = np.logaddexp(0.0, -self.b * z[:, 0])
        else:
            losses = 0.5 * (self.b - z[:, 0]) ** 2
        return float(
            losses.astype(np.longdouble).mean()
            + self.l1 * np.abs(w).sum()
            + 0.5 * self.l2 * (w**2).sum()
        )


def peer(
    make: Callable[[Smooth, float], Any],
    rungs: tuple[float, ...] = TOLERANCES,
    columns: bool = False,
    **limits: Any,
) -> Peer:
    """Of an estimator: make(problem, tol) is one that is not fitted yet."""

    def solve(problem: Smooth, tol: float, limit: float) -> np.ndarray:
        return fitted(make(problem, tol).fit(problem.columns if columns else problem.A, problem.b))

    return Peer(solve, rungs, compiles=columns, **limits)


def logistic(
    solver: str, rungs: tuple[float, ...] = TOLERANCES, most: int = 10000, **limits: Any
) -> Peer:
    """scikit-learn's."""
    from sklearn.linear_model import LogisticRegression

    def make(problem: Smooth, tol: float) -> Any:
        options: dict[str, Any] = {
            "l1_ratio": 1.0 if problem.l1 else 0.0,
            "C": 1 / (len(problem.b) * (problem.l1 + problem.l2)),
        }
        options |= {"fit_intercept": problem.intercept, "random_state": 0}
        return LogisticRegression(solver=solver, tol=tol, max_iter=most, **options)

    return peer(make, rungs, **limits)


def skglm_logistic(**limits: Any) -> Peer:
    import skglm

    def make(problem: Smooth, tol: float) -> Any:
        return skglm.SparseLogisticRegression(
            alpha=problem.l1, tol=tol, max_iter=100, fit_intercept=problem.intercept
        )

    return peer(make, columns=True, **limits)


def celer_logistic(**limits: Any) -> Peer:
    import celer

    def make(problem: Smooth, tol: float) -> Any:
        return celer.LogisticRegression(
            C=1 / (len(problem.b) * problem.l1), tol=tol, max_iter=200, fit_intercept=False
        )

    return peer(make, columns=True, **limits)


def lassos(**limits: Any) -> dict[str, Peer]:
    import celer
    import skglm
    from sklearn.linear_model import Lasso

    kinds = {
        "scikit-learn": (Lasso, {"max_iter": 100000}),
        "celer": (celer.Lasso, {}),
        "skglm": (skglm.Lasso, {}),
    }
    return {
        name: peer(
            lambda problem, tol, kind=kind, options=options: kind(
                alpha=problem.l1, tol=tol, fit_intercept=problem.intercept, **options
            ),
            columns=True,
            **limits,
        )
        for name, (kind, options) in kinds.items()
    }
