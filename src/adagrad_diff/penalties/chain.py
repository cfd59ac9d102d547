"""Total variation along a chain, alone and with an L1 norm: taut strings, with each coordinate's own step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .. import _check
from ..linalg.compiling import plain
from .arrays import absolute_sum, as_rows, by_rows, from_rows, point, quiet, tolerance
from .base import Norm, StrengthNorm

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TIE = 1e-12  # levels that differ by less than this part of themselves are equal: rounding must not order them


class TotalVariation1D(StrengthNorm):
    r"""Total variation of a chain: the solutions are piecewise constant.

    .. math:: \varphi(x) = \lambda \sum_i |x_{i+1} - x_i|, \qquad
              \text{prox}(z, s) = \arg\min_x\; \varphi(x) + \sum_i \frac{(x_i - z_i)^2}{2 s_i}

    The prox is computed exactly, in any diagonal metric, in O(d).

    Parameters
    ----------
    lam : float
        Strength >= 0.

    Examples
    --------
    >>> from adagrad_diff.penalties import TotalVariation1D
    >>> TotalVariation1D(1.0).prox([0.0, 1.0, 9.0, 7.0], step=1.0).tolist()
    [1.0, 1.0, 7.5, 7.5]

    References
    ----------
    P. L. Davies and A. Kovac, "Local extremes, runs, strings and multiresolution", Annals of Statistics 29, 2001.

    L. Condat, "A direct algorithm for 1-D total variation denoising", IEEE Signal Processing Letters 20, 2013.
    """

    properties = frozenset({"seminorm"})

    @quiet
    def value(self, x: ArrayLike) -> Any:
        return self.lam * absolute_sum(np.diff(point(self, x).astype(np.float64), axis=0))

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        by_rows(lambda z, step: string(z, step, self.lam), z, step, out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        """The largest of the partial sums of y over lam; infinite unless y sums to zero, as phi is zero on constants."""
        y = point(self, y, "y")
        sums = np.abs(np.cumsum(y, axis=0, dtype=np.float64))
        size = np.sum(np.abs(y), axis=0, dtype=np.float64)
        largest = np.max(sums[:-1], axis=0, initial=0.0)
        known = (sums[-1] <= tolerance(y.dtype) * size) & ((size == 0) | (self.lam > 0))
        return np.where(known, largest / (self.lam or 1.0), np.inf)[()]

    def null_space(self, size: int) -> np.ndarray:
        return np.ones((size, 1))

    def polar_inequalities(self, rows: Any, g: np.ndarray) -> tuple[Any, np.ndarray, int]:
        partial, sums = np.cumsum(rows.toarray(), axis=0), np.cumsum(g)  # at most t lam in size
        sides = [np.hstack([s * partial, np.full((g.size, 1), -self.lam)]) for s in (1.0, -1.0)]
        return sparse.csr_array(np.vstack(sides)), np.concatenate([-sums, sums]), 0


class FusedLasso(Norm):
    r"""L1 norm plus total variation of a chain: the solutions are sparse and piecewise constant.

    .. math:: \varphi(x) = l_1 \sum_i |x_i| + t \sum_i |x_{i+1} - x_i|, \qquad
              \text{prox}(z, s) = \max(T(z - s\, l_1), 0) + \min(T(z + s\, l_1), 0)

    where T is the prox of the total variation alone, with the same steps. (The set where x exceeds a level depends only on
    the slope of the rest of the objective at that level, and the slope of l1 |x| is l1 at all levels above zero, -l1 at all
    below.) With one step for all coordinates this is T, then soft-thresholding; with several, that would be wrong.

    Parameters
    ----------
    l1, tv : float
        Strengths >= 0 of the L1 norm and of the total variation.

    Examples
    --------
    >>> from adagrad_diff.penalties import FusedLasso
    >>> FusedLasso(1.0, 1.0).prox([0.0, 1.0, 9.0, 7.0], step=1.0).tolist()
    [0.0, 0.0, 6.5, 6.5]
    """

    def __init__(self, l1: float, tv: float):
        self.l1, self.tv = (
            _check.nonnegative(v, name, "FusedLasso") for v, name in ((l1, "l1"), (tv, "tv"))
        )

    @property
    def properties(self) -> frozenset[str]:  # type: ignore[override]
        """A norm, unless it is the total variation alone."""
        return frozenset({"norm" if self.l1 > 0 else "seminorm"})

    def null_space(self, size: int) -> np.ndarray:
        return np.zeros((size, 0)) if self.l1 > 0 else np.ones((size, 1))

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x).astype(np.float64)
        return (self.l1 * absolute_sum(x) if self.l1 else 0.0) + self.tv * absolute_sum(
            np.diff(x, axis=0)
        )

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        def strings(z: np.ndarray, step: np.ndarray) -> Any:
            if self.l1 == 0.0:
                return string(z, step, self.tv)
            above = string(z - step * self.l1, step, self.tv)
            below = string(z + step * self.l1, step, self.tv)
            return np.maximum(above, 0.0) + np.minimum(below, 0.0)

        by_rows(strings, z, step, out)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        """The largest |sum of y over an interval| / phi(ones on it), as phi adds up over the level sets of x."""
        if self.l1 == 0:
            return TotalVariation1D(self.tv).polar(y)
        y = point(self, y, "y")
        rows = as_rows(y)
        polar = np.where(np.isfinite(rows).all(axis=1), self._largest_ratio(rows), np.inf)
        return from_rows(polar, y)

    def _largest_ratio(self, y: np.ndarray) -> np.ndarray:
        """Return the largest |sum of y| / (l1 length + tv ends inside the chain) over the intervals, for each row.

        Dinkelbach's method: find the interval where |sum| - ratio * denominator is largest for the
        best ratio so far. While that is positive, the interval has a better ratio.
        """
        rows, n = y.shape
        each, places = np.arange(rows), np.arange(n + 1)
        sums = np.concatenate([np.zeros((rows, 1)), np.cumsum(y, axis=1)], axis=1)
        inside = self.tv * ((places > 0) & (places < n))  # cost of an end
        ratios = np.zeros(rows)
        while True:
            best = ratios
            for signed in (sums, -sums):
                cost = np.outer(ratios, self.l1 * places)
                first = signed - cost + np.outer(ratios, inside)  # at the start of an interval
                lowest = np.minimum.accumulate(first, axis=1)
                end = np.argmax(signed - cost - np.outer(ratios, inside) - lowest, axis=1)
                start = np.argmax(first == lowest[each, end][:, None], axis=1)
                length = self.l1 * (end - start) + inside[start] + inside[end]
                found = signed[each, end] - signed[each, start]
                best = np.maximum(best, np.where(length > 0, found / length, 0.0))
            if not (best > ratios).any():
                return ratios
            ratios = best


def string(z: np.ndarray, step: np.ndarray, lam: float) -> np.ndarray:
    """Return the prox of lam times the total variation, row by row."""
    x = z.copy()
    if lam > 0.0:
        taut_string(z, 1.0 / step, lam, x)
    return x


@plain
def taut_string(z: Any, weight: Any, lam: Any, x: Any) -> None:
    r"""x = argmin sum_i weight_i / 2 (x_i - z_i)^2 + lam |x_i - x_{i-1}|, for each row.

    With u_i = sum_{j <= i} weight_j (z_j - x_j), x is optimal iff |u_i| <= lam, u_i = -lam where x rises, u_i = lam
    where it falls, and u = 0 at the end. On a segment between two bends x is therefore (sum weight z + c) / sum weight,
    where c, u before the segment minus u at its end, is 0, lam or 2 lam up to sign.

    From the last bend that is certain, two chains of segments lead to the newest sample: side 0 rises (u = -lam at its
    bends) and side 1 falls, and is kept negated, so that it rises too. A new sample is pooled with the segments before it
    until the chain rises again. When one side is a single segment, and beyond the first bend of the other side it would
    run on the wrong side of the segment that ends there, that bend is certain, and both chains go on from it. Every
    sample enters and leaves each chain once: O(n).

    Weights of 1e8 and 1e-9 may be neighbours. Therefore no sum over a segment is a difference of longer sums, levels are
    compared only if they share no samples, and segments whose levels differ by no more than rounding are pooled.
    """
    rows, n = z.shape
    stop, w, s, level = (
        np.empty((2, n), np.int64),
        np.empty((2, n)),
        np.empty((2, n)),
        np.empty((2, n)),
    )
    first, last, c = (
        np.empty(2, np.int64),
        np.empty(2, np.int64),
        np.empty(2),
    )  # c: of the first segment; it is 0 later on
    # The sums from a bend to the newest sample are late[bend - base], up to the sample `mid`, plus those of newer samples.
    late_w, late_s = np.empty(n), np.empty(n)
    for k in range(rows):
        first[:], last[:], c[:] = 0, -1, 0.0
        start, base, mid, newer_w, newer_s = 0, 0, -1, 0.0, 0.0
        for i in range(n):
            d, dz = weight[k, i], weight[k, i] * z[k, i]
            begin, end = (
                lam if i == 0 else 0.0,
                lam if i == n - 1 else 0.0,
            )  # u is 0, not -lam, at both ends of the chain
            newer_w += d
            newer_s += dz
            for side in range(2):
                wi, si, ci = d, (dz if side == 0 else -dz), begin - end
                p = last[side]
                while (
                    p >= first[side]
                    and (level[side, p] + TIE * abs(level[side, p])) * wi >= si + ci
                ):
                    wi += w[side, p]
                    si += s[side, p]
                    ci += c[side] if p == first[side] else 0.0
                    p -= 1
                p += 1
                if p == first[side]:
                    first[side], p, c[side] = (
                        0,
                        0,
                        ci,
                    )  # at the front of the arrays: they are large, the cache is not
                last[side] = p
                stop[side, p], w[side, p], s[side, p], level[side, p] = (
                    i + 1,
                    wi,
                    si,
                    (si + ci) / wi,
                )
            while (first[0] == last[0]) != (first[1] == last[1]):
                side = 0 if first[0] == last[0] else 1
                other, sign = 1 - side, 1.0 - 2.0 * side
                q = first[other]
                bend = stop[other, q]
                if bend > mid:
                    base, mid, newer_w, newer_s = bend, i, 0.0, 0.0
                    sum_w, sum_s = 0.0, 0.0
                    for j in range(i, bend - 1, -1):
                        sum_w += weight[k, j]
                        sum_s += weight[k, j] * z[k, j]
                        late_w[j - base], late_s[j - base] = sum_w, sum_s
                wi, si, ci = (
                    late_w[bend - base] + newer_w,
                    sign * (late_s[bend - base] + newer_s),
                    2.0 * lam - end,
                )
                if not si + ci < -level[other, q] * wi:
                    break
                x[k, start:bend] = -sign * level[other, q]
                start, first[other], c[other] = bend, q + 1, 0.0
                first[side], last[side], c[side] = 0, 0, ci
                stop[side, 0], w[side, 0], s[side, 0], level[side, 0] = (
                    i + 1,
                    wi,
                    si,
                    (si + ci) / wi,
                )
        side = (
            0 if first[0] < last[0] else 1
        )  # the other one is a single segment, or both are the same
        for p in range(first[side], last[side] + 1):
            x[k, start : stop[side, p]] = level[side, p] if side == 0 else -level[side, p]
            start = stop[side, p]
