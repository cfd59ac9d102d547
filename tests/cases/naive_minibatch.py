"""Minibatch gradients as plain NumPy formulas: what the tests of `Minibatch` compare with.

Nothing here imports the package. Which samples batch n has and how long a round is are arguments.
"""

import numpy as np

import naive


class Batches:
    """g_B(x) = N / |B| sum_{j in B} omega_j grad l(<a_j, x>, b_j) + l2 x; with B = all samples, the gradient."""

    def __init__(self, kind, A, b, *, sample_weight=None, l2=0.0, intercept=False, **theta):
        self.full = getattr(naive, kind)(
            A, b, sample_weight=sample_weight, l2=l2, intercept=intercept, **theta
        )
        one = [
            getattr(naive, kind)(A[j : j + 1], b[j : j + 1], intercept=intercept, **theta)
            for j in range(len(b))
        ]
        omega = np.ones(len(b)) if sample_weight is None else np.asarray(sample_weight, float)
        self.samples, self.omega, self.one, self.l2 = len(b), omega / omega.sum(), one, l2
        self.penalised = np.ones((A.shape[1] + intercept, 1))
        if intercept:
            self.penalised[-1] = 0.0

    def gradient(self, rows, x):
        total = sum(self.omega[j] * self.one[j](x)[1] for j in rows)
        return (
            self.samples / len(rows) * total
            + self.l2 * self.penalised.reshape(-1, *[1] * (x.ndim - 1)) * x
        )


class Estimates:
    """A loss whose gradients are estimated: called at x^1, x^2, ... in turn, as the naive rules do.

    v_n is the full gradient at the ends of rounds. In between, from batch B of number n,
    svrg: v_n = g_B(x_n) - g_B(y) + g(y), where y is the point at the last end of a round
    None: v_n = g_B(x_n)
    """

    def __init__(self, batches, batch, length, reduce, asked_twice=False):
        self.batches, self.batch, self.length, self.reduce, self.asked_twice = (
            batches,
            batch,
            length,
            reduce,
            asked_twice,
        )
        self.n, self.ends, self.x = -1, [0], None  # the steps after which rounds end

    def __call__(self, x):
        if (
            not self.asked_twice or self.x is None or np.any(x != self.x)
        ):  # a rule that asks twice for one point
            f, g = self.batches.full(x)
            self.n += 1
            if self.n == self.ends[-1]:
                self.y, self.g, self.v = x, g, g
                self.ends.append(self.n + self.length(self.n))
            else:
                self.v = self._estimate(self.batch(self.n), x)
            self.x, self.f = x, f
        return self.f, self.v

    def _estimate(self, rows, x):
        g_B = self.batches.gradient
        if self.reduce == "svrg":
            return g_B(rows, x) - g_B(rows, self.y) + self.g
        return g_B(rows, x)


def ends(length, rounds):
    """The numbers of steps after 0, 1, ... rounds."""
    found = [0]
    for _ in range(rounds):
        found.append(found[-1] + length(found[-1]))
    return np.array(found)
