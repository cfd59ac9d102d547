"""Sets cut out by linear equations: exact projections in rational numbers and convex programs."""

from fractions import Fraction

import numpy as np
import scipy.linalg

from adagrad_diff.penalties import PSD, Affine, BoxHyperplane, HalfSpace, Hyperplane
from prox_harness import Case


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
    return [
        rows[pivots[column]][-1] if column in pivots else Fraction(0)
        for column in range(len(matrix))
    ]


def project(A, b, z, step):
    """z - S A' t with A S A' t = A z - b"""
    A, b, z, step = [exact(row) for row in A], exact(b), exact(z), exact(step)
    dot = lambda u, v: sum((p * q for p, q in zip(u, v, strict=True)), Fraction(0))
    scaled = [[s * v for s, v in zip(step, row, strict=True)] for row in A]
    t = solve(
        [[dot(row, other) for other in scaled] for row in A],
        [dot(row, z) - c for row, c in zip(A, b, strict=True)],
    )
    return np.array(
        [float(z[i] - sum(t[j] * scaled[j][i] for j in range(len(A)))) for i in range(len(z))]
    )


def naive_half_space(penalty, z, step):
    inside = sum(p * q for p, q in zip(exact(penalty.a), exact(z), strict=True)) <= Fraction(
        penalty.beta
    )
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
    bends = (
        [bends[0] - 1 - abs(bends[0]), *bends, bends[-1] + 1 + abs(bends[-1])]
        if bends
        else [Fraction(0), Fraction(1)]
    )
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


# ---------------------------------------------------------------- convex programs


def cvx_affine(penalty, x):
    """The equations that do not follow from others: a solver may stumble over those."""
    A = penalty.A / np.abs(penalty.A).max(axis=1, keepdims=True)
    kept = scipy.linalg.qr(A.T, mode="r", pivoting=True)[1][: np.linalg.matrix_rank(A)]
    return 0, [penalty.A[kept] @ x == penalty.b[kept]]


def cvx_box_hyperplane(penalty, x):
    lower, upper = (
        np.broadcast_to(bound, penalty.a.shape) for bound in (penalty.lower, penalty.upper)
    )
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
    A = (
        np.round(A * 64) / 64
    )  # so that A @ point has no rounding, and the last equation agrees with the others
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
    ),
    Case(
        "Hyperplane, through zero",
        lambda d, rng: Hyperplane(np.ones(d), 0.0),
        exact_hyperplane,
        lambda p, x: (0, [p.a @ x == p.beta]),
    ),
    Case(
        "HalfSpace",
        lambda d, rng: HalfSpace(coefficients(d, rng), -0.3),
        naive_half_space,
        lambda p, x: (0, [p.a @ x <= p.beta]),
    ),
    Case("Affine", affine, lambda p, z, s: project(p.A, p.b, z, s), cvx_affine),
    Case("BoxHyperplane", box_hyperplane, naive_box_hyperplane, cvx_box_hyperplane),
    Case("BoxHyperplane, narrow", narrow, naive_box_hyperplane, cvx_box_hyperplane),
    Case(
        "BoxHyperplane, no bounds",
        lambda d, rng: BoxHyperplane(-np.inf, np.inf, coefficients(d, rng), 2.0),
        naive_box_hyperplane,
        cvx_box_hyperplane,
    ),
    Case(
        "PSD",
        lambda d, rng: PSD(int(np.sqrt(d))),
        naive_psd,
        cvx_psd,
        size=lambda d: int(np.sqrt(d)) ** 2,
    ),
]
