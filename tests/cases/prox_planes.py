"""Sets cut out by linear equations: exact twins in rational numbers, convex programs and optimality conditions."""

from fractions import Fraction

import numpy as np
import scipy.linalg

from adagrad_diff.penalties import PSD, Affine, BoxHyperplane, HalfSpace, Hyperplane
from prox_harness import Case

TINY = 1e-300


def exact(values):
    return [Fraction(float(v)) for v in values]


# ---------------------------------------------------------------- twins


def solve(matrix, right):
    """A solution of a consistent square system of rational numbers, by elimination; what is not determined is 0."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    pivots = {}
    for column in range(len(matrix)):
        row = next((r for k, r in enumerate(rows) if k not in pivots.values() and r[column]), None)
        if row is None:
            continue
        k = rows.index(row)
        pivots[column] = k
        rows[k] = [v / row[column] for v in row]
        for j, other in enumerate(rows):
            if j != k and other[column]:
                rows[j] = [v - other[column] * p for v, p in zip(other, rows[k], strict=True)]
    return [rows[pivots[column]][-1] if column in pivots else Fraction(0) for column in range(len(matrix))]


def project(A, b, z, step):
    """z - S A' t with A S A' t = A z - b"""
    A, b, z, step = [exact(row) for row in A], exact(b), exact(z), exact(step)
    dot = lambda u, v: sum((p * q for p, q in zip(u, v, strict=True)), Fraction(0))  # noqa: E731
    scaled = [[s * v for s, v in zip(step, row, strict=True)] for row in A]
    t = solve([[dot(row, other) for other in scaled] for row in A], [dot(row, z) - c for row, c in zip(A, b, strict=True)])
    return np.array([float(z[i] - sum(t[j] * scaled[j][i] for j in range(len(A)))) for i in range(len(z))])


def naive_half_space(penalty, z, step):
    inside = sum(p * q for p, q in zip(exact(penalty.a), exact(z), strict=True)) <= Fraction(penalty.beta)
    return z.copy() if inside else project([penalty.a], [penalty.beta], z, step)


def naive_box_hyperplane(penalty, z, step):
    """a'x falls in tau, and is linear between its bends: look for the two between which it is beta."""
    a, z, s, beta = exact(penalty.a), exact(z), exact(step), Fraction(penalty.beta)
    lower, upper = (np.broadcast_to(bound, len(a)) for bound in (penalty.lower, penalty.upper))
    low = [Fraction(v) if np.isfinite(v) else None for v in lower]
    high = [Fraction(v) if np.isfinite(v) else None for v in upper]

    def point(tau):
        x = [p - q * r * tau for p, q, r in zip(z, s, a, strict=True)]
        x = [v if u is None else max(u, v) for u, v in zip(low, x, strict=True)]
        return [v if u is None else min(u, v) for u, v in zip(high, x, strict=True)]

    def excess(tau):
        return sum(p * q for p, q in zip(a, point(tau), strict=True)) - beta

    ends = [(low[i], i) for i in range(len(a))] + [(high[i], i) for i in range(len(a))]
    bends = sorted({(z[i] - end) / (s[i] * a[i]) for end, i in ends if end is not None and a[i]})
    bends = [bends[0] - 1 - abs(bends[0]), *bends, bends[-1] + 1 + abs(bends[-1])] if bends else [Fraction(0), Fraction(1)]
    first, last = 0, len(bends) - 1
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if excess(bends[middle]) > 0 else (first, middle)
    one, other = excess(bends[first]), excess(bends[last])
    tau = bends[first] + (one * (bends[last] - bends[first]) / (one - other) if one != other else 0)
    return np.array([float(v) for v in point(tau)])


def naive_psd(penalty, z, step):
    """(Z + |Z|) / 2, where |Z| is the positive factor of the polar decomposition"""
    Z = z.reshape(penalty.n, penalty.n)
    Z = (Z + Z.T) / 2
    return ((Z + scipy.linalg.polar(Z)[1]) / 2).ravel()


# ---------------------------------------------------------------- optimality conditions


def residual(A, b, z, x):
    """How far A x is from b, relative to the terms"""
    size = np.abs(A) @ np.abs(x) + np.abs(b) + 1e-25 * (np.abs(A) @ np.abs(z)) + TINY
    if len(A) > 1:  # equations are solved together, with rounding errors relative to the largest terms
        size += 1e-3 * np.abs(A).sum(axis=1) * np.abs(x).max()
    return np.max(np.abs(A @ x - b) / size)


