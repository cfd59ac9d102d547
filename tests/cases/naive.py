"""The paper's algorithm, and the functions it acts on, as plain NumPy formulas: what the other tests compare with.

Nothing here imports the package. Names and arguments are those of the package, so a test can build both from one
description. Everything is dense, double precision and one trajectory at a time.
"""

from dataclasses import dataclass
from functools import wraps

import numpy as np

# ---------------------------------------------------------------- Algorithm 1


@dataclass
class Trajectory:
    """x^1 ... x^{N+1} with everything at them; steps[n - 1] is eta_n scale / w^n, which leads from x^n to x^{n+1}."""

    x: np.ndarray  # (N + 1, *shape), and so is
    g: np.ndarray  # g^1 ... g^{N+1}
    F: np.ndarray  # (N + 1,)
    steps: np.ndarray  # (N, *shape)

    @property
    def x_avg(self):
        """The paper's average, over x^2 ... x^{N+1}."""
        return self.x[1:].mean(axis=0)

    @property
    def x_best(self):
        return self.x[np.argmin(self.F)]

    @property
    def mean_step(self):
        """Of every iteration, the mean over coordinates."""
        return np.array([step.mean() for step in self.steps])

    @property
    def subgradient_norm(self):
        """||u^{n+1}||, u^{n+1} = W_n (x^n - x^{n+1}) / eta + g^{n+1} - g^n, of every iteration."""
        u = (self.x[:-1] - self.x[1:]) / self.steps + self.g[1:] - self.g[:-1]
        return np.array([np.linalg.norm(u_n) for u_n in u])


def run(
    loss, x, penalty, rule, eta, iterations, *, eps=1e-8, blocks=None, scale=None, intercept=False
):
    """`iterations` of Algorithm 1 from x^1 = x; rule is "AdaGradDiff" or "AdaGrad", eta a number or a function of n."""
    x = np.array(x, np.float64)
    shape, tail = (
        x.shape,
        x[-1].size if intercept else 0,
    )  # the intercept: the last coordinate, or row, of x
    together = same_block(blocks, shape, tail)
    scale = np.ones(x.size) if scale is None else np.append(scale, np.ones(x.size - len(scale)))
    free = x.size - tail  # coordinates that the penalty sees

    f, g = loss(x)
    xs, gs, Fs, steps = (
        [x],
        [np.zeros(shape), g],
        [f + penalty.value(x.ravel()[:free])],
        [],
    )  # g^0 = 0
    for n in range(1, iterations + 1):
        history = np.array(gs).reshape(n + 1, -1)
        terms = (
            np.diff(history, axis=0) if rule == "AdaGradDiff" else history[1:]
        )  # g^k - g^{k-1} or g^k, k = 1 ... n
        w = eps + np.sqrt(together @ np.sum(terms**2, axis=0))
        step = (eta(n) if callable(eta) else eta) * scale / w
        z = x.ravel() - step * g.ravel()
        z[:free] = penalty.prox(z[:free], step[:free])
        x = z.reshape(shape)
        f, g = loss(x)
        for kept, new in (
            (xs, x),
            (gs, g),
            (Fs, f + penalty.value(z[:free])),
            (steps, step.reshape(shape)),
        ):
            kept.append(new)
    return Trajectory(np.array(xs), np.array(gs[1:]), np.array(Fs), np.array(steps))


def same_block(blocks, shape, tail):
    """The 0-1 matrix of "coordinates i and j are in one block"; labels may leave out the intercept, a block of its own."""
    size = int(np.prod(shape))
    if isinstance(blocks, str) and blocks == "all":
        labels = np.zeros(size)
    elif isinstance(blocks, str) and blocks == "row":
        labels = np.repeat(np.arange(shape[0]), shape[1])
    elif blocks is None or isinstance(blocks, str):
        labels = np.arange(size)
    else:
        labels = np.array(np.ravel(blocks).tolist(), dtype=object)  # whole numbers of any size
        if labels.size == size - tail:
            labels = np.append(labels, np.full(tail, max(labels, default=-1) + 1))
    return (labels[:, None] == labels[None, :]).astype(float)


