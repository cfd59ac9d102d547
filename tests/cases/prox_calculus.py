"""Penalties of single coordinates, and what can be made of them: naive proximal operators and convex programs.

All are sums over coordinates of l1 |x - t| + l2 (x - t)^2 / 2 with bounds on x, except where a part is a set of its own.
"""

import numpy as np

from adagrad_diff.penalties import (
    L1,
    Box,
    ElasticNet,
    Hyperplane,
    NonNegative,
    Precomposed,
    Ridge,
    Scaled,
    Separable,
    Translated,
    Unpenalised,
    Zero,
)
from prox_harness import Case
from prox_planes import exact_hyperplane

LONG = np.longdouble


def coordinates(penalty, d):
    """l1, l2, lower, upper and t of every coordinate."""
    one = np.ones(d)
    if isinstance(penalty, Unpenalised):
        kept = np.setdiff1d(np.arange(d), np.arange(d)[penalty.free])
        parts = list(coordinates(Zero(), d))
        for part, inner in zip(parts, coordinates(penalty.penalty, len(kept)), strict=True):
            part[kept] = inner
        return tuple(parts)
    if isinstance(penalty, Separable):
        parts = list(coordinates(Zero(), d))
        for where, inner in penalty.parts:
            for part, values in zip(parts, coordinates(inner, len(one[where])), strict=True):
                part[where] = values
        return tuple(parts)
    if isinstance(penalty, Scaled):
        l1, l2, lower, upper, t = coordinates(penalty.penalty, d)
        return l1 * penalty.factor, l2 * penalty.factor, lower, upper, t
    if isinstance(penalty, Translated):
        l1, l2, lower, upper, t = coordinates(penalty.penalty, d)
        return l1, l2, lower + penalty.shift, upper + penalty.shift, t + penalty.shift
    if isinstance(penalty, Precomposed):
        l1, l2, lower, upper, t = coordinates(penalty.penalty, d)
        a = penalty.diagonal * one
        ends = lower / a, upper / a
        return l1 * abs(a), l2 * a**2, np.minimum(*ends), np.maximum(*ends), t / a
    lower, upper = getattr(penalty, "lower", -np.inf), getattr(penalty, "upper", np.inf)
    return (
        getattr(penalty, "l1", 0.0) * one,
        getattr(penalty, "l2", 0.0) * one,
        lower * one,
        upper * one,
        0.0 * one,
    )


def naive(penalty, z, step):
    """Soft-thresholding and shrinking around t, then clipping, as the bounds of one number do not change where it is best."""
    l1, l2, lower, upper, t = (v.astype(LONG) for v in coordinates(penalty, len(z)))
    z, step = z.astype(LONG), step.astype(LONG)
    soft = np.sign(z - t) * np.maximum(np.abs(z - t) - step * l1, 0) / (1 + step * l2)
    return np.clip(np.where(l1 + l2 == 0, z, t + soft), lower, upper).astype(float)


def cvx(penalty, x):
    import cvxpy as cp

    l1, l2, lower, upper, t = coordinates(penalty, x.size)
    bounds = [x[i] >= lower[i] for i in np.flatnonzero(lower > -np.inf)]
    bounds += [x[i] <= upper[i] for i in np.flatnonzero(upper < np.inf)]
    return l1 @ cp.abs(x - t) + l2 @ cp.square(x - t) / 2, bounds


# ---------------------------------------------------------------- a part that is a set of its own


