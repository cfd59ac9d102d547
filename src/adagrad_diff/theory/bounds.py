"""The main bound on F(xbar^n) - F(x), term by term, and the bound on the sum of squared gradient differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ._inequality import Inequality, algorithm_1, minimiser, point, smoothness
from ._run import Run
from .basic import largest_distance, pieces

BOUND_FORMS = ("sum", "norm")


def main_bound(run: Run, x: Any, form: str = "sum") -> Inequality:
    r"""The paper's bound on the average of iterates 2 ... n, for any x.

    .. math:: F(\bar x^n) - F(x) \le \frac{1}{n-1} \Big[ \tfrac{\varepsilon}{2\eta} \|x^1 - x\|^2
              + \big( \tfrac{1}{2\eta} \Delta^{n-1}_{\max} + \eta \big) V_n
              + \tfrac\eta2 \sum_i \sum_{k=2}^n \Big( \frac1{w_i^{k-1}} - \frac1{w_i^k} \Big) \|g_i^k - g_i^{k-1}\|^2 \Big]

    Its terms are named start, distance (with :math:`\Delta_{\max}`), steps (with the lone :math:`\eta`) and growth.

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
    >>> from adagrad_diff.theory import main_bound, record
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> said = main_bound(run, [0.5])
    >>> said.holds(), max(said.terms, key=lambda name: said.terms[name][-1])
    (True, 'steps')
    """
    owner = "the main bound"
    _check.one_of(form, BOUND_FORMS, "form", "main_bound")
    algorithm_1(run, owner)
    x, value, size = point(run, x, owner)
    eta, count = float(run.eta[0]), np.arange(1, run.N + 1)  # count is n - 1
    if form == "sum":
        V = run.v[1:].sum(axis=1)
    else:
        V = np.sqrt(run.w.shape[1] * np.cumsum(run.squares.sum(axis=1))[1:])
    terms = {
        "start": np.full(run.N, run.rule.eps / (2 * eta) * np.sum((run.x[0] - x) ** 2)) / count,
        "distance": largest_distance(run, x) / (2 * eta) * V / count,
        "steps": eta * V / count,
        "growth": eta
        / 2
        * np.cumsum(np.sum((1 / run.w[:-1] - 1 / run.w[1:]) * run.squares[1:], axis=1))
        / count,
    }
    right = sum(terms.values(), np.zeros(run.N))
    F, sizes = run.average
    magnitude = (
        np.cumsum(pieces(run, x, value, size).magnitude) / (2 * eta * count) + right + sizes + size
    )
    return Inequality(
        f"main bound, {form}", count + 1, F - value, right, magnitude, run.rounding, terms=terms
    )


def squared_differences(run: Run, x_star: Any, L: float | None = None) -> Inequality:
    r"""The bound on the sum of squared gradient differences that the proof of its summability ends with.

    Let I be the blocks whose weight reaches :math:`2\eta L` during the run, and :math:`\bar n` the iteration at which the
    last of them does. With :math:`c = m (2\eta L - \varepsilon)^2`,

    .. math:: \sum_{k=\bar n}^n \|g^{k+1} - g^k\|^2 \le
              4L (F(x^{\bar n}) - F_\star) + 2L \max_i \frac{\eta}{w_i^{\bar n}}\, c + c

    and :math:`\sum_{k=1}^n \|g^k - g^{k-1}\|^2 \le c` if I is empty.

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff with a constant eta.
    x_star : array
        A minimiser of F.
    L : float, optional
        That of the loss by default; a loss that has none is refused.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.theory import record, squared_differences
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> squared_differences(run, [0.6]).holds()
    True
    """
    owner = "the bound on squared differences"
    algorithm_1(run, owner)
    L = smoothness(run, L, owner)
    _, F_star, size = minimiser(run, x_star, owner)
    eta, m, total = float(run.eta[0]), run.w.shape[1], run.squares.sum(axis=1)
    c = m * (2 * eta * L - run.rule.eps) ** 2
    reached = run.w >= 2 * eta * L
    name, needs = "squared differences", ("f is L-smooth", "x_star is a minimiser")
    if not reached.any():
        left, right = np.cumsum(total), np.full(run.N + 1, c)
        return Inequality(
            name,
            np.arange(1, run.N + 2),
            left,
            right,
            left + right,
            run.rounding,
            needs,
            {"c": right},
        )
    first = np.where(reached.any(axis=0), reached.argmax(axis=0), 0).max()  # the row of nbar
    if first >= run.N:
        raise ValueError(
            f"{owner} says nothing yet: a weight reaches 2 eta L at the last gradient. Record a longer run."
        )
    if not np.isfinite(run.F[first]):
        raise ValueError(f"{owner} needs a start where F is finite.")
    n = np.arange(first + 1, run.N + 1)
    terms = {
        "gap": np.full(n.size, 4 * L * (run.F[first] - F_star)),
        "late": np.full(n.size, 2 * L * eta / run.w[first].min() * c),
        "c": np.full(n.size, c),
    }
    left, right = np.cumsum(total[first + 1 :]), sum(terms.values(), np.zeros(n.size))
    largest = np.abs(run.g).max()
    turns = np.abs(np.diff(run.g[first:], axis=0)).sum(axis=1)
    # The proof adds up Lemma 1 at x = x^k: what rounding does there, times 2 L / eta, adds up, too.
    summed = np.cumsum(
        4 * L * (run.size[first:-1] + run.size[first + 1 :])
        + 4 * (1 + L * eta / run.w[first].min()) * largest * turns
    )
    magnitude = left + np.abs(right) + 4 * L * (run.size[first] + size) + summed
    return Inequality(name, n, left, right, magnitude, run.rounding, needs, terms)
