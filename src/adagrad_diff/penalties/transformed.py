"""Penalties of a changed argument, and multiples of penalties."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .. import _check
from .arrays import (
    EPS,
    check_length,
    column,
    indicator,
    per_coordinate,
    point,
    quiet,
    ratio,
    tolerance,
)
from .base import Penalty, QuadraticTerms, conjugate_inside, inner_prox
from .foreign import as_penalty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class _Wrapped(Penalty):
    """What changes nothing about the size and the metrics of the penalty inside."""

    penalty: Penalty

    @property
    def accepts(self) -> str:  # type: ignore[override]
        return self.penalty.accepts

    @property
    def properties(self) -> frozenset[str]:  # type: ignore[override]
        return self.penalty.properties

    @property
    def accuracy(self) -> float:  # type: ignore[override]
        return self.penalty.accuracy

    def check_size(self, size: int) -> None:
        self.penalty.check_size(size)

    def check_metric(self, labels: np.ndarray | None, isotropic: bool) -> None:
        self.penalty.check_metric(labels, isotropic)

    def _value(self, argument: np.ndarray, x: np.ndarray, size: np.ndarray) -> Any:
        """The value of the penalty inside. What is outside a set by no more than the rounding of a term, is inside."""
        value = self.penalty.value(argument)
        if "set" in self.properties and np.any(value):
            return indicator(
                (np.abs(self.prox(x, 1.0) - x) <= tolerance(x.dtype) * size).all(axis=0)
            )
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
    [1.0, 0.0]
    """

    def __init__(self, penalty: Any, factor: float):
        self.penalty = as_penalty(penalty)
        self.factor = _check.nonnegative(factor, "factor", "Scaled")
        self._factor = 1.0 if "set" in self.penalty.properties else self.factor
        if not (self._factor or {"norm", "seminorm"} & self.penalty.properties):
            raise ValueError(
                f"The 'factor' parameter of Scaled is 0, but 0 times {self.penalty.name} is known only for norms and sets. "
                "Use Zero() for no penalty."
            )

    @property
    def properties(self) -> frozenset[str]:  # type: ignore[override]
        """Those of the penalty; zero times a norm is a seminorm."""
        inner = self.penalty.properties
        return inner if self._factor else (inner - {"norm"}) | {"seminorm"}

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return self._factor * self.penalty.value(x) if self._factor else np.zeros(x.shape[1:])[()]

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        factor = np.float64(self._factor)
        out[...] = inner_prox(self.penalty, z, step * factor) if factor else z

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """factor * phi*(y / factor)."""
        y = point(self, y, "y")
        if not self._factor:
            return indicator((y == 0).all(axis=0))
        return self._factor * self.penalty.conjugate(y / self._factor)

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        value, size = conjugate_inside(self.penalty, y / self._factor, e / self._factor)
        return self._factor * value, self._factor * size

    def quadratic_terms(self, size: int) -> QuadraticTerms | None:
        terms = self.penalty.quadratic_terms(size)
        if terms is None:
            return None
        l1, l2 = self._factor * terms.l1, self._factor * terms.l2
        strength = None if terms.strength is None else self._factor * terms.strength
        rounding = terms.rounding + EPS
        return replace(terms, l1=l1, l2=l2, strength=strength, rounding=rounding)

    def norm_part(self) -> Penalty | None:
        norm = self.penalty.norm_part()
        return None if norm is None else Scaled(norm, self.factor)

    def null_space(self, size: int) -> np.ndarray:
        return self.penalty.null_space(size) if self.factor else super().null_space(size)

    def polar(self, y: ArrayLike) -> Any:
        return ratio(self.penalty.polar(y), self.factor)

    def polar_inequalities(self, rows: Any, g: np.ndarray) -> tuple[Any, np.ndarray, int] | None:
        found = self.penalty.polar_inequalities(rows, g)
        if found is None:
            return None
        A, b, extra = found
        unit = np.append(np.ones(A.shape[1] - 1), self.factor)  # the last column belongs to t
        return A @ sparse.diags_array(unit), b, extra


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

    def __init__(self, penalty: Any, shift: ArrayLike):
        self.penalty = as_penalty(penalty)
        self.shift = per_coordinate(shift, "shift", "Translated")

    @property
    def properties(self) -> frozenset[str]:  # type: ignore[override]
        """A set stays a set; a norm or a cone does not."""
        return self.penalty.properties & {"separable", "set"}

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        shift = column(self.shift, x)
        return self._value(
            (x - shift).astype(x.dtype, copy=False), x, np.maximum(np.abs(x), np.abs(shift))
        )

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        shift = column(self.shift, z)
        moved = z - shift
        x = inner_prox(self.penalty, moved, step)
        out[...] = np.where(x == moved, z, x + shift)  # what stays, stays without rounding

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """phi*(y) + <shift, y>."""
        y = point(self, y, "y")
        moved = np.sum(column(self.shift, y) * y, axis=0, dtype=np.float64)
        conjugate = self.penalty.conjugate(y)
        return np.where(conjugate == np.inf, np.inf, conjugate + moved)[()]

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        value, size = conjugate_inside(self.penalty, y, e)
        shift = np.abs(self.shift)
        return (
            value + np.sum(self.shift * y) + np.sum(shift * e),
            size + np.sum(shift * (np.abs(y) + e)),
        )

    def check_size(self, size: int) -> None:
        check_length(size, self.shift.size, "The 'shift' of Translated", "entries", or_one=True)
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

    def __init__(self, penalty: Any, diagonal: ArrayLike):
        self.penalty = as_penalty(penalty)
        self.diagonal = per_coordinate(diagonal, "diagonal", "Precomposed")
        with np.errstate(over="ignore", under="ignore"):
            square = self.diagonal**2
        if not ((square > 0) & (square < np.inf)).all():
            raise ValueError(
                "The 'diagonal' parameter of Precomposed has an entry whose square, which the prox needs, is zero or "
                "infinite. Leave coordinates without a penalty out by Unpenalised."
            )
        same = (np.abs(self.diagonal) == np.abs(self.diagonal[0])).all()
        if self.penalty.accepts != "diagonal" and not same:
            raise ValueError(
                f"{self.penalty.name} needs one step for several coordinates, which Precomposed with a 'diagonal' of "
                "different sizes cannot give it. Use NumericalProx(penalty) inside."
            )

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return self._value((column(self.diagonal, x) * x).astype(x.dtype, copy=False), x, np.abs(x))

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        a = column(self.diagonal, z)
        square = self.diagonal[0] ** 2 if self.penalty.accepts == "scalar" else a**2
        scaled = (a * z).astype(z.dtype, copy=False)
        x = inner_prox(self.penalty, scaled, step * square)
        out[...] = np.where(x == scaled, z, x / a)  # what stays, stays without rounding

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """phi*(y / a)."""
        y = point(self, y, "y")
        return self.penalty.conjugate((y / column(self.diagonal, y)).astype(y.dtype, copy=False))

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        return conjugate_inside(self.penalty, y / self.diagonal, e / np.abs(self.diagonal))

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return self.penalty.polar((y / column(self.diagonal, y)).astype(y.dtype, copy=False))

    def check_size(self, size: int) -> None:
        check_length(
            size, self.diagonal.size, "The 'diagonal' of Precomposed", "entries", or_one=True
        )
        super().check_size(size)
