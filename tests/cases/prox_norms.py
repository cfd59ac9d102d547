"""Norms and the balls of norms: naive proximal operators and convex programs."""

from fractions import Fraction

import numpy as np

from adagrad_diff.penalties import (
    L2,
    SLOPE,
    GroupL2,
    HuberPenalty,
    L1Ball,
    L2Ball,
    LInf,
    LInfBall,
    Nuclear,
    Simplex,
    SparseGroupL2,
)
from prox_harness import Case

LONG = np.longdouble


def bisect(decreasing, low, high):
    """The root of a decreasing function between low and high, to the last bit of extended precision."""
    low, high = LONG(low), LONG(high)
    for _ in range(20000):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if decreasing(middle) > 0 else (low, middle)
    return low


def members(penalty):
    """The indices of each group, and its strength."""
    names = np.unique(penalty.groups)
    lam = penalty.l2 if isinstance(penalty, SparseGroupL2) else penalty.lam
    weights = getattr(penalty, "weights", None)
    weights = np.ones(names.size) if weights is None else weights
    return [
        (np.flatnonzero(penalty.groups == name), lam * weight)
        for name, weight in zip(names, weights, strict=True)
    ]


# ---------------------------------------------------------------- twins


def naive_l2(lam, z, step):
    """x = h z / (h + lam step) where h = norm(x), by bisection for h."""
    z, pull = z.astype(LONG), LONG(lam) * step.astype(LONG)
    if lam == 0:
        return z.astype(float)
    if np.sum((z / pull) ** 2) <= 1:
        return np.zeros(len(z))
    h = bisect(lambda h: np.sum((z / (h + pull)) ** 2) - 1, 0, np.sqrt(np.sum(z**2)))
    return (z * (h / (h + pull))).astype(float)


def naive_groups(penalty, z, step):
    x = np.empty(len(z))
    for members_g, lam in members(penalty):
        x[members_g] = naive_l2(lam, z[members_g], step[members_g])
    return x


def naive_sparse_groups(penalty, z, step):
    return naive_groups(penalty, np.sign(z) * np.maximum(np.abs(z) - penalty.l1 * step, 0.0), step)


def hinges(a, b, target):
    """The tau with sum(max(a - b tau, 0)) = target, in rational numbers: terms are added in the order in which they start."""
    a, b = [Fraction(v) for v in a], [Fraction(v) for v in b]
    order = sorted(range(len(a)), key=lambda i: a[i] / b[i], reverse=True)
    total, slope = -Fraction(float(target)), Fraction(0)
    for count, i in enumerate(order):
        if count and a[i] * slope <= b[i] * total:  # it starts to the left of the root
            break
        total, slope = total + a[i], slope + b[i]
    return total / slope


def naive_linf(penalty, z, step):
    """Cut at t with sum(max(|z| - t, 0) / step) = lam."""
    if penalty.lam == 0:
        return z.copy()
    inverse = [1 / Fraction(float(s)) for s in step]
    t = hinges(
        [abs(Fraction(float(v))) * w for v, w in zip(z, inverse, strict=True)], inverse, penalty.lam
    )
    return np.sign(z) * np.minimum(np.abs(z), max(0.0, float(t)))


def naive_simplex(penalty, z, step):
    """Lower by step tau."""
    if penalty.radius == 0:
        return np.zeros(len(z))
    tau = hinges(z, step, penalty.radius)
    return np.array(
        [
            float(max(Fraction(0), Fraction(float(v)) - Fraction(float(s)) * tau))
            for v, s in zip(z, step, strict=True)
        ]
    )


def naive_l1_ball(penalty, z, step):
    if np.sum(np.abs(z)) <= penalty.radius:
        return z.copy()
    return np.sign(z) * naive_simplex(penalty, np.abs(z), step)


def naive_l2_ball(penalty, z, step):
    """Shrink by 1 + step mu, by bisection for mu."""
    if np.sqrt(np.sum(z.astype(LONG) ** 2)) <= penalty.radius:
        return z.copy()
    if penalty.radius == 0:
        return np.zeros(len(z))
    z, step = z.astype(LONG), step.astype(LONG)
    norm = lambda mu: np.sqrt(np.sum((z / (1 + step * mu)) ** 2))
    mu = bisect(lambda mu: norm(mu) - penalty.radius, 0, norm(0) / penalty.radius / step.min())
    return (z / (1 + step * mu)).astype(float)


def naive_huber(penalty, z, step):
    """Shrink small entries, and shorten large ones by a constant."""
    pull = step * penalty.lam
    return np.where(
        np.abs(z) <= penalty.delta * (1 + pull),
        z / (1 + pull),
        z - pull * penalty.delta * np.sign(z),
    )


