"""Solutions for many strengths, each started from the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._messages import warn
from . import _ends
from ._grid import given, grid


class Path:
    """The method `path` of linear estimators."""

    _prepare: Any  # X, y, sample_weight -> problems
    _solve: Any  # problems, alpha -> solutions
    _penalty: Any  # problems, alpha -> penalty

    def path(
        self,
        X: Any,
        y: Any,
        alphas: Any = None,
        *,
        n_alphas: int = 100,
        eps: float = 1e-3,
        sample_weight: Any = None,
        return_intercepts: bool = False,
    ) -> Any:
        """Solutions for several strengths of the penalty, from strong to weak, each started from the one before.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        alphas : array (n_alphas,), optional
            Strengths, in any order. By default n_alphas of them, evenly spaced on a logarithmic scale: from the smallest at
            which all coefficients are zero (the largest of these, of several problems) down to eps times that. A ridge penalty
            has no such strength: there they are from 1 / eps to eps times the strength at which it is as strong as the loss.
            For other penalties (sets, those of your own) they must be given.
        n_alphas : int
            How many strengths, if none are given.
        eps : float
            How far down, if none are given.
        return_intercepts : bool
            Whether to return the intercepts too.

        Returns
        -------
        alphas : array (n_alphas,)
            In descending order.
        coefs : array (n_features, n_alphas), or (n_classes, n_features, n_alphas) for more than two classes
            Several quantiles are like classes.
        gaps : array (n_alphas,), or (n_classes, n_alphas) for one-vs-rest
            `dual_gap_` of each solution.
        intercepts : array (n_alphas,) or (n_classes, n_alphas), if asked for

        The estimator itself is not changed. X and y are checked once, not once per strength. One warning counts the strengths
        that did not converge.

        Examples
        --------
        >>> import numpy as np
        >>> from adagrad_diff.sklearn import Lasso
        >>> X = np.random.default_rng(0).standard_normal((50, 3))
        >>> alphas, coefs, gaps = Lasso().path(X, X[:, 0], [0.1, 100.0])
        >>> alphas.tolist(), coefs.shape, np.count_nonzero(coefs, axis=0).tolist()
        ([100.0, 0.1], (3, 2), [0, 1])
        >>> alphas, coefs, gaps = Lasso().path(X, X[:, 0], n_alphas=5)
        >>> (alphas / alphas[0]).round(4).tolist(), np.count_nonzero(coefs, axis=0).tolist()[:2]
        ([1.0, 0.1778, 0.0316, 0.0056, 0.001], [0, 1])
        """
        owner = f"{type(self).__name__}.path"
        values = None if alphas is None else given(alphas, owner)
        walker = self._walker()
        problems = walker._prepare(X, y, sample_weight)
        if values is None:
            values = walker._grid(problems, n_alphas, eps, owner)
        coefs, intercepts, gaps, reasons, known = [], [], [], [], []
        for _ in walker._along(problems, values):
            coef = np.asarray(walker.coef_)
            coefs.append(coef[0] if coef.ndim == 2 and len(coef) == 1 else coef)
            intercepts.append(np.squeeze(walker.intercept_))
            gaps.append(np.squeeze(walker.dual_gap_))
            if not walker.converged_:
                reasons.append(walker.stop_reason_)
                known.append(np.max(np.asarray(walker.dual_gap_) / np.abs(walker.objective_)))
        if reasons:
            proof = f"the largest certified relative gap of them is {max(known):.1e}"
            warn(
                f"{owner} did not reach tol={walker.tol} at {len(reasons)} of {values.size} strengths "
                f"({_ends.count(reasons)}): {proof if max(known) < 1 else 'nothing is proven about some of them'}. "
                "Increase max_iter, or tol if such answers are good enough; scaled features (StandardScaler) make the problems "
                "easier.",
                ConvergenceWarning,
            )
        answer = values, np.stack(coefs, axis=-1), np.stack(gaps, axis=-1)
        return (*answer, np.stack(intercepts, axis=-1)) if return_intercepts else answer

    def _walker(self) -> Any:
        """One that walks along a path: as this estimator is, but for its own strength."""
        return clone(self).set_params(warm_start=True, alpha=0.0)

    def _grid(self, problems: Any, n_alphas: Any, eps: Any, owner: str) -> np.ndarray:
        """Strengths in descending order."""
        return grid(problems.losses, self._penalty(problems, 1.0), n_alphas, eps, owner)

    def _along(self: Any, problems: Any, alphas: Iterable[float]) -> Iterator[Any]:
        """Be fitted for each of the strengths, one after the other; yields the solutions."""
        for alpha in alphas:
            self.alpha = float(alpha)
            yield self._solve(problems, self.alpha)
