"""Lemma 1 in its two forms, its corollary, and AdaGrad's own inequality.

They hold for any positive weights that do not decrease, so they check the step; `weights` checks the metric.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..rules import AdaGrad
from ._inequality import Inequality, point, smoothness
from ._run import Run


class Pieces(NamedTuple):
    """The parts of Lemma 1 for n = 1 ... N."""

    gap: np.ndarray  # F(x^{n+1}) - F(x)
    before: np.ndarray  # ||x^n - x||^2 in the metric W_n
    after: np.ndarray  # ||x^{n+1} - x||^2 in the metric W_n
    alpha: np.ndarray  # eta_n^2 ||g^{n+1} - g^n||^2 in the metric W_n^{-1}
    magnitude: np.ndarray  # of all that enters


def pieces(run: Run, x: np.ndarray, value: float, size: float) -> Pieces:
    """The parts of Lemma 1 at a comparison point x where F is `value`."""
    w, eta = run.w[:-1], run.eta
    distance = run.by_block((run.x - x) ** 2)
    before, after = np.sum(w * distance[:-1], axis=1), np.sum(w * distance[1:], axis=1)
    alpha = eta**2 * np.sum(run.squares[1:] / w, axis=1)
    # What a rounded x or g does to the squares: twice the product with its magnitude. A gradient is a sum over samples that
    # may cancel; the largest entry of all gradients of the run stands for what is cancelled.
    largest = np.abs(run.g).max()
    magnitude = 2 * eta * (run.size[:-1] + run.size[1:] + size) + before + after + alpha
    for k in range(run.N):  # row by row, to save memory
        weight = w[k][run.labels]
        away, off = np.abs(run.x[k + 1] - x), np.abs(run.x[k] - x)
        magnitude[k] += 2 * np.sum(weight * away * (np.abs(run.x[k]) + np.abs(run.x[k + 1])))
        magnitude[k] += 2 * eta[k] * largest * np.sum(away + off)
        magnitude[k] += 2 * eta[k] ** 2 * largest * np.sum(np.abs(run.g[k + 1] - run.g[k]) / weight)
    return Pieces(run.F[1:] - value, before, after, alpha, magnitude)


def lemma_1(run: Run, x: Any) -> Inequality:
    r"""The basic inequality, for any comparison point x.

    .. math:: 2\eta_n (F(x^{n+1}) - F(x)) \le \|x^n - x\|^2_{W_n} - \|x^{n+1} - x\|^2_{W_n}
              + \eta_n^2 \|g^{n+1} - g^n\|^2_{W_n^{-1}}

    Parameters
    ----------
    run : Run
        Of any rule.
    x : array
        Where F is finite.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, LAD
    >>> from adagrad_diff.theory import lemma_1, record
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> lemma_1(run, [3.0]).holds(), lemma_1(run, [0.5]).holds()
    (True, True)
    """
    p = pieces(run, *point(run, x, "Lemma 1"))
    right = p.before - p.after + p.alpha
    return Inequality(
        "Lemma 1", np.arange(1, run.N + 1), 2 * run.eta * p.gap, right, p.magnitude, run.rounding
    )


def lemma_1_smooth(run: Run, x: Any, L: float | None = None) -> Inequality:
    r"""The basic inequality for an L-smooth f, again for any x.

    .. math:: 2\eta_n (F(x^{n+1}) - F(x)) \le \dots - \frac{\eta_n}{L} \|g^{n+1} - g^n\|^2

    with the right side of `lemma_1` for the dots. The appendix prints a plus; its proof ends with this minus.

    Parameters
    ----------
    run, x
        As for `lemma_1`.
    L : float, optional
        That of the loss by default; a loss that has none is refused.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.theory import lemma_1_smooth, record
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> lemma_1_smooth(run, [3.0]).holds()
    True
    """
    owner = "the smooth form of Lemma 1"
    L = smoothness(run, L, owner)
    p = pieces(run, *point(run, x, owner))
    gain = run.eta / L * run.squares[1:].sum(axis=1)
    return Inequality(
        "Lemma 1, smooth",
        np.arange(1, run.N + 1),
        2 * run.eta * p.gap,
        p.before - p.after + p.alpha - gain,
        p.magnitude + gain,
        run.rounding,
        needs=("f is L-smooth",),
    )


def corollary(run: Run, x: Any) -> Inequality:
    r"""Lemma 1 summed up, for any x; entry n sums over iterates 2 ... n.

    .. math:: \sum_{k=2}^n \eta_{k-1} (F(x^k) - F(x)) \le \tfrac\varepsilon2 \|x^1 - x\|^2
              + \tfrac12 \Delta^{n-1}_{\max} \sum_i w_i^{n-1}
              + \tfrac12 \sum_{k=2}^n \eta_{k-1}^2 \|g^k - g^{k-1}\|^2_{W_{k-1}^{-1}}

    :math:`\Delta^{n-1}_{\max}` is the largest squared distance to x in any one block up to iterate n - 1.

    Parameters are those of `lemma_1`.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, LAD
    >>> from adagrad_diff.theory import corollary, record
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> said = corollary(run, [0.5])
    >>> said.holds(), list(said.terms)
    (True, ['start', 'distance', 'differences'])
    """
    x, value, size = point(run, x, "the corollary")
    p = pieces(run, x, value, size)
    terms = {
        "start": np.full(run.N, run.rule.eps / 2 * np.sum((run.x[0] - x) ** 2)),
        "distance": 0.5 * largest_distance(run, x) * run.w[:-1].sum(axis=1),
        "differences": 0.5 * np.cumsum(p.alpha),
    }
    return Inequality(
        "corollary",
        np.arange(2, run.N + 2),
        np.cumsum(run.eta * p.gap),
        sum(terms.values(), np.zeros(run.N)),
        0.5 * np.cumsum(p.magnitude) + terms["start"] + terms["distance"],
        run.rounding,
        terms=terms,
    )


def largest_distance(run: Run, x: np.ndarray) -> np.ndarray:
    """Delta_max^{n-1} for n = 2 ... N+1: the largest squared distance to x in one block, of iterates 1 ... n-1."""
    return np.maximum.accumulate(run.by_block((run.x[:-1] - x) ** 2).max(axis=1))


def adagrad_inequality(run: Run, x: Any) -> Inequality:
    r"""The inequality that AdaGrad's analysis rests on, for any x.

    .. math:: 2\eta_n (F(x^n) - F(x)) \le \|x^n - x\|^2_{W_n} - \|x^{n+1} - x\|^2_{W_n} + \eta_n^2 \|g^n\|^2_{W_n^{-1}}
              + 2\eta_n (\varphi(x^n) - \varphi(x^{n+1}))

    The gradient itself stands where `lemma_1` has the difference of two.

    Parameters
    ----------
    run : Run
        Of AdaGrad.
    x : array
        Where F is finite.

    Examples
    --------
    >>> from adagrad_diff import AdaGrad, LAD
    >>> from adagrad_diff.theory import adagrad_inequality, record
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGrad(eta=0.5), iterations=50)
    >>> adagrad_inequality(run, [3.0]).holds()
    True
    """
    owner = "AdaGrad's inequality"
    if not isinstance(run.rule, AdaGrad):
        raise ValueError(
            f"{owner} is about AdaGrad; this run was made by {type(run.rule).__name__}."
        )
    x, value, size = point(run, x, owner)
    if not np.isfinite(run.phi[0]):
        raise ValueError(f"{owner} needs a start where F is finite.")
    p = pieces(run, x, value, size)
    step = run.eta**2 * np.sum(run.by_block(run.g[:-1] ** 2) / run.w[:-1], axis=1)
    change = 2 * run.eta * (run.phi[:-1] - run.phi[1:])
    return Inequality(
        owner[0].upper() + owner[1:],
        np.arange(1, run.N + 1),
        2 * run.eta * (run.F[:-1] - value),
        p.before - p.after + step + change,
        p.magnitude + step + 2 * run.eta * (np.abs(run.phi[:-1]) + np.abs(run.phi[1:])),
        run.rounding,
        needs=("the run is AdaGrad's",),
    )
