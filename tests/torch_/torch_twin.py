"""The rules of the torch optimizers as plain NumPy formulas, on real arrays in double precision: what to compare with."""

import math

import numpy as np

import naive
from adagrad_diff.penalties import GroupL2
from adagrad_diff.torch import AdaGradDiff, AdamDiff
from adagrad_diff.torch import penalties as ours

OPTIMIZERS = (AdaGradDiff, AdamDiff)
MODES = {
    "single": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "default": {},
}
PENALTIES = (
    ours.L1(0.05),
    ours.Ridge(0.3),
    ours.ElasticNet(0.03, 0.2),
    ours.Box(-0.3, 0.4),
    ours.NonNegative(),
    ours.GroupL2(0.2),
    ours.GroupL2(0.1, "tensor"),
)


def core(penalty, shape):
    """The same penalty for NumPy, on vectors of that many entries."""
    if penalty is None:
        return naive.Zero()
    if isinstance(penalty, ours.GroupL2):
        rows = math.prod(shape[:1]) if penalty.over == "row" else 1
        return GroupL2(penalty.lam, np.repeat(np.arange(rows), math.prod(shape) // rows))
    config = penalty.config()
    return getattr(naive, config.pop("name"))(**config)


class Twin:
    """One parameter: every gradient that it has seen, and where it is now."""

    def __init__(self, x, kind, lr, *, eps=1e-8, betas=(0.9, 0.999), penalty=None, blocks="element", maximize=False):
        self.x, self.kind, self.lr, self.eps, self.betas, self.blocks = np.array(x, np.float64), kind, lr, eps, betas, blocks
        self.sign, self.prox = -1 if maximize else 1, core(penalty, self.x.shape).prox
        self.prev, self.total, self.mean = np.zeros(self.x.shape), 0.0, 0.0  # g^0 = 0
        self.n = 0

    def block_sum(self, a):
        first = {"element": None, "row": 1, "tensor": 0}[self.blocks]
        return a if first is None or first >= a.ndim else np.sum(a, tuple(range(first, a.ndim)), keepdims=True)

    def step(self, g):
        g, self.n = self.sign * np.asarray(g, np.float64), self.n + 1
        square = self.block_sum((g - self.prev) ** 2)
        if self.kind is AdaGradDiff:
            self.total = self.total + square
            w, direction = np.sqrt(self.total) + self.eps, g
        else:
            b1, b2 = self.betas
            self.total, self.mean = b2 * self.total + (1 - b2) * square, b1 * self.mean + (1 - b1) * g
            w = np.sqrt(self.total / (1 - b2**self.n)) + self.eps
            direction = self.mean / (1 - b1**self.n)
        steps = np.broadcast_to(self.lr / w, self.x.shape).ravel()
        z = self.x.ravel() - steps * direction.ravel()
        self.x = np.reshape(self.prox(z, steps), self.x.shape)
        self.prev = g


def states_of(optimizer):
    """Every tensor of the state, in the order of the parameters."""
    return [dict(optimizer.state[p]) for group in optimizer.param_groups for p in group["params"]]
