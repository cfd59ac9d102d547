"""Support vector machines with kernels, by the paper's dual problem."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..duality.intercept import balance
from ..losses import KernelSVMDual
from ..penalties import Box, BoxHyperplane, Penalty
from ._base import Estimator
from ._classes import Classes, one_vs_rest
from ._data import ROOM, refuse_huge, refuse_source, validated
from ._ends import is_converged
from ._kernels import choose_gamma, kernel_matrix
from ._merge import Merged, merge
from ._solve import Solution, solve

TOLERANCES = 0.1 ** np.arange(6)  # of the runs that follow each other, in units of tol
NEXT_TO_ZERO = (
    1e-6  # of the objective at zero, which is one: below that an objective counts as zero
)


class KernelSVC(Classes, Estimator):
    r"""A support vector machine with a kernel: hinge loss and the norm of the kernel's space.

    .. math:: \min_{h, c}\; \sum_j \omega_j \max(0, 1 - y_j (h(a_j) + c)) + \tfrac\alpha2 \|h\|^2

    It is solved through its dual,

    .. math:: \min_u\; \tfrac1{2\alpha} u^\top K u - \langle u, y\rangle, \quad 0 \le y_j u_j \le \omega_j, \qquad
              h = \tfrac1\alpha \sum_j u_j k(a_j, \cdot)

    with the constraint that the u_j sum to zero if there is an intercept c. With more than two classes, one such problem per
    class against the rest. Memory: the kernel matrix, n_samples^2 numbers. For a linear kernel, `LinearSVC` is much faster.

    Parameters
    ----------
    C : float
        As in scikit-learn: alpha = 1 / (N C), with N the sum of the sample weights.
    alpha : float, optional
        The strength itself, > 0; if given, C is not used.
    kernel : str or callable
        A kernel of `sklearn.metrics.pairwise.pairwise_kernels`, "precomputed", or a function (X, Y) -> kernel matrix. What
        is certified is true of kernels that are positive semidefinite, which "sigmoid" is not.
    gamma : "scale", "auto" or float
        Of the kernels that have it; "scale" is 1 / (n_features * X.var()), "auto" 1 / n_features.
    degree, coef0 : float
        Of the kernels that have them.
    fit_intercept : bool
        Whether there is a bias c, as in scikit-learn's SVC; there is none in the paper, and by default.
    class_weight, tol, max_iter, eta, warm_start, verbose, checkpoint, checkpoint_every
        As for `LinearClassifier`.

    Attributes
    ----------
    classes_ : array (n_classes,)
    support_ : array (n_support,)
        Samples with a coefficient that is not zero (in any of the problems). Equal samples share one by their weights.
    dual_coef_ : array (1 or n_classes, n_support)
        u / alpha: the weights of k(a_j, .) in h.
    support_vectors_ : array or sparse matrix (n_support, n_features)
        Not with a precomputed kernel.
    intercept_ : array (1,) or (n_classes,)
    objective_, dual_gap_
        The objective of the primal problem above, and how far it can be at most from the optimum.
    n_iter_, converged_, stop_reason_
        As for `LinearClassifier`; here a gap is always known.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.sklearn import KernelSVC
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> model = KernelSVC(C=10.0, kernel="rbf").fit(X, (X**2).sum(axis=1) > 1)
    >>> model.predict([[0.0, 0.0], [2.0, 0.0]]).tolist()
    [False, True]
    """

    C: Any
    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    _kernel: Any  # (X, Y) -> the matrix of the last fit's kernel

    def __init__(
        self,
        C: float = 1.0,
        *,
        alpha: float | None = None,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = False,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10000,
        eta: Any = "auto",
        warm_start: bool = False,
        verbose: int = 0,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), or the kernel matrix if kernel="precomputed"
        y : array (n_samples,)
            Classes, numbers or strings.
        sample_weight : array (n_samples,), optional
            Weights >= 0; the mean loss is the weighted mean.

        Returns
        -------
        self
        """
        pairwise = self._precomputed()
        refuse_source(X, "KernelSVC")
        X, y = validated(self, X, y=y, accept_sparse=False if pairwise else ("csr", "csc"))
        refuse_huge(X, "X", X.dtype)
        labels, options = self._encode(y), self._options()
        weight = self._weights(sample_weight, X, labels)
        alpha = self._strength(float(len(y) if weight is None else weight.sum()))
        if alpha == 0:
            raise ValueError(
                "The 'alpha' parameter of KernelSVC must be positive: without it, the dual problem has no bounds."
            )
        if pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"A precomputed kernel needs a square matrix, one row and column per sample. Got shape {X.shape}."
            )
        kinds = merge(
            X, labels, weight
        )  # the dual problem has one variable per sample: repetitions make it harder
        share = kinds.weight / kinds.weight.sum()
        if pairwise:
            K = np.ascontiguousarray(X[np.ix_(kinds.first, kinds.first)])
        else:
            gamma = choose_gamma(self.gamma, X[kinds.first], share)
            self._kernel = partial(
                kernel_matrix, self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0
            )
            K = self._kernel(*[X[kinds.first]] * 2)
        if max(K.max(), -K.min()) > alpha * ROOM * np.finfo(K.dtype).max:
            raise ValueError(
                f"The 'alpha' parameter of KernelSVC is too small: the kernel matrix / {alpha} overflows."
            )
        targets = one_vs_rest(labels[kinds.first], len(self.classes_))
        solutions, offsets = [], []
        for k, (b, x0) in enumerate(
            zip(targets, self._starts(len(targets), kinds, alpha), strict=True)
        ):
            solution, offset = self._solve(
                K, b, share, alpha, x0, self._label(k, len(targets)), options
            )
            solutions.append(solution)
            offsets.append(offset)
        coefficients = kinds.spread(np.array([s.x for s in solutions], dtype=np.float64) / alpha)
        self.support_ = np.flatnonzero(coefficients.any(axis=0))
        self.dual_coef_ = np.ascontiguousarray(coefficients[:, self.support_], dtype=K.dtype)
        self.intercept_ = np.array(offsets, dtype=K.dtype)
        rounded = np.zeros((len(solutions), len(y)))
        rounded[:, self.support_] = self.dual_coef_
        for solution, b, c, offset in zip(
            solutions, targets, kinds.gather(rounded), self.intercept_, strict=True
        ):
            self._measure(solution, K, b, share, alpha, c, float(offset))
            if solution.reason == "certified" and not solution.gap <= options["tol"] * max(
                solution.fun, NEXT_TO_ZERO
            ):
                solution.reason = "stalled"  # a precision that low does not have a better answer
        self._samples, self._pairwise = len(y), pairwise
        self.__dict__.pop("support_vectors_", None)  # of an earlier fit
        if not pairwise:
            self.support_vectors_ = X[self.support_]
        self._report(solutions)
        self._warn(solutions)
        return self

    def _constraint(self, bound: np.ndarray) -> Penalty:
        """0 <= y_j u_j <= weight_j, and with a bias sum_j u_j = 0."""
        low, high = np.minimum(bound, 0.0), np.maximum(bound, 0.0)
        return (
            BoxHyperplane(low, high, np.ones(len(bound)), 0.0)
            if self.fit_intercept
            else Box(low, high)
        )

    def _solve(
        self,
        K: np.ndarray,
        b: np.ndarray,
        share: np.ndarray,
        alpha: float,
        x0: Any,
        label: str,
        options: dict[str, Any],
    ) -> tuple[Solution, float]:
        """A solution of one dual problem, with what that means for the primal one, and the bias.

        The bound that ends a run may be due to an earlier point than the best one, whose own primal objective counts here: then
        the run goes on with a smaller tolerance.
        """
        loss, constraint, nit = KernelSVMDual(K, b, alpha), self._constraint(b * share), 0
        for tol in options["tol"] * TOLERANCES:
            left = options["max_iter"] - nit
            solution = solve(
                loss, constraint, x0, label=label, **{**options, "tol": tol, "max_iter": left}
            )
            offset = self._to_primal(solution, K, b, share, alpha)
            x0, nit = solution.x, nit + solution.nit
            reached = solution.gap <= options["tol"] * max(solution.fun, NEXT_TO_ZERO)
            if reached or not is_converged(solution.reason) or nit >= options["max_iter"]:
                break
        solution.nit = nit
        if reached:
            solution.reason = "certified"
        elif is_converged(solution.reason):  # as far as the dual problem knows
            solution.reason = "stalled" if nit < options["max_iter"] else "max_iter"
        return solution, offset

    def _to_primal(
        self, solution: Solution, K: np.ndarray, b: np.ndarray, share: np.ndarray, alpha: float
    ) -> float:
        """The best bias. The solution is told about the primal problem, whose optimum is minus that of the dual.

        All in double precision, with the point moved into the bounds: so the gap is true of float32 data, too.
        """
        x = np.clip(
            solution.x.astype(np.float64), np.minimum(b * share, 0.0), np.maximum(b * share, 0.0)
        )
        h, offset = np.einsum("ij,j->i", K, x, dtype=np.float64) / alpha, 0.0
        if (
            self.fit_intercept
        ):  # the loss of sample j is max(0, 1 - b_j (h_j + c)): its kink is at c = b_j - h_j
            offset = balance(b - h, np.minimum(0.0, -b), np.maximum(0.0, -b), share) or 0.0
        solution.x = x
        self._measure(solution, K, b, share, alpha, x / alpha, offset)
        return offset

    @staticmethod
    def _measure(
        solution: Solution,
        K: np.ndarray,
        b: np.ndarray,
        share: np.ndarray,
        alpha: float,
        c: np.ndarray,
        offset: float,
    ) -> None:
        """Set the primal objective at the coefficients c, and how far it can be from the optimum, from the dual point x."""
        x, size = solution.x, np.abs(K)
        h, dual_h = (np.einsum("ij,j->i", K, v, dtype=np.float64) for v in (c, x / alpha))
        sizes = [
            float(v @ np.einsum("ij,j->i", size, v, dtype=np.float64))
            for v in (np.abs(c), np.abs(x / alpha))
        ]
        primal = float(share @ np.maximum(0.0, 1.0 - b * (h + offset))) + 0.5 * alpha * float(c @ h)
        dual = float(x @ b) - 0.5 * float(x @ dual_h)
        spread = float(share @ np.einsum("ij,j->i", size, np.abs(c), dtype=np.float64))
        terms = 1.0 + spread + abs(offset) + alpha * sum(sizes) + float(np.abs(x) @ np.abs(b))
        rounding = 2 * (len(b) + 8) * np.finfo(np.float64).eps * terms
        solution.fun = primal
        solution.gap = (
            primal - dual + rounding + abs(offset * x.sum())
        )  # the sum is zero but for rounding
        if not solution.gap >= 0:
            solution.gap = np.inf

    def _starts(self, problems: int, kinds: Merged, alpha: float) -> list[Any]:
        """Where to start: the last solution with warm_start, if it was of as many samples."""
        samples = len(kinds.kind)
        fitted = self.warm_start and hasattr(self, "dual_coef_")
        if not fitted or (len(self.dual_coef_), self._samples) != (problems, samples):
            return [None] * problems
        u = np.zeros((problems, samples))
        u[:, self.support_] = self.dual_coef_ * alpha
        return list(kinds.gather(u))

    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _decision(self, X: Any) -> np.ndarray:
        """h(x) + c, one column per problem."""
        check_is_fitted(self, "dual_coef_")
        pairwise = self._pairwise
        refuse_source(X, "KernelSVC")
        X = validated(self, X, accept_sparse=False if pairwise else ("csr", "csc"), reset=False)
        if pairwise:
            K = X[:, self.support_]
        elif len(self.support_):
            K = self._kernel(X, self.support_vectors_)
        else:
            K = np.zeros((X.shape[0], 0))
        return np.asarray(K @ self.dual_coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags
