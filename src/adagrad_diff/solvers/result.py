"""How a run ends: status codes, what counts as success, the result, and the sentences that explain it."""

from __future__ import annotations

from enum import IntEnum
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import OptimizeResult

from .._messages import counted, warn
from ..certificates.tolerance import NOTHING
from ..finishing.finish import describe_finish
from .state import State

if TYPE_CHECKING:
    from ..certificates import Certificate
    from .loop import Loop


class Status(IntEnum):
    """The codes of `OptimizeResult.status`."""

    CONVERGED = 0  #: the tolerance asked for was reached: by the duality gap, or by a subgradient
    MAX_ITER = 1  #: the budget of iterations is used up
    MAX_TIME = 2  #: the budget of time is used up
    CALLBACK = 3  #: the callback raised StopIteration
    INTERRUPTED = 4  #: the user interrupted the run (Ctrl-C)
    NOT_FINITE = 5  #: the loss, its gradient or the penalty turned NaN or infinite
    DIVERGED = 6  #: the loss has left its starting value by a factor of 1e30, or by 1e6 down a straight line
    STALLED = 7  #: the best objective does not improve any more, and nothing proves that it is good (eta = "auto" only)


RUNNING = -1  # no end yet
#: Ends that are somebody's decision: a success if no tolerance was asked for, for then the run ended as told.
BUDGETS = (Status.MAX_ITER, Status.MAX_TIME, Status.CALLBACK)
UNFINISHED = (*BUDGETS, Status.STALLED)  # ends after which polishing is tried once more
#: Ends that need no warning: whoever ended the run knows.
DECIDED = (Status.CALLBACK, Status.INTERRUPTED)


def succeeded(codes: Any, tol: float | None) -> np.ndarray:
    """Which of these ends are a success. (The table in docs/ends.md.)"""
    return np.asarray(
        (np.asarray(codes) == Status.CONVERGED) | (np.isin(codes, BUDGETS) & (tol is None))
    )


SUBGRADIENT = "Converged: the subgradient of the objective at x is within the tolerance, relative to the first gradient"
CERTIFIED = "Converged: the duality gap is within the tolerance, relative to the objective"
CERTIFIED_SMALL = "Converged: the duality gap is within the tolerance, relative to a millionth of the objective's usual size"

EXPLANATIONS = {
    Status.MAX_ITER: "The budget of iterations (max_iter) is used up",
    Status.MAX_TIME: "The budget of time (max_time) is used up",
    Status.CALLBACK: "The callback stopped the run",
    Status.INTERRUPTED: "The run was interrupted; pass state=result.state to continue it exactly",
    Status.NOT_FINITE: (
        "The loss, its gradient or the penalty turned NaN or infinite at the next iterate; x is the last good one. Likely "
        "causes: (a) the step size eta is too large for a loss that overflows (Poisson, your own); (b) the loss or the penalty "
        "is not defined at the iterate; (c) x0 is far too large. Try a smaller eta, another x0 or a box penalty"
    ),
    Status.DIVERGED: (
        "The loss runs away: it has left its starting value by a factor of 1e30, or falls and falls along a straight line. "
        "Likely causes: (a) the objective is unbounded below; (b) the step size eta is too large. x_best is the best iterate "
        "seen"
    ),
    Status.STALLED: (
        "The best objective has improved by less than the tolerance over the last three quarters of the run, but nothing "
        "proves that it is optimal: progress may just be slow. Scale the features, use a larger tolerance or a stronger "
        "penalty, or go on with state=result.state"
    ),
}

NO_MINIMIZER = (
    "There is no minimizer: the objective keeps decreasing along x toward its infimum. The classes can be "
    "separated, or all counts are zero, and nothing limits the coefficients. Add a penalty"
)
MISSED = " before the tolerance was reached. The run can go on with state=result.state; if it makes no progress, try {}"
REMEDIES = {
    "gap": "a larger tol, another eta, or eta='auto'",
    "subgradient": "another eta, a larger tol, or stop='gap': for a nonsmooth loss the subgradient need not become small",
    "auto": "a larger tol, scaled features or a stronger penalty",
}


class ConvergenceWarning(RuntimeWarning):
    """The run ended without success."""