def with_a_plane(d, rng):
    """A plane in every other coordinate, bounds for the first quarter of the others."""
    a = rng.standard_normal(len(range(0, d, 2)))
    return Separable(
        [(np.arange(0, d, 2)[::-1], Hyperplane(a, 0.4)), (slice(1, d // 4, 2), Box(-0.1, 0.2))]
    )


def naive_with_a_plane(penalty, z, step):
    (first, hyperplane), (second, box) = penalty.parts
    x = z.copy()
    x[first] = exact_hyperplane(hyperplane, z[first], step[first])
    x[second] = np.clip(z[second], box.lower, box.upper)
    return x


def cvx_with_a_plane(penalty, x):
    (first, hyperplane), (second, _) = penalty.parts
    inside = [x[i] >= -0.1 for i in range(x.size)[second]] + [
        x[i] <= 0.2 for i in range(x.size)[second]
    ]
    return 0, [hyperplane.a @ x[first] == hyperplane.beta, *inside]


# ---------------------------------------------------------------- the list


def signed(d, rng):
    return rng.uniform(0.2, 3.0, d) * np.where(rng.random(d) < 0.5, -1.0, 1.0)


def half_infinite(d, rng):
    """Bounds on some sides of some coordinates, and coordinates that cannot move."""
    lower, upper = (
        np.resize([-np.inf, -1.0, 0.0, 1 / 300], d),
        np.resize([0.5, np.inf, 0.0, 1 / 3], d),
    )
    return Box(lower, upper)


def mixed(d, rng):
    """Parts in slices, in scattered indices, in none, and coordinates without a penalty."""
    order = rng.permutation(np.arange(d // 2, d))
    return Separable(
        [
            (slice(0, d // 3), ElasticNet(0.4, 0.3)),
            (order[: d // 6], Box(-0.2, 0.5)),
            (
                order[d // 6 : d // 4],
                L1(rng.uniform(0, 2, d // 4 - d // 6)) if d // 4 > d // 6 else Zero(),
            ),
            ([], Ridge(1.0)),
        ]
    )


def nested(d, rng):
    inner = Unpenalised(Translated(Scaled(L1(0.3), 2.0), 0.25), free=slice(0, d // 2))
    return Precomposed(inner, signed(d, rng))


CASES = [
    Case("Zero", lambda d, rng: Zero(), naive, cvx),
    Case("L1", lambda d, rng: L1(0.7), naive, cvx),
    Case(
        "L1, weights", lambda d, rng: L1(rng.uniform(0, 2, d) * (rng.random(d) < 0.8)), naive, cvx
    ),
    Case("Ridge", lambda d, rng: Ridge(rng.uniform(0, 2, d)), naive, cvx),
    Case("ElasticNet", lambda d, rng: ElasticNet(rng.uniform(0, 2, d), 0.3), naive, cvx),
    Case("Box", lambda d, rng: Box(-rng.uniform(0, 1, d), 0.3), naive, cvx),
    Case("Box, half infinite", half_infinite, naive, cvx),
    Case("NonNegative", lambda d, rng: NonNegative(), naive, cvx),
    Case("Separable", mixed, naive, cvx),
    Case("Separable, plane", with_a_plane, naive_with_a_plane, cvx_with_a_plane),
    Case("Scaled", lambda d, rng: Scaled(ElasticNet(0.3, rng.uniform(0, 2, d)), 2.5), naive, cvx),
    Case("Scaled, set", lambda d, rng: Scaled(Box(0.1, 0.6), 3.0), naive, cvx),
    Case("Translated", lambda d, rng: Translated(L1(0.7), rng.standard_normal(d)), naive, cvx),
    Case("Translated, set", lambda d, rng: Translated(Box(-0.01, 0.02), 3.0), naive, cvx),
    Case(
        "Precomposed", lambda d, rng: Precomposed(ElasticNet(0.5, 0.2), signed(d, rng)), naive, cvx
    ),
    Case(
        "Precomposed, set", lambda d, rng: Precomposed(Box(-1.0, 0.3), signed(d, rng)), naive, cvx
    ),
    Case(
        "Unpenalised",
        lambda d, rng: Unpenalised(L1(0.4), free=[0]),
        naive,
        cvx,
        size=lambda d: max(d, 2),
    ),
    Case("Unpenalised, nested", nested, naive, cvx, size=lambda d: max(d, 2)),
]
