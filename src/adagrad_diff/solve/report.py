"""What a run has come to: the result, and the sentences that explain it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import warn
from ..certificates.tolerance import NOTHING
from ..finishing.finish import describe_finish
from .driver import Watch
from .state import State
from .status import (
    BUDGETS,
    CERTIFIED,
    CERTIFIED_SMALL,
    DECIDED,
    EXPLANATIONS,
    MISSED,
    NO_MINIMIZER,
    REMEDIES,
    SUBGRADIENT,
    ConvergenceError,
    ConvergenceWarning,
    Interrupted,
    Status,
    succeeded,
)

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from ..certificates import Certificate

FALLEN = 1e6  # times its first value that a loss may fall along a straight line


def report(
    watch: Watch, state: State, status: Any, on_failure: str, restored: bool = False, **extra: Any
) -> OptimizeResult:
    """The result of a run; a warning or an error if it was not a success, and `Interrupted` if it was interrupted.

    With `restored` the run has ended in an earlier call: everything is computed again, and its checkpoint stays as it is.
    """
    from .result import Result

    certifier = watch.certifier
    for watcher in (certifier, watch.tries):
        state.notes |= watcher.memory() if watcher is not None else {}
    state.x_prev = state.g_prev = state.step = state.pull = state.oracle = (
        None  # only the run needed them
    )
    codes = np.atleast_1d(status)
    broken = ~(np.isfinite(state.flat(state.g)) & np.isfinite(state.flat(state.x))).all(axis=0)
    broken |= ~np.isfinite(state.f) | np.isnan(
        state.phi
    )  # a race calls the loss and the penalty once more in the end
    codes = np.where(
        np.atleast_1d(_falls_for_ever(state)) & np.isin(codes, BUDGETS), int(Status.DIVERGED), codes
    )
    codes = np.where(
        np.atleast_1d(broken) & (codes != Status.INTERRUPTED), int(Status.NOT_FINITE), codes
    )
    watch.point = lambda state: state.x
    found = watch.certificates(state)
    certified = np.atleast_1d(watch.certified(state, found))
    codes = np.where(
        certified & np.isin(codes, (*BUDGETS, Status.STALLED)), int(Status.CONVERGED), codes
    )
    if (
        certifier is not None
        and not state.batched
        and codes[0] == Status.CONVERGED
        and not _relative(found, watch.tol).all()
    ):
        watch.no_minimizer = certifier.has_no_minimizer(state.x)
        codes = np.where(watch.no_minimizer, int(Status.DIVERGED), codes)
    certified &= codes == Status.CONVERGED
    good, batched = succeeded(codes, watch.tol), state.batched
    result = Result(
        **_of_state(state),
        nfev=state.n + 1,
        status=codes if batched else int(codes[0]),
        success=good if batched else bool(good[0]),
        message=_message(codes, certified, state, watch, found),
        history=watch.history(),
    )
    if certifier is not None:
        result.update(
            gap=np.full(codes.shape, np.inf) if batched else np.inf,
            bound=-np.inf,
            dual_point=certifier.point,
        )
        result.update(certified=certified.copy() if batched else bool(certified[0]))
    if found:  # the same objectives as in the certificates, instead of those that the iteration has computed
        x_best = [state.x_best[..., k] for k in range(len(found))] if batched else [state.x_best]
        result["bound"] = least = min(c.bound for c in found)
        numbers = {
            "fun": [c.fun for c in found],
            "gap": [c.fun - least if c.gap < np.inf else c.gap for c in found],
        }
        numbers["fun_best"] = [certifier.objective(x).value for x in x_best]  # type: ignore[union-attr]
        result.update(
            {name: np.array(values) if batched else values[0] for name, values in numbers.items()}
        )
    result.update(extra)
    # There is something to keep.
    if (
        (keeper := watch.keeper) is not None
        and not restored
        and (np.any(state.n) or Status.CONVERGED in codes)
    ):
        bound = (
            None
            if certifier is None or certifier.point is None
            else (certifier.point, certifier.value)
        )
        keeper.keep(
            state, codes if batched else int(codes[0]), result.history, watch.seconds, True, bound
        )
    if watch.interrupt.requested:
        going_on = (
            ""
            if keeper is None
            else f" The same call with checkpoint={str(keeper.path)!r} goes on from here."
        )
        ended = (
            "" if Status.INTERRUPTED in codes else "Ctrl-C came while the run was ending. "
        )  # lest it say just: Converged
        raise Interrupted(ended + result.message + going_on, result)
    alarming = ~np.atleast_1d(result.success) & ~np.isin(result.status, DECIDED)
    if alarming.any() and on_failure == "raise":
        raise ConvergenceError(result.message, result)
    if alarming.any() and on_failure == "warn":
        warn(result.message, ConvergenceWarning)
    return result


def _relative(found: list[Certificate], tol: float | None) -> np.ndarray:
    """Of which points the gap is within the tolerance relative to the objective, and not to its usual size."""
    return np.array([c.gap <= (tol or 0.0) * abs(c.fun) < np.inf for c in found])


def _of_state(state: State) -> dict[str, Any]:
    """What a result has of the state."""
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


def _falls_for_ever(state: State) -> Any:
    """Whether the objective has fallen very far along a straight line, without an end in sight."""
    norm = np.sqrt(
        np.einsum("i...,i...->...", state.flat(state.g), state.flat(state.g), dtype=np.float64)
    )
    with np.errstate(over="ignore", invalid="ignore"):  # where both are infinite
        straight = np.abs(norm - state.g_first) <= NOTHING * state.g_first
        return straight & (state.fun < -FALLEN * (1.0 + np.abs(state.f_first)))


def _message(
    codes: np.ndarray, certified: np.ndarray, state: State, watch: Watch, found: list[Certificate]
) -> str:
    """What happened, what it means, what to do."""
    certifier = watch.certifier
    by_gap = certifier is not None and not certifier.hopeless
    remedy = REMEDIES[
        "auto" if state.trajectories is not None else "gap" if by_gap else "subgradient"
    ]
    sentences = []
    for code in np.unique(codes):
        here = codes == code
        sentence = EXPLANATIONS.get(Status(code)) or SUBGRADIENT
        if code == Status.CONVERGED and certified[here].all():
            sentence = CERTIFIED if _relative(found, watch.tol)[here].all() else CERTIFIED_SMALL
        if code == Status.DIVERGED and watch.no_minimizer:
            sentence = NO_MINIMIZER
        if watch.tol is not None and code in BUDGETS:
            sentence += MISSED.format(remedy)
        n, u, first = (
            np.max(np.atleast_1d(value)[here]) for value in (state.n, state.norm, state.g_first)
        )
        subject = f"{here.sum()} of {codes.size} trajectories: " if codes.size > 1 else ""
        norms = (
            f"; norm of the subgradient {u:.2e}, of the first gradient {first:.2e}"
            if not np.isnan(u)
            else ""
        )
        if code == Status.CONVERGED and watch.tries is not None and watch.tries.done:
            norms = f"; {describe_finish(watch.tries.finisher.report)}"
        sentences.append(
            f"{subject}{sentence} ({n} {'iteration' if n == 1 else 'iterations'}{norms})."
        )
    if certifier is not None:
        sentences.append(
            min(found, key=lambda c: c.fun).message
            if found
            else certifier.message(np.min(state.fun))
        )
    return " ".join(sentences)
