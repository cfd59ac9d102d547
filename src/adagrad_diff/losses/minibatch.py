"""A linear model whose gradients are estimated from a few samples at a time."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np

from .. import _check
from ..linalg.inner_loops import batch, uniform
from ..linalg.minibatch import MinibatchRows, minibatch_rows
from .base import Coordinates, Loss, Oracle
from .linear import LinearModel

STEPS_MADE = "steps_made"  # the name under which a state has the number of steps made so far
# Time for a row of a batch, scattered over the memory, relative to a row of a full pass (estimate).
RANDOM_ROW_COST = 2.0
LENGTH_STREAM = 0x5EED  # XORed with the seed, so that lengths of epochs are independent of batches


class Minibatch(Loss):
    r"""Estimate gradients from minibatches, with reduced noise.

    .. math:: v_n = g_B(x_n) - g_B(y) + g(y) \qquad \text{("svrg", y: a snapshot)}

    Then differences of estimates show how the gradient changes. Here :math:`g_B` is the gradient of
    a batch B of `size` samples, weighted so that its mean over batches is the gradient.

    An iteration of `minimize` is then an epoch: steps with estimates, and a last step that ends
    with the value and the gradient of all samples. There the next epoch begins (it is the
    snapshot). The number of steps is geometric (loopless SVRG), of mean N / (2 size). The rows of a
    batch are scattered over the memory and cost twice as much, so the estimates take as long as the
    full gradient and see half as many samples. Objectives, certificates, tolerances and the exact
    solution are about all samples. Compared with a run without minibatches, a state has one more
    number, the count of steps, and `history.passes` counts passes over the data. Averages are over
    the ends of epochs.

    Parameters
    ----------
    loss : LinearModel
        Any loss of a linear model, including `Multinomial`, over data in memory: an array, or a
        SciPy matrix. Arrays in C order and CSR are used in place. Other data are copied once.
    size : int
        Number of samples of a batch. With at least half of all samples, a run equals the one
        without minibatches, which costs less.
    seed : int
        A non-negative integer. Batch n of a run depends on the seed and n only, so a run that
        resumes sees the same batches, and so do all the trajectories of a sweep.
    reduce : {"svrg", None}
        How the noise is reduced. None takes :math:`v_n = g_B(x_n)`, whose differences are mostly
        noise.

    Notes
    -----
    Every rule works with it. Those that compare values of the loss (`FISTA`, `ACFGM`) or take
    gradients at averages (`UniXGrad`, `UniAdaGrad`) get the full gradient in every step. For
    samples that arrive in a stream, without a full gradient, see `partial_fit` of the estimators.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, Logistic, Minibatch, minimize
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((2000, 10))
    >>> loss = Logistic(A, np.sign(A[:, 0] + rng.standard_normal(2000)))
    >>> result = minimize(Minibatch(loss, 50), penalty=L1(0.01), eta=0.1, max_iter=10)
    >>> full = minimize(loss, penalty=L1(0.01), eta=0.1, max_iter=round(result.history.passes[-1]))
    >>> bool(result.fun < full.fun)
    True

    References
    ----------
    Johnson, Zhang: Accelerating Stochastic Gradient Descent using Predictive Variance Reduction.
    Kovalev, Horvath, Richtarik: Don't Jump Through Hoops and Remove Those Loops.
    """

    def __init__(self, loss: LinearModel, size: int, seed: int = 0, reduce: str | None = "svrg"):
        if not isinstance(loss, LinearModel):
            raise TypeError(
                "The 'loss' parameter of Minibatch must be the loss of a linear model, such as "
                f"Logistic(A, b). Got {_check.shown(loss)} instead."
            )
        self.reduce = _check.one_of(reduce, ("svrg", None), "reduce", "Minibatch")
        self.seed = _check.count(seed, "seed", "Minibatch", most=2**63 - 1)
        self.loss, self.samples = loss, loss.A.shape[0]
        self.size = min(_check.count(size, "size", "Minibatch", least=1), self.samples)
        self.shape, self.dtype, self.intercept = loss.shape, loss.dtype, loss.intercept
        self.predictions = loss.predictions
        # Private, because fingerprints describe public attributes.
        self._rows = minibatch_rows(loss.A)
        self._order = np.random.default_rng(self.seed).permutation(self.samples)

    def _words(self) -> list[str]:
        return [repr(self.loss), f"size={self.size}, seed={self.seed}, reduce={self.reduce!r}"]

    @property
    def whole(self) -> LinearModel:
        """The loss of all samples."""
        return self.loss

    @property
    def rows(self) -> MinibatchRows:
        """The rows of A."""
        return self._rows

    @property
    def order(self) -> np.ndarray:
        """All samples in a random order.

        A batch is `size` of them in a row, from a random place on. The first follows the last.
        """
        return self._order

    def oracle(self, x: np.ndarray) -> Oracle:
        """Return the oracle of all samples."""
        return self.loss.oracle(x)

    def lipschitz(self) -> float:
        return self.loss.lipschitz()

    def coordinates(self) -> Coordinates:
        known, other = self.loss.coordinates(), copy.copy(self)
        assert isinstance(known.loss, LinearModel)
        other.loss = known.loss
        return replace(known, loss=other)

    def batch(self, n: int) -> np.ndarray:
        """Return the samples of batch n = 1, 2, ..., which the n-th estimate of a run uses."""
        batch(self.seed, n, self.order, rows := np.empty(self.size, np.int64))
        return rows

    def length(self, first: int) -> int:
        """Return the number of steps of the epoch that begins after `first` steps.

        It is geometric, and its mean is such that the steps cost as much as a full gradient.
        """
        last = RANDOM_ROW_COST * self.size / self.samples  # the probability to be the last step
        if last >= 1.0:
            return 1
        random = uniform(self.seed ^ LENGTH_STREAM, first)
        return 1 + int(math.log1p(-random) / math.log1p(-last))

    def schedule(self, iterations: int) -> np.ndarray:
        """Return the passes over the data that 1, 2, ... iterations take. Only the seed decides."""
        passes, steps = [1.0], 0
        for _ in range(iterations):
            count = self.length(steps)
            passes.append(passes[-1] + 1.0 + self.size / self.samples * (count - 1))
            steps += count
        return np.array(passes[1:])


class Estimates:
    """The estimates g_B(x) - g_B(y) + g(y) of one run, for any number of trajectories or classes.

    `y` is the snapshot, `base` its gradient and `held` its residuals. They are zero before the
    first snapshot, so the estimate is the gradient of the batch.
    """

    def __init__(self, loss: Minibatch, x: np.ndarray):
        self.loss, self.model, columns = loss, loss.loss, x.size // len(x)
        self._samples, self._factor = self.model.samples((columns,)), loss.samples / loss.size
        self.y, self.base = np.zeros_like(x), np.zeros_like(x)
        self.held = np.zeros((loss.samples, columns), loss.dtype)

    def snapshot(self, x: np.ndarray, g: np.ndarray, r: np.ndarray) -> None:
        """Set the snapshot: a point, its gradient and the residuals of all samples there."""
        self.y, self.base, self.held = x, g, r.reshape(len(r), -1)

    def __call__(self, n: int, x: np.ndarray, out: np.ndarray) -> None:
        """Write the estimate at x after n steps, from batch n, into `out`."""
        rows = self.loss.batch(n)
        r = self.residuals(rows, x) - self._factor * self.held[rows]
        np.add(self.base, self.gradient(rows, r, x - self.y), out=out)

    def residuals(self, rows: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the residuals of some samples at x, for the gradient of their batch."""
        model, columns = self.model, x.reshape(len(x), -1)
        r = np.empty((len(rows), columns.shape[1]), model.dtype)
        weight = self._factor * model.weight[rows]
        batch = replace(self._samples, b=model.b[rows], weight=weight, r=r)
        with np.errstate(all="ignore"):  # overflows show in the value at the end of the epoch
            self.loss.rows.dot(rows, columns[: model.A.shape[1]], r)
            r += model.offsets(columns)
            batch.residuals()(0, len(r), np.zeros(len(r[0])))  # predictions become residuals
        return r

    def gradient(self, rows: np.ndarray, r: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradient from residuals r of some samples, with the ridge term at x."""
        features, g = self.model.A.shape[1], np.zeros_like(x)
        columns = g.reshape(len(x), -1)
        self.loss.rows.tdot(rows, r, columns[:features])
        self.model.add_intercept(r, columns)
        g[:features] += self.model.l2 * x[:features]
        return g