def violation_box_hyperplane(penalty, z, step, x):
    """a'x = beta, l <= x <= u, and one tau has z - step a tau = x, or beyond the bound where x is at it

    The tau of each coordinate are an interval; a relative error of z and x widens it.
    """
    lower, upper = (
        np.broadcast_to(getattr(penalty, side, end), z.shape) for side, end in (("lower", -np.inf), ("upper", np.inf))
    )
    size, rate = np.maximum(np.abs(z), np.abs(x)), step * penalty.a
    outside = np.max(np.maximum(np.maximum(lower - x, x - upper), 0.0) / (np.abs(x) + TINY))
    still = rate == 0
    misses = np.max(np.abs(x - np.clip(z, lower, upper))[still] / (size[still] + TINY), initial=0.0)
    moves = ~still & (lower < upper)
    z, x, size, rate, lower, upper = (v[moves] for v in (z, x, size, rate, lower, upper))
    # At a bound, which float32 rounds, one end is open.
    with np.errstate(invalid="ignore"):
        up = np.where(x >= upper - 1e-7 * np.abs(upper), np.inf, 0.0)
        down = np.where(x <= lower + 1e-7 * np.abs(lower), np.inf, 0.0)
    for error in np.append(0.0, np.logspace(-17, 0, 35)):
        ends = (z - x - error * size - up) / rate, (z - x + error * size + down) / rate
        if np.max(np.minimum(*ends), initial=-np.inf) <= np.min(np.maximum(*ends), initial=np.inf):
            return max(error, misses, outside)
    return np.inf


def violation_hyperplane(penalty, z, step, x):
    return max(residual(penalty.a[None], np.array([penalty.beta]), z, x), violation_box_hyperplane(penalty, z, step, x))


def violation_half_space(penalty, z, step, x):
    """As for a hyperplane, if z is beyond it, and then x is nearer to the half-space; else x = z"""
    if penalty.a @ z <= penalty.beta:
        return np.max(np.abs(x - z))
    outwards = np.max(np.maximum((x - z) * np.sign(penalty.a), 0.0) / (np.abs(z) + TINY))
    return max(outwards, violation_hyperplane(penalty, z, step, x))


def violation_affine(penalty, z, step, x):
    """A x = b, and (z - x) / step is orthogonal to the solutions of A n = 0

    These are spanned by n = e_j - sum of T_pj e_p, where the p are as many coordinates as there are independent rows.
    """
    A = penalty.A
    rank = np.linalg.matrix_rank(A)
    kept = np.sort(scipy.linalg.qr(A.T, mode="r", pivoting=True)[1][:rank])
    order = scipy.linalg.qr(A[kept] * np.sqrt(step), mode="r", pivoting=True)[1]
    p, n = order[:rank], order[rank:]
    T = np.linalg.solve(A[np.ix_(kept, p)], A[np.ix_(kept, n)])
    u, size = (z - x) / step, (np.abs(z) + np.abs(x)) / step
    slope = np.abs(u[n] - T.T @ u[p]) / (size[n] + np.abs(T.T) @ size[p] + TINY)
    return max(residual(A, penalty.b, z, x), np.max(slope, initial=0.0))


def violation_psd(penalty, z, step, x):
    """X is symmetric and has no negative eigenvalue, Z - X no positive one, and <X, Z - X> = 0"""
    Z, X = (v.reshape(penalty.n, penalty.n) for v in (z, x))
    Z = (Z + Z.T) / 2
    size, own = (np.abs(np.linalg.eigvalsh(V)).max() or 1.0 for V in (Z, X))
    signs = max(-np.linalg.eigvalsh(X)[0] / own, np.linalg.eigvalsh(Z - X)[-1] / size)
    return float(max(signs, np.abs(X - X.T).max() / own, abs(np.sum(X * (Z - X))) / size**2))


# ---------------------------------------------------------------- convex programs


def cvx_affine(penalty, x):
    """The equations that do not follow from others: a solver may stumble over those."""
    A = penalty.A / np.abs(penalty.A).max(axis=1, keepdims=True)
    kept = scipy.linalg.qr(A.T, mode="r", pivoting=True)[1][: np.linalg.matrix_rank(A)]
    return 0, [penalty.A[kept] @ x == penalty.b[kept]]