def naive_slope(penalty, z, step):
    """The nearest nonincreasing vector by its minimax formula."""
    order = np.argsort(-np.abs(z), kind="stable")
    sums = np.concatenate(
        ([0], np.cumsum(np.abs(z)[order].astype(LONG) - LONG(step[0]) * penalty.lams))
    )
    x = np.empty(len(z))
    for i, place in enumerate(order):
        j, k = np.arange(i + 1)[:, None], np.arange(i + 1, len(z) + 1)[None, :]
        x[place] = max(0.0, float(np.min(np.max((sums[k] - sums[j]) / (k - j), axis=1))))
    return np.sign(z) * x


def naive_nuclear(penalty, z, step):
    """Soft-thresholding of the eigenvalues of [[0, Z], [Z', 0]], which are plus and minus the singular values."""
    rows, columns = penalty.shape
    double = np.zeros((rows + columns, rows + columns))
    double[:rows, rows:] = z.reshape(penalty.shape)
    values, vectors = np.linalg.eigh(double + double.T)
    shrunk = np.sign(values) * np.maximum(np.abs(values) - penalty.lam * step[0], 0.0)
    return ((vectors * shrunk) @ vectors.T)[:rows, rows:].ravel()


# ---------------------------------------------------------------- convex programs


def cvx_groups(penalty, x):
    import cvxpy as cp

    total = sum(lam * cp.norm(x[g], 2) for g, lam in members(penalty))
    return total + (penalty.l1 * cp.norm(x, 1) if isinstance(penalty, SparseGroupL2) else 0), []


def cvx_norm(order):
    def objective(penalty, x):
        import cvxpy as cp

        return penalty.lam * cp.norm(x, order), []

    return objective


def cvx_ball(order):
    def constraint(penalty, x):
        import cvxpy as cp

        return 0, [cp.norm(x, order) <= penalty.radius]

    return constraint


def cvx_simplex(penalty, x):
    import cvxpy as cp

    return 0, [x >= 0, cp.sum(x) == penalty.radius]


def cvx_huber(penalty, x):
    import cvxpy as cp

    return penalty.lam / 2 * cp.sum(cp.huber(x, penalty.delta)), []


def cvx_slope(penalty, x):
    import cvxpy as cp

    drops = penalty.lams - np.append(penalty.lams[1:], 0.0)
    return sum(drop * cp.sum_largest(cp.abs(x), k + 1) for k, drop in enumerate(drops)), []


def cvx_nuclear(penalty, x):
    import cvxpy as cp

    return penalty.lam * cp.normNuc(cp.reshape(x, penalty.shape, order="C")), []


# ---------------------------------------------------------------- the list


def scattered(d, rng):
    """About d / 4 groups of neighbours and strangers, with labels that are neither sorted nor consecutive."""
    return rng.permutation(7 * rng.integers(-3, max(1, d // 4), d))


def weighted_groups(d, rng):
    groups = scattered(d, rng)
    weights = rng.uniform(0.0, 2.0, np.unique(groups).size)
    weights[::5] = 0.0
    return GroupL2(0.7, groups, weights)


def sides(d):
    """Rows and columns of a matrix with about d entries."""
    rows = max(1, int(np.sqrt(d / 2)))
    return rows, max(1, d // rows)


CASES = [
    Case("GroupL2", lambda d, rng: GroupL2(0.7, scattered(d, rng)), naive_groups, cvx_groups),
    Case("GroupL2, weights", weighted_groups, naive_groups, cvx_groups),
    Case(
        "GroupL2, single", lambda d, rng: GroupL2(0.3, np.arange(d)[::-1]), naive_groups, cvx_groups
    ),
    Case(
        "SparseGroupL2",
        lambda d, rng: SparseGroupL2(0.2, 0.5, scattered(d, rng)),
        naive_sparse_groups,
        cvx_groups,
    ),
    Case(
        "L2",
        lambda d, rng: L2(1.3),
        lambda p, z, s: naive_l2(p.lam, z, s),
        cvx_norm(2),
    ),
    Case("LInf", lambda d, rng: LInf(1.7), naive_linf, cvx_norm("inf")),
    Case("HuberPenalty", lambda d, rng: HuberPenalty(0.8, 0.6), naive_huber, cvx_huber),
    Case(
        "SLOPE", lambda d, rng: SLOPE(np.sort(rng.uniform(0, 1, d))[::-1]), naive_slope, cvx_slope
    ),
    Case(
        "Nuclear",
        lambda d, rng: Nuclear(0.9, sides(d)),
        naive_nuclear,
        cvx_nuclear,
        size=lambda d: int(np.prod(sides(d))),
    ),
    Case("Simplex", lambda d, rng: Simplex(), naive_simplex, cvx_simplex),
    Case("Simplex, large", lambda d, rng: Simplex(0.4 * d), naive_simplex, cvx_simplex),
    Case("L1Ball", lambda d, rng: L1Ball(1.5), naive_l1_ball, cvx_ball(1)),
    Case("L2Ball", lambda d, rng: L2Ball(1.5), naive_l2_ball, cvx_ball(2)),
    Case(
        "LInfBall",
        lambda d, rng: LInfBall(0.5),
        lambda p, z, s: np.clip(z, -0.5, 0.5),
        cvx_ball("inf"),
    ),
]