# ---------------------------------------------------------------- losses: each gives a function x -> (f, g)


def linear_model(ell):
    """f(x) = sum_j omega_j ell(<a_j, x> + c, b_j) + l2 / 2 ||x||^2, from ell(z, b) -> values, derivatives."""

    @wraps(ell)
    def loss(A, b, *, sample_weight=None, l2=0.0, intercept=False, **theta):
        omega = np.ones(len(b)) if sample_weight is None else sample_weight
        omega = omega / np.sum(omega)

        def value_and_grad(x):
            x, c = (x[:-1], x[-1]) if intercept else (x, 0.0)
            values, derivatives = ell(A @ x + c, b, **theta)
            r = (omega * derivatives.T).T
            g = A.T @ r + l2 * x
            f = omega @ values + l2 / 2 * np.sum(x**2)
            return f, np.concatenate([g, r.sum(axis=0, keepdims=True)]) if intercept else g

        return value_and_grad

    return loss


@linear_model
def Logistic(z, b):
    return np.logaddexp(0, -b * z), -b * np.exp(-np.logaddexp(0, b * z))


@linear_model
def Hinge(z, b):
    return np.maximum(0, 1 - b * z), np.where(b * z < 1, -b, 0.0)


@linear_model
def SquaredHinge(z, b):
    return np.maximum(0, 1 - b * z) ** 2, -2 * b * np.maximum(0, 1 - b * z)


@linear_model
def LAD(z, b):
    return np.abs(z - b), np.sign(z - b)


@linear_model
def Quantile(z, b, tau=0.5):
    return np.maximum(tau * (b - z), (tau - 1) * (b - z)), (1 - tau) * (z > b) - tau * (z < b)


@linear_model
def Squared(z, b):
    return (z - b) ** 2 / 2, z - b


@linear_model
def Huber(z, b, delta=1.0):
    t = np.abs(z - b)
    return np.where(t <= delta, t**2 / 2, delta * (t - delta / 2)), np.clip(z - b, -delta, delta)


@linear_model
def Poisson(z, b):
    return np.exp(z) - b * z, np.exp(z) - b


@linear_model
def Multinomial(z, b):
    log_sum, onehot = np.logaddexp.reduce(z, axis=1), np.eye(z.shape[1])[b]
    return log_sum - np.sum(onehot * z, axis=1), np.exp(z - log_sum[:, None]) - onehot


def Quadratic(Q, c):
    return lambda x: (x @ Q @ x / 2 - c @ x, Q @ x - c)


def KernelSVMDual(K, b, lam):
    return lambda alpha: (alpha @ K @ alpha / (2 * lam) - alpha @ b, K @ alpha / lam - b)


# ---------------------------------------------------------------- penalties


@dataclass
class Penalty:
    """prox(z, s) = argmin_x phi(x) + sum_i (x_i - z_i)^2 / (2 s_i)"""

    value: object
    prox: object


def Zero():
    return Penalty(lambda x: 0.0, lambda z, s: z)


def L1(lam):
    return Penalty(
        lambda x: np.sum(lam * np.abs(x)),
        lambda z, s: np.sign(z) * np.maximum(np.abs(z) - s * lam, 0),
    )


def Ridge(lam):
    return Penalty(lambda x: np.sum(lam * x**2) / 2, lambda z, s: z / (1 + s * lam))


def ElasticNet(l1, l2):
    return Penalty(
        lambda x: L1(l1).value(x) + Ridge(l2).value(x),
        lambda z, s: L1(l1).prox(z, s) / (1 + s * l2),
    )


def Box(lower, upper):
    return Penalty(
        lambda x: 0.0 if np.all((lower <= x) & (x <= upper)) else np.inf,
        lambda z, s: np.minimum(np.maximum(z, lower), upper),
    )


def NonNegative():
    return Box(0.0, np.inf)
