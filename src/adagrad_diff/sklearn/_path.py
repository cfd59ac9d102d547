"""Paths: solutions for many strengths of the penalty, each started from the previous one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .. import _check
from .._messages import warn
from ..duality import at_fraction
from ..losses import LinearModel
from ..penalties import Penalty
from ._solve import count, null_point


class Path:
    """The method `path` of linear estimators."""

    alpha: Any
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
        """Return solutions for several strengths, from strong to weak.

        Each starts from the previous one. The estimator is not changed. One warning counts the
        strengths at which the solver did not converge.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        alphas : array (n_alphas,), optional
            Strengths, in any order. By default n_alphas of them, evenly spaced on a logarithmic
            scale, from the smallest at which all coefficients of all problems are zero down to eps
            times that. There is no such strength for a ridge penalty: there they range from 1 / eps
            to eps times the one at which the penalty is as strong as the loss. For other penalties
            (sets, user-defined ones) alphas must be given.
        n_alphas : int
            Number of strengths, if alphas is not given.
        eps : float
            Ratio of the smallest to the largest strength, if alphas is not given.
        return_intercepts : bool
            Whether to return the intercepts as well.

        Returns
        -------
        alphas : array (n_alphas,)
            In descending order.
        coefs : array (n_features, n_alphas), or (n_classes, n_features, n_alphas)
            The latter for more than two classes, and for several quantiles.
        gaps : array (n_alphas,), or (n_classes, n_alphas) for one-vs-rest
            `dual_gap_` of each solution.
        intercepts : array (n_alphas,) or (n_classes, n_alphas)
            Only with return_intercepts.

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
        values = None if alphas is None else sorted_strengths(alphas, owner)
        model = self._path_model()
        problems = model._prepare(X, y, sample_weight)
        if values is None:
            values = model._grid(problems, n_alphas, eps, owner)
        coefs, intercepts, gaps, reasons, relative = [], [], [], [], []
        for _ in model._along(problems, values):
            coef = np.asarray(model.coef_)
            coefs.append(coef[0] if coef.ndim == 2 and len(coef) == 1 else coef)
            intercepts.append(np.squeeze(model.intercept_))
            gaps.append(np.squeeze(model.dual_gap_))
            if not model.converged_:
                reasons.append(model.stop_reason_)
                with np.errstate(divide="ignore"):
                    ratio = np.max(np.asarray(model.dual_gap_) / np.abs(model.objective_))
                relative.append(ratio)
        if reasons:
            known = "nothing is certified about some of them"
            if max(relative) < 1:
                known = f"the largest certified relative gap of them is {max(relative):.1e}"
            warn(
                f"{owner} did not reach tol={model.tol} at {len(reasons)} of {values.size} strengths "
                f"({count(reasons)}): {known}. Increase max_iter, or tol if such answers are good "
                "enough; scaled features (StandardScaler) make the problems easier.",
                ConvergenceWarning,
            )
        answer = values, np.stack(coefs, axis=-1), np.stack(gaps, axis=-1)
        return (*answer, np.stack(intercepts, axis=-1)) if return_intercepts else answer

    def _path_model(self) -> Any:
        """Return a copy that is fitted along a path, with strengths of the path."""
        return clone(self).set_params(warm_start=True, alpha=0.0)

    def _grid(self, problems: Any, n_alphas: Any, eps: Any, owner: str) -> np.ndarray:
        """Return strengths in descending order."""
        return grid(problems.losses, self._penalty(problems, 1.0), n_alphas, eps, owner)

    def _along(self: Any, problems: Any, alphas: Iterable[float]) -> Iterator[Any]:
        """Fit this estimator for one strength after the other, and yield the solutions."""
        for alpha in alphas:
            self.alpha = float(alpha)
            yield self._solve(problems, self.alpha)


def sorted_strengths(alphas: Any, owner: str) -> np.ndarray:
    """Return the strengths that a user gives, checked, in descending order."""
    values = np.array([_check.nonnegative(a, "alphas", owner) for a in np.ravel(alphas)])
    if not values.size:
        raise ValueError(f"The 'alphas' parameter of {owner} is empty: give at least one strength.")
    return np.sort(values)[::-1]


def grid(
    losses: list[LinearModel], penalty: Penalty, n_alphas: Any, eps: Any, owner: str
) -> np.ndarray:
    """Return multiples of the penalty in descending order, evenly spaced on a logarithmic scale.

    Norms and elastic nets: from the smallest at which all coefficients of all problems are zero,
    down to eps times that. Ridge: from 1 / eps to eps times the one at which a step of one over it,
    along the gradient at zero, moves predictions as far as the targets are spread (margins: by one).
    """
    number = _check.count(n_alphas, "n_alphas", owner, least=1)
    ratio = _check.number(
        eps, "eps", owner, "a number strictly between 0 and 1", lambda value: 0 < value < 1
    )
    middles = [_ridge_scale(loss, penalty) for loss in losses]
    if None not in middles:
        middle = max(middles) or 1.0  # type: ignore[type-var]
        return np.geomspace(middle / ratio, middle * ratio, number)
    norm = penalty.norm_part() or penalty
    try:
        top = max(at_fraction(loss, norm, 1.0).factor for loss in losses)  # type: ignore[attr-defined]
    except ValueError as error:
        raise ValueError(
            f"{owner} does not know which strengths to try: give 'alphas'. {error}"
        ) from None
    top = top if 0 < top < np.inf else 1.0  # the targets are constant: any strength will do
    return np.geomspace(top, ratio * top, number)


def _ridge_scale(loss: LinearModel, penalty: Penalty) -> float | None:
    """Return the multiple of a ridge penalty at which it is as strong as the loss.

    Return None for other penalties.
    """
    x = null_point(loss)
    step = loss.value_and_grad(x)[1].astype(np.float64)
    part = step[:-1] if loss.intercept else step  # a view
    penalty.check_size(part.size)
    terms = penalty.quadratic_terms(part.size)
    if terms is None or terms.l1.any() or terms.strength is not None or terms.bounded:
        return None
    if not terms.l2.any():
        return None
    strength = terms.l2.reshape(part.shape)
    np.divide(part, strength, out=part, where=strength > 0)
    part[strength == 0] = 0.0
    step[len(part) :] = 0.0  # the intercept follows
    z = loss.predict(step).astype(np.float64)
    if loss.intercept:
        z -= loss.weight @ z
    moved = float(np.sqrt((loss.weight @ z**2).mean()) / loss.coordinates().unit)
    return moved if np.isfinite(moved) else 0.0
