"""From one problem to its solution, and to the reason why the run has ended."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .._files import reason as cause
from ..duality import certificate_at, dual_of
from ..duality.intercept import best_intercept
from ..losses import LinearModel, Loss, Minibatch
from ..penalties import Penalty
from ..solvers.fingerprint import describe
from ..solvers.minimize import minimize
from ..solvers.result import NO_MINIMIZER, Status

REASONS = {  # from best to worst, with the words for a number of runs that ended so
    "certified": "certified",
    "subgradient": "subgradient",
    "stalled": "stalled",
    "max_iter": "at max_iter",
    "no_minimizer": "without a minimizer",
    "failed": "failed",
}
CONVERGED = ("certified", "subgradient")  # reasons that mean that the tolerance was reached
ZERO = "All coefficients are zero: the penalty is that strong."
SECONDS_PER_LINE = 2.0  # between two lines of progress
MAX_SORTED = 500_000  # samples up to which nonsmooth points are sorted for the best intercept
FILE_NAME_DIGITS = 24  # of a SHA-256 in the name of a checkpoint: no two of 10^14 names are equal


@dataclass
class Solution:
    """What is known about the answer to one problem."""

    x: np.ndarray  # the best point found
    fun: float  # its objective
    gap: float  # the most by which it can exceed the optimum; inf if nothing is certified
    nit: int  # iterations, including those of polishing
    reason: str  # why the run ended, one of `REASONS`
    message: str  # the same as a sentence

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.reason in CONVERGED


def solve(
    loss: Loss,
    penalty: Penalty,
    x0: Any,
    *,
    label: str,
    eta: Any,
    tol: float,
    max_iter: int,
    verbose: bool,
    checkpoint: Path | None,
    checkpoint_every: float,
    batch_size: int | None,
) -> Solution:
    """Return a minimizer of loss + penalty, with what is certified about it."""
    zero, fun_zero = None, np.inf
    if isinstance(loss, LinearModel):
        zero = null_point(loss)
        fun_zero = _objective(loss, penalty, zero)
        if fun_zero == 0.0 and getattr(dual_of(loss, penalty), "floor", -np.inf) >= 0.0:
            return Solution(zero, 0.0, 0.0, 1, "certified", ZERO)  # all targets are zero
        if x0 is not None and not _objective(loss, penalty, x0) <= fun_zero:
            x0 = None  # the solution of a problem in other units, say
        if x0 is None and (loss.translates or not loss.piecewise_linear):
            x0 = zero  # for the hinge loss, whole classes have their nonsmooth points there
    x0 = _feasible(loss, penalty, x0)
    # Without exact proxes for them, coordinates have no step sizes of their own.
    blocks = None if penalty.accepts == "diagonal" else "all"
    file = None
    if checkpoint is not None:
        file = _checkpoint_file(checkpoint, loss, penalty, x0, eta, tol, batch_size)
    with np.errstate(all="ignore"):  # an overflow shows in the value
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
            callback=Progress(label) if verbose else None,
            on_failure="ignore",
            checkpoint=file,
            every=checkpoint_every,
        )
    solution = _solution(result, loss, penalty, tol)
    bound = solution.fun - solution.gap
    if zero is not None and fun_zero - bound <= tol * abs(fun_zero) < np.inf:  # a strong penalty
        found = certificate_at(loss, penalty, zero, bound)
        if found.gap <= tol * abs(found.fun):
            solution = Solution(zero, found.fun, found.gap, solution.nit, "certified", ZERO)
    if verbose:
        print(
            f"{label}: objective {solution.fun:.8g}, certified gap {solution.gap:.2g}, "
            f"{solution.nit} iterations, {solution.reason}"
        )
    return solution


def null_point(loss: LinearModel) -> np.ndarray:
    """Return zero coefficients with the best intercept, or a rough one for very many samples."""
    x = np.zeros(loss.shape, loss.dtype)
    if loss.intercept:
        many = loss.piecewise_linear and len(loss.b) > MAX_SORTED
        offset = None if many else best_intercept(loss)
        if offset is None and loss.translates:
            offset = np.einsum("i,i->", loss.weight, loss.b, dtype=np.float64)
        if offset is not None:
            x[-1] = offset
    return x


def _objective(loss: LinearModel, penalty: Penalty, x: Any) -> float:
    x = np.array(x, dtype=loss.dtype, order="C")
    with np.errstate(all="ignore"):  # an overflow shows in the value
        value = float(loss.oracle(x)(x, np.empty_like(x)))
        return value + float(penalty.value((x[:-1] if loss.intercept else x).reshape(-1)))


def _feasible(loss: Any, penalty: Penalty, x0: Any) -> np.ndarray:
    """Return x0, or zero, moved to where the penalty is finite."""
    x = np.zeros(loss.shape) if x0 is None else x0
    x = np.array(x, dtype=loss.dtype, order="C")
    part = (x[:-1] if loss.intercept else x).reshape(-1)  # a view
    penalty.check_size(part.size)
    if not np.isfinite(penalty.value(part)):
        part[...] = penalty.prox(part, 1.0)
    return x


def _checkpoint_file(directory: Path, loss: Loss, penalty: Penalty, x0: Any, *options: Any) -> Path:
    """Return the file of one problem, named after everything that its solution depends on."""
    about = describe({"loss": loss, "penalty": penalty, "x0": x0, "options": options})
    name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"'checkpoint' cannot be written: {directory}: {cause(error)}. Choose another directory."
        ) from error
    return directory / f"{name[:FILE_NAME_DIGITS]}.npz"


def _solution(result: Any, loss: Loss, penalty: Penalty, tol: float) -> Solution:
    """Return the best point of a run, with the reason why the run has ended."""
    x, fun, gap = result.x, float(result.fun), float(result.gap)
    if result.fun_best < fun:
        x, found = result.x_best, certificate_at(loss, penalty, result.x_best, float(result.bound))
        fun, gap = found.fun, found.gap
    if result.status == Status.DIVERGED and result.message.startswith(NO_MINIMIZER):
        reason = "no_minimizer"
    elif not np.isfinite(fun) or result.status in (Status.NOT_FINITE, Status.DIVERGED):
        reason = "failed"
    elif result.certified or gap <= tol * abs(fun):  # the best point may be closer than the last
        reason = "certified"
    else:
        others = {Status.CONVERGED: "subgradient", Status.STALLED: "stalled"}
        reason = others.get(Status(result.status), "max_iter")
    nit = int(result.nit) + (result.finish.rounds if "finish" in result else 0)
    return Solution(x, fun, gap, nit, reason, result.message)


class Progress:
    """A callback that prints a line from time to time."""

    def __init__(self, label: str):
        self.label, self.last = label, perf_counter()

    def __call__(self, state: Any) -> None:
        now = perf_counter()
        if now - self.last >= SECONDS_PER_LINE:
            self.last = now
            print(f"{self.label}: iteration {state.nit}, objective {state.fun:.8g}")


# ------------------------------------------------------------------------------ warnings


def worst(solutions: list[Solution]) -> Solution:
    """Return the solution with the worst end, and of these the one with the largest gap."""
    return max(solutions, key=lambda s: (list(REASONS).index(s.reason), s.gap))


def count(reasons: Iterable[str]) -> str:
    """Return text such as "2 stalled, 1 at max_iter"."""
    counts = Counter(reasons)
    return ", ".join(
        f"{counts[reason]} {words}" for reason, words in REASONS.items() if counts[reason]
    )


def unconverged(
    owner: str, solutions: list[Solution], tol: float, max_iter: int, alpha: float | None
) -> str:
    """Return the warning about solutions that are not good enough, with remedies."""
    solution = worst(solutions)
    number = sum(s.reason == solution.reason for s in solutions)
    where = f" in {number} of its {len(solutions)} problems" if len(solutions) > 1 else ""
    easier = (
        "a larger alpha" if alpha else "a smaller C" if alpha is None else "a penalty (alpha > 0)"
    )
    scale = f"Scaled features and targets (StandardScaler) or {easier} make the problem easier."
    known = "nothing is certified about its objective"
    if solution.gap < abs(solution.fun):  # more than that losses are nonnegative
        relative = solution.gap / abs(solution.fun)
        known = f"the certified relative gap of its objective is {relative:.1e}"
    if solution.reason == "max_iter":
        return (
            f"{owner} did not reach tol={tol} in max_iter={max_iter} iterations{where}: {known}. "
            f"Increase max_iter, or tol if such an answer is good enough. {scale}"
        )
    if solution.reason == "stalled":
        return (
            f"{owner} stalled after {solution.nit} iterations{where}: its objective hardly improves "
            f"any more, but tol={tol} is not reached, and {known}. {scale} Increase tol if such an "
            "answer is good enough."
        )
    if solution.reason == "no_minimizer":
        return f"{owner} did not converge{where}. {NO_MINIMIZER}, with {easier}, for example."
    return (
        f"{owner} kept the best point it found, but its run failed{where}, and {known}. "
        f"{solution.message} {scale}"
    )
