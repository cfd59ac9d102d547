"""Why iterates converge for a smooth f: quasi-Fejer monotonicity, and subgradients of F that tend to zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ._inequality import Inequality, algorithm_1, minimiser, point
from ._run import Run
from .basic import pieces

FEJER_FORMS = ("previous", "next", "printed")


def chi(run: Run) -> np.ndarray:
    r""":math:`\chi_n = \max_i w_i^n / w_i^{n-1} - 1` for n = 1 ... N+1, with :math:`w^0 = \varepsilon`.

    The sum of them is finite if f is L-smooth; for another f it need not be.
    """
    earlier = np.vstack([np.full((1, run.w.shape[1]), run.rule.eps), run.w[:-1]])
    return np.asarray(np.max(run.w / earlier, axis=1) - 1)


def quasi_fejer(run: Run, x_star: Any, form: str = "previous") -> Inequality:
    r"""The quasi-Fejer inequality, for a minimiser of F.

    .. math:: \|x^{n+1} - x\|^2_{W_n} &\le (1 + \chi_n) \|x^n - x\|^2_{W_{n-1}} + \alpha_n
              &&\text{(previous)} \\
              \|x^{n+1} - x\|^2_{W_{n+1}} &\le (1 + \chi_{n+1}) (\|x^n - x\|^2_{W_n} + \alpha_n) &&\text{(next)} \\
              \|x^{n+1} - x\|^2_{W_{n+1}} &\le (1 + \chi_n) \|x^n - x\|^2_{W_n} + \alpha_n &&\text{(printed)}

    where :math:`\alpha_n = \eta_n^2 \|g^{n+1} - g^n\|^2_{W_n^{-1}}` and `chi` gives :math:`\chi_n`. The first two follow from
    Lemma 1. The third is what the paper prints: its chi is of the wrong step, and it is false.

    Parameters
    ----------
    run : Run
        Of AdaGrad-Diff. That f is smooth is needed for the sums of chi and alpha to be finite, not here.
    x_star : array
        A minimiser of F.
    form : {"previous", "next", "printed"}

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.theory import quasi_fejer, record
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> quasi_fejer(run, [0.6]).holds(), quasi_fejer(run, [0.6], "next").holds()
    (True, True)
    """
    owner = "the quasi-Fejer inequality"
    _check.one_of(form, FEJER_FORMS, "form", "quasi_fejer")
    algorithm_1(run, owner, constant=False)
    x, value, size = minimiser(run, x_star, owner)
    p, ratio = pieces(run, x, value, size), 1 + chi(run)
    distance = run.by_block((run.x - x) ** 2)
    if form == "previous":
        earlier = np.vstack([np.full((1, run.w.shape[1]), run.rule.eps), run.w[:-2]])
        left, factor = p.after, ratio[:-1]
        right = factor * np.sum(earlier * distance[:-1], axis=1) + p.alpha
    else:
        left = np.sum(run.w[1:] * distance[1:], axis=1)
        factor = ratio[1:] if form == "next" else ratio[:-1]
        right = factor * p.before + (factor if form == "next" else 1.0) * p.alpha
    magnitude = ratio[1:] * p.magnitude if form != "previous" else p.magnitude + right
    return Inequality(
        f"quasi-Fejer, {form}",
        np.arange(1, run.N + 1),
        left,
        right,
        magnitude,
        run.rounding,
        needs=("x_star is a minimiser",),
    )


def subgradients(run: Run) -> np.ndarray:
    r"""The subgradients of F that the run gives: u^2 ... u^{N+1}, one per row.

    .. math:: u^{n+1} = \tfrac1{\eta_n} W_n (x^n - x^{n+1}) + g^{n+1} - g^n \in \partial F(x^{n+1})

    They tend to zero if f is L-smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import AdaGradDiff, Squared
    >>> from adagrad_diff.theory import record, subgradients
    >>> run = record(Squared([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> u = subgradients(run)
    >>> u.shape, bool(abs(u[-1, 0]) < 1e-6)
    ((50, 1), True)
    """
    weight = run.w[:-1][:, run.labels] / run.eta[:, None]
    return np.asarray(-weight * np.diff(run.x, axis=0) + np.diff(run.g, axis=0))


def subgradient_inequality(run: Run, x: Any) -> Inequality:
    r"""That u^{n+1} is a subgradient of F at x^{n+1}, seen from a point x.

    .. math:: F(x^{n+1}) + \langle u^{n+1}, x - x^{n+1} \rangle \le F(x)

    The paper's proof says that it is one of phi; it is one of F.

    Parameters
    ----------
    run : Run
        Of any rule.
    x : array
        Where F is finite.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, LAD
    >>> from adagrad_diff.theory import record, subgradient_inequality
    >>> run = record(LAD([[1.0], [2.0]], [1.0, 1.0]), rule=AdaGradDiff(eta=0.5), iterations=50)
    >>> subgradient_inequality(run, [3.0]).holds()
    True
    """
    x, value, size = point(run, x, "the subgradient inequality")
    u, away = subgradients(run), x - run.x[1:]
    left = run.F[1:] + np.sum(u * away, axis=1)
    # u is a difference of w x / eta and of g, so their rounded parts count.
    stretch = (
        run.w[:-1][:, run.labels] / run.eta[:, None] * (np.abs(run.x[:-1]) + np.abs(run.x[1:]))
    )
    magnitude = (
        run.size[1:] + size + np.sum((stretch + 2 * np.abs(run.g).max()) * np.abs(away), axis=1)
    )
    return Inequality(
        "subgradients u",
        np.arange(1, run.N + 1),
        left,
        np.full(run.N, value),
        magnitude,
        run.rounding,
    )
