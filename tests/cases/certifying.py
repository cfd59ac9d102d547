"""Certificates recomputed independently: the primal and the dual function as formulas, in extended precision.

Nothing here calls the package. Of its objects only the data are read: A, b, the weights, the parameters. A dual point that is
infeasible by rounding is moved into the dual set first, so what `lower_bound` returns is below F_star but for the rounding
of extended precision. (What is lost because a dual point is shown in double precision does not count.)
"""

import numpy as np

LONG = np.longdouble
PRECISION = LONG(np.finfo(LONG).eps)
UNSEEN = 4 * LONG(
    np.finfo(np.float64).eps
)  # relative: what a dual point in double precision leaves open
MOST = 300_000  # entries of A up to which a certificate is recomputed


def xlogx(p):
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0)


def inside(u, low, high, values):
    return np.where((u >= low) & (u <= high), values, np.inf)


def other(tau):
    """1 - tau as a number of double precision: the slope that the loss has."""
    return LONG(1.0 - float(tau))


# By name: the loss l(z, b), its conjugate l*(u, b), and the ends of the conjugate's domain.
LOSSES = {
    "Squared": (
        lambda z, b, t: (z - b) ** 2 / 2,
        lambda u, b, t: u**2 / 2 + b * u,
        lambda b, t: (-np.inf, np.inf),
    ),
    "Huber": (
        lambda z, b, t: np.where(np.abs(z - b) <= t, (z - b) ** 2 / 2, t * (np.abs(z - b) - t / 2)),
        lambda u, b, t: inside(u, -t, t, u**2 / 2 + b * u),
        lambda b, t: (-t, t),
    ),
    "LAD": (
        lambda z, b, t: np.abs(z - b),
        lambda u, b, t: inside(u, -1, 1, b * u),
        lambda b, t: (-1, 1),
    ),
    "Quantile": (
        lambda z, b, t: np.maximum(t * (b - z), -other(t) * (b - z)),
        lambda u, b, t: inside(u, -t, other(t), b * u),
        lambda b, t: (-t, other(t)),
    ),
    "Hinge": (
        lambda z, b, t: np.maximum(0, 1 - b * z),
        lambda u, b, t: inside(b * u, -1, 0, b * u),
        lambda b, t: (np.minimum(0, -b), np.maximum(0, -b)),
    ),
    "SquaredHinge": (
        lambda z, b, t: np.maximum(0, 1 - b * z) ** 2,
        lambda u, b, t: inside(b * u, -np.inf, 0, b * u + (b * u) ** 2 / 4),
        lambda b, t: (np.where(b > 0, -np.inf, 0), np.where(b > 0, 0, np.inf)),
    ),
    "Logistic": (
        lambda z, b, t: np.logaddexp(0, -b * z),
        lambda u, b, t: inside(-b * u, 0, 1, xlogx(-b * u) + xlogx(1 + b * u)),
        lambda b, t: (np.minimum(0, -b), np.maximum(0, -b)),
    ),
    "Poisson": (
        lambda z, b, t: np.exp(z) - b * z,
        lambda u, b, t: inside(u, -b, np.inf, xlogx(np.maximum(b + u, 0)) - (b + u)),
        lambda b, t: (-b, np.inf),
    ),
}
TRANSLATED = ("Squared", "Huber", "LAD", "Quantile")  # l(z, b) = l(z - b, 0)


def dense(matrix):
    """The data matrix as an array of extended precision; None of an operator, or if it is large."""
    if matrix.opaque or matrix.shape[0] * matrix.shape[1] > MOST:
        return None
    return matrix.to_dense().astype(LONG)


# ------------------------------------------------------------ penalties: value, polar of a norm, conjugate with a ridge term


def groups_of(penalty, x):
    return [x[penalty.groups == g] for g in np.unique(penalty.groups)]


def norm(x):
    return np.sqrt(np.sum(x**2))


def group_weights(p):
    return p.lam * (np.ones(len(np.unique(p.groups))) if p.weights is None else p.weights)


def ratio(size, strength):
    return np.max(np.where(size == 0, 0, size / np.where(strength > 0, strength, PRECISION**4)))


def descending(x):
    return np.sort(np.abs(x))[::-1]


NORMS = {  # value, polar
    "L1": (lambda p, x: np.sum(p.l1 * np.abs(x)), lambda p, y: ratio(np.abs(y), p.l1 + LONG(0))),
    "L2": (lambda p, x: p.lam * norm(x), lambda p, y: ratio(norm(y), LONG(p.lam))),
    "LInf": (
        lambda p, x: p.lam * np.max(np.abs(x)),
        lambda p, y: ratio(np.sum(np.abs(y)), LONG(p.lam)),
    ),
    "GroupL2": (
        lambda p, x: sum(
            w * norm(g) for w, g in zip(group_weights(p), groups_of(p, x), strict=True)
        ),
        lambda p, y: ratio(
            np.array([norm(g) for g in groups_of(p, y)]), group_weights(p) + LONG(0)
        ),
    ),
    "SLOPE": (
        lambda p, x: np.sum(p.lams * descending(x)),
        lambda p, y: ratio(np.cumsum(descending(y)), np.cumsum(p.lams.astype(LONG))),
    ),
    "Zero": (lambda p, x: LONG(0), lambda p, y: LONG(0) if not np.any(y) else LONG(np.inf)),
}


