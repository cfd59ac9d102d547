"""A box cut by a hyperplane: clipping, shifted by the root of a monotone piecewise linear function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .arrays import RELATIVE, by_row, by_rows, check_length, point, quiet, tolerance
from .base import Penalty, known_at_zero
from .box import Box
from .hyperplane import REFINEMENT_STEPS, RESIDUAL, normal, scaled_equation
from .roots import NEWTON_STEPS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def project(
    z: np.ndarray,
    step: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    a: np.ndarray,
    beta: float,
    rounding: float,
) -> Any:
    """Return clip(z - step a tau, lower, upper) with a'x = beta, or z where that is feasible already.

    a'x falls with tau, and is linear between its bends, where a coordinate meets a bound. Newton's
    method is kept within a bracket: when a step leaves it, or the last one has not halved the
    residual, the next one goes to the median of the bends in the bracket.
    """
    rate = step * a
    tau, low, high, before, bends = 0.0, -np.inf, np.inf, np.inf, None
    most = least = np.nan  # the values at low and high
    for k in range(NEWTON_STEPS):
        x = np.clip(z - rate * tau, lower, upper)
        terms = a * x
        value, size = terms.sum() - beta, np.abs(terms).sum() + abs(beta)
        if k == 0 and abs(value) <= rounding * size and (x == z).all():
            return z
        if abs(value) <= RESIDUAL * size:
            return x
        if value > 0.0:
            low, most = tau, value
        else:
            high, least = tau, value
        slope = (a * rate)[(x > lower) & (x < upper)].sum()
        tau += value / slope if slope > 0.0 else np.inf
        if not (low < tau < high and 2.0 * abs(value) <= before):
            if bends is None:
                moves = rate != 0.0
                bends = np.concatenate([(z - end)[moves] / rate[moves] for end in (lower, upper)])
            bends = bends[(bends > low) & (bends < high)]
            if bends.size:
                tau = np.partition(bends, bends.size // 2)[bends.size // 2]
            elif np.isfinite(high - low):  # linear in between
                tau = low + (high - low) * (most / (most - least))
            else:  # linear beyond: any point has the slope
                tau = low + 1.0 + abs(low) if high == np.inf else high - 1.0 - abs(high)
            if not low < tau < high:
                break
        before = abs(value)
    return corrected(x, rate, lower, upper, a, beta)


def corrected(
    x: np.ndarray,
    rate: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    a: np.ndarray,
    beta: float,
) -> np.ndarray:
    """Return x without the rounding error of a'x = beta: coordinates move between their bounds."""
    for _ in range(REFINEMENT_STEPS):
        terms = a * x
        rest = beta - terms.sum()
        if abs(rest) <= RESIDUAL * (np.abs(terms).sum() + abs(beta)):
            break
        change = np.where((x > lower) & (x < upper), rate, 0.0)
        if not change.any():  # those that can leave their bound in the right direction
            change = np.where(np.where(a * rest > 0.0, x < upper, x > lower), rate, 0.0)
        if not change.any():
            break
        x = np.clip(x + change * (rest / (a @ change)), lower, upper)
    return x


