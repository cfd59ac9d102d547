"""The rules of the optax door as plain NumPy formulas, on real arrays in double precision: what to compare with."""

import math
from dataclasses import asdict

import jax
import numpy as np

import naive
from adagrad_diff.optax import L1, Box, ElasticNet, GroupL2, NonNegative, Ridge, adagrad_diff, adamdiff
from adagrad_diff.penalties import GroupL2 as CoreGroupL2

OPTIMIZERS = (adagrad_diff, adamdiff)
PENALTIES = (
    L1(0.05),
    Ridge(0.3),
    ElasticNet(0.03, 0.2),
    Box(-0.3, 0.4),
    NonNegative(),
    GroupL2(0.2),
    GroupL2(0.1, "tensor"),
)


def core(penalty, shape):
    """The same penalty for NumPy, on vectors of that many entries."""
    if penalty is None:
        return naive.Zero()
    if isinstance(penalty, GroupL2):
        rows = math.prod(shape[:1]) if penalty.over == "row" else 1
        return CoreGroupL2(penalty.lam, np.repeat(np.arange(rows), math.prod(shape) // rows))
    return getattr(naive, type(penalty).__name__)(**asdict(penalty))


class Twin:
    """One array of parameters: every gradient that it has seen, and where it is now."""

    def __init__(self, x, make, lr, *, eps=1e-8, b1=0.9, b2=0.999, penalty=None, blocks="element", decay=None):
        self.x, self.adam, self.lr, self.eps, self.blocks = np.array(x, np.float64), make is adamdiff, lr, eps, blocks
        self.b1, self.decay = b1 if self.adam else None, b2 if self.adam else decay
        self.prox = core(penalty, self.x.shape).prox
        self.prev, self.total, self.mean, self.n = np.zeros(self.x.shape), 0.0, 0.0, 0  # g^0 = 0

    def block_sum(self, a):
        first = {"element": None, "row": 1, "tensor": 0}[self.blocks]
        return a if first is None or first >= a.ndim else np.sum(a, tuple(range(first, a.ndim)), keepdims=True)

    def step(self, g):
        g, self.n = np.asarray(g, np.float64), self.n + 1
        lr = self.lr(self.n - 1) if callable(self.lr) else self.lr
        square, direction = self.block_sum((g - self.prev) ** 2), g
        if self.decay is None:
            self.total = self.total + square
            w = np.sqrt(self.total) + self.eps
        else:
            self.total = self.decay * self.total + (1 - self.decay) * square
            w = np.sqrt(self.total / (1 - self.decay**self.n)) + self.eps
        if self.adam:
            self.mean = self.b1 * self.mean + (1 - self.b1) * g
            direction = self.mean / (1 - self.b1**self.n)
        steps = np.broadcast_to(lr / w, self.x.shape).ravel()
        self.x = np.reshape(self.prox(self.x.ravel() - steps * direction.ravel(), steps), self.x.shape)
        self.prev = g


def check_slope(f, *args):
    """The derivative of f, by reverse mode, along a random direction is what finite differences say. In double precision.

    Returns the gradient, compiled.
    """
    rng, h = np.random.default_rng(0), 1e-6
    direction = jax.tree.map(lambda leaf: rng.standard_normal(np.shape(leaf)), args)
    moved = lambda h: jax.tree.map(lambda leaf, d: leaf + h * d, args, direction)  # noqa: E731
    value, gradient = jax.jit(f), jax.jit(jax.grad(f, argnums=tuple(range(len(args)))))
    pairs = zip(jax.tree.leaves(gradient(*args)), jax.tree.leaves(direction), strict=True)
    expected = (value(*moved(h)) - value(*moved(-h))) / (2 * h)
    np.testing.assert_allclose(sum(np.sum(g * d) for g, d in pairs), expected, rtol=1e-6, atol=1e-7)
    return gradient
