"""The linear model that most losses share: a scalar loss of <a_j, x> and b_j, averaged over samples j."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .. import _check, kernels
from .._messages import counted
from ..data import Samples, as_source
from ..data.eigen import largest_eigenvalue
from ..data.source import CONSTANT_PART
from ._labels import signs
from .base import Coordinates, Loss, Oracle

KINK_WIDTH, KINK_ROUNDING = (
    1e-7,
    8.0,
)  # how close a prediction must be to its kink to count as being there, see `at_kinks`
LARGE_TARGET = 1e140  # whose square is not added up as it is


class LinearModel(Loss):
    r"""A mean of scalar losses of linear predictions.

    .. math:: f(x) = \sum_j \omega_j\, \ell(\langle a_j, x\rangle + c, b_j) + \tfrac{l_2}{2}\|x\|^2

    A loss of this kind is a subclass with `scalar`, written for numbers (it is compiled), and where known
    `smoothness`, the largest second derivative, and `conjugate`, written for arrays.

    Parameters
    ----------
    A : array (N, d), sparse matrix, LinearOperator or Source
        One sample per row. Dense arrays of any order, float32 or float64, CSR and CSC are used in place, never copied. A
        subclass of `adagrad_diff.data.Source` computes or reads its rows when they are asked for.
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
    conjugate: ClassVar[Callable[..., Any] | None] = None
    #: curvature(z, b, theta): the second derivative, elementwise; where there are two, either. None if it is not known.
    curvature: ClassVar[Callable[..., Any] | None] = None
    #: jump(b, theta) -> (slope left, slope right) of a loss that is two lines which meet at z = b; None for other losses.
    jump: ClassVar[Any] = None
    translates: ClassVar[bool] = False  # whether only z - b matters: the targets may be centered
    predicts_b: ClassVar[bool] = (
        True  # whether z is in the units of b: not if it is a log-odds, a log rate or a margin
    )
    differentiable: bool = False  # to be set if it is so although `smoothness` is infinite
    shape: tuple[int, ...]
    smoothness: float | None = None
    center: (
        np.ndarray
    )  # what is subtracted from each column of A, with an intercept; empty: nothing
    theta: float = 0.0  # the parameter of the scalar loss, if it has one

    def __init__(
        self, A: Any, b: Any, *, sample_weight: Any = None, l2: float = 0.0, intercept: bool = False
    ):
        self.A = as_source(A)
        samples, features = self.A.shape
        self.dtype = np.dtype(self.A.dtype)
        self.b = self.check_targets(b, samples)
        self.weight = self._normalised(sample_weight, samples)
        self.l2 = _check.nonnegative(l2, "l2", type(self).__name__)
        self.intercept, self.center = bool(intercept), np.empty(0, self.dtype)
        self.shape, self.predictions = (features + self.intercept,), samples

    def _words(self) -> list[str]:
        samples, features = self.A.shape
        words = [
            counted(samples, "sample"),
            counted(features, "feature"),
            f"{self.A.kind} {self.dtype}",
        ]
        return words + ["intercept"] * self.intercept + [f"l2={self.l2:g}"] * (self.l2 > 0)

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        """b as this loss wants it, or an error that names the first entry it does not accept."""
        return _check.cast(_check.vector(b, "b", samples), self.dtype, "b", copy=False)

    def _normalised(self, sample_weight: Any, samples: int) -> np.ndarray:
        if sample_weight is None:
            return np.full(samples, 1.0 / samples, self.dtype)
        weight = _check.vector(sample_weight, "sample_weight", samples).astype(np.float64)
        _check.first_where(
            weight < 0,
            weight,
            lambda j, v: f"sample_weight must not be negative. sample_weight[{j}] is {v}.",
        )
        if weight.max() == 0:
            raise ValueError(
                "sample_weight is zero for every sample: at least one must be positive."
            )
        weight /= weight.max()  # the sum of very large weights would overflow
        return np.asarray(weight / weight.sum(), self.dtype)

    @classmethod
    def slopes(cls, b: np.ndarray, theta: float) -> tuple[Any, Any]:
        """(smallest, largest) derivative of the scalar loss: the domain of its conjugate. Any, unless a loss knows better."""
        return (-np.inf, np.inf) if cls.jump is None else cls.jump(b, theta)

    def oracle(self, x: np.ndarray) -> LinearOracle:
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[0]:
            extra = " (features and intercept)" if self.intercept else ""
            raise ValueError(
                f"x must have {self.shape[0]} coordinates{extra}. Got shape {x.shape} instead."
            )
        name, theta = type(self).__name__, self.theta
        if self.scalar is None:
            raise TypeError(
                f"{name} has no 'scalar': write a static method scalar(z, b, theta) -> (value, derivative)."
            )
        if isinstance(theta, str | bytes) or np.ndim(theta):
            raise TypeError(
                f"The 'theta' of {name} must be a number. Got {_check.shown(theta)} instead."
            )
        return LinearOracle(self, x.shape[1:])

    def samples(self, batch: tuple[int, ...]) -> Samples:
        """What belongs to the samples."""
        return Samples(self.b, self.weight, batch, self.theta, self.scalar, self.intercept)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """z = A x, with an intercept of x added in the precision of x; x is one vector or several columns."""
        samples, features = self.A.shape
        z = np.empty((samples, *x.shape[1:]), self.dtype)
        self.A.dot(np.ascontiguousarray(x[:features], self.dtype), z)
        return z + x[features:] if self.intercept else z

    def lipschitz(self) -> float:
        """L = smoothness * largest eigenvalue of sum_j weight_j a_j a_j' + l2 (with the intercept as a column of ones)."""
        if self.smoothness is None:
            return super().lipschitz()
        return self.smoothness * self._largest_curvature() + self.l2

    def _largest_curvature(self) -> float:
        samples, features = self.A.shape
        size = features + self.intercept

        def product(v: np.ndarray) -> np.ndarray:
            v = v.astype(self.dtype)
            z, out = np.empty((samples, v.shape[1]), self.dtype), np.zeros(v.shape, self.dtype)
            self.A.dot(v[:features], z)
            if self.intercept:
                z += v[features:]
            z *= self.weight[:, None]
            self.A.tdot(z, out[:features])
            if self.intercept:
                out[features] = z.sum(axis=0)
            return out

        return largest_eigenvalue(product, size)

    # ------------------------------------------------------------ coordinates, for step sizes that suit all of them

    def coordinates(self) -> Coordinates:
        """Columns of size one and, with an intercept, of mean zero; unless the data do not show their entries."""
        moments = self.A.moments(self.weight)
        if moments is None:
            return Coordinates(self, unit=self.unit())
        loss, center, (scale, flat) = self, None, moments.scale(self.intercept)
        if self.intercept:
            loss = copy.copy(self)
            loss.center = center = moments.mean.astype(self.dtype)
        return Coordinates(loss, scale, center, self.unit(), flat)

    def unit(self) -> float:
        """What scaled coefficients are measured in: the spread of the targets, if z is in their units."""
        if not self.predicts_b:
            return 1.0
        b = self.b.astype(np.float64)
        center = np.einsum("i,i->", self.weight, b) if self.intercept else 0.0
        b -= center
        largest = float(np.abs(b).max())
        size = largest if largest > LARGE_TARGET else 1.0  # so that its square is a number
        spread = size * float(np.sqrt(np.einsum("i,i->", self.weight, (b / size) ** 2)))
        return spread if spread > CONSTANT_PART * abs(center) else abs(center) or 1.0

    # ------------------------------------------------------------ kinks

    def kink_distances(self, z: np.ndarray) -> np.ndarray:
        """How far predictions are from the kinks of a loss that has a `jump`; infinite for samples without a weight."""
        distance: np.ndarray = z - self.b
        np.abs(distance, out=distance)
        distance[self.weight == 0] = np.inf
        return distance

    def at_kinks(self, z: np.ndarray) -> np.ndarray:
        """The samples whose predictions are at a kink, where any slope from left to right is a subgradient.

        This is what the package means by "at a kink": as close as a solver that gives x can be asked to come, in units of the
        targets' spread, so that it does not matter how far from zero they are, or as close as rounding lets one see.
        """
        rounding = KINK_ROUNDING * float(np.finfo(self.dtype).eps)
        return np.flatnonzero(
            self.kink_distances(z) <= KINK_WIDTH * self.unit() + rounding * np.abs(self.b)
        )