class BoxHyperplane(Penalty):
    r"""The indicator of the part of a box that lies in a hyperplane.

    .. math:: \varphi(x) = 0 \text{ if } l \le x \le u \text{ and } \langle a, x\rangle = \beta, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = \min(\max(z_i - s_i a_i \tau, l_i), u_i)

    where tau is such that the prox lies in the hyperplane. With a = 1 and beta = 0 and the box of `KernelSVMDual`, this is
    the constraint of a support vector machine with a bias.

    Parameters
    ----------
    lower, upper : float or array
        Bounds, one for all coordinates or one per coordinate; infinite ones are allowed.
    a : array
        The normal vector of the hyperplane, not zero.
    beta : float
        The right-hand side.

    Examples
    --------
    >>> from adagrad_diff.penalties import BoxHyperplane
    >>> BoxHyperplane(0.0, 1.0, [1.0, 1.0, 1.0], 1.0).prox([3.0, 0.5, 0.1], step=[1.0, 1.0, 1.0]).tolist()
    [1.0, 0.0, 0.0]

    References
    ----------
    R. Cominetti, W. F. Mascarenhas and P. J. S. Silva, "A Newton's method for the continuous quadratic knapsack problem",
    Mathematical Programming Computation 6, 2014.
    """

    properties = frozenset({"set"})

    @quiet
    def __init__(self, lower: ArrayLike, upper: ArrayLike, a: ArrayLike, beta: float):
        self._box = Box(lower, upper)
        self.lower, self.upper = self._box.lower, self._box.upper
        self.a, self.beta = normal(a, "BoxHyperplane"), _check.number(beta, "beta", "BoxHyperplane")
        self._box.check_size(self.a.size)
        largest = np.abs(self.a).max()
        self._a, self._beta = scaled_equation(self.a, self.beta, "BoxHyperplane")
        self._lower, self._upper = (
            np.broadcast_to(v, self.a.shape).copy() for v in (self.lower, self.upper)
        )
        use = self._a != 0.0  # zero times an infinite bound is not a number
        ends = np.sort([self._a[use] * bound[use] for bound in (self._lower, self._upper)], axis=0)
        for end, sign, what in zip(ends, (1.0, -1.0), ("at least", "at most"), strict=True):
            slack = RELATIVE * (abs(self._beta) + np.abs(end).sum())
            if np.isfinite(slack) and sign * (end.sum() - self._beta) > slack:
                raise ValueError(
                    f"BoxHyperplane is empty: in the box, a'x is {what} {end.sum() * largest:g}, "
                    f"so that it cannot be {self.beta:g}."
                )

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        excess = np.abs(self._a @ x - self._beta)
        part = tolerance(x.dtype)
        slack = (part * np.abs(self._a)) @ np.abs(x) + part * (abs(self._beta) or 1.0)
        return np.where((excess <= slack) & (excess < np.inf), self._box.value(x), np.inf)[()]

    @quiet
    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        # The bounds as x can meet them in its dtype.
        lower, upper = (v.astype(z.dtype).astype(float) for v in (self._lower, self._upper))
        rounding = 8 * float(np.finfo(z.dtype).eps)

        def solve(z: np.ndarray, step: np.ndarray) -> np.ndarray:
            return np.stack(
                [
                    project(*pair, lower, upper, self._a, self._beta, rounding)
                    for pair in zip(z, step, strict=True)
                ]
            )

        by_rows(solve, z, step, out)

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        r"""min over t of beta t + sum_i max(l_i v_i, u_i v_i) with v = y - t a: convex, with bends at the y_i / a_i."""
        y = point(self, y, "y")
        slack = tolerance(y.dtype)
        moving, free_up, free_down = self._a != 0.0, np.isinf(self._upper), np.isinf(self._lower)
        a = self._a

        def support(y: Any) -> Any:
            zero = slack * np.abs(y).max()
            still = ~moving
            if np.any(still & ((free_up & (y > zero)) | (free_down & (y < -zero)))):
                return np.inf
            bends = np.divide(y, a, out=np.zeros_like(y), where=moving)
            # An infinite bound allows only one sign of y_i - t a_i, that is, only t on one side of the bend.
            after = moving & ((free_up & (a > 0)) | (free_down & (a < 0)))
            before = moving & ((free_up & (a < 0)) | (free_down & (a > 0)))
            first, last = bends[after].max(initial=-np.inf), bends[before].min(initial=np.inf)
            if first > last + slack * (abs(first) + abs(last)):
                return np.inf
            if first >= last:
                return self._dual(y, first)
            bends = np.unique(np.clip(bends[moving], first, last))
            while len(bends) > 2:  # a convex function
                half = len(bends) // 2
                falls = self._dual(y, bends[half]) < self._dual(y, bends[half - 1])
                bends = bends[half:] if falls else bends[:half]
            return min(self._dual(y, t) for t in bends)

        return by_row(support, y)

    def _dual(self, y: Any, t: Any) -> Any:
        v = y - t * self._a
        bound = np.where(v > 0.0, self._upper, self._lower)
        finite = np.isfinite(bound)  # where it is not, v is zero but for rounding
        return float(self._beta * t + bound[finite] @ v[finite])

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        reach = np.maximum(np.abs(self._lower), np.abs(self._upper))
        if not np.isfinite(reach).all():
            return known_at_zero(y, e)
        a = np.abs(self._a)
        slope = np.abs(np.divide(y, a, out=np.zeros_like(y), where=a != 0)).max()
        size = reach @ (np.abs(y) + slope * a) + slope * abs(self._beta)
        return self.conjugate(y) + reach @ e, size

    def box_hyperplane(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        return self._lower, self._upper, self.a, self.beta

    def check_size(self, size: int) -> None:
        check_length(size, self.a.size, "BoxHyperplane", "coefficients")
