"""What a run returns: status codes, the history, what counts as success, and messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import OptimizeResult

from .._messages import counted, warn
from ..duality import NEGLIGIBLE_SHARE
from ..polishing.polisher import describe_polishing

if TYPE_CHECKING:
    from ..duality import Certificate
    from .loop import Loop
    from .state import State


class Status(IntEnum):
    """The codes of `OptimizeResult.status`."""

    CONVERGED = 0  #: the tolerance was reached, by the duality gap or by a subgradient
    MAX_ITER = 1  #: the budget of iterations is used up
    MAX_TIME = 2  #: the budget of time is used up
    CALLBACK = 3  #: the callback raised StopIteration
    INTERRUPTED = 4  #: the user interrupted the run (Ctrl-C)
    NOT_FINITE = 5  #: the loss, its gradient or the penalty turned NaN or infinite
    DIVERGED = 6  #: the loss exceeded 1e30 times its initial value, or is unbounded below
    STALLED = 7  #: the best objective has stopped improving, and it is not known to be good


RUNNING = -1  # no end yet
STRAIGHT_FALL = 1e6  # factor by which an objective may fall along a straight line
#: Ends that the user chose. They are a success if no tolerance was given.
BUDGETS = (Status.MAX_ITER, Status.MAX_TIME, Status.CALLBACK)
UNFINISHED = (*BUDGETS, Status.STALLED)  # ends after which polishing is tried once more
SILENT = (Status.CALLBACK, Status.INTERRUPTED)  # ends without a warning, as the user caused them


def succeeded(codes: Any, tol: float | None) -> np.ndarray:
    """Return which of these ends are a success (the table in docs/guide/auto.md)."""
    used_up = np.isin(codes, BUDGETS) & (tol is None)
    return np.asarray((np.asarray(codes) == Status.CONVERGED) | used_up)


EXPLANATIONS = {
    Status.CONVERGED: (
        "Converged: the subgradient of the objective at x is within the tolerance, relative to the "
        "first gradient"
    ),
    Status.MAX_ITER: "The budget of iterations (max_iter) is used up",
    Status.MAX_TIME: "The budget of time (max_time) is used up",
    Status.CALLBACK: "The callback stopped the run",
    Status.INTERRUPTED: "The run was interrupted; pass state=result.state to continue it exactly",
    Status.NOT_FINITE: (
        "The loss, its gradient or the penalty turned NaN or infinite at the next iterate; x is "
        "the last good one. Likely causes: (a) the step size eta is too large for a loss that "
        "overflows (Poisson, your own); (b) the loss or the penalty is not defined at the iterate; "
        "(c) x0 is far too large. Try a smaller eta, another x0 or a box penalty"
    ),
    Status.DIVERGED: (
        "The run diverged: the loss exceeded 1e30 times its initial value, or decreases without "
        "bound along a straight line. Likely causes: (a) the objective is unbounded below; (b) the "
        "step size eta is too large. x_best is the best iterate seen"
    ),
    Status.STALLED: (
        "The best objective has improved by less than the tolerance over the last three quarters "
        "of the run, but no certificate shows that it is optimal: progress may just be slow. Scale "
        "the features, use a larger tolerance or a stronger penalty, or continue with "
        "state=result.state"
    ),
}
BAD_START = (
    "The loss, its gradient or the penalty is NaN or infinite at x0. Is it defined there? Try "
    "another x0"
)
CERTIFIED = "Converged: the duality gap is within the tolerance, relative to the objective"
CERTIFIED_SMALL = (
    "Converged: the duality gap is within the tolerance, relative to a millionth of the "
    "objective's usual size"
)
NO_MINIMIZER = (
    "There is no minimizer: the objective keeps decreasing along x toward its infimum. The classes "
    "can be separated, or all counts are zero, and nothing limits the coefficients. Add a penalty"
)
MISSED = (
    " before the tolerance was reached. The run can continue with state=result.state; if it makes "
    "no progress, try {}"
)
REMEDIES = {
    "gap": "a larger tol, another eta, or eta='auto'",
    "subgradient": (
        "another eta, a larger tol, or stop='gap': for a nonsmooth loss the subgradient need not "
        "become small"
    ),
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
    """The user pressed Ctrl-C. The result so far, with its state, is `error.result`."""

    def __init__(self, message: str, result: Any = None):
        super().__init__(message)
        self.result = result


@dataclass(repr=False)
class History:
    """What was recorded, one entry per recorded iteration.

    With trajectories, arrays have shape (entries, B), and NaN after a trajectory has ended.
    """

    iteration: np.ndarray  # n, counted from the very first start
    objective: np.ndarray  # F(x^{n+1})
    mean_step: np.ndarray  # mean over coordinates of eta / w^n
    subgradient_norm: np.ndarray  # ||u^{n+1}||
    time: np.ndarray  # seconds since the call began; with a checkpoint, of all its calls together
    passes: np.ndarray  # passes over the data: one per gradient, with minibatches a part of one

    @classmethod
    def from_rows(cls, rows: list[Any], shape: tuple[int, ...]) -> History:
        """Return the history with these entries; `shape` is () or that of the trajectories."""
        columns = zip(*rows, strict=True) if rows else [()] * 6
        shapes = ((), shape, shape, shape, (), ())
        arrays = [
            np.array(column, np.float64).reshape(len(rows), *one)
            for column, one in zip(columns, shapes, strict=True)
        ]
        return cls(arrays[0].astype(np.int64), *arrays[1:])

    def __repr__(self) -> str:
        if not len(self.iteration):
            return "History(nothing recorded)"
        first, last = self.iteration[0], self.iteration[-1]
        return f"History({len(self.iteration)} entries, iterations {first} to {last})"


SUMMARY_WIDTH, NAME_WIDTH = 100, 14  # characters of a line, and of the names at its beginning
SHOWN_ENTRIES = 5  # entries of x in a summary


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
            others  history, jac, state, subgradient_norm, x_avg, x_best
    """

    def __repr__(self) -> str:
        success, status, fun, fun_best, nit, nfev = map(
            self._shown, ("success", "status", "fun", "fun_best", "nit", "nfev")
        )
        lines = {"message": str(self.get("message", "")), "success": f"{success} (status {status})"}
        lines["fun"] = f"{fun}; the smallest seen: {fun_best}"
        if "gap" in self:
            gap = f"{self._shown('gap')}: no point has a smaller objective by more than that"
            lines["gap"] = gap if np.isfinite(np.max(self.gap)) else "nothing is proven"
        lines["nit"] = f"{nit} iterations, {nfev} evaluations"
        if "finish" in self and self.finish.rounds:
            lines["nit"] += f", {counted(self.finish.rounds, 'polishing round')}"
        lines["x"] = self._summary_of_x()
        if "rule" in self:
            lines["rule"] = repr(self.rule)
        others = self.keys() - lines.keys() - {"status", "fun_best", "nfev", "eta"}
        lines["others"] = ", ".join(sorted(others))
        width = NAME_WIDTH + 2
        text = []
        for name, line in lines.items():
            filled = fill(line, SUMMARY_WIDTH - width, break_on_hyphens=False)
            text += [f"{name:>{NAME_WIDTH}}  " + filled.replace("\n", "\n" + " " * width)]
        return "\n".join(text)

    def _shown(self, name: str) -> str:
        """Return one value, how many of several trajectories have which, or their range."""
        values, counts = np.unique(np.atleast_1d(self.get(name, np.nan)), return_counts=True)
        is_float = values.dtype.kind == "f"
        shown = [f"{value:.6g}" if is_float else str(value) for value in values]
        if len(shown) == 1:
            return shown[0]
        if is_float or len(shown) > SHOWN_ENTRIES:
            return f"{shown[0]} to {shown[-1]}"
        total = counts.sum()
        return ", ".join(f"{v} ({n} of {total})" for v, n in zip(shown, counts, strict=True))

    def _summary_of_x(self) -> str:
        x = np.asarray(self.get("x", ()))
        zeros = int((x == 0).sum())
        about = counted(x.size, "number") if x.ndim == 1 else f"an array of shape {x.shape}"
        about += f", {zeros} of them zero" if zeros else ""
        first = ", ".join(f"{value:.6g}" for value in x.ravel()[:SHOWN_ENTRIES])
        return f"{about}: {first}{', ...' if x.size > SHOWN_ENTRIES else ''}"


def result_so_far(state: State) -> Result:
    """Return the result of a run whose loss cannot be evaluated any more."""
    return Result(
        x=state.x.copy(),
        fun=state.fun,
        x_best=state.x_best.copy(),
        fun_best=state.fun_best,
        nit=state.n,
        status=Status.INTERRUPTED,
        success=False,
        message=EXPLANATIONS[Status.INTERRUPTED],
        state=state,
    )


def result_of(loop: Loop, state: State) -> Result:
    """Return the result of a run that has ended, at its final state."""
    criterion, tol, several = loop.criterion, loop.criterion.tol, state.batched
    certifier = criterion.certifier

    def points(x: np.ndarray) -> list[np.ndarray]:
        return [x[..., k] for k in range(x.shape[-1])] if several else [x]

    found = criterion.certificates(points(state.x))
    codes, certified = _final_codes(loop, state), np.zeros(loop.codes.shape, bool)
    if found and tol is not None:
        certified = criterion.within(state, points(state.x))
        codes = np.where(certified & np.isin(codes, UNFINISHED), int(Status.CONVERGED), codes)
    doubtful = codes[0] == Status.CONVERGED and not _is_relative(found, tol).all()
    if certifier is not None and not several and doubtful and criterion.has_no_minimizer(state.x):
        codes[:] = Status.DIVERGED
    certified = certified & (codes == Status.CONVERGED)
    # The answer of a portfolio may be another point than the iterate with the subgradient.
    norms = loop.norm() if loop.solver.answers_best else state.subgradient_norm
    result = Result(
        x=state.x.copy(),
        fun=state.fun,
        jac=state.g.copy(),
        x_avg=state.x_avg,
        x_best=state.x_best.copy(),
        fun_best=state.fun_best,
        subgradient_norm=norms,
        nit=state.n,
        nfev=state.iterate.evaluations + loop.solver.answers_best,  # the last one at the best x
        message=_message(codes, certified, state, norms, loop, found),
        history=loop.history(),
        state=state,
    )
    values: dict[str, Any] = {"status": codes, "success": succeeded(codes, tol)}
    if certifier is not None:
        bound = min((c.bound for c in found), default=-np.inf)
        result.update(bound=bound, dual_point=certifier.point)
        values |= {"certified": certified, "gap": np.full(codes.shape, np.inf)}
        if found:  # objectives at exactly x and x_best, and not those of the iteration
            best = [certifier.objective(x).value for x in points(state.x_best)]
            values |= {"fun": np.array([c.fun for c in found]), "fun_best": np.array(best)}
            values["gap"] = np.array([c.fun - bound if c.gap < np.inf else np.inf for c in found])
    result.update({k: v if several else v[0].item() for k, v in values.items()})
    return result