class LinearOracle(Oracle):
    """One run's evaluations of a linear model: z = A x, residuals r = weight * l'(z, b), gradient A' r."""

    def __init__(self, loss: LinearModel, batch: tuple[int, ...]):
        self.loss, self._columns = loss, (-1, batch[0] if batch else 1)
        self._value, self._offset = (
            np.zeros(self._columns[1]),
            np.zeros(self._columns[1], loss.dtype),
        )
        self._pass = loss.A.linear_pass(loss.samples(batch))

    @property
    def r(self) -> np.ndarray:
        """After a call: the residuals at x, shape (N,) or (N, trajectories)."""
        return self._pass.residuals()

    def residuals(self, column: int | None) -> np.ndarray:
        """Those of one trajectory."""
        return self._pass.residuals() if column is None else self._pass.residuals(column)

    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        loss, value, offset = self.loss, self._value, self._offset
        weights, g = (x[:-1], out[:-1]) if loss.intercept else (x, out)
        value.fill(0)
        if loss.intercept:
            kernels.intercept_offset(x.reshape(self._columns), loss.center, offset)
        if ridge := loss.l2 > 0:  # first of all, so that the gradient need not be set to zero
            kernels.ridge(weights, loss.l2, g, value)
        r = self._pass(
            weights, offset, g, value, ridge
        )  # z = A weights + offset, r = weight * l'(z, b), g += A' r
        if loss.intercept:
            kernels.intercept_gradient(
                r.reshape(self._columns), loss.center, out.reshape(self._columns)
            )
        return float(value[0]) if x.ndim == 1 else value.copy()


class BinaryModel(LinearModel):
    """A linear model whose targets are the labels -1 and +1."""

    predicts_b = False

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        return _check.cast(
            signs(b, type(self).__name__, samples, "one value per row of A"),
            self.dtype,
            "b",
            copy=False,
        )