def cvx_box_hyperplane(penalty, x):
    lower, upper = (np.broadcast_to(bound, penalty.a.shape) for bound in (penalty.lower, penalty.upper))
    bounds = [x[i] >= lower[i] for i in np.flatnonzero(np.isfinite(lower))]
    bounds += [x[i] <= upper[i] for i in np.flatnonzero(np.isfinite(upper))]
    return 0, [*bounds, penalty.a @ x == penalty.beta]


def cvx_psd(penalty, x):
    import cvxpy as cp

    X = cp.Variable((penalty.n, penalty.n), PSD=True)
    return 0, [cp.vec(X, order="C") == x]


# ---------------------------------------------------------------- the list


def coefficients(d, rng):
    """Some zero, of different size and sign."""
    a = rng.standard_normal(d) * 10.0 ** rng.uniform(-2, 2, d)
    a[rng.random(d) < 0.2] = 0.0
    a[rng.integers(d)] = -1.5
    return a


def affine(d, rng):
    """A few equations, some of them with few coordinates, and one that follows from the others."""
    A = np.stack([coefficients(d, rng) for _ in range(min(d, 3))])
    A[1:, : d // 2] = 0.0
    point = rng.integers(-3, 4, d) * 1.0
    A = np.round(A * 64) / 64  # so that A @ point has no rounding, and the last equation agrees with the others
    A = A[np.abs(A).sum(axis=1) > 0]
    A = np.vstack([A, A[0] + 2 * A[-1]])
    return Affine(A, A @ point)


def bounds(d, rng):
    lower, upper = -rng.exponential(size=d), rng.exponential(size=d)
    lower[rng.random(d) < 0.2] = -np.inf
    upper[rng.random(d) < 0.2] = np.inf
    lower[rng.random(d) < 0.1] = 0.0
    return lower, upper


def box_hyperplane(d, rng):
    a, (lower, upper) = coefficients(d, rng), bounds(d, rng)
    return BoxHyperplane(lower, upper, a, float(a @ np.clip(rng.standard_normal(d), lower, upper)))


def narrow(d, rng):
    """The dual of a support vector machine with a bias."""
    bound = np.sign(rng.standard_normal(d)) / d
    return BoxHyperplane(np.minimum(bound, 0.0), np.maximum(bound, 0.0), np.ones(d), 0.0)


def exact_hyperplane(penalty, z, step):
    return project([penalty.a], [penalty.beta], z, step)


CASES = [
    Case(
        "Hyperplane",
        lambda d, rng: Hyperplane(coefficients(d, rng), 0.7),
        exact_hyperplane,
        lambda p, x: (0, [p.a @ x == p.beta]),
        violation_hyperplane,
    ),
    Case(
        "Hyperplane, through zero",
        lambda d, rng: Hyperplane(np.ones(d), 0.0),
        exact_hyperplane,
        lambda p, x: (0, [p.a @ x == p.beta]),
        violation_hyperplane,
    ),
    Case(
        "HalfSpace",
        lambda d, rng: HalfSpace(coefficients(d, rng), -0.3),
        naive_half_space,
        lambda p, x: (0, [p.a @ x <= p.beta]),
        violation_half_space,
    ),
    Case("Affine", affine, lambda p, z, s: project(p.A, p.b, z, s), cvx_affine, violation_affine),
    Case("BoxHyperplane", box_hyperplane, naive_box_hyperplane, cvx_box_hyperplane, violation_hyperplane),
    Case("BoxHyperplane, narrow", narrow, naive_box_hyperplane, cvx_box_hyperplane, violation_hyperplane),
    Case(
        "BoxHyperplane, no bounds",
        lambda d, rng: BoxHyperplane(-np.inf, np.inf, coefficients(d, rng), 2.0),
        naive_box_hyperplane,
        cvx_box_hyperplane,
        violation_hyperplane,
    ),
    Case(
        "PSD",
        lambda d, rng: PSD(int(np.sqrt(d))),
        naive_psd,
        cvx_psd,
        violation_psd,
        size=lambda d: int(np.sqrt(d)) ** 2,
    ),
]
