"""The linear model that most losses share: a scalar loss of <a_j, x> and b_j, averaged over samples j."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ..common import check
from ..common.threads import over_rows, thread_count
from ..data.matrix import CompressedRows, Dense, as_matrix, largest_eigenvalue
from ._labels import signs
from .base import Loss, Oracle


class LinearModel(Loss):
    r"""A mean of scalar losses of linear predictions.

    .. math:: f(x) = \sum_j \omega_j\, \ell(\langle a_j, x\rangle + c, b_j) + \tfrac{l_2}{2}\|x\|^2

    A loss of this kind is a subclass with `scalar`, written for numbers (it is compiled), and where known
    `smoothness`, the largest second derivative, and `conjugate`, written for arrays.

    Parameters
    ----------
    A : array (N, d), sparse matrix or LinearOperator
        One sample per row. Dense arrays of any order, float32 or float64, CSR and CSC are used in place, never copied.
    b : array (N,)
        Targets; for classification, labels -1 and +1.
    sample_weight : array (N,), optional
        Weights >= 0, normalised to sum to one; equal by default.
    l2 : float
        Strength of a ridge term that is part of f.
    intercept : bool
        Whether x has one more, last coordinate c, added to every prediction, that neither l2 nor any penalty touches.

    Examples
    --------
    A loss of your own takes a few lines:

    >>> import math
    >>> from adagrad_diff.losses import LinearModel
    >>> class LogCosh(LinearModel):
    ...     smoothness = 1.0
    ...     @staticmethod
    ...     def scalar(z, b, theta):
    ...         t = abs(z - b)
    ...         return t + math.log1p(math.exp(-2.0 * t)) - math.log(2.0), math.tanh(z - b)
    >>> f, g = LogCosh([[1.0, 0.0], [0.0, 2.0]], [0.0, 0.0]).value_and_grad([0.0, 0.0])
    >>> f, g.tolist()
    (0.0, [0.0, 0.0])
    """

    #: scalar(z, b, theta) -> (value, derivative with respect to z), at a kink the subgradient of smallest absolute value.
    scalar: ClassVar[Any] = None
    #: conjugate(u, b, theta) = sup_z u z - value(z, b), elementwise, infinite outside its domain.
    conjugate: ClassVar[Callable | None] = None
    #: jump(b, theta) -> (slope left, slope right) of a loss that is two lines which meet at z = b; None for other losses.
    jump: ClassVar[Any] = None
    translates: ClassVar[bool] = False  # whether only z - b matters: the targets may be centered
    differentiable: bool = False  # to be set if it is so although `smoothness` is infinite
    shape: tuple[int, ...]
    smoothness: float | None = None
    center: np.ndarray  # what is subtracted from each column of A, with an intercept; empty: nothing
    theta: float = 0.0  # the parameter of the scalar loss, if it has one

    def __init__(self, A: Any, b: Any, *, sample_weight: Any = None, l2: float = 0.0, intercept: bool = False):
        self.A = as_matrix(A)
        samples, features = self.A.shape
        self.dtype = self.A.dtype
        self.b = self.check_targets(b, samples)
        self.weight = self._normalised(sample_weight, samples)
        self.l2 = check.nonnegative(l2, "l2", type(self).__name__)
        self.intercept, self.center = bool(intercept), np.empty(0, self.dtype)
        self.shape, self.predictions = (features + self.intercept,), samples

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        """b as this loss wants it, or an error that names the first entry it does not accept."""
        return check.cast(check.vector(b, "b", samples), self.dtype, "b", copy=False)

    def _normalised(self, sample_weight: Any, samples: int) -> np.ndarray:
        if sample_weight is None:
            return np.full(samples, 1.0 / samples, self.dtype)
        weight = check.vector(sample_weight, "sample_weight", samples).astype(np.float64)
        check.first_where(weight < 0, weight, lambda j, v: f"sample_weight must not be negative. sample_weight[{j}] is {v}.")
        if weight.max() == 0:
            raise ValueError("sample_weight is zero for every sample: at least one must be positive.")
        weight /= weight.max()  # the sum of very large weights would overflow
        return (weight / weight.sum()).astype(self.dtype)

    @classmethod
    def slopes(cls, b: np.ndarray, theta: float) -> tuple[Any, Any]:
        """(smallest, largest) derivative of the scalar loss: the domain of its conjugate. Any, unless a loss knows better."""
        return (-np.inf, np.inf) if cls.jump is None else cls.jump(b, theta)

    def oracle(self, x: np.ndarray) -> LinearOracle:
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[0]:
            extra = " (features and intercept)" if self.intercept else ""
            raise ValueError(f"x must have {self.shape[0]} coordinates{extra}. Got shape {x.shape} instead.")
        name, theta = type(self).__name__, self.theta
        if self.scalar is None:
            raise TypeError(f"{name} has no 'scalar': write a static method scalar(z, b, theta) -> (value, derivative).")
        if isinstance(theta, str | bytes) or np.ndim(theta):
            raise TypeError(f"The 'theta' of {name} must be a number. Got {check.shown(theta)} instead.")
        return LinearOracle(self, x.shape[1:])

    def lipschitz(self) -> float:
        """L = smoothness * largest eigenvalue of sum_j weight_j a_j a_j' + l2 (with the intercept as a column of ones)."""
        if self.smoothness is None:
            return super().lipschitz()
        return self.smoothness * self._largest_curvature() + self.l2

    def _largest_curvature(self) -> float:
        samples, features = self.A.shape
        size = features + self.intercept

        def product(v):
            v = v.astype(self.dtype)
            z, out = np.empty((samples, v.shape[1]), self.dtype), np.zeros(v.shape, self.dtype)
            self.A.dot(v[:features], 0, samples, z)
            if self.intercept:
                z += v[features:]
            z *= self.weight[:, None]
            self.A.tdot(z, 0, samples, out[:features])
            if self.intercept:
                out[features] = z.sum(axis=0)
            return out

        return largest_eigenvalue(product, size)


