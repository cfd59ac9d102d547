"""What a run has come to: the result, and the sentences that explain it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.tolerance import NOTHING
from ..common.warning import warn
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

    from .keeping import Keeper

FALLEN = 1e6  # times its first value that a loss may fall along a straight line


def report(watch: Watch, state: State, status: Any, on_failure: str, **extra: Any) -> OptimizeResult:
    """The result of a run; a warning or an error if it was not a success, and `Interrupted` if it was interrupted."""
    from .result import Result

    certifier = watch.certifier
    for watcher in (certifier, watch.tries):
        state.notes |= watcher.memory() if watcher is not None else {}
    state.x_prev = state.g_prev = state.step = state.pull = state.oracle = None  # only the run needed them
    codes = np.atleast_1d(status)
    broken = ~(np.isfinite(state.flat(state.g)) & np.isfinite(state.flat(state.x))).all(axis=0)
    broken |= ~np.isfinite(state.f) | np.isnan(state.phi)  # a race calls the loss and the penalty once more in the end
    codes = np.where(np.atleast_1d(_falls_for_ever(state)) & np.isin(codes, BUDGETS), int(Status.DIVERGED), codes)
    codes = np.where(np.atleast_1d(broken) & (codes != Status.INTERRUPTED), int(Status.NOT_FINITE), codes)
    good, batched = succeeded(codes, watch.tol), state.batched
    result = Result(
        **_of_state(state),
        nfev=state.n + 1,
        status=codes if batched else int(codes[0]),
        success=good if batched else bool(good[0]),
        message=_message(codes, state, watch),
        history=watch.history(),
    )
    if certifier is not None:
        certified = np.broadcast_to(watch.certified(state), codes.shape)
        result.update(gap=certifier.gap(state.fun), bound=certifier.bound, dual_point=certifier.point)
        result.update(certified=certified.copy() if batched else bool(certified[0]))
    result.update(extra)
    if (keeper := watch.keeper) is not None and (np.any(state.n) or Status.CONVERGED in codes):  # there is something to keep
        keeper.keep(state, status, result.history, watch.seconds, result)
    if watch.interrupt.requested:
        going_on = "" if keeper is None else f" The same call with checkpoint={str(keeper.path)!r} goes on from here."
        ended = "" if Status.INTERRUPTED in codes else "Ctrl-C came while the run was ending. "  # lest it say just: Converged
        raise Interrupted(ended + result.message + going_on, result)
    return _told(result, on_failure)


def restored(keeper: Keeper, end: dict[str, Any], on_failure: str, **extra: Any) -> OptimizeResult:
    """The result of a run that had ended before, as it was then."""
    from .result import Result

    assert keeper.kept is not None
    ours = {name: value for name, value in end.items() if value is not None}
    return _told(Result(**_of_state(keeper.kept.state), **ours, history=keeper.kept.history, **extra), on_failure)


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


def _told(result: OptimizeResult, on_failure: str) -> OptimizeResult:
    """The result, with a warning or instead of it an error if it is not one that somebody wanted."""
    alarming = ~np.atleast_1d(result.success) & ~np.isin(result.status, DECIDED)
    if alarming.any() and on_failure == "raise":
        raise ConvergenceError(result.message, result)
    if alarming.any() and on_failure == "warn":
        warn(result.message, ConvergenceWarning)
    return result


def _falls_for_ever(state: State) -> Any:
    """Whether the objective has fallen very far along a straight line, without an end in sight."""
    norm = np.sqrt(np.einsum("i...,i...->...", state.flat(state.g), state.flat(state.g), dtype=np.float64))
    with np.errstate(over="ignore", invalid="ignore"):  # where both are infinite
        straight = np.abs(norm - state.g_first) <= NOTHING * state.g_first
        return straight & (state.fun < -FALLEN * (1.0 + np.abs(state.f_first)))


def _message(codes: np.ndarray, state: State, watch: Watch) -> str:
    """What happened, what it means, what to do."""
    certifier, certified = watch.certifier, np.broadcast_to(watch.certified(state), codes.shape)
    by_gap = certifier is not None and not certifier.hopeless
    remedy = REMEDIES["auto" if state.trajectories is not None else "gap" if by_gap else "subgradient"]
    sentences = []
    for code in np.unique(codes):
        here = codes == code
        sentence = EXPLANATIONS.get(Status(code)) or SUBGRADIENT
        if code == Status.CONVERGED and certified[here].all():
            relative = np.atleast_1d(certifier.gap(state.fun) <= watch.tol * np.abs(state.fun))  # type: ignore[union-attr]
            sentence = CERTIFIED if relative[here].all() else CERTIFIED_SMALL
        if watch.tol is not None and code in BUDGETS:
            sentence += MISSED.format(remedy)
        n, u, first = (np.max(np.atleast_1d(value)[here]) for value in (state.n, state.norm, state.g_first))
        subject = f"{here.sum()} of {codes.size} trajectories: " if codes.size > 1 else ""
        norms = f"; norm of the subgradient {u:.2e}, of the first gradient {first:.2e}" if not np.isnan(u) else ""
        if code == Status.CONVERGED and watch.tries is not None and watch.tries.done:
            norms = f"; {describe_finish(watch.tries.finisher.report)}"
        sentences.append(f"{subject}{sentence} ({n} {'iteration' if n == 1 else 'iterations'}{norms}).")
    if certifier is not None:
        sentences.append(certifier.message(np.min(state.fun)))
    return " ".join(sentences)
