"""A box cut by a hyperplane: clipping, shifted by the root of a monotone piecewise linear function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from ..linalg.kernels import compiled
from ._points import quiet
from ._rows import (
    RESIDUAL_ROUNDING,
    by_row,
    check_length,
    in_double,
    normal,
    scaled_equation,
    tolerance,
)
from ._sizes import at_moderate_size
from .base import RELATIVE, Penalty, known_at_zero, point
from .box import Box

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@compiled
def clip_at(tau: Any, z: Any, step: Any, a: Any, lower: Any, upper: Any, x: Any) -> Any:
    """x = clip(z - step * a * tau, lower, upper);  a @ x, its slope in -tau, np.abs(a) @ np.abs(x), and whether x = z"""
    dot, slope, size, moved = 0.0, 0.0, 0.0, 0
    for i in range(a.size):
        point = z[i] - step[i] * a[i] * tau
        x[i] = lower[i] if point < lower[i] else (upper[i] if point > upper[i] else point)
        dot += a[i] * x[i]
        size += abs(a[i] * x[i])
        slope += a[i] * a[i] * step[i] if (point > lower[i]) & (point < upper[i]) else 0.0
        moved += x[i] != z[i]
    return dot, slope, size, moved == 0


@compiled
def multiplier(
    z: Any, step: Any, a: Any, lower: Any, upper: Any, beta: Any, below: Any, above: Any
) -> Any:
    """The root tau of a @ clip(z - step * a * tau, lower, upper) - beta, which falls, and lies between below and above.

    Newton's method inside the bracket. Terms that are clipped, or linear, in the whole bracket are summed once. When a step
    does not halve the number of the others, the next one goes to the median of their bends in the bracket. So it ends
    after at most 2 log2(2 d) steps: then all terms are summed, and the equation is linear.
    """
    index, first, last, n = (
        np.empty(a.size, np.int64),
        np.empty(a.size),
        np.empty(a.size),
        0,
    )  # terms, and their bends
    fixed, c_sum, q_sum = (
        -beta,
        0.0,
        0.0,
    )  # the sum of the terms known so far is fixed + c_sum - q_sum * tau
    for i in range(a.size):
        rate = step[i] * a[i]
        moves = a[i] * rate > 0.0
        x_below = (
            min(max(z[i] - rate * below, lower[i]), upper[i])
            if moves
            else min(max(z[i], lower[i]), upper[i])
        )
        x_above = min(max(z[i] - rate * above, lower[i]), upper[i]) if moves else x_below
        if x_below == x_above:
            fixed += a[i] * x_below
        else:
            one, other = (z[i] - lower[i]) / rate, (z[i] - upper[i]) / rate
            index[n], first[n], last[n] = i, min(one, other), max(one, other)
            n += 1
    tau, bisected = below, False
    for _ in range(128):  # more than enough for any d
        kept = 0
        for j in range(n):
            at = np.uint64(index[j])
            if last[j] <= below:
                fixed += a[at] * (lower[at] if a[at] > 0.0 else upper[at])
            elif first[j] >= above:
                fixed += a[at] * (upper[at] if a[at] > 0.0 else lower[at])
            elif first[j] <= below and last[j] >= above:
                c_sum += a[at] * z[at]
                q_sum += a[at] * a[at] * step[at]
            else:
                index[kept], first[kept], last[kept] = index[j], first[j], last[j]
                kept += 1
        if kept == 0:
            break
        halved, n = 2 * kept <= n, kept
        bisected = not (below < tau < above and (halved or bisected))
        if bisected:
            bends, count = np.empty(2 * n), 0
            for j in range(n):
                for bend in (first[j], last[j]):
                    if below < bend < above:
                        bends[count] = bend
                        count += 1
            tau = np.partition(bends[:count], count // 2)[count // 2]
        value, slope = fixed + (c_sum - q_sum * tau), q_sum
        for j in range(n):
            at = np.uint64(index[j])
            value += a[at] * min(max(z[at] - step[at] * a[at] * tau, lower[at]), upper[at])
            slope += a[at] * a[at] * step[at] if first[j] < tau < last[j] else 0.0
        if value >= 0.0:
            below = tau
        if value <= 0.0:
            above = tau
        tau = tau + value / slope if slope > 0.0 else below
    if q_sum > 0.0:
        return min(max((fixed + c_sum) / q_sum, below), above)
    return below if below > -np.inf else above


@compiled
def sample(z: Any, step: Any, a: Any, lower: Any, upper: Any) -> Any:
    """Some of the bends, sorted"""
    stride = a.size // 64 + 1
    bends, count = np.empty(2 * (a.size // stride + 1)), 0
    for i in range(0, a.size, stride):
        for bound in (lower[i], upper[i]):
            bend = (z[i] - bound) / (step[i] * a[i]) if step[i] * a[i] != 0.0 else np.inf
            if abs(bend) < np.inf:
                bends[count] = bend
                count += 1
    return np.sort(bends[:count])


@compiled
def correct(x: Any, step: Any, a: Any, lower: Any, upper: Any, beta: Any) -> None:
    """Remove from a @ x - beta what rounding has left there, by moving the coordinates between their bounds"""
    for _ in range(64):
        dot, size, inner, outer = 0.0, 0.0, 0.0, 0.0
        for i in range(x.size):
            dot += a[i] * x[i]
            size += abs(a[i] * x[i])
            inner += a[i] * a[i] * step[i] if (x[i] > lower[i]) & (x[i] < upper[i]) else 0.0
        rest = beta - dot
        if not abs(rest) > RESIDUAL_ROUNDING * (size + abs(beta)):
            return
        if inner == 0.0:  # all are at a bound: those that can leave it in the right direction
            for i in range(x.size):
                if (x[i] < upper[i]) if a[i] * rest > 0.0 else (x[i] > lower[i]):
                    outer += a[i] * a[i] * step[i]
            if outer == 0.0:
                return
        for i in range(x.size):
            if inner == 0.0 or lower[i] < x[i] < upper[i]:
                x[i] = min(
                    max(x[i] + step[i] * a[i] * (rest / (inner + outer)), lower[i]), upper[i]
                )


@compiled
def project(
    z: Any, step: Any, lower: Any, upper: Any, beta: Any, a: Any, rounding: Any, x: Any
) -> None:
    """Each row: x = clip(z - step * a * tau, lower, upper) with a @ x = beta; x = z where that is feasible already"""
    for k in range(z.shape[0]):
        tau, below, above, done = 0.0, -np.inf, np.inf, False
        most, least = np.inf, -np.inf  # the values at below and above
        bends = sample(z[k], step[k], a, lower, upper)
        for trial in range(16):  # cheap passes, most often enough
            dot, slope, size, same = clip_at(tau, z[k], step[k], a, lower, upper, x[k])
            value = dot - beta
            if not abs(value) < np.inf:  # np.isfinite, whose x - x would be reordered away here
                x[k] = np.nan
                done = True
            elif trial == 0 and same and abs(value) <= rounding * (size + abs(beta)):
                x[k] = z[k]
                done = True
            elif abs(value) <= RESIDUAL_ROUNDING * (size + abs(beta)):
                done = True
            if done:
                break
            if value > 0.0:
                below, most = tau, value
            else:
                above, least = tau, value
            tau = tau + value / slope if slope > 0.0 else below
            if not below < tau < above:
                left, right = (
                    np.searchsorted(bends, below, "right"),
                    np.searchsorted(bends, above, "left"),
                )
                if left >= right:
                    break
                share = (
                    most / (most - least)
                    if trial % 2 and most < np.inf and least > -np.inf
                    else 0.5
                )
                tau = bends[min(left + int(share * (right - left)), right - 1)]
        if not done:
            tau = multiplier(z[k], step[k], a, lower, upper, beta, below, above)
            clip_at(tau, z[k], step[k], a, lower, upper, x[k])
            correct(x[k], step[k], a, lower, upper, beta)


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
        ends = self._a[use] * self._lower[use], self._a[use] * self._upper[use]
        least, most = np.minimum(*ends), np.maximum(*ends)
        slack = RELATIVE * abs(self._beta)
        for sum_, size, sign in (
            (least.sum(), np.abs(least).sum(), 1),
            (most.sum(), np.abs(most).sum(), -1),
        ):
            if np.isfinite(sum_) and sign * (sum_ - self._beta) > slack + RELATIVE * size:
                what = "at least" if sign > 0 else "at most"
                raise ValueError(
                    f"BoxHyperplane is empty: in the box, a'x is {what} {sum_ * largest:g}, so that it cannot be {self.beta:g}."
                )

    def _bounds(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """The bounds as x can meet them in its dtype."""
        if dtype == np.float64:
            return self._lower, self._upper
        with np.errstate(over="ignore"):
            return self._lower.astype(dtype).astype(np.float64), self._upper.astype(dtype).astype(
                np.float64
            )

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        excess = np.abs(self._a @ x - self._beta)
        part = tolerance(x.dtype)
        slack = (part * np.abs(self._a)) @ np.abs(x) + part * (abs(self._beta) or 1.0)
        return np.where((excess <= slack) & (excess < np.inf), self._box.value(x), np.inf)[()]

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        lengths, others = (
            (*self._bounds(z.dtype), self._beta),
            (self._a, 8 * float(np.finfo(z.dtype).eps)),
        )
        in_double(at_moderate_size(project, lengths=lengths, others=others), z, step, out)

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
            while len(bends) > 2:  # the slope right of the middle says on which side the minimum is
                half = len(bends) // 2
                bends = (
                    bends[half:]
                    if self._dual_slope(y, (bends[half] + bends[half - 1]) / 2) < 0
                    else bends[:half]
                )
            return min(self._dual(y, t) for t in bends)

        return by_row(support, y)

    def _dual(self, y: Any, t: Any) -> Any:
        v = y - t * self._a
        bound = np.where(v > 0.0, self._upper, self._lower)
        finite = np.isfinite(bound)  # where it is not, v is zero but for rounding
        return float(self._beta * t + bound[finite] @ v[finite])

    def _dual_slope(self, y: Any, t: Any) -> Any:
        bound = np.where(y - t * self._a > 0.0, self._upper, self._lower)
        finite = np.isfinite(bound)
        return self._beta - bound[finite] @ self._a[finite]

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
        check_length(size, self.a.size, "BoxHyperplane")
