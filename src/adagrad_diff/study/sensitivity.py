"""How much a method's step size matters on a problem: `sensitivity`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import _check
from .._files import as_path
from .._messages import require
from ..losses import as_loss
from ..penalties import as_penalty
from ._contenders import contenders
from ._optimum import OPTIMUM, Optimum, kept, look_for, refuse_others, smallest
from ._runs import Plan, all_runs, refined
from ._starts import as_etas, as_starts
from .finals import LONGER, final
from .result import GAP_RESOLUTION, FStar, Sensitivity


def sensitivity(
    loss: Any,
    penalty: Any = None,
    rules: Any = None,
    etas: Any = None,
    starts: Any = 3,
    n_iter: int = 500,
    *,
    f_star: float | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    memory: str | float = "2GB",
    n_jobs: int | None = None,
    progress: bool | None = None,
    client: Any = None,
) -> Sensitivity:
    r"""Compare rules over a range of step sizes: how far from the best one may be, and still be good?

    Every rule runs with every eta from every start. What is compared are relative gaps,

    .. math:: \text{gap}(x) = \frac{F(x) - F_\star}{F(0) - F_\star},

    of the last, the best and the average iterate: 1 is as good as x = 0. (Where x = 0 is optimal, or F is infinite there, the
    starts take its place.) An iteration of every rule is one gradient.

    Parameters
    ----------
    loss, penalty
        As for `sweep`.
    rules : rule, rule class, name, function eta -> rule, or several of them, optional
        All rules of the package by default. Rules without a step size run once per start. Of a rule such as
        ``Adam(beta1=0.8)`` the eta is replaced. A dict gives names of your choice.
    etas : array, optional
        Step sizes; by default 15 over seven decades about the size of a minimiser's coordinates.
    starts : int or array (d, starts)
        How many starts, or one per column. The first of a number of starts is zero, the others are small and random.
    n_iter : int
        Iterations of each run.
    f_star : float, "certified" or "protocol", optional
        The smallest value of F: given, proven by a duality gap of 1e-9, or by the paper's protocol (the smallest value seen,
        after the best rule and eta have run ten times as long). By default it is proven where that can be done, and the
        protocol's elsewhere; `result.f_star` says which.
    checkpoint : path, optional
        A directory for what is finished: the same call goes on from there, as with `sweep`.
    memory, n_jobs, progress, client
        As for `sweep`; the optimum is looked for by the process that calls.

    Returns
    -------
    Sensitivity
        print() shows its table.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, DoG, sensitivity
    >>> A = np.random.default_rng(0).standard_normal((60, 8))
    >>> b = A[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(60)
    >>> found = sensitivity(LAD(A, b), L1(0.01), [AdaGradDiff, AdaGrad, DoG], n_iter=200)
    >>> found.f_star.how
    'certified'
    >>> found.score("AdaGradDiff")["decades_10x"] > found.score("AdaGrad")["decades_10x"]
    True
    """
    for package in ("xarray", "tqdm", "threadpoolctl"):
        require(package, "sweep")  # before any work is done
    loss, penalty = as_loss(loss), as_penalty(penalty)
    n_iter = _check.count(n_iter, "n_iter", "sensitivity", least=1)
    given = _as_f_star(f_star)
    several = contenders(rules, penalty)
    x0s = as_starts(starts, loss, penalty)
    folder = None if checkpoint is None else as_path(checkpoint, "checkpoint")
    if folder is not None:
        refuse_others(folder)
    options = {"memory": memory, "n_jobs": n_jobs, "progress": progress, "client": client}
    plan = Plan(loss, penalty, x0s, n_iter, folder, options)
    optimum = Optimum(np.nan, np.inf, "it was not asked for", 1.0)
    if given in (None, "certified") or etas is None:
        problem = {"loss": loss, "penalty": penalty, "starts": x0s, "n_iter": n_iter}
        file = None if folder is None else folder / OPTIMUM
        optimum = kept(file, problem, lambda search: look_for(loss, penalty, x0s, n_iter, search))
    if given == "certified" and optimum.reason:
        raise _check.InputError(
            f'\'f_star\' cannot be "certified" here: {optimum.reason}. Give a number, "protocol", or more iterations.'
        )
    data = all_runs(plan, several, as_etas(etas, optimum.size))
    least = smallest(data)
    if not np.isfinite(least):
        raise _check.InputError(
            "The objective is not finite at any of the starts, or after them: there is nothing to compare. Look at the data."
        )
    if isinstance(given, float):
        known = _given(given, least)
    elif given != "protocol" and not optimum.reason:
        text = f"The optimum is proven by a duality gap: it is {optimum.value:.10g}, or larger by {optimum.proven:.1g} at most."
        known = FStar(min(optimum.value, least), "certified", text, optimum.proven)
    else:
        known = _protocol(plan, several, data, least)
    return Sensitivity(data, known, *_scale(loss, penalty, data, known), loss, penalty)


def _as_f_star(f_star: Any) -> Any:
    if f_star is None or (isinstance(f_star, str) and f_star in ("certified", "protocol")):
        return f_star
    if isinstance(f_star, str):
        raise _check.InputError(
            f"The 'f_star' parameter of sensitivity must be a number, 'certified' or 'protocol'. Got {f_star!r}."
        )
    return _check.number(f_star, "f_star", "sensitivity")


def _given(value: float, least: float) -> FStar:
    if value <= least:
        return FStar(value, "given", f"The optimum {value:.10g} was given.")
    text = f"The optimum {value:.10g} was given, but a run has reached {least:.10g}, which takes its place."
    return FStar(least, "given", text)


def _protocol(plan: Plan, several: Any, data: Any, least: float) -> FStar:
    """The smallest value that was seen, after the best run has gone on for longer."""
    text = "The optimum is the smallest value that any run has seen"
    if (longer := refined(plan, several, data, final, LONGER)) is None:
        return FStar(least, "protocol", f"{text}. All runs failed.")
    fastest, eta, runs = longer
    where = fastest.name if fastest.free else f"{fastest.name} with eta = {eta:.3g}"
    return FStar(
        min(least, smallest(runs)),
        "protocol",
        f"{text}, {where} having run {LONGER} times as long.",
    )


def _scale(loss: Any, penalty: Any, data: Any, known: FStar) -> tuple[float, str]:
    """What gaps are measured in, and its name."""
    starts = data.objective_start.values
    if loss.shape is not None:
        x = np.zeros(loss.shape, loss.dtype or np.float64)
        part = (x[:-1] if loss.intercept else x).reshape(-1)
        with np.errstate(all="ignore"):
            zero = (
                float(loss.oracle(x)(x, np.empty_like(x)))
                + float(penalty.value(part))
                - known.value
            )
        if np.isfinite(zero) and zero > GAP_RESOLUTION * abs(known.value):
            return zero, "F(0) - F_star"
    gaps = starts[np.isfinite(starts)] - known.value
    middle = float(np.median(gaps)) if gaps.size else 0.0
    return (
        (middle, "F(start) - F_star") if middle > GAP_RESOLUTION * abs(known.value) else (1.0, "1")
    )
