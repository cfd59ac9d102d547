"""One problem, solved: the door to `adagrad_diff.minimize`."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from .. import _check
from .._minimize import minimize
from .._status import Status
from ..losses import LinearModel, Loss
from ..penalties import Penalty
from ._null import null_gap, null_point

EVERY = 2.0  # seconds between two lines of progress


@dataclass
class Solution:
    """What is known about the answer to one problem."""

    x: np.ndarray  # the best point found
    fun: float  # its objective
    gap: float  # fun minus a proven lower bound; inf if there is none
    nit: int  # iterations
    converged: str  # "certified", "stalled", "max_iter" or "failed"
    message: str  # why the run ended


def solve(loss: Loss, penalty: Penalty, x0: Any, *, eta: Any, tol: float, max_iter: int, verbose: bool, label: str) -> Solution:
    """The minimiser of loss + penalty, with what is certified about it."""
    null = None
    if isinstance(loss, LinearModel):
        x = null_point(loss)
        null = null_gap(loss, penalty, x, tol)
        if x0 is None and (loss.translates or loss.jump is None):  # for the hinge it is where whole classes are at their kinks
            x0 = x
    if null is not None:
        solution = Solution(x, *null, 1, "certified", "All coefficients are zero: the penalty is that strong.")
    else:
        solution = _iterate(loss, penalty, x0, eta, tol, max_iter, verbose, label)
    if verbose:
        print(
            f"{label}: objective {solution.fun:.8g}, certified gap {solution.gap:.2g}, {solution.nit} iterations, "
            f"{solution.converged}"
        )
    return solution


def _iterate(loss: Loss, penalty: Penalty, x0: Any, eta: Any, tol: float, max_iter: int, verbose: bool, label: str) -> Solution:
    # A step of its own for each coordinate only where the prox is exact for that. With a given eta nobody else sees to it,
    # and with "auto" only for penalties of kind "scalar", not "block".
    blocks = None if penalty.accepts == "diagonal" else "all"
    with np.errstate(all="ignore"):  # what overflows is seen in the value
        result = minimize(
            loss,
            x0,
            penalty,
            eta=eta,
            blocks=blocks,
            stop="gap",
            tol=tol,
            max_iter=max_iter,
            history=0,
            callback=Progress(label) if verbose else None,
            on_failure="ignore",
        )
    x, fun = (result.x_best, float(result.fun_best)) if result.fun_best < result.fun else (result.x, float(result.fun))
    gap = max(fun - float(result.bound), 0.0)  # it may be less by rounding
    if gap <= tol * abs(fun):
        converged = "certified"
    elif result.status in (
        Status.CONVERGED,
        Status.STALLED,
    ):  # no such gap is known, but a subgradient is small, or nothing improves
        converged = "stalled"
    elif result.status in (Status.NOT_FINITE, Status.DIVERGED):
        converged = "failed"
    else:
        converged = "max_iter"
    return Solution(x, fun, gap, int(result.nit), converged, result.message)


class Progress:
    """A callback that prints a line now and then."""

    def __init__(self, label: str):
        self.label, self.last = label, perf_counter()

    def __call__(self, state: Any) -> None:
        now = perf_counter()
        if now - self.last >= EVERY:
            self.last = now
            print(f"{self.label}: iteration {state.nit}, objective {state.fun:.8g}")


def check_options(owner: str, *, alpha: Any, eta: Any, tol: Any, max_iter: Any) -> tuple[Any, float, int]:
    """The checked (eta, tol, max_iter) of an estimator; alpha is checked too."""
    _check.nonnegative(alpha, "alpha", owner)
    if not (isinstance(eta, str) and eta == "auto"):
        try:
            eta = _check.positive(eta, "eta", owner)
        except ValueError:
            raise ValueError(
                f"The 'eta' parameter of {owner} must be 'auto' or a positive number. Got {eta!r} instead."
            ) from None
    return eta, _check.nonnegative(tol, "tol", owner), _check.count(max_iter, "max_iter", owner, least=1)
