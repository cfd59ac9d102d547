"""Solutions to rounding and their dual points, by other means than ours: HiGHS, and Newton's method on a known support."""

import numpy as np
from scipy.optimize import linprog


def by_highs(loss, lam):
    """(x, u) of LAD, quantile or hinge loss with sum_i lam_i |x_i|, lam_i >= 0: u are the marginals of the residuals."""
    A, b, w = loss.A.to_dense().astype(float), loss.b.astype(float), loss.weight.astype(float)
    samples, features = A.shape
    sizes = np.abs(A).max(axis=0)
    sizes[sizes == 0] = 1.0
    A, lam = A / sizes, np.broadcast_to(lam, features) / sizes  # HiGHS likes columns of size one
    ones = [np.ones((samples, 1)), -np.ones((samples, 1))] if loss.intercept else []
    cost = [lam, lam, np.zeros(2 * loss.intercept)]
    used = np.where(w > 0, w, 1.0)
    if type(loss).__name__ == "Hinge":
        rows = b[:, None] * np.hstack([A, -A, *ones])
        answer = linprog(
            np.concatenate([*cost, w]),
            A_ub=-np.hstack([rows, np.eye(samples)]),
            b_ub=-np.ones(samples),
            bounds=(0, None),
        )
        u = b * answer.ineqlin.marginals / used
    else:
        up, down = (loss.theta, 1 - loss.theta) if loss.theta else (1.0, 1.0)
        rows = np.hstack([A, -A, *ones, np.eye(samples), -np.eye(samples)])
        answer = linprog(
            np.concatenate([*cost, up * w, down * w]), A_eq=rows, b_eq=b, bounds=(0, None)
        )
        u = -answer.eqlin.marginals / used
    assert answer.status == 0
    x = (answer.x[:features] - answer.x[features : 2 * features]) / sizes
    if loss.intercept:
        x = np.append(x, answer.x[2 * features] - answer.x[2 * features + 1])
    return x, np.where(w > 0, u, 0.0)


DERIVATIVES = {  # of l in z: first and second
    "Squared": lambda z, b, t: (z - b, np.ones_like(z)),
    "Huber": lambda z, b, t: (np.clip(z - b, -t, t), 1.0 * (np.abs(z - b) < t)),
    "SquaredHinge": lambda z, b, t: (-2 * b * np.maximum(0, 1 - b * z), 2.0 * (b * z < 1)),
    "Logistic": lambda z, b, t: (-b / (1 + np.exp(b * z)), 1 / (2 + np.exp(z) + np.exp(-z))),
    "Poisson": lambda z, b, t: (np.exp(z) - b, np.exp(z)),
}


def by_newton(loss, x, l1=0.0, l2=0.0, steps=60):
    """(x, u) of a smooth loss with l1 |x|_1 + l2/2 |x|^2 beside its own l2, the support and signs being those of x."""
    A, b, w = loss.A.to_dense().astype(float), loss.b.astype(float), loss.weight.astype(float)
    features, x = A.shape[1], np.asarray(x, float).copy()
    full = np.column_stack([A, np.ones(len(b))]) if loss.intercept else A
    l1, l2 = (
        np.append(np.broadcast_to(lam, features), 0.0)[: full.shape[1]]
        for lam in (l1, l2 + loss.l2)
    )
    S = np.flatnonzero((x != 0) | (l1 == 0))
    sizes = np.sqrt(w @ full[:, S] ** 2)
    sizes[sizes == 0] = 1.0
    B, signs = full[:, S] / sizes, np.sign(x[S]) * l1[S] / sizes
    y, ridge = x[S] * sizes, l2[S] / sizes**2
    for _ in range(steps):
        first, second = DERIVATIVES[type(loss).__name__](B @ y, b, loss.theta)
        gradient, H = (
            B.T @ (w * first) + signs + ridge * y,
            B.T @ ((w * second)[:, None] * B) + np.diag(ridge),
        )
        y = y - np.linalg.lstsq(H, gradient, rcond=1e-13)[0]
    x[S] = y / sizes
    return x, DERIVATIVES[type(loss).__name__](full @ x, b, loss.theta)[0]


def by_newton_classes(loss, x, l1=0.0, l2=0.0, steps=60):
    """(x, u) of the multinomial loss with l1 |x|_1 + l2/2 |x|^2, as `by_newton`."""
    A, w, classes = loss.A.to_dense().astype(float), loss.weight.astype(float), loss.classes
    full = np.column_stack([A, np.ones(len(A))]) if loss.intercept else A
    penalised = np.repeat(np.arange(full.shape[1]) < A.shape[1], classes)
    indicators, x = np.eye(classes)[loss.b], np.asarray(x, float).ravel().copy()
    S = np.flatnonzero((x != 0) | (l1 == 0) | ~penalised)
    signs, ridge = np.sign(x) * l1 * penalised, (l2 + loss.l2) * penalised
    for step in range(steps + 1):
        z = full @ x.reshape(-1, classes)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        u = p - indicators
        if step == steps:
            return x.reshape(-1, classes), u
        gradient = (full.T @ (w[:, None] * u)).ravel() + signs + ridge * x
        curvature = w[:, None, None] * (
            p[:, :, None] * np.eye(classes) - p[:, :, None] * p[:, None, :]
        )
        H = np.einsum("ji,jk,jcd->ickd", full, full, curvature).reshape(x.size, x.size) + np.diag(
            ridge
        )
        x[S] -= np.linalg.lstsq(H[np.ix_(S, S)], gradient[S], rcond=1e-13)[0]
