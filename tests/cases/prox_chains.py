"""Penalties on neighbours in a chain: total variation, the fused lasso, monotone vectors."""

from fractions import Fraction

import numpy as np

from adagrad_diff.penalties import FusedLasso, Monotone, TotalVariation1D
from prox_harness import Case


def strengths(penalty):
    """(l1, tv) of a TotalVariation1D or FusedLasso."""
    return (penalty.l1, penalty.tv) if isinstance(penalty, FusedLasso) else (0.0, penalty.lam)


def crossing(pieces, level):
    """Where the increasing function given by (from, slope, constant) on its pieces passes a level, or jumps over it."""
    for (left, slope, constant), after in zip(pieces, [*pieces[1:], None], strict=True):
        if left is not None and slope * left + constant >= level:
            return left
        x = (level - constant) / slope
        if after is None or x <= after[0]:
            return x
    raise AssertionError("the last piece has no end")


def exact_chain(z, step, l1, tv):
    """Dynamic programming in rational numbers, without any rounding.

    The derivative of min over x_1 .. x_{i-1} as a function of x_i is clip(that of i - 1, -tv, tv) + (x_i - z_i) / step_i
    + l1 sign(x_i); x_i is x_{i+1}, clipped to where this derivative is in [-tv, tv].
    """
    l1, tv, zero = Fraction(l1), Fraction(tv), Fraction(0)
    pieces, ranges = [(None, zero, zero)], []
    for z_i, s_i in zip(map(Fraction, z), map(Fraction, step), strict=True):
        d = 1 / s_i
        before = [p for p in pieces if p[0] is None or p[0] < 0]
        split = [*before, (zero, *before[-1][1:]), *(p for p in pieces[len(before) :] if p[0] > 0)]
        if len(before) < len(pieces) and pieces[len(before)][0] == 0:
            split[len(before)] = pieces[len(before)]
        pieces = [
            (x, a + d, b - d * z_i + (l1 if x is not None and x >= 0 else -l1)) for x, a, b in split
        ]
        low, high = crossing(pieces, -tv), crossing(pieces, tv)
        ranges.append((low, high))
        end = crossing(pieces, zero)
        start = [p for p in pieces if p[0] is None or p[0] <= low][-1]
        inside = (
            [(low, *start[1:]), *(p for p in pieces if p[0] is not None and low < p[0] < high)]
            if low < high
            else []
        )
        pieces = [(None, zero, -tv), *inside, (high, zero, tv)]
    x = [end]
    for low, high in ranges[-2::-1]:
        x.append(min(max(x[-1], low), high))
    return np.array(x[::-1], dtype=np.float64)


def naive_monotone(penalty, z, step):
    """max over a <= i of min over b >= i of the weighted mean of z_a .. z_b."""
    z, d = np.asarray(z, np.longdouble), 1 / np.asarray(step, np.longdouble)
    z = z if penalty.increasing else z[::-1]
    d = d if penalty.increasing else d[::-1]
    x = np.full(len(z), -np.inf, np.longdouble)
    for a in range(len(z)):
        means = np.cumsum(d[a:] * z[a:]) / np.cumsum(d[a:])
        x[a:] = np.maximum(x[a:], np.minimum.accumulate(means[::-1])[::-1])
    return (x if penalty.increasing else x[::-1]).astype(np.float64)


def cvx_total_variation(x, tv):
    import cvxpy as cp

    return tv * cp.norm1(cp.diff(x)) if x.size > 1 else 0.0


def cvx_chain(penalty, x):
    import cvxpy as cp

    l1, tv = strengths(penalty)
    return l1 * cp.norm1(x) + cvx_total_variation(x, tv), []


def cvx_monotone(penalty, x):
    sign = 1 if penalty.increasing else -1
    return 0.0, [sign * (x[1:] - x[:-1]) >= 0] if x.size > 1 else []


def naive_chain(penalty, z, step):
    return exact_chain(z, step, *strengths(penalty))


def chain(name, make):
    return Case(name, make, naive_chain, cvx_chain, tolerance=1e-10)


def monotone(name, increasing):
    return Case(
        name, lambda d, rng: Monotone(increasing), naive_monotone, cvx_monotone, tolerance=1e-10
    )


CASES = [
    chain("TotalVariation1D", lambda d, rng: TotalVariation1D(0.7)),
    chain("TotalVariation1D, strong", lambda d, rng: TotalVariation1D(300.0)),
    chain("TotalVariation1D, zero", lambda d, rng: TotalVariation1D(0)),
    chain("FusedLasso", lambda d, rng: FusedLasso(0.3, 0.7)),
    chain("FusedLasso, mostly sparse", lambda d, rng: FusedLasso(1.0, 0.01)),
    chain("FusedLasso, without fusion", lambda d, rng: FusedLasso(0.5, 0)),
    chain("FusedLasso, without sparsity", lambda d, rng: FusedLasso(0, 0.5)),
    monotone("Monotone", True),
    monotone("Monotone, decreasing", False),
]