def _final_codes(loop: Loop, state: State) -> np.ndarray:
    """Return the status codes, given the state after the last iteration or polishing."""
    g, x = state.iterate.g, state.iterate.x
    with np.errstate(over="ignore", invalid="ignore"):
        norm = loop.problem.norm(loop.whole_state().iterate.g)
        straight = np.abs(norm - state.g_first) <= NEGLIGIBLE_SHARE * state.g_first
        falls = straight & (state.fun < -STRAIGHT_FALL * (1.0 + np.abs(state.f_first)))
    broken = ~(np.isfinite(g) & np.isfinite(x)).all(axis=0) | ~np.isfinite(state.f)
    broken = np.atleast_1d(broken | np.isnan(state.phi))
    unbounded = np.atleast_1d(falls) & np.isin(loop.codes, BUDGETS)
    codes = np.where(unbounded, Status.DIVERGED, loop.codes)
    return np.where(broken & (codes != Status.INTERRUPTED), Status.NOT_FINITE, codes)


def warned(result: OptimizeResult, on_failure: str) -> OptimizeResult:
    """Return the result, after a warning or instead of it an error if the run was no success."""
    alarming = ~np.atleast_1d(result.success) & ~np.isin(result.status, SILENT)
    if alarming.any() and on_failure == "raise":
        raise ConvergenceError(result.message, result)
    if alarming.any() and on_failure == "warn":
        warn(result.message, ConvergenceWarning)
    return result


def _is_relative(found: list[Certificate], tol: float | None) -> np.ndarray:
    """Return where the gap is within the tolerance relative to the objective itself."""
    return np.array([c.gap <= (tol or 0.0) * abs(c.fun) < np.inf for c in found])


def _message(
    codes: np.ndarray, certified: np.ndarray, state: State, norms: Any, loop: Loop, found: Any
) -> str:
    """Return what happened, what it means, and what to do."""
    criterion, certifier = loop.criterion, loop.criterion.certifier
    kind = "gap" if certifier is not None and not certifier.hopeless else "subgradient"
    remedy = REMEDIES["auto" if loop.solver.answers_best else kind]
    finite_start = np.atleast_1d(np.isfinite(state.f_first + state.g_first))
    sentences = []
    for code in np.unique(codes):
        here = codes == code
        sentence = EXPLANATIONS[Status(code)]
        if code == Status.CONVERGED and certified[here].all():
            relative = _is_relative(found, criterion.tol)[here].all()
            sentence = CERTIFIED if relative else CERTIFIED_SMALL
        if code == Status.DIVERGED and criterion.no_minimizer:
            sentence = NO_MINIMIZER
        if code == Status.NOT_FINITE and not finite_start[here].any():
            sentence = BAD_START
        if criterion.tol is not None and code in BUDGETS:
            sentence += MISSED.format(remedy)
        values = state.n, norms, state.g_first
        n, norm, first = (np.max(np.atleast_1d(value)[here]) for value in values)
        subject = f"{here.sum()} of {codes.size} trajectories: " if codes.size > 1 else ""
        details = counted(n, "iteration")
        if loop.polish is not None and loop.polish.report.done and code == Status.CONVERGED:
            details += f", {describe_polishing(loop.polish.report)}"
        elif not np.isnan(norm):
            details += f"; norm of the subgradient {norm:.2e}, of the first gradient {first:.2e}"
        sentences.append(f"{subject}{sentence} ({details}).")
    if certifier is not None:
        best = min(found, key=lambda c: c.fun) if found else None
        sentences.append(best.message if best else certifier.message(float(np.min(state.fun))))
    return " ".join(sentences)
