"""Objectives of the estimators, written as their formulas, and the optima that other solvers find."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import logsumexp


def objective(estimator, loss, penalty, X, y, weight=None):
    """mean loss(z, y) + penalty(w) at what the estimator has found."""
    w, c = np.asarray(estimator.coef_, float), np.asarray(estimator.intercept_, float)
    z = X @ w.T + c
    values = loss(z[:, 0] if z.ndim == 2 and z.shape[1] == 1 else z, y)
    return np.average(values, weights=weight) + penalty(w)


def absolute(z, y):
    return np.abs(z - y)


def squared(z, y):
    return 0.5 * (z - y) ** 2


def hinge(z, y):
    return np.maximum(0, 1 - y * z)


def squared_hinge(z, y):
    return hinge(z, y) ** 2


def logistic(z, y):
    return np.logaddexp(0, -y * z)


def poisson(z, y):
    return np.exp(z) - y * z


def multinomial(z, y):
    return logsumexp(z, axis=1) - z[np.arange(len(y)), y]


def pinball(tau):
    return lambda z, y: np.maximum(tau * (y - z), (tau - 1) * (y - z))


def huber(delta):
    def loss(z, y):
        t = np.abs(z - y)
        return np.where(t <= delta, 0.5 * t**2, delta * t - 0.5 * delta**2)

    return loss


def l1(alpha):
    return lambda w: alpha * np.abs(w).sum()


def ridge(alpha):
    return lambda w: 0.5 * alpha * (w**2).sum()


def elastic(alpha, ratio):
    return lambda w: l1(alpha * ratio)(w) + ridge(alpha * (1 - ratio))(w)


def by_highs(X, y, alpha, kind, at=False):
    """The optimum (or where it is) of mean absolute or hinge loss + alpha ||w||_1 with a free intercept: a linear program."""
    N, d = X.shape
    signed = X * y[:, None] if kind == "hinge" else X
    one = y[:, None] if kind == "hinge" else np.ones((N, 1))
    plane = np.hstack([signed, -signed, one, -one])
    cost = np.r_[np.full(2 * d, alpha), 0, 0, np.full(N, 1 / N)]
    slack = sparse.eye(N)
    if kind == "hinge":  # y z + t >= 1
        A, b = sparse.hstack([-plane, -slack]), -np.ones(N)
    else:  # |z - y| <= t
        A = sparse.vstack([sparse.hstack([plane, -slack]), sparse.hstack([-plane, -slack])])
        b = np.r_[y, -y]
    found = linprog(cost, A_ub=A.tocsr(), b_ub=b, method="highs")
    return (
        np.r_[found.x[:d] - found.x[d : 2 * d], found.x[2 * d] - found.x[2 * d + 1]]
        if at
        else found.fun
    )


def poisson_by_newton(X, y, alpha):
    """The optimum of mean Poisson loss + alpha/2 ||w||^2 with a free intercept, by Newton's method with halved steps."""
    A, shrink = np.column_stack([X, np.ones(len(y))]), alpha * np.r_[np.ones(X.shape[1]), 0]
    value = lambda x: np.mean(np.exp(A @ x) - y * (A @ x)) + 0.5 * shrink @ x**2
    x = np.zeros(A.shape[1])
    x[-1] = np.log(max(y.mean(), 1e-12))
    with np.errstate(over="ignore"):
        for _ in range(100):
            mean = np.exp(A @ x)
            gradient, hessian = (
                A.T @ (mean - y) / len(y) + shrink * x,
                (A.T * mean) @ A / len(y) + np.diag(shrink),
            )
            step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
            size = next((s for s in 0.5 ** np.arange(30) if value(x - s * step) < value(x)), 0.0)
            if size == 0:
                break
            x = x - size * step
    return value(x)
