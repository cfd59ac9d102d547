r"""The finish: from an approximate answer to an exact one, with its proof.

A first-order method finds out which coefficients are zero and which samples sit at their kinks. What is left is a small problem
that can be solved exactly: a linear or quadratic program for losses with kinks (`kinked`), Newton's method for smooth ones
(`smooth`). Its answer is looked at over all samples and columns, and proven by its dual point.
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
from ..duality import Certificate, Certifier, Proof, dual_of, prove
from ..duality.tolerance import unit
from ..losses import LinearModel, Loss, as_loss
from ..losses.base import Coordinates
from ..penalties import Penalty, as_penalty
from .kinked import Kinked
from .manifold import Pieces, pieces
from .outcome import Outcome, Stop
from .smooth import smooth_solver

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


ONE_THREAD_ENTRIES = 1_000_000  # of A, up to which polishing uses one thread of BLAS
QUICK = 0.1  # seconds that all of a problem may take: then it does not matter how near x is


@dataclass
class Finish:
    """What the finish has done: `result.finish`."""

    done: bool = False  # whether the tolerance was reached by it
    tries: int = 0
    rounds: int = 0  # small problems that were solved, all tries together
    samples: int = 0  # of the last small problem: those whose slope was unknown
    coefficients: int = (
        0  # of the last small problem: those that were not held at zero or at a bound
    )
    seconds: float = 0.0  # of all tries
    failed: float = 0.0  # of those that did not reach the tolerance
    reason: str = "it was not tried"  # why it is not done


class Finisher:
    """The finish of one problem, which keeps what it has learned between tries."""

    def __init__(
        self, loss: Loss, penalty: Penalty, dual: Any, coordinates: Coordinates | None = None
    ):
        self.loss, self.penalty, self.dual, self.report = loss, penalty, dual, Finish()
        self.solver: Any = (
            solver_for(loss, penalty, coordinates) if not isinstance(dual, str) else dual
        )
        if isinstance(self.solver, str):
            self.report.reason = self.solver
        self.x: Any = None  # the best answer, in the dtype of the loss, and its proof
        self.proof: Proof | None = None
        self.slopes: np.ndarray | None = None  # what the proof was made of

    @property
    def possible(self) -> bool:
        return not isinstance(self.solver, str)

    def attempt(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> bool:
        """Whether the tolerance is reached from here: then `x` and `proof` are the answer."""
        begin, report = perf_counter(), self.report
        entries = getattr(self.loss, "A", None) or self.loss.Q  # type: ignore[attr-defined]
        # Threads of BLAS make small factorizations slower, many times so on a busy machine.
        limited = one_blas_thread() if entries.size <= ONE_THREAD_ENTRIES else nullcontext()
        with np.errstate(all="ignore"), limited:  # what overflows is seen in the answer
            if (
                whole
                and x.any()
                and not objective(self.loss, self.penalty, x)
                <= objective(self.loss, self.penalty, 0 * x)
            ):
                x = 0 * x  # a start at random, say
            outcome = self.solver.solve(x, tol, stop, whole)
            done = self._proven(outcome, tol)
        took = perf_counter() - begin
        report.tries, report.rounds, report.seconds = (
            report.tries + 1,
            report.rounds + outcome.rounds,
            report.seconds + took,
        )
        report.samples, report.coefficients, report.done = (
            outcome.samples,
            outcome.coefficients,
            done,
        )
        if not done:
            report.failed += took
            report.reason = outcome.reason or "its answer could not be proven"
        else:
            report.reason = ""
        return done

    def _proven(self, outcome: Outcome, tol: float) -> bool:
        if not np.isfinite(outcome.x).all():
            return False
        x = np.ascontiguousarray(outcome.x, self.loss.dtype)
        proof = prove(self.dual, x, outcome.u, tol)
        if proof.value < 0.0 and self._no_loss_is_negative():
            proof = Proof(proof.fun, proof.error, 0.0, np.zeros_like(self.dual.b))
        if self.proof is None or proof.gap < self.proof.gap:
            self.x, self.proof, self.slopes = x, proof, outcome.u
        return bool(proof.gap <= tol * unit(proof.fun, self.dual.scale))

    def recall(self, x: np.ndarray, slopes: np.ndarray | None, tol: float) -> None:
        """Prove an answer of an earlier run once more."""
        with np.errstate(all="ignore"):
            self.report.done = self._proven(Outcome(x, slopes, False, 0, 0, 0), tol)

    def _no_loss_is_negative(self) -> bool:
        """That F >= 0 is all that is to be known where nothing is left of F: the dual point is zero."""
        if not self.dual.kinked:
            return False
        loss: Any = self.loss
        return not np.any(loss.conjugate(np.zeros_like(loss.b), loss.b, loss.theta))


def solver_for(loss: Loss, penalty: Penalty, coordinates: Coordinates | None = None) -> Any:
    """A solver that suits, or a phrase that says why there is none."""
    if not isinstance(loss, LinearModel) or not loss.piecewise_linear:
        return smooth_solver(loss, penalty)
    terms = kinked_terms(loss, penalty)
    return (
        terms if isinstance(terms, str) else Kinked(loss, terms, coordinates or loss.coordinates())
    )


def kinked_terms(loss: LinearModel, penalty: Penalty) -> Pieces | str:
    """The terms of the small problem of a loss with kinks, or a phrase that says why there is none."""
    terms = pieces(penalty, loss.A.shape[1], 0, loss.l2)
    if isinstance(terms, str) or terms.labels is not None:
        return f"with a loss that has kinks, {penalty.name} is no penalty of straight or quadratic pieces"
    return "an operator does not show the rows of its matrix" if loss.A.opaque else terms


def finish(
    loss: Any, penalty: Any, x: Any, *, tol: float = 1e-10, max_time: float | None = None
) -> OptimizeResult:
    r"""Turn an approximate minimiser of F(x) = f(x) + phi(x) into an exact one, with a proof of how good it is.

    `minimize` with a tolerance does this by itself (``finish=False`` turns it off), and so do the estimators.

    Parameters
    ----------
    loss : Loss
        LAD, quantile and hinge losses, or one with a known second derivative: squared, logistic, Huber, squared hinge, Poisson,
        multinomial, quadratic.
    penalty : Penalty or None
        With kinks in the loss: none, L1, elastic net, ridge, box, nonnegative, or a `Separable` of these. With a smooth loss
        also group and sparse group penalties.
    x : array
        Where to start, the closer the better; an intercept included if the loss has one.
    tol : float
        The relative gap F(x) - F_star <= tol |F(x)| to prove.
    max_time : float, optional
        Seconds after which to give up.

    Returns
    -------
    OptimizeResult
        x, fun, gap, bound, dual_point, success (whether tol is proven), message, and finish: done, rounds, samples and
        coefficients of the last small problem, seconds, and the reason if it is not done. x is never worse than the one given.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, LAD, finish
    >>> A = np.random.default_rng(0).standard_normal((200, 10))
    >>> loss = LAD(A, A[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(200))
    >>> result = finish(loss, L1(0.01), np.zeros(10))
    >>> result.success, bool(result.gap <= 1e-10 * result.fun)
    (True, True)
    """
    from scipy.optimize import OptimizeResult

    loss, penalty = as_loss(loss), as_penalty(penalty)
    tol = _check.nonnegative(tol, "tol", "finish")
    deadline = (
        np.inf
        if max_time is None
        else perf_counter() + _check.positive(max_time, "max_time", "finish")
    )
    x = np.ascontiguousarray(_check.finite(_check.real_array(x, "x"), "x"), dtype=loss.dtype)
    if loss.shape is not None and x.shape != loss.shape:
        raise ValueError(f"x must have shape {loss.shape}. Got shape {x.shape} instead.")
    finisher = Finisher(loss, penalty, dual_of(loss, penalty))
    report, certifier = finisher.report, Certifier(finisher.dual)
    if finisher.possible:
        finisher.attempt(
            x, tol, lambda: perf_counter() > deadline, whole=finisher.solver.cost() <= QUICK
        )
    if (proof := finisher.proof) is not None:
        certifier.offer_proof(proof, finisher.x)
        if report.done or proof.fun <= objective(loss, penalty, x):
            x = finisher.x
    if certifier.known:
        found = certifier.certificate(x)
    else:
        found = Certificate(objective(loss, penalty, x), -np.inf, np.inf, None)
    message = (
        f"The tolerance is reached after {describe_finish(report)}."
        if report.done
        else f"Not finished: {report.reason}."
    )
    known = {
        "fun": found.fun,
        "gap": found.gap,
        "bound": found.bound,
        "dual_point": found.dual_point,
    }
    return OptimizeResult(x=x, success=report.done, message=message, finish=report, **known)


def describe_finish(report: Finish) -> str:
    """Return how many small problems were solved, as part of a sentence."""
    samples, coefficients = (
        counted(report.samples, "sample"),
        counted(report.coefficients, "coefficient"),
    )
    last = " with" if report.rounds == 1 else ", the last one with"
    return f"{counted(report.rounds, 'polishing round')}{last} {samples} and {coefficients}"


def objective(loss: Loss, penalty: Penalty, x: np.ndarray) -> float:
    """F(x), an intercept not being penalised."""
    part = (x[:-1] if loss.intercept else x).reshape(-1)
    with np.errstate(all="ignore"):  # what overflows is seen in the value
        return float(loss.oracle(x)(x, np.empty_like(x))) + float(penalty.value(part))
