"""The rules of the torch and optax doors as plain NumPy formulas, on real arrays in double precision: what to compare with."""

import math
from dataclasses import asdict

import numpy as np

import naive
from adagrad_diff.penalties import GroupL2
from adagrad_diff.penalties import six_penalties as six
from adagrad_diff.rules.base import MAX_MOVE

NO_STEP = 1e-30  # the core's prox wants positive steps


def penalties(door):
    """Each of the six that a door has, with numbers for parameters of size one."""
    group = (door.GroupL2(0.2), door.GroupL2(0.1, "tensor"))
    return (
        door.L1(0.05),
        door.Ridge(0.3),
        door.ElasticNet(0.03, 0.2),
        door.Box(-0.3, 0.4),
        door.NonNegative(),
        *group,
    )


def core(penalty, shape):
    """The same penalty for NumPy, on vectors of that many entries."""
    if penalty is None:
        return naive.Zero()
    if isinstance(penalty, six.GroupL2):
        rows = math.prod(shape[:1]) if penalty.over == "row" else 1
        return GroupL2(penalty.lam, np.repeat(np.arange(rows), math.prod(shape) // rows))
    return getattr(naive, type(penalty).__name__)(**asdict(penalty))


class Twin:
    """One parameter: what it remembers of every gradient that it has seen, and where it is now.

    Coupled weight decay is a part of the gradient, decoupled weight decay shrinks x before the step.
    """

    def __init__(
        self,
        x,
        adam,
        lr,
        *,
        eps=1e-8,
        b1=0.9,
        b2=0.999,
        penalty=None,
        blocks="element",
        decay=None,
        maximize=False,
        max_move=MAX_MOVE,
        prox_unseen=False,
        weight_decay=0.0,
        decoupled_weight_decay=False,
        initial_accumulator_value=0.0,
        lr_decay=0.0,
    ):
        self.x, self.adam, self.lr, self.eps, self.blocks = (
            np.array(x, np.float64),
            adam,
            lr,
            eps,
            blocks,
        )
        self.b1, self.decay, self.max_move = b1, b2 if adam else decay, max_move
        self.sign, self.prox, self.prox_unseen = (
            -1 if maximize else 1,
            core(penalty, self.x.shape).prox,
            prox_unseen,
        )
        self.coupled, self.decoupled = (
            (0.0, weight_decay) if decoupled_weight_decay else (weight_decay, 0.0)
        )
        self.lr_decay, self.total = lr_decay, initial_accumulator_value
        self.prev, self.mean, self.n = np.zeros(self.x.shape), 0.0, 0  # g^0 = 0

    def block_sum(self, a):
        first = {"element": None, "row": 1, "tensor": 0}[self.blocks]
        return (
            a
            if first is None or first >= a.ndim
            else np.sum(a, tuple(range(first, a.ndim)), keepdims=True)
        )

    def step(self, g):
        g, self.n = self.sign * np.asarray(g, np.float64) + self.coupled * self.x, self.n + 1
        lr = (
            self.lr(self.n - 1)
            if callable(self.lr)
            else self.lr / (1 + (self.n - 1) * self.lr_decay)
        )
        square, direction = self.block_sum((g - self.prev) ** 2), g
        if self.adam:
            self.mean = self.b1 * self.mean + (1 - self.b1) * g
            direction = self.mean / (1 - self.b1**self.n)
        if self.decay is None:
            self.total = self.total + square
            size = np.sqrt(self.total)
        else:  # averages forget, and their weights shrink: no coordinate shall move by more than max_move lr
            self.total = self.decay * self.total + (1 - self.decay) * square
            least = np.sqrt(self.block_sum(direction**2)) / self.max_move
            size = np.maximum(np.sqrt(self.total / (1 - self.decay**self.n)), least)
        steps = np.broadcast_to(lr / (size + self.eps), self.x.shape)
        z = (1 - lr * self.decoupled) * self.x - steps * direction
        if self.prox_unseen:
            self.x = self.proximal(z, steps)
        else:  # where nothing has accumulated, no gradient ever was: no step for the penalty, and not even bounds
            seen = np.broadcast_to(self.total != 0, z.shape)
            moved = seen | (direction != 0)
            self.x = np.where(moved, self.proximal(z, np.where(seen, steps, NO_STEP)), z)
        self.prev = g

    def proximal(self, z, steps):
        return np.reshape(self.prox(z.ravel(), steps.ravel()), z.shape)