def elastic(l1, l2, y):
    excess = np.maximum(np.abs(y) - l1, 0)
    return np.sum(np.where(excess == 0, 0, excess**2 / (2 * np.where(l2 > 0, l2, PRECISION**8))))


def box(p, l2, y):
    lower, upper = (np.broadcast_to(end, y.shape).astype(LONG) for end in (p.lower, p.upper))
    if l2 == 0:
        return np.sum(
            np.where(
                y == 0,
                0,
                np.maximum(lower * np.where(y == 0, 1, y), upper * np.where(y == 0, 1, y)),
            )
        )
    x = np.clip(y / l2, lower, upper)
    return np.sum(x * y - l2 / 2 * x**2)


CONJUGATES = {  # value, conjugate of phi + l2 / 2 |x|^2
    "L1": (NORMS["L1"][0], lambda p, l2, y: elastic(p.l1, l2, y)),
    "Zero": (NORMS["Zero"][0], lambda p, l2, y: elastic(0, LONG(l2), y)),
    "Ridge": (
        lambda p, x: np.sum(p.l2 * x**2) / 2,
        lambda p, l2, y: elastic(0, p.l2 + LONG(l2), y),
    ),
    "ElasticNet": (
        lambda p, x: np.sum(p.l1 * np.abs(x) + p.l2 * x**2 / 2),
        lambda p, l2, y: elastic(p.l1, p.l2 + LONG(l2), y),
    ),
    "Box": (lambda p, x: LONG(0), box),
    "NonNegative": (lambda p, x: LONG(0), box),
    "LInfBall": (lambda p, x: LONG(0), box),
    "L1Ball": (lambda p, x: LONG(0), lambda p, l2, y: p.radius * np.max(np.abs(y))),
    "L2Ball": (lambda p, x: LONG(0), lambda p, l2, y: p.radius * norm(y)),
    "Simplex": (lambda p, x: LONG(0), lambda p, l2, y: p.radius * np.max(y)),
}
RIDGED = (
    "L1",
    "Zero",
    "Ridge",
    "ElasticNet",
    "Box",
    "NonNegative",
    "LInfBall",
)  # these also for l2 > 0


def is_known(loss, penalty):
    """Whether the formulas of this problem are here, and a dual point alone is a proof: no direction is without a penalty."""
    name, kind = type(penalty).__name__, type(loss).__name__
    if kind not in (*LOSSES, "Multinomial") or dense(loss.A) is None:
        return False
    if loss.l2:
        return name in RIDGED
    strengths = {
        "L1": "l1",
        "GroupL2": "lam",
        "L2": "lam",
        "LInf": "lam",
        "Ridge": "l2",
        "ElasticNet": "l2",
    }
    if name in strengths and not np.all(np.asarray(getattr(penalty, strengths[name])) > 0):
        return False
    if name == "Box" and not np.isfinite([penalty.lower.min(), penalty.upper.max()]).all():
        return False
    return name in {**NORMS, **CONJUGATES} and name not in ("Zero", "NonNegative")


# ------------------------------------------------------------ the two sides


def weights_of(loss):
    return loss.weight.astype(LONG)


def objective(loss, penalty, x):
    """F(x), for an x that lies in the penalty's set."""
    x = np.asarray(x).astype(LONG)
    part = x[:-1] if loss.intercept else x
    name = type(penalty).__name__
    phi = (NORMS.get(name) or CONJUGATES[name])[0](penalty, part.reshape(-1))
    z = dense(loss.A) @ part + (x[-1] if loss.intercept else 0)
    if type(loss).__name__ == "Multinomial":
        top = z.max(axis=1)
        values = np.log(np.exp(z - top[:, None]).sum(axis=1)) + top - z[np.arange(len(z)), loss.b]
    else:
        values = LOSSES[type(loss).__name__][0](z, loss.b.astype(LONG), LONG(loss.theta))
    weight = weights_of(loss)
    return (
        np.sum(weight[weight > 0] * values[weight > 0]) + LONG(loss.l2) / 2 * np.sum(part**2) + phi
    )


def balanced(u, weight, low, high):
    """u, moved a little towards an end of the domain so that sum w u = 0; None if there is no room."""
    total = weight @ u
    if total == 0:
        return u
    end = np.broadcast_to(low if total > 0 else high, u.shape)
    end = np.where(np.isfinite(end), end, u - np.sign(total))
    room = weight @ (u - end)
    part = total / room if room != 0 else np.inf
    return u + part * (end - u) if 0 <= part <= 1 else None


