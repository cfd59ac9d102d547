"""A linear model whose gradients are estimated from a few samples at a time."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import _check, kernels
from ..data.picked import Picked, picked
from .base import Coordinates, Loss, Oracle
from .linear import LinearModel

STEPS_MADE = "minibatch.steps"  # the name under which a state has the number of steps made so far
RANDOM_ROW = 2.0  # times what a row costs in a pass over all of them: rows of a batch are all over the memory
LENGTHS = 0x5EED  # tells the numbers that lengths of rounds are made of from those of batches


class Minibatch(Loss):
    r"""Estimate gradients from minibatches, with their noise reduced: differences then show the gradient's changes again.

    .. math:: v_n = g_B(x_n) - g_B(y) + g(y) \qquad \text{("svrg", y: a snapshot)}

    .. math:: v_n = g_B(x_n) + (1 - a)\,(v_{n-1} - g_B(x_{n-1})), \quad a = \text{size} / N \qquad \text{("storm")}

    where :math:`g_B` is the gradient of a batch B of `size` samples, weighted so that its mean over batches is the gradient.

    An iteration of `minimize` is then a round: steps with estimates, and a last one that ends with the value and the
    gradient of all samples, from which the next round begins (it is the snapshot). The number of steps is geometric (loopless
    SVRG), of mean N / (2 size): so the estimates, whose rows are all over the memory and cost twice as much there, take as
    long as the full gradient, and see half as many samples. Objectives, certificates, tolerances and the finish are those of
    all samples; a state has nothing but a count of the steps beside what it has anyway, and `history.passes` tells what was
    spent. Averages are over ends of rounds.

    Parameters
    ----------
    loss : LinearModel
        Any loss of a linear model, `Multinomial` included, over data in memory: an array, or a SciPy matrix. Arrays in C order
        and CSR are used in place; anything else is copied once, into one of these.
    size : int
        Samples of a batch. With half of all samples or more, a run is the one without minibatches: that costs less.
    seed : int
        Batch n of a run depends on the seed and n only: a run that is resumed sees the same batches, and so do all the
        trajectories of a sweep.
    reduce : {"svrg", "storm", None}
        How the noise is reduced; None takes :math:`v_n = g_B(x_n)`, whose differences are mostly noise.

    Notes
    -----
    Every rule works with it. One that compares values of the loss (`FISTA`) gets the full gradient in every step.

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
    Johnson, Zhang: Accelerating Stochastic Gradient Descent using Predictive Variance Reduction. Kovalev, Horvath, Richtarik:
    Don't Jump Through Hoops and Remove Those Loops. Cutkosky, Orabona: Momentum-Based Variance Reduction in Non-Convex SGD.
    """

    loss: LinearModel

    def __init__(self, loss: LinearModel, size: int, seed: int = 0, reduce: str | None = "svrg"):
        if not isinstance(loss, LinearModel):
            raise TypeError(
                f"The 'loss' parameter of Minibatch must be the loss of a linear model, such as Logistic(A, b). "
                f"Got {_check.shown(loss)} instead."
            )
        self.loss, samples = loss, loss.A.shape[0]
        self.size = min(_check.count(size, "size", "Minibatch", least=1), samples)
        self.seed = _check.count(seed, "seed", "Minibatch")
        if self.seed >= 2**63:
            raise ValueError(
                f"The 'seed' parameter of Minibatch must be less than 2**63. Got {seed} instead."
            )
        if reduce is not None:
            _check.one_of(reduce, ("svrg", "storm", None), "reduce", "Minibatch")
        self.reduce = reduce
        self.shape, self.dtype, self.intercept, self.predictions = (
            loss.shape,
            loss.dtype,
            loss.intercept,
            loss.predictions,
        )
        self._rows = picked(loss.A)  # an error now, if there are none

    @property
    def whole(self) -> Loss:
        """The loss of all samples."""
        return self.loss

    @property
    def smoothness(self) -> float | None:
        return self.loss.smoothness

    @property
    def differentiable(self) -> bool:
        return self.loss.differentiable

    @property
    def rows(self) -> Picked:
        """The rows of A."""
        return self._rows

    @cached_property
    def _order(self) -> np.ndarray:
        return np.random.default_rng(self.seed).permutation(self.samples)

    @property
    def order(self) -> np.ndarray:
        """All samples in a random order: a batch is `size` of them in a row, from a random place on, round the end."""
        return self._order

    @property
    def estimates(self) -> bool:
        """Whether there are any: a round of one step is the full gradient."""
        return RANDOM_ROW * self.size < self.samples

    def oracle(self, x: np.ndarray) -> Oracle:
        """That of all samples."""
        return self.loss.oracle(x)

    def lipschitz(self) -> float:
        return self.loss.lipschitz()

    def coordinates(self) -> Coordinates:
        known, other = self.loss.coordinates(), copy.copy(self)
        if isinstance(known.loss, LinearModel):
            other.loss = known.loss
        return replace(known, loss=other)

    @property
    def samples(self) -> int:
        """Of all batches together."""
        return int(self.loss.A.shape[0])

    def batch(self, n: int) -> np.ndarray:
        """The samples of batch n = 1, 2, ...: those of the n-th estimate of a run."""
        kernels.batch(self.seed, n, self.order, rows := np.empty(self.size, np.int64))
        return rows

    def length(self, first: int) -> int:
        """Steps of the round that begins after `first` steps: geometric, so that they cost what a full gradient does."""
        if not self.estimates:
            return 1
        stop = (
            RANDOM_ROW * self.size / self.samples
        )  # the probability that a step is the last one of its round
        return 1 + int(math.log1p(-kernels.uniform(self.seed ^ LENGTHS, first)) / math.log1p(-stop))

    def schedule(self, iterations: int) -> np.ndarray:
        """Passes over the data that 1, 2, ... iterations take: they do not depend on what happens there."""
        steps = [0]
        for _ in range(iterations):
            steps.append(steps[-1] + self.length(steps[-1]))
        return np.asarray(
            self.passes(np.arange(1, iterations + 1), {STEPS_MADE: np.array(steps[1:], float)})
        )

    def remember(self, batch: tuple[int, ...]) -> dict[str, np.ndarray]:
        """The number of steps so far."""
        return {STEPS_MADE: np.zeros(batch)}

    def passes(self, n: Any, memory: dict[str, np.ndarray]) -> Any:
        """One for each full gradient, and what the estimates in between have seen of the data."""
        share = self.size / self.samples * (2 if self.reduce == "storm" else 1)
        return (
            n + 1 + share * np.maximum(memory[STEPS_MADE] - n, 0.0)
        )  # of a rule without estimates nothing is counted

    def __repr__(self) -> str:
        return (
            f"Minibatch({self.loss!r}, size={self.size}, seed={self.seed}, reduce={self.reduce!r})"
        )
