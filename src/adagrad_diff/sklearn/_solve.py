"""One problem, solved: the door to `adagrad_diff.minimize`."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..duality import certificate_at
from ..losses import LinearModel, Loss, Minibatch
from ..penalties import Penalty
from ..polishing.active_set import linear_program_terms
from ..solvers.minimize import minimize
from ..solvers.result import NO_MINIMIZER, Status
from ._keeping import Directory
from ._null import null_gap, null_point

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

ZEROS = "All coefficients are zero: the penalty is that strong."
EVERY = 2.0  # seconds between two lines of progress


@dataclass
class Solution:
    """What is known about the answer to one problem."""

    x: np.ndarray  # the best point found
    fun: float  # its objective
    gap: float  # fun is at most this far from the optimum; inf if nothing is proven
    nit: int  # iterations, and rounds of the finish
    reason: str  # why the run ended: one of `_ends.REASONS`
    message: str  # the same as a sentence


def solve(
    loss: Loss,
    penalty: Penalty,
    x0: Any,
    *,
    eta: Any,
    tol: float,
    max_iter: int,
    verbose: bool,
    label: str,
    kept: Directory | None = None,
    batch_size: int | None = None,
) -> Solution:
    """The minimiser of loss + penalty, with what is certified about it."""
    null, finished = None, False
    if isinstance(loss, LinearModel):
        x = null_point(loss)
        finished = (
            eta == "auto"
            and loss.piecewise_linear
            and not isinstance(linear_program_terms(loss, penalty), str)
        )
        null = null_gap(loss, penalty, x, tol, program=not finished)
        if (
            null is None
            and x0 is not None
            and not _objective(loss, penalty, x0) <= _objective(loss, penalty, x)
        ):
            x0 = None  # the solution of a problem in other units, say: no good start, and nothing to compare a subgradient with
        if x0 is None and (
            loss.translates or not loss.piecewise_linear
        ):  # for the hinge it is where whole classes are at their kinks
            x0 = x
    if null is not None:
        solution = Solution(x, *null, 1, "certified", ZEROS)
    else:
        solution = _iterate(
            loss,
            penalty,
            x0,
            eta,
            tol,
            max_iter,
            Progress(label) if verbose else None,
            kept,
            batch_size,
        )
        if finished and isinstance(loss, LinearModel):
            solution = _or_zeros(loss, penalty, x, solution, tol)
    if verbose:
        print(
            f"{label}: objective {solution.fun:.8g}, certified gap {solution.gap:.2g}, {solution.nit} iterations, "
            f"{solution.reason}"
        )
    return solution


def _or_zeros(
    loss: LinearModel, penalty: Penalty, x: np.ndarray, solution: Solution, tol: float
) -> Solution:
    """Coefficients that are all zero, if the solution's bound proves that they are as good: a penalty that strong says so."""
    found = certificate_at(loss, penalty, x, solution.fun - solution.gap)
    if not (found.gap <= tol * abs(found.fun) < np.inf and solution.x[: loss.A.shape[1]].any()):
        return solution
    return Solution(x, found.fun, found.gap, solution.nit, "certified", ZEROS)


def _iterate(
    loss: Loss,
    penalty: Penalty,
    x0: Any,
    eta: Any,
    tol: float,
    max_iter: int,
    callback: Any,
    kept: Directory | None,
    batch_size: int | None,
) -> Solution:
    # A step of its own for each coordinate only where the prox is exact for that. With a given eta nobody else sees to it,
    # and with "auto" only for penalties of kind "scalar", not "block".
    blocks = None if penalty.accepts == "diagonal" else "all"
    x0 = _inside(loss, penalty, x0)
    saved: dict[str, Any] = {}
    if kept is not None:
        saved = {
            "checkpoint": kept.file(loss, penalty, x0, eta=eta, tol=tol, batch_size=batch_size),
            "every": kept.every,
        }
    with np.errstate(all="ignore"):  # what overflows is seen in the value
        result = minimize(
            loss if batch_size is None else Minibatch(loss, batch_size),  # type: ignore[arg-type]
            x0,
            penalty,
            eta=eta,
            blocks=blocks,
            stop="gap",
            tol=tol,
            max_iter=max_iter,
            history=0,
            callback=callback,
            on_failure="ignore",
            **saved,
        )
    x, fun, gap = result.x, float(result.fun), float(result.gap)
    if result.fun_best < fun:
        x, found = result.x_best, certificate_at(loss, penalty, result.x_best, float(result.bound))
        fun, gap = found.fun, found.gap
    nit = int(result.nit) + (result.finish.rounds if "finish" in result else 0)
    return Solution(x, fun, gap, nit, _reason(result, fun, gap, tol), result.message)


def _reason(result: OptimizeResult, fun: float, gap: float, tol: float) -> str:
    """The end of a run in one word."""
    if result.status == Status.DIVERGED and result.message.startswith(NO_MINIMIZER):
        return "no_minimizer"
    if not np.isfinite(fun) or result.status in (Status.NOT_FINITE, Status.DIVERGED):
        return "failed"
    if result.certified or gap <= tol * abs(fun):  # the best point may be closer than the last
        return "certified"
    return {Status.CONVERGED: "subgradient", Status.STALLED: "stalled"}.get(
        Status(result.status), "max_iter"
    )


def _objective(loss: LinearModel, penalty: Penalty, x: Any) -> float:
    x = np.array(x, dtype=loss.dtype, order="C")
    with np.errstate(all="ignore"):  # what overflows is seen in the value
        return float(loss.oracle(x)(x, np.empty_like(x))) + float(
            penalty.value((x[:-1] if loss.intercept else x).reshape(-1))
        )


def _inside(loss: Any, penalty: Penalty, x0: Any) -> np.ndarray:
    """Where to start: x0, zero by default, moved to where the penalty is finite."""
    x = (
        np.zeros(loss.shape, loss.dtype)
        if x0 is None
        else np.array(x0, dtype=loss.dtype, order="C")
    )
    part = (x[:-1] if loss.intercept else x).reshape(-1)  # a view
    penalty.check_size(part.size)
    if not np.isfinite(penalty.value(part)):
        part[...] = penalty.prox(part, 1.0)
    return x


class Progress:
    """A callback that prints a line now and then."""

    def __init__(self, label: str):
        self.label, self.last = label, perf_counter()

    def __call__(self, state: Any) -> None:
        now = perf_counter()
        if now - self.last >= EVERY:
            self.last = now
            print(f"{self.label}: iteration {state.nit}, objective {state.fun:.8g}")
