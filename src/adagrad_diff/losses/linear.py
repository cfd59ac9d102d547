"""The linear model of most losses: a scalar loss of <a_j, x> and b_j, averaged over samples j."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._messages import counted, warn
from ..linalg import Samples, Source, as_source
from ..linalg.eigen import largest_eigenvalue
from ..linalg.source import CONSTANT_PART
from .base import Coordinates, Loss

# How close a prediction must be to a nonsmooth point to be there, see `at_nonsmooth_points`.
NONSMOOTH_WIDTH = 1e-7  # in units of the spread of the targets
NONSMOOTH_ROUNDING = 8.0  # in units of the rounding error of the target


class LinearModel(Loss):
    r"""A mean of scalar losses of linear predictions.

    .. math:: f(x) = \sum_j \omega_j\, \ell(\langle a_j, x\rangle + c, b_j) + \tfrac{l_2}{2}\|x\|^2

    A loss of this kind is a subclass with `scalar`, written for numbers (it is compiled). Where
    they are known, it also has `smoothness`, the largest second derivative, and `conjugate`,
    written for arrays.

    Parameters
    ----------
    A : array (N, d), sparse matrix, LinearOperator or Source
        One sample per row. Dense arrays of any order, float32 or float64, CSR and CSC are used in
        place, never copied. A subclass of `adagrad_diff.linalg.Source` computes or reads its rows
        on demand.
    b : array (N,)
        Targets; for classification, labels -1 and +1.
    sample_weight : array (N,), optional
        Weights >= 0, normalized to sum to one; equal by default.
    l2 : float
        Strength of the ridge term of f.
    intercept : bool
        Whether x has one more, last coordinate c, which is added to every prediction. Neither l2
        nor penalties apply to it.

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

    #: scalar(z, b, theta) -> (value, derivative with respect to z), the smallest subgradient where
    #: the loss is nonsmooth.
    scalar: ClassVar[Any] = None
    #: conjugate(u, b, theta) = sup_z u z - value(z, b), elementwise, infinite outside its domain.
    conjugate: ClassVar[Callable[..., Any] | None] = None
    #: curvature(z, b, theta): the second derivative, elementwise (either one where there are two).
    curvature: ClassVar[Callable[..., Any] | None] = None
    piecewise_linear = False  # whether it consists of two lines that meet at z = b, see `slopes`
    translates = False  # whether only z - b matters: the targets may be centered
    predicts_b = True  # whether z is in the units of b, unlike log-odds and margins
    differentiable = False  # set it for a differentiable loss without a finite `smoothness`
    smoothness: float | None = None
    theta = 0.0  # the parameter of the scalar loss, if it has one
    theta_name = ""  # shown in `repr`
    shape: tuple[int, ...]
    dtype: np.dtype
    center: np.ndarray  # subtracted from the columns of A, with an intercept; may be empty

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "jump" in vars(cls):
            now = "Call it 'slopes', and set piecewise_linear = True."
            warn(f"{cls.__name__} defines 'jump'. {now}", DeprecationWarning)
            cls.piecewise_linear = True
            cls.slopes = vars(cls)["jump"]  # type: ignore[method-assign]

    def __init__(
        self, A: Any, b: Any, *, sample_weight: Any = None, l2: float = 0.0, intercept: bool = False
    ):
        self.A = as_source(A)
        samples, features = self.A.shape
        self.dtype = np.dtype(self.A.dtype)
        self.b = self.check_targets(b, samples)
        self.weight = np.asarray(_normalized(sample_weight, samples), self.dtype)
        self.l2 = _check.nonnegative(l2, "l2", type(self).__name__)
        self.intercept, self.center = bool(intercept), np.empty(0, self.dtype)
        self.shape, self.predictions = (features + self.intercept,), samples

    @property
    def matrix(self) -> Source:
        return self.A

    def _words(self) -> list[str]:
        samples, features = self.A.shape
        source = f"{self.A.kind} {self.dtype}"
        words = [counted(samples, "sample"), counted(features, "feature"), source]
        words += ["intercept"] * self.intercept + [f"l2={self.l2:g}"] * (self.l2 > 0)
        return [*words, f"{self.theta_name}={self.theta:g}"] if self.theta_name else words

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        """Return b in the precision of A, or raise an error that names the first invalid entry."""
        return _check.cast(_check.vector(b, "b", samples), self.dtype, "b", copy=False)

    @staticmethod
    def slopes(b: np.ndarray, theta: float) -> tuple[Any, Any]:
        """Return bounds of the derivative of the scalar loss: the domain of its conjugate."""
        return -np.inf, np.inf

    def oracle(self, x: np.ndarray) -> LinearOracle:
        extra = " (features and intercept)" if self.intercept else ""
        self._check_shape(x, f"{self.shape[0]} coordinates{extra}")
        _check.number(self.theta, "theta", type(self).__name__)
        return LinearOracle(self, x.shape[1:])

    def samples(self, batch: tuple[int, ...]) -> Samples:
        """Return targets, weights and scalar loss of the samples, for the kernels."""
        return Samples(self.b, self.weight, batch, self.theta, self.scalar, self.intercept)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return z = A x, plus the intercept in the precision of x, for columns x."""
        samples, features = self.A.shape
        z = np.empty((samples, *x.shape[1:]), self.dtype)
        self.A.dot(np.ascontiguousarray(x[:features], self.dtype), z)
        return z + x[features:] if self.intercept else z

    def offsets(self, x: np.ndarray) -> np.ndarray:
        """Return what the intercept adds to the predictions of each column of x.

        If the columns of A are centered, A w is corrected here: (A - center) w = A w - center w.
        """
        if not self.intercept:
            return np.zeros(x.shape[1], self.dtype)
        shift = (
            np.einsum("i,ik->k", self.center, x[:-1], dtype=np.float64) if self.center.size else 0.0
        )
        return np.asarray(x[-1] - shift, self.dtype)

    def add_intercept(self, r: np.ndarray, g: np.ndarray) -> None:
        """Set the entries of the intercept in the gradients g = A' r, and center the others."""
        if self.intercept:
            g[-1] = r.sum(axis=0, dtype=np.float64)
            if self.center.size:
                g[:-1] -= self.center[:, None] * g[-1]

    def lipschitz(self) -> float:
        """Return smoothness * largest eigenvalue of sum_j weight_j a_j a_j' + l2.

        The intercept counts as a column of ones.
        """
        if self.smoothness is None:
            return super().lipschitz()
        features = self.A.shape[1]

        def product(v: np.ndarray) -> np.ndarray:
            out = np.zeros(v.shape, self.dtype)
            z = self.weight[:, None] * self.predict(v.astype(self.dtype))
            self.A.tdot(z, out[:features])
            self.add_intercept(z, out)
            return out

        return self.smoothness * largest_eigenvalue(product, features + self.intercept) + self.l2

    def coordinates(self) -> Coordinates:
        """Return coordinates with columns of size one, centered if there is an intercept."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            moments = self.A.moments(self.weight)
            if moments is None:
                return Coordinates(self, unit=self.unit())
            loss, center, (scale, flat) = self, None, moments.scale(self.intercept)
        extreme = ~(np.isfinite(moments.square) & np.isfinite(scale))
        if extreme.any():
            raise ValueError(
                f"Column {int(extreme.argmax())} of A has entries whose squares overflow or vanish in "
                "double precision: rescale it, so that they lie between 1e-150 and 1e150."
            )
        if self.intercept:
            loss = copy.copy(self)
            loss.center = center = moments.mean.astype(self.dtype)
        scale = np.repeat(scale, int(np.prod(self.shape[1:])))  # the same for every class
        return Coordinates(loss, scale, center, self.unit(), flat)

    def unit(self) -> float:
        """Return the unit of scaled coefficients: the spread of b, if z is in the units of b."""
        if not self.predicts_b:
            return 1.0
        b = self.b.astype(np.float64)
        center = np.einsum("i,i->", self.weight, b) if self.intercept else 0.0
        largest = float(np.abs(b - center).max()) or 1.0  # so that squares do not overflow
        squares = np.einsum("i,i->", self.weight, ((b - center) / largest) ** 2)
        spread = largest * float(np.sqrt(squares))
        return spread if spread > CONSTANT_PART * abs(center) else abs(center) or 1.0

    def nonsmooth_distances(self, z: np.ndarray) -> np.ndarray:
        """Return the distances of predictions from the nonsmooth points of a piecewise linear loss.

        They are infinite for samples of weight zero.
        """
        return np.where(self.weight == 0, np.inf, np.abs(z - self.b))

    def at_nonsmooth_points(self, z: np.ndarray) -> np.ndarray:
        """Return the samples whose predictions are at a nonsmooth point, up to rounding.

        The spread of the targets is the unit, so their distance from zero does not matter.
        """
        rounding = NONSMOOTH_ROUNDING * float(np.finfo(self.dtype).eps) * np.abs(self.b)
        return np.flatnonzero(
            self.nonsmooth_distances(z) <= NONSMOOTH_WIDTH * self.unit() + rounding
        )


def _normalized(sample_weight: Any, samples: int) -> np.ndarray:
    """Return weights that sum to one."""
    if sample_weight is None:
        return np.full(samples, 1.0 / samples)
    weight = _check.vector(sample_weight, "sample_weight", samples).astype(np.float64)
    _check.entries(weight >= 0, weight, "sample_weight", "Weights must not be negative")
    if weight.max() == 0:
        raise ValueError("sample_weight is zero for every sample: at least one must be positive.")
    weight /= weight.max()  # the sum of very large weights would overflow
    weight /= weight.sum()
    return weight


class LinearOracle:
    """The evaluations of one run: z = A x, residuals r = weight * l'(z, b), gradient A' r."""

    def __init__(self, loss: LinearModel, batch: tuple[int, ...]):
        self.loss, self._width = loss, batch[0] if batch else 1
        self._pass = loss.A.linear_pass(loss.samples(batch))

    @property
    def r(self) -> np.ndarray:
        """The residuals at the last x, shape (N,) or (N, columns)."""
        return self._pass.residuals()

    def residuals(self, column: int | None) -> np.ndarray:
        """Return the residuals of one trajectory."""
        return self.r if column is None else self._pass.residuals(column)

    @np.errstate(all="ignore")  # overflows show in the value
    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        loss, columns, features = self.loss, (-1, self._width), self.loss.A.shape[1]
        w, g, value = x[:features], out[:features], np.zeros(self._width)
        if ridge := loss.l2 > 0:
            np.multiply(loss.l2, w, out=g)
            value += 0.5 * loss.l2 * np.einsum("i...,i...->...", w, w, dtype=np.float64)
        # z = A w + offset, r = weight * l'(z, b), g += A' r
        r = self._pass(w, loss.offsets(x.reshape(columns)), g, value, ridge)
        loss.add_intercept(r.reshape(columns), out.reshape(columns))
        return float(value[0]) if x.ndim == 1 else value


class BinaryModel(LinearModel):
    """A linear model whose targets are the labels -1 and +1."""

    predicts_b = False

    def check_targets(self, b: Any, samples: int) -> np.ndarray:
        return check_labels(super().check_targets(b, samples), type(self).__name__)


def check_labels(labels: np.ndarray, owner: str) -> np.ndarray:
    """Return labels -1 and +1, or raise an error that shows how to get them."""
    example = f"such as np.where(y == {labels.max():g}, 1, -1)"
    hint = "The classifiers of adagrad_diff.sklearn accept any labels"
    needed = f"{owner} needs labels -1 and +1, {example}. {hint}"
    _check.entries(np.abs(labels) == 1, labels, "b", needed)
    return labels