def lower_bound(loss, penalty, point):
    """The dual function at a dual point that was made feasible: a lower bound on F_star; and what its last places may change.

    A bound may be that of a pair of doubles for each sample, of which the first one is shown.
    """
    point = np.asarray(point).astype(LONG)
    weight, A = weights_of(loss), dense(loss.A)
    if type(loss).__name__ == "Multinomial":
        u, conjugates = multinomial(loss, point, weight)
    else:
        u, conjugates = scalar(loss, point, weight)
    if u is None:
        return -LONG(np.inf), LONG(0)
    name, y = (
        type(penalty).__name__,
        -(A.T @ (weight[:, None] * u if u.ndim == 2 else weight * u)).reshape(-1),
    )
    size = np.abs(A).T @ (weight[:, None] * np.abs(u) if u.ndim == 2 else weight * np.abs(u))
    unseen, psi, less = (
        UNSEEN * size.reshape(-1),
        LONG(0),
        LONG(0),
    )  # of y, that the places that are not shown may change
    if loss.l2 == 0 and name in NORMS:
        u = u / max(LONG(1), NORMS[name][1](penalty, y) - NORMS[name][1](penalty, unseen))
    else:
        psi = CONJUGATES[name][1](penalty, loss.l2, y)
        less = CONJUGATES[name][1](penalty, loss.l2, np.sign(y) * np.maximum(np.abs(y) - unseen, 0))
    here = conjugates(u)
    changes = np.sum(np.abs(here - conjugates((1 - UNSEEN) * u)))
    return -np.sum(here) - psi, changes + (
        max(psi - less, LONG(0)) if np.isfinite(psi) else LONG(0)
    )


def scalar(loss, u, weight):
    _, conjugate, domain = LOSSES[type(loss).__name__]
    b, theta = loss.b.astype(LONG), LONG(loss.theta)
    low, high = domain(b, theta)
    u = np.where(weight > 0, u, 0)
    assert np.all((u >= low) & (u <= high)), "the dual point is outside the domain of the conjugate"
    if loss.intercept:
        u = balanced(u, weight, low, high)
        if type(loss).__name__ in TRANSLATED:  # where sum w u = 0, a shift of b changes nothing
            b = b - b[np.argsort(b)[b.size // 2]]
    used = weight > 0
    return u, lambda u: weight[used] * conjugate(u, b, theta)[used]


def multinomial(loss, u, weight):
    onehot = np.eye(loss.classes, dtype=LONG)[loss.b]
    p = np.maximum(u + onehot, 0)
    p = p / p.sum(axis=1, keepdims=True)
    if (
        loss.intercept
    ):  # mixed with one distribution for all samples, so that every class has its own share
        has, wanted = weight @ p, weight @ onehot
        part = max(
            LONG(0), np.max(1 - np.divide(wanted, has, out=np.ones_like(has), where=has > 0))
        )
        if part > 0:
            rest = np.maximum(wanted - (1 - part) * has, 0)
            p = (1 - part) * p + part * rest / rest.sum()
    return p - onehot, lambda u: weight * xlogx(np.maximum(u + onehot, 0)).sum(axis=1)


def proven(loss, penalty, point):
    """What a dual point proves, or else what needs none: that of zeros, the sum of the least values that the losses have."""
    point = np.asarray(point)
    return max(
        lower_bound(loss, penalty, point),
        lower_bound(loss, penalty, np.zeros_like(point)),
        key=lambda pair: pair[0],
    )


def rounding(*values):
    """What extended precision may be off by."""
    return 1000 * PRECISION * sum(abs(LONG(value)) for value in values)


def check_bound(loss, penalty, bound, point):
    """Assert that a lower bound is one; says whether it was possible to tell."""
    assert not np.isnan(bound)
    if not np.isfinite(bound) or not is_known(loss, penalty):
        return False
    best, unseen = proven(loss, penalty, point)
    assert bound <= best + unseen + rounding(best), (
        f"the bound {bound!r} is above what its dual point proves, {best!r}"
    )
    return True


def check(loss, penalty, x, fun, bound, gap, point):
    """The same of a whole certificate: that the gap at x is no smaller than F(x) less what the dual point proves, too."""
    assert not np.isnan(gap)
    if not (np.isfinite(fun) and np.isfinite(bound)):
        assert gap == np.inf
        return False
    if not check_bound(loss, penalty, bound, point):
        return False
    true, (best, unseen) = objective(loss, penalty, x), proven(loss, penalty, point)
    assert gap >= true - best - unseen - rounding(true, best), (
        f"the gap {gap!r} is below the true one, {true - best!r}"
    )
    return True
