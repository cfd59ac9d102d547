"""Solutions for many strengths, each started from the one before."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..common import check
from ..solve.status import warn
from . import _ends


class Path:
    """The method `path` of linear estimators."""

    def path(self, X: Any, y: Any, alphas: Any, *, sample_weight: Any = None, return_intercepts: bool = False) -> Any:
        """Solutions for several strengths of the penalty, from strong to weak, each started from the one before.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        alphas : array (n_alphas,)
            Strengths, in any order.
        return_intercepts : bool
            Whether to return the intercepts too.

        Returns
        -------
        alphas : array (n_alphas,)
            In descending order.
        coefs : array (n_features, n_alphas), or (n_classes, n_features, n_alphas) for more than two classes
        gaps : array (n_alphas,), or (n_classes, n_alphas) for one-vs-rest
            `dual_gap_` of each solution.
        intercepts : array (n_alphas,) or (n_classes, n_alphas), if asked for

        The estimator itself is not changed. One warning counts the strengths that did not converge.

        Examples
        --------
        >>> import numpy as np
        >>> from adagrad_diff.sklearn import Lasso
        >>> X = np.random.default_rng(0).standard_normal((50, 3))
        >>> alphas, coefs, gaps = Lasso().path(X, X[:, 0], [0.1, 100.0])
        >>> alphas.tolist(), coefs.shape, np.count_nonzero(coefs, axis=0).tolist()
        ([100.0, 0.1], (3, 2), [0, 1])
        """
        owner = type(self).__name__
        values = np.array([check.nonnegative(a, "alphas", f"{owner}.path") for a in np.ravel(alphas)])
        if not values.size:
            raise ValueError(f"The 'alphas' parameter of {owner}.path is empty: give at least one strength.")
        values = np.sort(values)[::-1]
        estimator: Any = clone(self).set_params(warm_start=True)
        coefs, intercepts, gaps, reasons, known = [], [], [], [], []
        for alpha in values:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                estimator.set_params(alpha=float(alpha)).fit(X, y, sample_weight=sample_weight)
            coef = np.asarray(estimator.coef_)
            coefs.append(coef[0] if coef.ndim == 2 and len(coef) == 1 else coef)
            intercepts.append(np.squeeze(estimator.intercept_))
            gaps.append(estimator.dual_gap_)
            if not estimator.converged_:
                reasons.append(estimator.stop_reason_)
                known.append(np.max(np.asarray(estimator.dual_gap_) / np.abs(estimator.objective_)))
        if reasons:
            proof = f"the largest certified relative gap of them is {max(known):.1e}"
            warn(
                f"{owner}.path did not reach tol={estimator.tol} at {len(reasons)} of {values.size} strengths "
                f"({_ends.count(reasons)}): {proof if max(known) < 1 else 'nothing is proven about some of them'}. "
                "Increase max_iter, or tol if such answers are good enough; scaled features (StandardScaler) make the problems "
                "easier.",
                ConvergenceWarning,
            )
        answer = values, np.stack(coefs, axis=-1), np.stack(gaps, axis=-1)
        return (*answer, np.stack(intercepts, axis=-1)) if return_intercepts else answer
