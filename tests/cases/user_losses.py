"""Losses as a user would write them, some of them with faults: what the tests of the driver run on."""

import numpy as np


class Bowl:
    """f(x) = sum_i c_i x_i^2 / 2 - x_i, one value per trajectory; from the k-th call on, `fault(f, g)` is the answer."""

    def __init__(self, curvature=(1.0, 3.0, 0.2), at=None, fault=None, once=True):
        self.curvature, self.at, self.fault, self.once, self.calls = (
            np.array(curvature),
            at,
            fault,
            once,
            0,
        )

    def __call__(self, x):
        self.calls += 1
        c = self.curvature.reshape(-1, *[1] * (x.ndim - 1))
        f, g = np.sum(c * x**2 / 2 - x, axis=0), c * x - 1
        if self.at is not None and (
            self.calls == self.at or (self.calls > self.at and not self.once)
        ):
            return self.fault(f, g)
        return f, g


class Barrier:
    """f(x) = sum_i x_i - log(x_i), NaN outside its domain: a step that is too long leaves it."""

    def __call__(self, x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sum(x - np.log(x), axis=0), 1 - 1 / x


def interrupt(f, g):
    """Ctrl-C during the evaluation."""
    raise KeyboardInterrupt


def data(samples=40, features=6, seed=0):
    """A, real targets, labels -1 and +1, and classes 0, 1, 2."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((samples, features))
    score = A @ rng.standard_normal(features) + 0.5 * rng.standard_normal(samples)
    return A, score, np.where(score > 0, 1.0, -1.0), np.digitize(score, [-1.0, 1.0])
