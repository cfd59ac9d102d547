"""`minimize` with eta="auto": a race, its certificate, and the finish, watched by the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..finishing import Finish
from ..losses import Loss, Minibatch
from ..penalties import Penalty
from ..solvers.fingerprint import describe_problem
from .algorithm import check_state
from .auto import RESTARTS, Race
from .driver import Watch
from .keeping import trusted
from .opening import OPENING_ROUNDS
from .report import report
from .status import BUDGETS, Status
from .tries import Tries

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from ..certificates import Certifier


def race(
    loss: Loss,
    x0: Any,
    penalty: Penalty,
    eps: Any,
    blocks: Any,
    stop: str,
    state: Any,
    on_failure: str,
    finish: bool,
    max_iter: int,
    deadline: float,
    **watched: Any,
) -> OptimizeResult:
    """`minimize` with eta="auto": what is watched is the leader of several trajectories."""
    racers = Race(loss, penalty, 1e-8 if eps is None else eps, blocks)
    certifier = certifier_of(loss, penalty, stop, 1 + len(RESTARTS))
    if certifier is not None:
        certifier.accuracy = watched["tol"] or 0.0
    dual = certifier.dual if certifier is not None and certifier.known else None
    tries, tol, keeper = None, watched["tol"], watched["keeper"]
    if finish and certifier is not None and dual is not None and tol is not None:
        tries = Tries(racers, certifier, tol, deadline, watched["interrupt"])
    with trusted(keeper):
        if state is not None:
            check_state(loss, x0, penalty, racers.identity, state)
        leader = racers.start(x0) if state is None else racers.resume(state)
        if certifier is not None and dual is not None:
            if racers.opening:  # which says itself when to look
                certifier.next = OPENING_ROUNDS
            certifier.remember(leader.notes, leader.x)
            certifier.back = racers.coordinates.back
        if tries is not None:
            tries.remember(leader.notes)
    leader.problem = describe_problem(loss, penalty, racers.identity)
    watched |= {
        "passes": racers.passes,
        "point": lambda leader: racers.coordinates.back(racers.best),
    }
    if certifier is not None:
        watched["curvature"] = racers.curvature
    watch = Watch(
        max_iter,
        deadline,
        state=leader,
        certifier=certifier,
        show=racers.show,
        tries=tries,
        **watched,
    )
    extra = {
        "eta": racers.eta,
        "rule": racers.rule(racers.eta),
        "nfev": racers.evaluations + (leader.n > 0),
    }
    extra["finish"] = _unfinished(certifier, finish, tol) if tries is None else tries.report
    if keeper is not None and (ended := keeper.finished(watch)) is not None:
        return report(watch, ended, keeper.kept.codes, on_failure, restored=True, **extra)
    if tries is not None and tries.at_once(leader):
        status: Any = Status.CONVERGED
    else:
        status = watch.run(lambda rule, state: racers.iterations(state), racers.rule(1.0), leader)
    if tries is not None and (
        tries.done or (status in (*BUDGETS, Status.STALLED) and tries.last())
    ):
        tries.settle(leader)
        status = Status.CONVERGED
    elif leader.n:
        by_subgradient = status == Status.CONVERGED and not watch.certified(leader)
        r = racers.settle(leader, by_subgradient, dual)
        if certifier is not None and dual is not None and not watch.certified(leader):
            certifier.finish(leader.x, leader.g, None if dual.kinked else r)
    else:
        racers.keep(leader)
    watch.point = lambda leader: leader.x
    extra = {
        "eta": racers.eta,
        "rule": racers.rule(racers.eta),
        "nfev": racers.evaluations + (leader.n > 0),
    }
    extra["finish"] = _unfinished(certifier, finish, tol) if tries is None else tries.report
    return report(watch, leader, status, on_failure, **extra)


def _unfinished(certifier: Certifier | None, finish: bool, tol: float | None) -> Finish:
    """Why the finish was never tried."""
    if not finish or tol is None:
        return Finish(reason="it was turned off" if not finish else "no tolerance was asked for")
    return Finish(
        reason=certifier.dual if certifier is not None else "the run was to stop by its subgradient"
    )


def certifier_of(
    loss: Loss, penalty: Penalty, stop: str, trajectories: int = 1
) -> Certifier | None:
    """What looks for duality gaps, if somebody asks for them."""
    if stop != "gap":
        return None
    from ..certificates import Certifier, dual_of

    return Certifier(dual_of(loss.whole, penalty), trajectories, rounds=isinstance(loss, Minibatch))
