"""What the paper's statements are about: all iterates, gradients, values and weights of one run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from ... import _check
from ...losses import Loss, as_loss
from ...penalties import Penalty, as_penalty
from ...rules import AdaGrad, AdaGradDiff, Rule, as_rule, block_labels
from ...solvers import iterate, minimize


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A recorded run of N iterations with d coordinates in m blocks: three arrays of N x d numbers.

    Row k of an array belongs to the paper's index k + 1. The weights are those that the steps were
    made with, not those of the formula: `weights` compares the two.
    """

    loss: Loss  # f
    penalty: Penalty  # phi
    rule: Rule
    shape: tuple[int, ...]  # of x
    x: np.ndarray  # (N+1, d): x^1 ... x^{N+1}
    g: np.ndarray  # (N+1, d): g^1 ... g^{N+1}
    f: np.ndarray  # (N+1,): f(x^1) ...
    phi: np.ndarray  # (N+1,): phi(x^1) ...
    eta: np.ndarray  # (N,): eta_1 ... eta_N
    w: np.ndarray  # (N+1, m): w^1 ... w^N, and w^{N+1} of the next step
    labels: np.ndarray  # (d,): the block of every coordinate

    @property
    def N(self) -> int:
        """The number of iterations."""
        return len(self.eta)

    @property
    def F(self) -> np.ndarray:
        """F(x^1) ... F(x^{N+1})."""
        return np.asarray(self.f + self.phi)

    @property
    def rounding(self) -> float:
        """A bound on rounding errors, relative to the sum of the magnitudes of all summands.

        A sum of k numbers is off by at most k u times the sum of their magnitudes, u = 2^-53 for
        float64. Sums run over samples, coordinates and iterations, one inside the other: k is at
        most N_samples + d + N. The factor 4 is for the products, quotients and roots of the
        summands.
        """
        unit = np.finfo(self.x.dtype).eps / 2
        return float(4 * unit * (self.loss.predictions + self.x.shape[1] + self.N))

    @cached_property
    def squares(self) -> np.ndarray:
        """||g_i^k - g_i^{k-1}||^2 for k = 1 ... N+1 and every block i, with g^0 = 0."""
        return self.by_block(np.diff(self.g, axis=0, prepend=0.0) ** 2)

    @cached_property
    def v(self) -> np.ndarray:
        """v_i^n = sqrt(sum_{k<=n} ||g_i^k - g_i^{k-1}||^2), from the recorded gradients."""
        return np.asarray(np.sqrt(np.cumsum(self.squares, axis=0)))

    @cached_property
    def size(self) -> np.ndarray:
        """The magnitude of the summands of F(x^k). If a quadratic f cancels, <g, x> shows it."""
        products = np.sum(np.abs(self.g * self.x), axis=1)
        return np.asarray(np.abs(self.f) + np.abs(self.phi) + products)

    @cached_property
    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """F(xbar^n) for n = 2 ... N+1, and their magnitudes; xbar^n is the mean of x^2 ... x^n."""
        means = np.cumsum(self.x[1:], axis=0) / np.arange(1, self.N + 1)[:, None]
        F, size = np.array([self.objective(mean) for mean in means]).T
        return F, size

    def by_block(self, squared: np.ndarray) -> np.ndarray:
        """Return sums over the coordinates of each block: (..., d) -> (..., m)."""
        from scipy.sparse import csr_array

        d = self.labels.size
        return np.asarray(squared @ csr_array((np.ones(d), (np.arange(d), self.labels))))

    def objective(self, x: Any) -> tuple[float, float]:
        """Return F(x) and its magnitude, as `size`."""
        x = np.asarray(x, self.x.dtype).reshape(self.shape)
        f, g = self.loss.value_and_grad(x)
        phi = float(self.penalty.value((x[:-1] if self.loss.intercept else x).ravel()))
        return float(f) + phi, abs(float(f)) + abs(phi) + float(np.sum(np.abs(g * x)))


def record(
    loss: Any, x0: Any = None, penalty: Any = None, rule: Rule | None = None, iterations: int = 100
) -> Run:
    """Run Algorithm 1 and keep everything, in the memory of 3 x iterations x d numbers.

    Parameters
    ----------
    loss, x0, penalty, rule
        As for `adagrad_diff.iterate`, for one trajectory.
    iterations : int
        N, at least 1. A run that leaves the range of the numbers ends there.

    Returns
    -------
    Run

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.experiments.theory import record
    >>> loss = Squared([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0])
    >>> run = record(loss, rule=AdaGradDiff(eta=0.5), iterations=20)
    >>> run.x.shape, run.w.shape, run.N
    ((21, 2), (21, 2), 20)
    """
    iterations = _check.count(iterations, "iterations", "record", least=1)
    loss, penalty, rule = as_loss(loss), as_penalty(penalty), as_rule(rule)
    if not isinstance(rule, AdaGrad | AdaGradDiff):
        raise ValueError(
            f"The statements are about metrics: {type(rule).__name__} does not move in one."
        )
    if rule.scale is not None:
        raise ValueError(
            "The paper's metric has no 'scale': record a run without it, on scaled columns instead."
        )
    options: dict[str, Any] = {"max_iter": 0, "on_failure": "ignore"}
    first = minimize(loss, x0, penalty, rule, **options).state
    if first.batched:
        raise ValueError(
            "The statements are about one trajectory: give x0 no trajectory axis, the rule one eta."
        )
    known = block_labels(rule.blocks, first.x.shape, loss.intercept)
    labels = np.arange(first.x.size) if known is None else known
    _, member = np.unique(labels, return_index=True)  # all coordinates of a block have its step
    states, steps = [first], []
    # One more iteration shows the weights of the next step.
    for state in islice(iterate(loss, None, penalty, rule, state=first), iterations + 1):
        if state.failed:
            break
        steps.append(np.ravel(np.asarray(state.step))[member])
        states.append(state)
    states.pop()
    N = len(steps) - 1
    if N < 1:
        raise _check.InputError(
            "The first step led to a value that is not finite: there is nothing to record. Try a "
            "smaller eta."
        )
    etas = [rule.eta(n) if callable(rule.eta) else rule.eta for n in range(1, N + 2)]
    stacked: dict[str, np.ndarray] = {
        name: np.array([np.ravel(getattr(state, name)) for state in states])
        for name in ("x", "g", "f", "phi")
    }
    return Run(
        loss=loss,
        penalty=penalty,
        rule=rule,
        shape=first.x.shape,
        x=stacked["x"],
        g=stacked["g"],
        f=stacked["f"][:, 0],
        phi=stacked["phi"][:, 0],
        eta=np.array(etas[:-1], float),
        w=np.array(etas, float)[:, None] / np.array(steps),
        labels=labels,
    )
