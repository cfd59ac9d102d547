"""The paper's inequalities on a recorded run: left side, right side and slack per iteration.

Lemma 1 and what follows from it hold for any positive weights that do not decrease, so they check
the step; `weights` checks the metric.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _check
from ...rules import AdaGrad, AdaGradDiff
from .comparison import Inequality, check_rule, inequality, minimizer, parts, point, smoothness
from .run import Run

BOUND_FORMS = ("sum", "norm")
FEJER_FORMS = ("previous", "next", "printed")

# ------------------------------------------------------------------- any positive weights


def lemma_1(run: Run, x: Any) -> Inequality:
    r"""Return the basic inequality, for any comparison point x.

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
    >>> from adagrad_diff.experiments.theory import lemma_1, record
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> lemma_1(run, [3.0]).holds(), lemma_1(run, [0.5]).holds()
    (True, True)
    """
    p = parts(run, x, "Lemma 1")
    right = p.before - p.after + p.alpha
    return inequality(run, "Lemma 1", 1, 2 * run.eta * p.gap, right, p.magnitude)


def lemma_1_smooth(run: Run, x: Any, L: float | None = None) -> Inequality:
    r"""Return the basic inequality for an L-smooth f, again for any x.

    .. math:: 2\eta_n (F(x^{n+1}) - F(x)) \le \dots - \frac{\eta_n}{L} \|g^{n+1} - g^n\|^2

    with the right side of `lemma_1` for the dots. The appendix prints a plus; its proof ends with
    this minus.

    Parameters
    ----------
    run, x
        As for `lemma_1`.
    L : float, optional
        That of the loss by default; a loss that has none is an error.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.experiments.theory import lemma_1_smooth, record
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> lemma_1_smooth(run, [3.0]).holds()
    True
    """
    name = "Lemma 1, smooth"
    gain = run.eta / smoothness(run, L, name) * run.squares[1:].sum(axis=1)
    p = parts(run, x, name)
    right = p.before - p.after + p.alpha - gain
    return inequality(run, name, 1, 2 * run.eta * p.gap, right, p.magnitude + gain)


def corollary(run: Run, x: Any) -> Inequality:
    r"""Return Lemma 1 summed up, for any x; entry n sums over iterates 2 ... n.

    .. math:: \sum_{k=2}^n \eta_{k-1} (F(x^k) - F(x)) \le \tfrac\varepsilon2 \|x^1 - x\|^2
              + \tfrac12 \Delta^{n-1}_{\max} \sum_i w_i^{n-1}
              + \tfrac12 \sum_{k=2}^n \eta_{k-1}^2 \|g^k - g^{k-1}\|^2_{W_{k-1}^{-1}}

    :math:`\Delta^{n-1}_{\max}` is the largest squared distance to x in one block up to x^{n-1}.

    Parameters are those of `lemma_1`.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, LAD
    >>> from adagrad_diff.experiments.theory import corollary, record
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> said = corollary(run, [0.5])
    >>> said.holds(), list(said.terms)
    (True, ['start', 'distance', 'differences'])
    """
    p = parts(run, x, "corollary")
    start = np.full(run.N, run.rule.eps / 2 * np.sum((run.x[0] - p.x) ** 2))
    distance = 0.5 * largest_distance(run, p.x) * run.w[:-1].sum(axis=1)
    terms = {"start": start, "distance": distance, "differences": 0.5 * np.cumsum(p.alpha)}
    left, magnitude = np.cumsum(run.eta * p.gap), 0.5 * np.cumsum(p.magnitude) + start + distance
    return inequality(run, "corollary", 2, left, sum(terms.values()), magnitude, terms)


def largest_distance(run: Run, x: np.ndarray) -> np.ndarray:
    """Return Delta_max^{n-1}, n = 2 ... N+1: the largest squared distance to x in a block."""
    return np.maximum.accumulate(run.by_block((run.x[:-1] - x) ** 2).max(axis=1))


def adagrad_inequality(run: Run, x: Any) -> Inequality:
    r"""Return the inequality that AdaGrad's analysis rests on, for any x.

    .. math:: 2\eta_n (F(x^n) - F(x)) \le \|x^n - x\|^2_{W_n} - \|x^{n+1} - x\|^2_{W_n}
              + \eta_n^2 \|g^n\|^2_{W_n^{-1}} + 2\eta_n (\varphi(x^n) - \varphi(x^{n+1}))

    The gradient itself stands where `lemma_1` has the difference of two.

    Parameters are those of `lemma_1`, with a run of AdaGrad.

    Examples
    --------
    >>> from adagrad_diff import AdaGrad, LAD
    >>> from adagrad_diff.experiments.theory import adagrad_inequality, record
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGrad(eta=0.5), iterations=50)
    >>> adagrad_inequality(run, [3.0]).holds()
    True
    """
    name = "AdaGrad's inequality"
    check_rule(run, AdaGrad, name)
    p = parts(run, x, name)
    step = run.eta**2 * np.sum(run.by_block(run.g[:-1] ** 2) / run.w[:-1], axis=1)
    right = p.before - p.after + step + 2 * run.eta * (run.phi[:-1] - run.phi[1:])
    magnitude = p.magnitude + step + 2 * run.eta * (np.abs(run.phi[:-1]) + np.abs(run.phi[1:]))
    return inequality(run, name, 1, 2 * run.eta * (run.F[:-1] - p.value), right, magnitude)


# ---------------------------------------------------------------------------- AdaGrad-Diff


def weights(run: Run) -> Inequality:
    r"""Return the identity of w: the steps were made with the weights of the formula.

    .. math:: \max_i |w_i^n / \hat w_i^n - 1| \le 0, \qquad
              \hat w_i^n = \varepsilon + \sqrt{\sum_{k=1}^n \|g_i^k - g_i^{k-1}\|^2}

    up to rounding, for AdaGrad with g^k in place of the difference. A metric that lags one gradient
    behind, or sums without the square, satisfies Lemma 1 all the same. Only this identity shows it.

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff or AdaGrad.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, LAD
    >>> from adagrad_diff.experiments.theory import record, weights
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> weights(run).holds()
    True
    """
    root = run.v
    if isinstance(run.rule, AdaGrad):
        root = np.sqrt(np.cumsum(run.by_block(run.g**2), axis=0))
    error = np.max(np.abs(run.w / (run.rule.eps + root) - 1), axis=1)
    # The rule adds one number after the other: a sum of block size x N numbers.
    additions = int(np.bincount(run.labels).max()) * (run.N + 1)
    rounding = run.rounding + 2 * float(np.finfo(run.x.dtype).eps) * additions
    n, one = np.arange(1, run.N + 2), np.ones(run.N + 1)
    return Inequality("identity of w", n, error, 0 * one, one, rounding)


def main_bound(run: Run, x: Any, form: str = "sum") -> Inequality:
    r"""Return the paper's bound on the average of iterates 2 ... n, for any x.

    .. math:: F(\bar x^n) - F(x) \le \frac{1}{n-1} \Big[ \tfrac{\varepsilon}{2\eta} \|x^1 - x\|^2
              + \big( \tfrac{1}{2\eta} \Delta^{n-1}_{\max} + \eta \big) V_n
              + \tfrac\eta2 \sum_i \sum_{k=2}^n \Big( \frac1{w_i^{k-1}} - \frac1{w_i^k} \Big)
              \|g_i^k - g_i^{k-1}\|^2 \Big]

    Its terms are named start, distance (with :math:`\Delta_{\max}`), steps (with the lone
    :math:`\eta`) and growth.

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff with a constant eta.
    x : array
        Where F is finite.
    form : {"sum", "norm"}
        :math:`V_n = \sum_i v_i^n`, as in the appendix, or the larger
        :math:`\sqrt m (\sum_{k\le n} \|g^k - g^{k-1}\|^2)^{1/2}` of the main text.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, LAD
    >>> from adagrad_diff.experiments.theory import main_bound, record
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> said = main_bound(run, [0.5])
    >>> said.holds(), max(said.terms, key=lambda name: said.terms[name][-1])
    (True, 'steps')
    """
    _check.one_of(form, BOUND_FORMS, "form", "main_bound")
    name = f"main bound, {form}"
    check_rule(run, AdaGradDiff, name, constant=True)
    p = parts(run, x, name)
    eta, count = float(run.eta[0]), np.arange(1, run.N + 1)  # count is n - 1
    V = run.v[1:].sum(axis=1)
    if form == "norm":
        V = np.sqrt(run.w.shape[1] * np.cumsum(run.squares.sum(axis=1))[1:])
    growth = np.sum((1 / run.w[:-1] - 1 / run.w[1:]) * run.squares[1:], axis=1)
    terms = {
        "start": run.rule.eps / (2 * eta) * np.sum((run.x[0] - p.x) ** 2) / count,
        "distance": largest_distance(run, p.x) / (2 * eta) * V / count,
        "steps": eta * V / count,
        "growth": eta / 2 * np.cumsum(growth) / count,
    }
    F, sizes = run.average
    right = sum(terms.values())
    magnitude = np.cumsum(p.magnitude) / (2 * eta * count) + right + sizes + p.size
    return inequality(run, name, 2, F - p.value, right, magnitude, terms)


def squared_differences(run: Run, x_star: Any, L: float | None = None) -> Inequality:
    r"""Return the bound on the sum of squared gradient differences of the summability proof.

    Let I be the blocks whose weight reaches :math:`2\eta L` during the run, and :math:`\bar n` the
    iteration at which the last of them does. With :math:`c = m (2\eta L - \varepsilon)^2`,

    .. math:: \sum_{k=\bar n}^n \|g^{k+1} - g^k\|^2 \le
              4L (F(x^{\bar n}) - F_\star) + 2L \max_i \frac{\eta}{w_i^{\bar n}}\, c + c

    and :math:`\sum_{k=1}^n \|g^k - g^{k-1}\|^2 \le c` if I is empty.

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff with a constant eta.
    x_star : array
        A minimizer of F.
    L : float, optional
        That of the loss by default; a loss that has none is an error.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.experiments.theory import record, squared_differences
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> squared_differences(run, [0.6]).holds()
    True
    """
    name = "squared differences"
    check_rule(run, AdaGradDiff, name, constant=True)
    L = smoothness(run, L, name)
    _, F_star, size = minimizer(run, x_star, name)
    eta, total = float(run.eta[0]), run.squares.sum(axis=1)
    c = run.w.shape[1] * (2 * eta * L - run.rule.eps) ** 2
    reached = run.w >= 2 * eta * L
    if not reached.any():
        left, right = np.cumsum(total), np.full(run.N + 1, c)
        return inequality(run, name, 1, left, right, left + right, {"c": right})
    first = np.where(reached.any(axis=0), reached.argmax(axis=0), 0).max()  # the row of nbar
    if first >= run.N:
        raise ValueError(
            f"{name!r} says nothing yet: a weight reaches 2 eta L at the last gradient. Record a "
            "longer run."
        )
    longest = eta / run.w[first].min()
    values = {"gap": 4 * L * (run.F[first] - F_star), "late": 2 * L * longest * c, "c": c}
    terms = {key: np.full(run.N - first, value) for key, value in values.items()}
    left, right = np.cumsum(total[first + 1 :]), np.full(run.N - first, sum(values.values()))
    # The proof adds up Lemma 1 at x = x^k: its rounding errors, times 2 L / eta, add up as well.
    turns = np.abs(np.diff(run.g[first:], axis=0)).sum(axis=1)
    sizes = 4 * L * (run.size[first:-1] + run.size[first + 1 :])
    summed = np.cumsum(sizes + 4 * (1 + L * longest) * np.abs(run.g).max() * turns)
    magnitude = left + np.abs(right) + 4 * L * (run.size[first] + size) + summed
    return inequality(run, name, int(first) + 1, left, right, magnitude, terms)


# --------------------------------------------------------------- convergence of the iterates


def chi(run: Run) -> np.ndarray:
    r"""Return chi_n for n = 1 ... N+1.

    .. math:: \chi_n = \max_i \frac{w_i^n}{w_i^{n-1}} - 1, \qquad w^0 = \varepsilon

    Their sum is finite if f is L-smooth; for another f it need not be.
    """
    return np.asarray(np.max(run.w / _earlier(run), axis=1) - 1)


def quasi_fejer(run: Run, x_star: Any, form: str = "previous") -> Inequality:
    r"""Return the quasi-Fejer inequality, for a minimizer of F.

    .. math:: \|x^{n+1} - x\|^2_{W_n} &\le (1 + \chi_n) \|x^n - x\|^2_{W_{n-1}} + \alpha_n
              &&\text{(previous)} \\
              \|x^{n+1} - x\|^2_{W_{n+1}} &\le (1 + \chi_{n+1}) (\|x^n - x\|^2_{W_n} + \alpha_n)
              &&\text{(next)} \\
              \|x^{n+1} - x\|^2_{W_{n+1}} &\le (1 + \chi_n) \|x^n - x\|^2_{W_n} + \alpha_n
              &&\text{(printed)}

    where :math:`\alpha_n = \eta_n^2 \|g^{n+1} - g^n\|^2_{W_n^{-1}}` and `chi` gives :math:`\chi_n`.
    The first two follow from Lemma 1. The third is what the paper prints: its chi is of the wrong
    step, and it is false.

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff. Smoothness of f makes the sums of chi and alpha finite; it is not needed
        here.
    x_star : array
        A minimizer of F.
    form : {"previous", "next", "printed"}

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.experiments.theory import quasi_fejer, record
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> quasi_fejer(run, [0.6]).holds(), quasi_fejer(run, [0.6], "next").holds()
    (True, True)
    """
    _check.one_of(form, FEJER_FORMS, "form", "quasi_fejer")
    name = f"quasi-Fejer, {form}"
    check_rule(run, AdaGradDiff, name)
    x, *_ = minimizer(run, x_star, name)
    p, ratio = parts(run, x, name), 1 + chi(run)
    distance = run.by_block((run.x - x) ** 2)
    left, magnitude = np.sum(run.w[1:] * distance[1:], axis=1), ratio[1:] * p.magnitude
    if form == "previous":
        left, earlier = p.after, np.sum(_earlier(run)[:-1] * distance[:-1], axis=1)
        right = ratio[:-1] * earlier + p.alpha
        magnitude = p.magnitude + right
    elif form == "next":
        right = ratio[1:] * (p.before + p.alpha)
    else:
        right = ratio[:-1] * p.before + p.alpha
    return inequality(run, name, 1, left, right, magnitude)


def _earlier(run: Run) -> np.ndarray:
    """Return w^0 ... w^N."""
    return np.vstack([np.full((1, run.w.shape[1]), run.rule.eps), run.w[:-1]])


def subgradients(run: Run) -> np.ndarray:
    r"""Return the subgradients of F that the run gives: u^2 ... u^{N+1}, one per row.

    .. math:: u^{n+1} = \tfrac1{\eta_n} W_n (x^n - x^{n+1}) + g^{n+1} - g^n \in \partial F(x^{n+1})

    They tend to zero if f is L-smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.experiments.theory import record, subgradients
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> u = subgradients(run)
    >>> u.shape, bool(abs(u[-1, 0]) < 1e-6)
    ((50, 1), True)
    """
    return np.asarray(-_inverse_steps(run) * np.diff(run.x, axis=0) + np.diff(run.g, axis=0))


def subgradient_inequality(run: Run, x: Any) -> Inequality:
    r"""Return that u^{n+1} is a subgradient of F at x^{n+1}, tested at a point x.

    .. math:: F(x^{n+1}) + \langle u^{n+1}, x - x^{n+1} \rangle \le F(x)

    The paper's proof says that it is one of phi; it is one of F.

    Parameters are those of `lemma_1`.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, LAD
    >>> from adagrad_diff.experiments.theory import record, subgradient_inequality
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> subgradient_inequality(run, [3.0]).holds()
    True
    """
    name = "subgradients u"
    x, value, size = point(run, x, name)
    away = x - run.x[1:]
    left = run.F[1:] + np.sum(subgradients(run) * away, axis=1)
    # u is a difference of w x / eta and of g, so their rounding errors count.
    stretch = _inverse_steps(run) * (np.abs(run.x[:-1]) + np.abs(run.x[1:]))
    rounded = np.sum((stretch + 2 * np.abs(run.g).max()) * np.abs(away), axis=1)
    magnitude = run.size[1:] + size + rounded
    return inequality(run, name, 1, left, np.full(run.N, value), magnitude)


def _inverse_steps(run: Run) -> np.ndarray:
    """Return w^n / eta_n of every coordinate."""
    return np.asarray(run.w[:-1][:, run.labels] / run.eta[:, None])
