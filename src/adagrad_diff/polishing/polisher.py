r"""Polishing: from an approximate to an exact solution, with its certificate.

A first-order method identifies which coefficients are zero and which samples are at their nonsmooth
points. The rest is a small problem that can be solved exactly: a linear or quadratic program for
piecewise linear losses (`active_set`), Newton's method for smooth ones (`newton`). Its solution is
checked over all samples and columns and certified by its dual point.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._messages import counted
from .._threads import one_blas_thread
from ..duality import Certificate, Certifier, Proof, dual_of, prove, unit
from ..losses import LinearModel, Loss, as_loss
from ..losses.base import Coordinates
from ..penalties import Penalty, as_penalty
from .active_set import ActiveSet, linear_program_terms
from .newton import smooth_solver
from .solver import Outcome, Stop

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# Entries of A up to which polishing uses one thread of BLAS. Threads make small factorizations
# slower, many times so on a busy machine.
MAX_SINGLE_THREAD_ENTRIES = 1_000_000
SMALL_PROBLEM_WORK = 1.4e9  # multiplications, about 0.1 s, below which `polish` ignores the start


@dataclass
class PolishReport:
    """What polishing has done: `result.finish`."""

    done: bool = False  # whether it reached the tolerance
    tries: int = 0  # how often it was attempted
    rounds: int = 0  # subproblems that were solved in all attempts
    samples: int = 0  # of the last subproblem: those whose slope was unknown
    coefficients: int = 0  # of the last subproblem: those not held at zero or at a bound
    seconds: float = 0.0  # of all attempts
    failed: float = 0.0  # seconds of the attempts that did not reach the tolerance
    reason: str = "it was not tried"  # why the tolerance was not reached


class Polisher:
    """Polishing of one problem, with the best point found by several attempts."""

    x: np.ndarray  # the best point, in the dtype of the loss
    proof: Proof | None = None  # what is certified about it

    def __init__(
        self, loss: Loss, penalty: Penalty, dual: Any, coordinates: Coordinates | None = None
    ):
        self.loss, self.penalty, self.dual, self.report = loss, penalty, dual, PolishReport()
        self.solver: Any = dual
        if not isinstance(dual, str):
            self.solver = _solver(loss, penalty, coordinates)
        self.possible = not isinstance(self.solver, str)
        if not self.possible:
            self.report.reason = self.solver

    def attempt(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> bool:
        """Return whether polishing x reaches the tolerance: then `x` and `proof` are the result."""
        begin, report = perf_counter(), self.report
        small = self.loss.matrix.size <= MAX_SINGLE_THREAD_ENTRIES
        # An overflow shows in the result.
        with np.errstate(all="ignore"), one_blas_thread() if small else nullcontext():
            if whole and x.any():  # ignore a start that is worse than zero
                value, at_zero = (objective(self.loss, self.penalty, y) for y in (x, 0 * x))
                x = x if value <= at_zero else 0 * x
            outcome = self.solver.solve(x, tol, stop, whole)
            report.done = self._certified(outcome, tol)
        seconds = perf_counter() - begin
        report.tries += 1
        report.rounds += outcome.rounds
        report.samples, report.coefficients = outcome.samples, outcome.coefficients
        report.seconds += seconds
        report.failed += 0.0 if report.done else seconds
        report.reason = "" if report.done else outcome.reason or "its result could not be certified"
        return report.done

    def _certified(self, outcome: Outcome, tol: float) -> bool:
        if not np.isfinite(outcome.x).all():
            return False
        x = np.ascontiguousarray(outcome.x, self.loss.dtype)
        proof = prove(self.dual, x, outcome.u, tol)
        if proof.value < 0.0 and self._nonnegative_loss():
            # The dual point zero is better: it certifies that F >= 0.
            proof = Proof(proof.fun, proof.error, 0.0, np.zeros_like(self.dual.b))
        if self.proof is None or proof.gap < self.proof.gap:
            self.x, self.proof = x, proof
        return bool(proof.gap <= tol * unit(proof.fun, self.dual.scale))

    def _nonnegative_loss(self) -> bool:
        """Return whether a nonsmooth loss is nowhere negative: its conjugate vanishes at zero."""
        loss: Any = self.loss
        return self.dual.nonsmooth and not np.any(
            loss.conjugate(np.zeros_like(loss.b), loss.b, loss.theta)
        )


def _solver(loss: Loss, penalty: Penalty, coordinates: Coordinates | None) -> Any:
    """Return a solver for the problem, or a phrase that says why there is none."""
    if not isinstance(loss, LinearModel) or not loss.piecewise_linear:
        return smooth_solver(loss, penalty)
    terms = linear_program_terms(loss, penalty)
    if isinstance(terms, str):
        return terms
    return ActiveSet(loss, terms, coordinates or loss.coordinates())


def polish(
    loss: Any, penalty: Any, x: Any, *, tol: float = 1e-10, max_time: float | None = None
) -> OptimizeResult:
    r"""Turn an approximate minimizer of F(x) = f(x) + phi(x) into an exact one, with a certificate.

    `minimize` with a tolerance does this by itself (``finish=False`` turns it off), and so do the
    estimators.

    Parameters
    ----------
    loss : Loss
        LAD, quantile and hinge losses, or one with a known second derivative: squared, logistic,
        Huber, squared hinge, Poisson, multinomial, quadratic.
    penalty : Penalty or None
        With a piecewise linear loss: none, L1, elastic net, ridge, box, nonnegative, or a
        `Separable` of these. With a smooth loss also group and sparse group penalties.
    x : array
        Where to start, the closer the better; an intercept included if the loss has one.
    tol : float
        The relative gap F(x) - F_star <= tol |F(x)| to certify.
    max_time : float, optional
        Seconds after which to give up.

    Returns
    -------
    OptimizeResult
        x, fun, gap, bound, dual_point, success (whether tol is certified), message, and finish, a
        `PolishReport`. x is never worse than the one given.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, LAD, polish
    >>> A = np.random.default_rng(0).standard_normal((200, 10))
    >>> loss = LAD(A, A[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(200))
    >>> result = polish(loss, L1(0.01), np.zeros(10))
    >>> result.success, bool(result.gap <= 1e-10 * result.fun)
    (True, True)
    """
    from scipy.optimize import OptimizeResult

    loss, penalty = as_loss(loss), as_penalty(penalty)
    tol = _check.nonnegative(tol, "tol", "polish")
    deadline = np.inf
    if max_time is not None:
        deadline = perf_counter() + _check.positive(max_time, "max_time", "polish")
    x = np.ascontiguousarray(_check.finite(_check.real_array(x, "x"), "x"), dtype=loss.dtype)
    if loss.shape is not None and x.shape != loss.shape:
        raise ValueError(f"x must have shape {loss.shape}. Got shape {x.shape} instead.")
    polisher = Polisher(loss, penalty, dual_of(loss, penalty))
    report, certifier = polisher.report, Certifier(polisher.dual)
    if polisher.possible:
        whole = polisher.solver.cost() <= SMALL_PROBLEM_WORK
        polisher.attempt(x, tol, lambda: perf_counter() > deadline, whole)
    if (proof := polisher.proof) is not None:
        certifier.record(proof, polisher.x)
        if report.done or proof.fun <= objective(loss, penalty, x):
            x = polisher.x
    if certifier.available:
        found = certifier.certificate(x)
    else:
        found = Certificate(objective(loss, penalty, x), -np.inf, np.inf, None)
    message = f"The tolerance is reached after {describe_polishing(report)}."
    return OptimizeResult(
        x=x,
        fun=found.fun,
        gap=found.gap,
        bound=found.bound,
        dual_point=found.dual_point,
        success=report.done,
        message=message if report.done else f"Not finished: {report.reason}.",
        finish=report,
    )


def describe_polishing(report: PolishReport) -> str:
    """Return how many subproblems were solved, as part of a sentence."""
    last = " with" if report.rounds == 1 else ", the last one with"
    size = f"{counted(report.samples, 'sample')} and {counted(report.coefficients, 'coefficient')}"
    return f"{counted(report.rounds, 'polishing round')}{last} {size}"


def objective(loss: Loss, penalty: Penalty, x: np.ndarray) -> float:
    """Return F(x). An intercept is not penalized."""
    part = (x[:-1] if loss.intercept else x).reshape(-1)
    with np.errstate(all="ignore"):  # an overflow shows in the value
        return float(loss.oracle(x)(x, np.empty_like(x))) + float(penalty.value(part))
