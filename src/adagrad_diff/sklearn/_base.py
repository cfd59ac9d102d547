"""What all linear estimators share: from checked data to solved problems, and back to attributes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _check
from ..losses import Multinomial
from ..penalties import Penalty
from ._choices import kind_of
from ._path import Path
from ._solve import Solution, check_options, solve

FLOATS = (np.float64, np.float32)
SEVERITY = ("certified", "stalled", "max_iter", "failed")


class Estimator(BaseEstimator):
    """The solver's parameters, and what is reported about its answers."""

    alpha: Any
    eta: Any
    tol: Any
    max_iter: Any
    warm_start: bool
    verbose: int

    def _options(self) -> dict[str, Any]:
        """The parameters of the solver, checked."""
        alpha = 0.0 if self.alpha is None else self.alpha
        eta, tol, max_iter = check_options(type(self).__name__, alpha=alpha, eta=self.eta, tol=self.tol, max_iter=self.max_iter)
        return {"eta": eta, "tol": tol, "max_iter": max_iter, "verbose": int(self.verbose)}

    def _strength(self, total: float) -> float:
        """alpha, or what it follows from: C = 1 / (total weight of the samples * alpha)."""
        if self.alpha is not None or not hasattr(self, "C"):
            return _check.nonnegative(self.alpha, "alpha", type(self).__name__)
        return 1.0 / (_check.positive(self.C, "C", type(self).__name__) * total)

    def _report(self, solutions: list[Solution]) -> None:
        """n_iter_, dual_gap_, objective_ (numbers, or one per problem) and converged_ (the worst); warn if need be."""
        several = len(solutions) > 1
        self.n_iter_ = np.array([s.nit for s in solutions]) if several else solutions[0].nit
        self.dual_gap_ = np.array([s.gap for s in solutions]) if several else solutions[0].gap
        self.objective_ = np.array([s.fun for s in solutions]) if several else solutions[0].fun
        worst = max(solutions, key=lambda s: SEVERITY.index(s.converged))
        self.converged_ = worst.converged
        name = type(self).__name__
        if worst.converged == "max_iter":
            known = f"{worst.gap / abs(worst.fun):.1e}" if np.isfinite(worst.gap) and worst.fun else "not known"
            warnings.warn(
                f"{name} did not reach tol={self.tol} in max_iter={self.max_iter} iterations: the certified relative gap of "
                f"its objective is {known}. Increase max_iter, or tol if such an answer is good enough; a larger alpha "
                "(smaller C) also makes the problem easier.",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif worst.converged == "failed":
            warnings.warn(
                f"{name} kept the best point it found, but its run failed. {worst.message} Scale the features and the target, "
                "or increase alpha.",
                ConvergenceWarning,
                stacklevel=3,
            )


class LinearEstimator(Path, Estimator):
    """A linear model: predictions are functions of X coef_ + intercept_."""

    fit_intercept: bool
    coef_: Any
    intercept_: Any

    def _model(self) -> Any:
        """What makes the loss."""
        raise NotImplementedError

    def _penalty(self, alpha: float, shape: tuple[int, int]) -> Penalty:
        """alpha times the penalty, for coefficients of shape (features, columns)."""
        raise NotImplementedError

    def _solve(
        self, model: Any, X: Any, targets: list[np.ndarray], weight: np.ndarray | None, columns: int = 1
    ) -> list[Solution]:
        """One problem per vector of targets. Sets coef_ (problems or columns, features) and intercept_."""
        options, features = self._options(), X.shape[1]
        alpha = self._strength(float(len(targets[0]) if weight is None else weight.sum()))
        penalty = self._penalty(alpha, (features, columns))
        intercept, extra = bool(self.fit_intercept), {"classes": columns} if columns > 1 else {}
        starts = self._starts(len(targets), columns, features)
        solutions = []
        for k, (b, x0) in enumerate(zip(targets, starts, strict=True)):
            label = type(self).__name__ + (f" (problem {k + 1} of {len(targets)})" if len(targets) > 1 else "")
            loss = model(X, b, sample_weight=weight, intercept=intercept, **extra)
            solutions.append(solve(loss, penalty, x0, label=label, **options))
        rows = np.concatenate([s.x.reshape(features + intercept, columns).T for s in solutions])
        self.coef_ = np.ascontiguousarray(rows[:, :features]) + rows.dtype.type(0)  # without negative zeros
        self.intercept_ = rows[:, features].copy() if intercept else np.zeros(len(rows), rows.dtype)
        return solutions

    def _starts(self, problems: int, columns: int, features: int) -> list[Any]:
        """Where to start: the last solution with warm_start, if it has the same shape."""
        count, coef = problems * columns, getattr(self, "coef_", None)
        if not self.warm_start or coef is None or np.size(coef) != count * features:
            return [None] * problems
        rows = np.asarray(coef).reshape(count, features)
        if self.fit_intercept:
            rows = np.column_stack([rows, np.reshape(self.intercept_, -1) * np.ones(count)])
        if columns == 1:
            return list(rows)
        return [rows.T]

    def _decision(self, X: Any) -> np.ndarray:
        """X coef_' + intercept_."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS, reset=False)
        return np.asarray(safe_sparse_dot(X, np.asarray(self.coef_).T, dense_output=True)) + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def is_multinomial(model: Any) -> bool:
    """Whether the loss has one column of coefficients per class."""
    return issubclass(kind_of(model), Multinomial)