class ConvergenceError(RuntimeError):
    """The run ended without success and on_failure='raise'. The result so far is `error.result`."""

    def __init__(self, message: str, result: Any):
        super().__init__(message)
        self.result = result


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C. What was reached until then is `error.result`, with the state to go on from."""

    def __init__(self, message: str, result: Any = None):
        super().__init__(message)
        self.result = result


SUMMARY_WIDTH = 100  # of the lines
SHOWN_OF_X = 5  # of x
NAME_WIDTH = 14  # characters that the names take
TOLD = (
    "message",
    "success",
    "status",
    "fun",
    "fun_best",
    "gap",
    "bound",
    "nit",
    "nfev",
    "x",
    "rule",
    "eta",
)


class Result(OptimizeResult):  # type: ignore[misc]
    """SciPy's OptimizeResult, with a summary.

    Examples
    --------
    >>> from adagrad_diff import minimize
    >>> minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], eta=1.0, max_iter=50)
           message  The budget of iterations (max_iter) is used up (50 iterations; norm of the
                    subgradient 6.12e-06, of the first gradient 5.00e+00).
           success  True (status 1)
               fun  1.87094e-11; the smallest seen: 1.87094e-11
               nit  50 iterations, 51 evaluations
                 x  2 numbers: 3.48015e-08, -6.11699e-06
    <BLANKLINE>
       and by name  history, jac, state, subgradient_norm, x_avg, x_best
    """

    def __repr__(self) -> str:
        lines = {
            "message": str(self.get("message", "")),
            "success": f"{self._each('success')} (status {self._each('status')})",
            "fun": f"{self._numbers('fun')}; the smallest seen: {self._numbers('fun_best')}",
            "gap": f"{self._numbers('gap')}: no point has a smaller objective by more than that"
            if "gap" in self
            else "",
            "nit": f"{self._each('nit')} iterations, {self._each('nfev')} evaluations{self._polished()}",
            "x": self._point(),
            "rule": repr(self.rule) if "rule" in self else "",
        }
        if "gap" in self and not np.isfinite(np.max(self.gap)):
            lines["gap"] = "nothing is proven"
        shown = [_line(name, text) for name, text in lines.items() if text]
        others = sorted(name for name in self if name not in TOLD)
        return "\n".join([*shown, "", _line("and by name", ", ".join(others))])

    def _polished(self) -> str:
        rounds = self.finish.rounds if "finish" in self else 0
        return f", {counted(rounds, 'polishing round')}" if rounds else ""

    def _each(self, name: str) -> str:
        """One value, or of several trajectories how many have which."""
        values, counts = np.unique(np.atleast_1d(self.get(name, np.nan)), return_counts=True)
        if len(values) == 1:
            return str(values[0])
        if len(values) > SHOWN_OF_X:
            return f"{values[0]} to {values[-1]}"
        return ", ".join(
            f"{value} ({count} of {counts.sum()})"
            for value, count in zip(values, counts, strict=True)
        )

    def _numbers(self, name: str) -> str:
        values = np.atleast_1d(np.asarray(self.get(name, np.nan), float))
        return (
            f"{values[0]:.6g}"
            if values.size == 1
            else f"{np.min(values):.6g} to {np.max(values):.6g}"
        )

    def _point(self) -> str:
        x = np.asarray(self.get("x", ()))
        zeros = int((x == 0).sum())
        about = counted(x.size, "number") if x.ndim == 1 else f"an array of shape {x.shape}"
        first = ", ".join(f"{value:.6g}" for value in x.ravel()[:SHOWN_OF_X]) + (
            ", ..." if x.size > SHOWN_OF_X else ""
        )
        return f"{about}{f', {zeros} of them zero' if zeros else ''}: {first}"


def _line(name: str, text: Any) -> str:
    """A name, right-aligned, and a text that goes on below itself."""
    indent = " " * (NAME_WIDTH + 2)
    return fill(
        text,
        SUMMARY_WIDTH,
        initial_indent=f"{name:>{NAME_WIDTH}}  ",
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


STRAIGHT_FALL = 1e6  # factor by which an objective may fall along a straight line


def result_of(loop: Loop) -> Result:
    """Return the result of a run that has ended, with the status codes that its end point deserves."""
    state, gap, tol = loop.run.state(), loop.gap, loop.tol
    codes, certified = _final_codes(loop.codes, state), np.zeros(loop.codes.shape, bool)
    points = [state.x[..., k] for k in range(codes.size)] if state.batched else [state.x]
    found = [] if gap is None else gap.certificates(points)
    if gap is not None and tol is not None:
        certified = gap.within(tol, points, gap.usual(state.f_first))
        codes = np.where(certified & np.isin(codes, UNFINISHED), int(Status.CONVERGED), codes)
        if not state.batched and codes[0] == Status.CONVERGED and not _relative(found, tol).all():
            gap.no_minimizer = gap.certifier.has_no_minimizer(state.x)
            codes = np.where(gap.no_minimizer, int(Status.DIVERGED), codes)
        certified &= codes == Status.CONVERGED
    good = succeeded(codes, tol)
    result = Result(
        **of_state(state),
        nfev=loop.run.evaluations,
        status=codes if state.batched else int(codes[0]),
        success=good if state.batched else bool(good[0]),
        message=_message(codes, certified, state, loop, found),
        history=loop.record.history(),
    )
    result.update(loop.run.extra())
    if gap is not None:
        result.update(certified=certified if state.batched else bool(certified[0]))
        result.update(
            gap=np.full(np.shape(state.f), np.inf)[()],
            bound=-np.inf,
            dual_point=gap.certifier.point,
        )
    if found and gap is not None:  # the objectives of the certificates, not those of the iteration
        least = min(c.bound for c in found)
        best = (
            [state.x_best[..., k] for k in range(codes.size)] if state.batched else [state.x_best]
        )
        numbers = {
            "fun": [c.fun for c in found],
            "fun_best": [gap.certifier.objective(x).value for x in best],
        }
        numbers["gap"] = [c.fun - least if c.gap < np.inf else c.gap for c in found]
        result.update(
            {k: np.array(values) if state.batched else values[0] for k, values in numbers.items()}
        )
        result["bound"] = least
    return result


def _relative(found: list[Certificate], tol: float | None) -> np.ndarray:
    """Return where the gap is within the tolerance relative to the objective, and not to its usual size."""
    return np.array([c.gap <= (tol or 0.0) * abs(c.fun) < np.inf for c in found])


def of_state(state: State) -> dict[str, Any]:
    """Return the fields of a result that its state determines."""
    return {
        "x": state.x.copy(),
        "fun": state.fun,
        "jac": state.g.copy(),
        "x_avg": state.x_avg,
        "x_best": state.x_best.copy(),
        "fun_best": state.fun_best,
        "subgradient_norm": state.norm,
        "nit": state.n,
        "state": state,
    }


def warned(result: OptimizeResult, on_failure: str) -> OptimizeResult:
    """Return the result, after a warning or instead of it an error if the run was no success."""
    alarming = ~np.atleast_1d(result.success) & ~np.isin(result.status, DECIDED)
    if alarming.any() and on_failure == "raise":
        raise ConvergenceError(result.message, result)
    if alarming.any() and on_failure == "warn":
        warn(result.message, ConvergenceWarning)
    return result


def _final_codes(codes: np.ndarray, state: State) -> np.ndarray:
    """Return status codes that take into account where the run has ended."""
    g, x = state.flat(state.g), state.flat(state.x)
    norm = np.sqrt(np.einsum("i...,i...->...", g, g, dtype=np.float64))
    with np.errstate(over="ignore", invalid="ignore"):  # where both are infinite
        straight = np.abs(norm - state.g_first) <= NOTHING * state.g_first
        falls = straight & (state.fun < -STRAIGHT_FALL * (1.0 + np.abs(state.f_first)))
    broken = (
        ~(np.isfinite(g) & np.isfinite(x)).all(axis=0) | ~np.isfinite(state.f) | np.isnan(state.phi)
    )
    codes = np.where(np.atleast_1d(falls) & np.isin(codes, BUDGETS), int(Status.DIVERGED), codes)
    return np.where(
        np.atleast_1d(broken) & (codes != Status.INTERRUPTED), int(Status.NOT_FINITE), codes
    )


def _message(
    codes: np.ndarray, certified: np.ndarray, state: State, loop: Loop, found: list[Certificate]
) -> str:
    """Return what happened, what it means, and what to do."""
    gap, tol = loop.gap, loop.tol
    by_gap = gap is not None and not gap.hopeless
    automatic = loop.run.solver.name == "auto"
    remedy = REMEDIES["auto" if automatic else "gap" if by_gap else "subgradient"]
    sentences = []
    for code in np.unique(codes):
        here = codes == code
        sentence = EXPLANATIONS.get(Status(code)) or SUBGRADIENT
        if code == Status.CONVERGED and certified[here].all():
            sentence = CERTIFIED if _relative(found, tol)[here].all() else CERTIFIED_SMALL
        if code == Status.DIVERGED and gap is not None and gap.no_minimizer:
            sentence = NO_MINIMIZER
        if tol is not None and code in BUDGETS:
            sentence += MISSED.format(remedy)
        values = (state.n, state.norm, state.g_first)
        n, u, first = (np.max(np.atleast_1d(value)[here]) for value in values)
        subject = f"{here.sum()} of {codes.size} trajectories: " if codes.size > 1 else ""
        norms = ""
        if not np.isnan(u):
            norms = f"; norm of the subgradient {u:.2e}, of the first gradient {first:.2e}"
        if code == Status.CONVERGED and loop.polish is not None and loop.polish.report.done:
            norms = f", {describe_finish(loop.polish.report)}"
        sentences.append(f"{subject}{sentence} ({counted(n, 'iteration')}{norms}).")
    if gap is not None:
        proven = (
            min(found, key=lambda c: c.fun).message
            if found
            else gap.certifier.message(np.min(state.fun))
        )
        sentences.append(proven)
    return " ".join(sentences)
