"""Support vector machines with kernels, by the dual problem of the paper."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from .. import _check
from ..duality.intercept import balance
from ..losses import KernelSVMDual
from ..penalties import Box, BoxHyperplane, Penalty
from ._base import Estimator
from ._classes import Classes, one_vs_rest
from ._data import refuse_source, validated
from ._merge import merge
from ._solve import Solution, solve

TOLERANCES = 0.1 ** np.arange(6)  # of consecutive runs, in units of tol
ZERO_OBJECTIVE = 1e-6  # objectives below this are zero; the objective of zero coefficients is 1
ROUNDED_OPERATIONS = 8  # beside the sum over samples, in the evaluation of one sample


@dataclass(eq=False, repr=False)
class KernelSVC(Classes, Estimator):
    r"""A support vector machine with a kernel: hinge loss and the norm of the kernel's space.

    .. math:: \min_{h, c}\; \sum_j \omega_j \max(0, 1 - y_j (h(a_j) + c)) + \tfrac\alpha2 \|h\|^2

    It is solved through its dual,

    .. math:: \min_u\; \tfrac1{2\alpha} u^\top K u - \langle u, y\rangle, \quad
              0 \le y_j u_j \le \omega_j, \qquad h = \tfrac1\alpha \sum_j u_j k(a_j, \cdot)

    With an intercept c, the u_j sum to zero. With more than two classes there is one such problem
    per class against the rest. The kernel matrix needs memory for n_samples^2 numbers. For a linear
    kernel, `LinearSVC` is much faster.

    Parameters
    ----------
    <C>
    kernel : str or callable
        A kernel of `sklearn.metrics.pairwise.pairwise_kernels`, "precomputed", or a function
        (X, Y) -> kernel matrix. Certificates assume that it is positive semidefinite, which
        "sigmoid" is not.
    gamma : "scale", "auto" or float
        Parameter of the kernels that have it; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features.
    degree : int
        Degree of the kernel "poly".
    coef0 : float
        Constant of the kernels "poly" and "sigmoid".
    <fit_intercept>
    <class_weight>
    <solver>

    Attributes
    ----------
    classes_ : array (n_classes,)
        Labels, sorted.
    support_ : array (n_support,)
        Samples with a nonzero coefficient in any of the problems. Of equal samples, only the first
        one has a coefficient.
    dual_coef_ : array (1 or n_classes, n_support)
        u / alpha: the weights of k(a_j, .) in h.
    support_vectors_ : array or sparse matrix (n_support, n_features)
        Their rows of X. Missing for a precomputed kernel.
    intercept_ : array (1,) or (n_classes,)
        Intercepts, zero without fit_intercept.
    <answer>

    Notes
    -----
    `objective_` and `dual_gap_` are about the first problem above.
    <several>

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import KernelSVC
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> model = KernelSVC(C=10.0, kernel="rbf").fit(X, (X**2).sum(axis=1) > 1)
    >>> model.predict([[0.0, 0.0], [2.0, 0.0]]).tolist()
    [False, True]
    """

    C: float = 1.0
    _: KW_ONLY
    alpha: float | None = None
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    class_weight: Any = None
    batch_size: None = field(default=None, init=False)  # the dual problem has no minibatches

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
            Samples, or the kernel matrix if kernel="precomputed".
        y : array (n_samples,)
            Classes, numbers or strings.
        sample_weight : array (n_samples,), optional
            Weights >= 0; the mean loss is the weighted mean.

        Returns
        -------
        self
        """
        pairwise = self._is_precomputed()
        X, y = self._validated(X, pairwise, y=y)
        labels, options = self._encode(y), self._options()
        weight = self._weights(sample_weight, X, labels)
        alpha = self._strength(float(len(y) if weight is None else weight.sum()))
        if alpha == 0:
            raise ValueError("The 'alpha' parameter of KernelSVC must be positive. Got 0.")
        if pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                "A precomputed kernel needs a square matrix, one row and column per sample. Got "
                f"shape {X.shape}."
            )
        # Repeated samples would be variables with the same gradient, which slows convergence.
        first, weight = merge(X, labels, weight)
        share = weight / weight.sum()
        if pairwise:
            K = np.ascontiguousarray(X[np.ix_(first, first)])
        else:
            samples = X[first]
            gamma = choose_gamma(self.gamma, samples, share)
            self._kernel = partial(
                kernel_matrix, self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0
            )
            K = self._kernel(samples, samples)
        targets = one_vs_rest(labels[first], len(self.classes_))
        starts = self._starts(len(targets), len(y), first, alpha)
        problems = [_Dual(K, b, share, alpha, bool(self.fit_intercept)) for b in targets]
        solutions, coefs, intercepts = [], [], []
        for k, (problem, x0) in enumerate(zip(problems, starts, strict=True)):
            solution, intercept = problem.solve(x0, self._label(k, len(problems)), **options)
            solutions.append(solution)
            coefs.append((solution.x / alpha).astype(K.dtype))
            intercepts.append(K.dtype.type(intercept))
            problem.measure(solution, coefs[-1].astype(np.float64), float(intercepts[-1]))
            if solution.reason == "certified" and not problem.reached(solution, self.tol):
                solution.reason = "stalled"  # single precision has no better answer
        coef = np.array(coefs)
        used = np.flatnonzero(coef.any(axis=0))
        used = used[np.argsort(first[used])]
        self.support_, self.dual_coef_ = first[used], np.ascontiguousarray(coef[:, used])
        self.intercept_ = np.array(intercepts)
        self._samples, self._pairwise = len(y), pairwise
        self.__dict__.pop("support_vectors_", None)  # of an earlier fit
        if not pairwise:
            self.support_vectors_ = X[self.support_]
        self._report(solutions)
        self._warn(solutions)
        return self

    def _starts(self, problems: int, samples: int, first: np.ndarray, alpha: float) -> list[Any]:
        """Return the last solution with warm_start, if it was of as many samples."""
        fitted = self.warm_start and hasattr(self, "dual_coef_")
        if not fitted or (len(self.dual_coef_), self._samples) != (problems, samples):
            return [None] * problems
        u = np.zeros((problems, samples))
        u[:, self.support_] = self.dual_coef_ * alpha
        return list(u[:, first])

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _validated(self, X: Any, pairwise: bool, **options: Any) -> Any:
        refuse_source(X, "KernelSVC")
        return validated(self, X, accept_sparse=False if pairwise else ("csr", "csc"), **options)

    def _decision(self, X: Any) -> np.ndarray:
        """Return h(x) + c, one column per problem."""
        check_is_fitted(self, "dual_coef_")
        X = self._validated(X, self._pairwise, reset=False)
        if self._pairwise:
            K = X[:, self.support_]
        elif len(self.support_):
            K = self._kernel(X, self.support_vectors_)
        else:
            K = np.zeros((X.shape[0], 0))
        return np.asarray(K @ self.dual_coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags


@dataclass
class _Dual:
    """The dual problem of one vector of labels."""

    K: np.ndarray
    b: np.ndarray  # labels -1 and +1
    share: np.ndarray  # weights of the samples, with sum 1
    alpha: float
    intercept: bool

    def solve(
        self, x0: Any, label: str, tol: float, max_iter: int, **options: Any
    ) -> tuple[Solution, float]:
        """Return a solution with its primal objective and gap, and the intercept.

        The bound that ends a run may come from an earlier point than the best one, whose own primal
        objective counts here. Then the run is continued with a smaller tolerance.
        """
        bound = self.b * self.share
        low, high = np.minimum(bound, 0.0), np.maximum(bound, 0.0)
        constraint: Penalty = Box(low, high)
        if self.intercept:
            constraint = BoxHyperplane(low, high, np.ones(len(bound)), 0.0)
        loss, nit = KernelSVMDual(self.K, self.b, self.alpha), 0
        for smaller in tol * TOLERANCES:
            left = max_iter - nit
            run = solve(loss, constraint, x0, label=label, tol=smaller, max_iter=left, **options)
            solution, nit = run, nit + run.nit
            # In double precision and within the bounds, so that the gap holds for float32.
            solution.x = np.clip(run.x.astype(np.float64), low, high)
            intercept = self._best_intercept(solution.x)
            self.measure(solution, solution.x / self.alpha, intercept)
            x0, reached = run.x, self.reached(solution, tol)
            if reached or not solution.converged or nit >= max_iter:
                break
        solution.nit = nit
        if reached:
            solution.reason = "certified"
        elif np.isfinite(solution.gap):  # whatever the run says about the dual problem
            solution.reason = "stalled" if nit < max_iter else "max_iter"
        return solution, intercept

    def reached(self, solution: Solution, tol: float) -> bool:
        """Return whether the gap is within tol."""
        return solution.gap <= tol * max(solution.fun, ZERO_OBJECTIVE)

    def _best_intercept(self, x: np.ndarray) -> float:
        """Return the best intercept: the loss of sample j, max(0, 1 - b_j (h_j + c)), turns at b_j - h_j."""
        if not self.intercept:
            return 0.0
        turns = self.b - self.K @ x / self.alpha
        slopes = np.minimum(0.0, -self.b), np.maximum(0.0, -self.b)
        return balance(turns, *slopes, self.share) or 0.0

    def measure(self, solution: Solution, c: np.ndarray, intercept: float) -> None:
        """Set the primal objective at coefficients c, and its gap to the dual point solution.x."""
        x, size = solution.x, np.abs(self.K)
        h, sizes = self.K @ c, size @ np.abs(c)
        losses = np.maximum(0.0, 1.0 - self.b * (h + intercept))
        solution.fun = float(self.share @ losses + 0.5 * self.alpha * (c @ h))
        dual = float(x @ self.b - 0.5 * (x @ (self.K @ x)) / self.alpha)
        terms = 1.0 + self.share @ sizes + abs(intercept) + self.alpha * (np.abs(c) @ sizes)
        terms += np.abs(x) @ (size @ np.abs(x)) / self.alpha + np.abs(x) @ np.abs(self.b)
        rounding = 2 * (len(x) + ROUNDED_OPERATIONS) * np.finfo(np.float64).eps * float(terms)
        # With an intercept, x sums to zero up to rounding.
        gap = solution.fun - dual + rounding + abs(intercept * float(x.sum()))
        solution.gap = gap if gap >= 0 else np.inf


def choose_gamma(gamma: Any, X: Any, weight: np.ndarray) -> float:
    """Return the number for "scale" and "auto"; the variance is that of the weighted samples."""
    if not (isinstance(gamma, str) and gamma in ("scale", "auto")):
        wanted = "'scale', 'auto' or a number >= 0"
        return _check.number(gamma, "gamma", "KernelSVC", wanted, lambda value: value >= 0)
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    mean = float(np.average(np.ravel(X.mean(axis=1, dtype=np.float64)), weights=weight))
    if sparse.issparse(X):
        means = np.ravel(X.multiply(X).mean(axis=1, dtype=np.float64)) - mean**2
    else:  # far from zero, the difference of two squares would be rounding
        means = np.square(X - mean, dtype=np.float64).mean(axis=1)
    variance = float(np.average(means, weights=weight))
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def kernel_matrix(kernel: Any, X: Any, Y: Any, **options: Any) -> np.ndarray:
    """Return the kernel of all pairs of rows, in the precision of X."""
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    if isinstance(kernel, str) and kernel == "rbf" and not sparse.issparse(X):
        # Distances are differences of squares, which would be rounding far from zero.
        center = Y.mean(axis=0, dtype=np.float64)
        X, Y = ((A - center).astype(dtype, copy=False) for A in (X, Y))
    if callable(kernel):
        K = kernel(X, Y)
    else:
        K = pairwise_kernels(X, Y, metric=kernel, filter_params=True, **options)
    K = K.toarray() if sparse.issparse(K) else np.asarray(K)
    if K.shape != (X.shape[0], Y.shape[0]):
        raise ValueError(
            f"The kernel must return a matrix of shape {(X.shape[0], Y.shape[0])}. Got shape "
            f"{K.shape} instead."
        )
    return np.ascontiguousarray(K, dtype=dtype)