FEW = 8  # trajectories up to which one pass of ours over A beats two products by BLAS


class LinearOracle(Oracle):
    """One run's evaluations of a linear model: z = A x, residuals r = weight * l'(z, b), gradient A' r."""

    scalar = True  # whether the loss of a sample is that of one number z

    def __init__(self, loss: LinearModel, batch: tuple[int, ...]):
        self.loss, self._width = loss, batch[0] if batch else 1
        #: After a call: the residuals at x, shape (N,) or (N, trajectories).
        self.r = np.empty((loss.A.shape[0], *batch), loss.dtype)
        self._g = np.empty((0, loss.A.shape[1], *batch), loss.dtype)  # gradients of the second and further threads
        self._value = np.empty((1, self._width))  # one row per thread
        self._offset = np.zeros(self._width, loss.dtype)  # what the intercept adds to predictions
        fused = self.scalar and isinstance(loss.A, Dense) and loss.A.array.flags.c_contiguous and self._width <= FEW
        self._rows = (self._make_few() if batch else self._make_fused()) if fused else self._make_blocked()
        # Threads of ours are for kernels of ours: BLAS brings its own.
        self._work = loss.A.size * self._width if fused or isinstance(loss.A, CompressedRows) else 0

    def _make_fused(self) -> Callable:
        kernel, loss, r = kernels.dense_pass(self.loss.scalar), self.loss, self.r

        def rows(x, offset, lo, hi, g, value, add):
            if not add:
                g.fill(0)
            kernel(loss.A.array, x, offset[0], loss.b, loss.weight, loss.theta, lo, hi, r, g, value)

        return rows

    def _make_few(self) -> Callable:
        kernel, loss, r = kernels.dense_pass_few(self.loss.scalar), self.loss, self.r
        memory = {}

        def rows(x, offset, lo, hi, g, value, add):
            if lo not in memory:  # one per thread
                memory[lo] = np.empty((2, *x.shape[::-1]), x.dtype)
            if not add:
                g.fill(0)
            kernel(loss.A.array, x, offset, loss.b, loss.weight, loss.theta, lo, hi, memory[lo], r, g, value)

        return rows

    def _make_residuals(self) -> Callable:
        """z[lo:hi] <- the residuals there, value += their loss"""
        kernel, loss = kernels.residuals(self.loss.scalar), self.loss
        return lambda z, lo, hi, value: kernel(z, loss.b, loss.weight, loss.theta, lo, hi, value)

    def _make_blocked(self) -> Callable:
        loss, r, residuals = self.loss, self.r, self._make_residuals()

        def rows(x, offset, lo, hi, g, value, add):
            """The share of rows lo..hi: g = A' r (or +=) and value += sum of weight * loss, block by block."""
            with np.errstate(all="ignore"):  # what overflows is seen in the value
                for first, last in loss.A.row_blocks(lo, hi):
                    z = r[first:last]
                    loss.A.dot(x, first, last, z)
                    if loss.intercept:
                        z += offset
                    residuals(r, first, last, value)  # z is the residual from here on
                    loss.A.tdot(z, first, last, g, add=add or first > lo)

        return rows

    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        loss, value = self.loss, self._value
        samples = loss.A.shape[0]
        weights, gradient = (x[:-1], out[:-1]) if loss.intercept else (x, out)
        threads = min(thread_count(self._work), samples)
        if threads != len(value):
            self._value = value = np.empty((threads, self._width))
            self._g = np.empty((threads - 1, *gradient.shape), loss.dtype)
        value.fill(0)
        if loss.intercept:
            columns = (len(x), self._width)
            kernels.intercept_offset(x.reshape(columns), loss.center, self._offset)
        ridge = loss.l2 > 0
        if ridge:  # first of all, so that the gradient need not be set to zero
            kernels.ridge(weights, loss.l2, gradient, value[0])
        if threads == 1:
            self._rows(weights, self._offset, 0, samples, gradient, value[0], ridge)
        else:

            def worker(part, lo, hi):
                g, add = (self._g[part - 1], False) if part else (gradient, ridge)
                self._rows(weights, self._offset, lo, hi, g, value[part], add)

            over_rows(worker, samples, threads)
            for g in self._g:
                gradient += g
            value[0] = value.sum(axis=0)
        if loss.intercept:
            kernels.intercept_gradient(self.r.reshape(samples, self._width), loss.center, out.reshape(columns))
        return float(value[0, 0]) if x.ndim == 1 else value[0].copy()


class BinaryModel(LinearModel):
    """A linear model whose targets are the labels -1 and +1."""

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        return check.cast(signs(b, type(self).__name__, samples, "one value per row of A"), self.dtype, "b", copy=False)
