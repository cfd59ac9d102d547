"""Penalties of a changed argument, and multiples of penalties."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ._norm import indicator, ratio
from ._rows import tolerance
from .base import Penalty, as_float, as_penalty


class _Wrapped(Penalty):
    """What changes nothing about the size and the metrics of the penalty inside."""

    penalty: Penalty

    @property
    def accepts(self):
        return self.penalty.accepts

    @property
    def properties(self):
        return self.penalty.properties

    def check_size(self, size):
        self.penalty.check_size(size)

    def check_metric(self, labels, isotropic):
        self.penalty.check_metric(labels, isotropic)

    def _value(self, argument: np.ndarray, x: np.ndarray, size: np.ndarray) -> Any:
        """The value of the penalty inside. What is outside a set by no more than the rounding of a term, is inside."""
        value = self.penalty.value(argument)
        if "set" in self.properties and np.any(value):
            return indicator((np.abs(self.prox(x, 1.0) - x) <= tolerance(x.dtype) * size).all(axis=0))
        return value


class Scaled(_Wrapped):
    r"""A multiple of a penalty. Of a set, which is 0 or infinite, it is the set itself.

    .. math:: \varphi(x) = c\, \psi(x), \qquad \text{prox}_\varphi(z, s) = \text{prox}_\psi(z, c s)

    Parameters
    ----------
    penalty : Penalty
        The penalty psi.
    factor : float
        The factor c >= 0. Zero makes a norm the zero function; penalties that may be infinite, but are no sets, need c > 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import L1, Scaled
    >>> Scaled(L1(1.0), 2.0).prox([3.0, -0.5], step=1.0).tolist()
    [1.0, -0.0]
    """

    def __init__(self, penalty: Any, factor: float):
        self.penalty, self.factor = as_penalty(penalty), _check.nonnegative(factor, "factor", "Scaled")
        self._set = "set" in self.penalty.properties
        if self.factor == 0.0 and not self._set and not {"norm", "seminorm"} & self.penalty.properties:
            raise ValueError(
                f"The 'factor' parameter of Scaled is 0, but 0 times {self.penalty.name} is known only for norms and sets. "
                "Use Zero() for no penalty."
            )

    @property
    def properties(self):
        """Those of the penalty; zero times a norm is a seminorm."""
        inner = self.penalty.properties
        return frozenset({"seminorm" if k == "norm" else k for k in inner}) if self.factor == 0.0 and not self._set else inner

    def value(self, x):
        return self.penalty.value(as_float(x)) * (1.0 if self._set else self.factor)

    def prox(self, z, step, out=None):
        z = as_float(z)
        if self._set:
            return self.penalty.prox(z, step, out)
        if self.factor > 0.0:
            return self.penalty.prox(z, np.multiply(step, self.factor, dtype=np.float64), out)
        self.check_size(len(z))
        out = np.empty_like(z) if out is None else out
        np.copyto(out, z)
        return out

    def conjugate(self, y):
        """factor * phi*(y / factor)."""
        y = as_float(y)
        if self._set:
            return self.penalty.conjugate(y)
        if self.factor == 0.0:
            return indicator((y == 0).all(axis=0))
        return self.factor * self.penalty.conjugate(y / self.factor)

    def polar(self, y):
        return ratio(self.penalty.polar(y), self.factor)


class Translated(_Wrapped):
    r"""A penalty around another point than zero.

    .. math:: \varphi(x) = \psi(x - t), \qquad \text{prox}_\varphi(z, s) = t + \text{prox}_\psi(z - t, s)

    Parameters
    ----------
    penalty : Penalty
        The penalty psi.
    shift : float or array
        The point t, one number for all coordinates or one per coordinate.

    Examples
    --------
    >>> from adagrad_diff.penalties import L1, Translated
    >>> Translated(L1(1.0), [5.0, 0.0]).prox([4.5, 2.0], step=1.0).tolist()
    [5.0, 1.0]
    """

    def __init__(self, penalty: Any, shift: Any):
        self.penalty, self.shift = as_penalty(penalty), _per_coordinate(shift, "shift", "Translated")

    @property
    def properties(self):
        """A set stays a set; a norm or a cone does not."""
        return self.penalty.properties & {"separable", "set"}

    def value(self, x):
        x = as_float(x)
        shift = _beside(self.shift, x)
        return self._value((x - shift).astype(x.dtype, copy=False), x, np.maximum(np.abs(x), np.abs(shift)))

    def prox(self, z, step, out=None):
        z = as_float(z)
        shift = _beside(self.shift, z)
        moved = z - shift
        x = self.penalty.prox(moved, step)
        out = np.empty_like(z) if out is None else out
        np.copyto(out, np.where(x == moved, z, x + shift), casting="same_kind")  # what stays, stays without rounding
        return out

    def conjugate(self, y):
        """phi*(y) + <shift, y>."""
        y = as_float(y)
        return self.penalty.conjugate(y) + np.sum(_beside(self.shift, y) * y, axis=0, dtype=np.float64)

    def check_size(self, size):
        _check_length(self.shift, size, "shift", "Translated")
        super().check_size(size)


class Precomposed(_Wrapped):
    r"""A penalty of rescaled coordinates.

    .. math:: \varphi(x) = \psi(a x), \qquad \text{prox}_\varphi(z, s) = \text{prox}_\psi(a z, a^2 s) / a

    Parameters
    ----------
    penalty : Penalty
        The penalty psi.
    diagonal : float or array
        The factors a, not zero, one number for all coordinates or one per coordinate. A penalty that needs the same step for
        coordinates also needs the same \|a\| for them.

    Examples
    --------
    >>> from adagrad_diff.penalties import Box, Precomposed
    >>> Precomposed(Box(-1.0, 1.0), [1.0, 0.5]).prox([3.0, 3.0], step=1.0).tolist()
    [1.0, 2.0]
    """

    def __init__(self, penalty: Any, diagonal: Any):
        self.penalty, self.diagonal = as_penalty(penalty), _per_coordinate(diagonal, "diagonal", "Precomposed")
        if (self.diagonal == 0).any():
            raise ValueError("The 'diagonal' parameter of Precomposed has a zero: leave such coordinates out by Unpenalised.")
        self._even = bool((np.abs(self.diagonal) == np.abs(self.diagonal[0])).all())
        if self.penalty.accepts == "scalar" and not self._even:
            raise ValueError(
                f"{self.penalty.name} needs one step for all coordinates, which Precomposed with a 'diagonal' of different "
                "sizes cannot give it. Use NumericalProx(penalty) inside."
            )

    def value(self, x):
        x = as_float(x)
        return self._value((_beside(self.diagonal, x) * x).astype(x.dtype, copy=False), x, np.abs(x))

    def prox(self, z, step, out=None):
        z, step = as_float(z), np.asarray(step, np.float64)
        a = _beside(self.diagonal, z)
        if self.penalty.accepts == "scalar":
            square = self.diagonal[0] ** 2
        else:
            square = a**2
            step = step[:, None] if step.ndim == 1 and z.ndim == 2 else step
        scaled = (a * z).astype(z.dtype, copy=False)
        x = self.penalty.prox(scaled, step * square)
        out = np.empty_like(z) if out is None else out
        np.copyto(out, np.where(x == scaled, z, x / a), casting="same_kind")  # what stays, stays without rounding
        return out

    def conjugate(self, y):
        """phi*(y / a)."""
        y = as_float(y)
        return self.penalty.conjugate((y / _beside(self.diagonal, y)).astype(y.dtype, copy=False))

    def polar(self, y):
        y = as_float(y)
        return self.penalty.polar((y / _beside(self.diagonal, y)).astype(y.dtype, copy=False))

    def check_size(self, size):
        _check_length(self.diagonal, size, "diagonal", "Precomposed")
        super().check_size(size)

    def check_metric(self, labels, isotropic):
        if self.diagonal.size > 1 and not self._even:
            # Only where both the metric and |a| are constant is their product known to be.
            if labels is not None:
                pairs = np.stack([labels[: self.diagonal.size], np.abs(self.diagonal)])
                labels = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
            elif isotropic:
                labels = np.unique(np.abs(self.diagonal), return_inverse=True)[1].ravel()
            isotropic = False
        super().check_metric(labels, isotropic)


def _per_coordinate(value: Any, name: str, owner: str) -> np.ndarray:
    """One finite number, or one per coordinate, as a float64 vector of length 1 or d."""
    array = np.atleast_1d(_check.real_array(value, f"The {name!r} parameter of {owner}").astype(np.float64))
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"The {name!r} parameter of {owner} must be a finite number, or one per coordinate. Got {value!r}.")
    return array


def _beside(array: np.ndarray, x: np.ndarray) -> np.ndarray:
    """As a column beside trajectories."""
    _check_length(array, len(x), "array", "the penalty")
    return array[:, None] if x.ndim == 2 else array


def _check_length(array: np.ndarray, size: int, name: str, owner: str) -> None:
    if array.size not in (1, size):
        raise ValueError(f"The {name!r} of {owner} has {array.size} entries, but there are {size} penalised coordinates.")
