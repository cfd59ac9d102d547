"""What the statements of the paper are about: all iterates, gradients, values and weights of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from .. import _check
from ..losses import Loss, as_loss
from ..penalties import Penalty, as_penalty
from ..rules import AdaGrad, AdaGradDiff, Rule, as_rule
from ..solvers.minimize import as_solver, begin, iterate


@dataclass(frozen=True, eq=False)
class Run:
    """A recorded run of N iterations with d coordinates in m blocks. It takes three arrays of N x d numbers.

    Row k of an array belongs to the paper's index k + 1. The weights are those that the steps were made with, not those
    that the formula promises: `weights` compares the two.
    """

    loss: Loss = field(repr=False)  # f
    penalty: Penalty = field(repr=False)  # phi
    rule: Rule
    shape: tuple[int, ...]  # of x
    x: np.ndarray = field(repr=False)  # (N+1, d): x^1 ... x^{N+1}
    g: np.ndarray = field(repr=False)  # (N+1, d): g^1 ... g^{N+1}
    f: np.ndarray = field(repr=False)  # (N+1,): f(x^1) ...
    phi: np.ndarray = field(repr=False)  # (N+1,): phi(x^1) ...
    eta: np.ndarray = field(repr=False)  # (N,): eta_1 ... eta_N
    w: np.ndarray = field(
        repr=False
    )  # (N+1, m): w^1 ... w^N as used, and w^{N+1}, which the next step would use
    labels: np.ndarray = field(repr=False)  # (d,): the block of every coordinate

    @property
    def N(self) -> int:
        """Iterations."""
        return len(self.eta)

    @property
    def F(self) -> np.ndarray:
        """F(x^1) ... F(x^{N+1})."""
        return np.asarray(self.f + self.phi)

    @property
    def rounding(self) -> float:
        """What rounding can do to a statement, relative to the sum of the magnitudes of everything that enters it.

        A sum of k numbers is off by at most k u times the sum of their magnitudes, u = 2^-53 for float64. Sums here run
        over samples, coordinates and iterations, one inside the other: k is at most N_samples + d + N. The factor 4 is for
        the products, quotients and roots of the summands.
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
        """The magnitude of what F(x^k) is summed up from. A quadratic f may cancel; then <g, x> shows how much."""
        return np.asarray(
            np.abs(self.f) + np.abs(self.phi) + np.sum(np.abs(self.g * self.x), axis=1)
        )

    @cached_property
    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """F(xbar^n) for n = 2 ... N+1, and the magnitudes of these values; xbar^n is the mean of x^2 ... x^n."""
        total, values = np.zeros(self.x.shape[1]), []
        for k, x in enumerate(self.x[1:], start=1):
            total += x
            values.append(self.objective(total / k))
        F, size = np.array(values).T
        return F, size

    def by_block(self, squared: np.ndarray) -> np.ndarray:
        """Sums over the coordinates of each block: (..., d) -> (..., m)."""
        blocks = self.w.shape[1]
        if blocks == squared.shape[-1]:
            return squared
        if blocks == 1:
            return np.asarray(squared.sum(axis=-1, keepdims=True))
        from scipy.sparse import csr_array

        member = csr_array((np.ones(self.labels.size), (np.arange(self.labels.size), self.labels)))
        return np.asarray(squared @ member)

    def objective(self, x: Any) -> tuple[float, float]:
        """F(x) and its magnitude, as `size`."""
        x = np.asarray(x, self.x.dtype).reshape(self.shape)
        f, g = self.loss.value_and_grad(x)
        phi = float(
            self.penalty.value(
                np.ascontiguousarray((x[:-1] if self.loss.intercept else x).reshape(-1))
            )
        )
        return float(f) + phi, abs(float(f)) + abs(phi) + float(np.sum(np.abs(g * x)))


def record(
    loss: Any, x0: Any = None, penalty: Any = None, rule: Rule | None = None, iterations: int = 100
) -> Run:
    """Run Algorithm 1 and keep everything; the memory is that of 3 x iterations x d numbers.

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
    >>> from adagrad_diff.theory import record
    >>> run = record(Squared([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=20)
    >>> run.x.shape, run.w.shape, run.N
    ((21, 2), (21, 2), 20)
    """
    iterations = _check.count(iterations, "iterations", "record", least=1)
    loss, penalty = as_loss(loss), as_penalty(penalty)
    rule = as_rule(rule)
    if not isinstance(rule, AdaGrad | AdaGradDiff):
        raise ValueError(
            f"The statements are about metrics: {type(rule).__name__} does not move in one."
        )
    if rule.scale is not None:
        raise ValueError(
            "The paper's metric has no 'scale': record a run without it, on columns that are scaled instead."
        )
    solver, _, first = begin(loss, x0, penalty, as_solver(rule), None)
    prepared = solver.rule
    if first.batched:
        raise ValueError(
            "The statements are about one trajectory: give x0 no trajectory axis and the rule one eta."
        )
    d, found = first.x.size, prepared.metric(first.x.size)[0]
    labels = np.arange(d) if found is None else found
    member = np.unique(labels, return_index=True)[
        1
    ]  # one coordinate of every block: all have the same step

    x, g, w = (
        np.empty((iterations + 1, d), first.x.dtype),
        np.empty((iterations + 1, d), first.x.dtype),
        [],
    )
    x[0], g[0] = first.x.ravel(), first.g.ravel()
    f, phi, eta, memory = [first.f], [first.phi], [], first.memory
    for k, state in enumerate(
        islice(iterate(loss, penalty=penalty, rule=rule, state=first), iterations), start=1
    ):
        if state.failed:
            break
        eta.append(float(rule.eta(k)) if callable(rule.eta) else float(rule.eta))  # type: ignore[arg-type]
        assert state.step is not None
        w.append(eta[-1] / state.step.ravel()[member])
        x[k], g[k] = state.x.ravel(), state.g.ravel()
        f.append(state.f)
        phi.append(state.phi)
        memory = state.memory
    N = len(eta)
    if N == 0:
        raise _check.InputError(
            "The first step led to a value that is not finite: there is nothing to record. Try a smaller eta."
        )
    last = prepared.update(memory, N + 1, x[N].astype(np.float64), g[N].astype(np.float64))[0]
    w.append(rule.eps + np.sqrt(last["total"]))
    return Run(
        loss=loss,
        penalty=penalty,
        rule=rule,
        shape=first.x.shape,
        x=x[: N + 1],
        g=g[: N + 1],
        f=np.array(f),
        phi=np.array(phi),
        eta=np.array(eta),
        w=np.array(w),
        labels=labels,
    )
