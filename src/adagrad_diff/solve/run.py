"""`minimize`: Algorithm 1, or a race of several, watched by the driver."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common import check
from ..common.describe import describe_problem
from ..finishing import Finish
from ..losses import Loss, as_loss
from ..penalties import Penalty, as_penalty
from ..rules import AdaGradDiff, Rule, as_rule
from .algorithm import check_state, iterations, resume, start
from .auto import RESTARTS, Race
from .driver import Watch
from .report import report
from .state import State
from .status import BUDGETS, Status, interruptible
from .tries import Tries

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from ..certificates import Certifier


def minimize(
    loss: Any,
    x0: Any = None,
    penalty: Any = None,
    rule: Rule | None = None,
    *,
    eta: Any = None,
    eps: float | None = None,
    blocks: Any = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    tol: float | None = None,
    stop: str | None = None,
    callback: Callable[[OptimizeResult], Any] | None = None,
    history: int = 1,
    state: State | None = None,
    on_failure: str = "warn",
    finish: bool = True,
) -> OptimizeResult:
    r"""Minimise F(x) = f(x) + phi(x) by AdaGrad-Diff.

    Parameters
    ----------
    loss : Loss or callable
        f: a loss of `adagrad_diff.losses`, or any function x -> (value, gradient).
    x0 : array, optional
        Where to start; zeros by default. A trailing axis of trajectories is allowed: shape (d,) or (d, B).
    penalty : Penalty, optional
        phi: a penalty of `adagrad_diff.penalties`, or any object with value(x) and prox(z, step).
    rule : Rule, optional
        The step-size rule. Alternatively give
    eta, eps, blocks
        the parameters of `AdaGradDiff`; eps is 1e-8 and blocks are single coordinates by default (one block, if the penalty
        has no prox in a metric with several weights). Without a rule, eta is
        "auto" by default: a few step sizes race, and there is none to choose. (See docs/auto.md for how; it costs about
        twice as much per iteration, and is often ahead of the best constant eta.)
    max_iter : int
        Iterations to make, in this call.
    max_time : float, optional
        Seconds after which to stop.
    tol : float, optional
        When to stop; see `stop`. By default only the budgets end a run.
    stop : {"subgradient", "gap"}, optional
        "subgradient", the default with a given eta or rule: stop when ||u|| <= tol ||g^1||, where u = W_n (x^n - x^{n+1}) / eta
        + g^{n+1} - g^n is a subgradient of F at x^{n+1}. It tends to zero if f is smooth; for a nonsmooth f it need not.
        "gap", the default with eta="auto": stop when the duality gap is at most tol |F(x)|, so that F(x) - F_star is (see
        `adagrad_diff.certificates`). Looking at it takes about a tenth of the run's time, and some milliseconds in the end.
        Where no dual point is found (without a penalty, for example), a small subgradient will do as well.
        Both have an absolute part, so that an optimum, or a first gradient, of zero can be reached: |F(x)| counts as at least
        a millionth of the objective's usual size (of linear models: for constant predictions; else: at the start), ||g^1|| as
        a millionth of what gradients have changed by since.
    callback : callable, optional
        Called with an `OptimizeResult` (x, fun, nit, state) after every iteration; it may raise StopIteration.
    history : int
        Record every k-th iteration; 0 records nothing.
    state : State, optional
        The state of an earlier result, which is continued bit for bit as if it had never stopped; everything else must be
        as it was, but for budgets, tolerances and what is recorded. (One call of the loss is spent on seeing that it is.)
    on_failure : {"warn", "raise", "ignore"}
        What to do when the run ends without success.
    finish : bool
        With eta="auto", stop="gap" and a tolerance: whether to solve the small problem that is left exactly (see
        `adagrad_diff.finish`), at once if it is small from the start. With a given eta or rule there is no finish: that is the
        paper's algorithm.

    Returns
    -------
    OptimizeResult
        After n iterations: x = x^{n+1}, fun = F(x), jac = gradient of f at x, x_avg = mean of x^2 ... x^{n+1}, x_best and
        fun_best, subgradient_norm = ||u||, nit = n and nfev = n + 1 (both counted from the very first start), status (see
        `Status`), success, message, history (iteration, objective, mean_step, subgradient_norm, time) and state. With
        stop="gap" also gap >= F(x) - F_star (infinite if nothing is known), bound = F(x) - gap, dual_point, and certified:
        whether the tolerance was reached by the gap (and not by a subgradient).
        success means that the tolerance was reached, or that none was asked for and the run ended as told (docs/ends.md).
        With eta="auto", x is the best iterate (and x_avg is, too), nfev counts the gradients of all step sizes, eta and rule
        are those that led to x, finish says what the finish has done (see `Finish`; its rounds are no iterations), and
        subgradients are measured in coordinates in which columns have unit size. A run also
        ends (`Status.STALLED`, which is no success) when the best objective has improved by less than tol |F(x)| over the
        last three quarters of at least 512 iterations.
        With a trajectory axis, fun, status, success, nit and the like have shape (B,); a trajectory that ends early keeps
        the point where it ended.

    Raises
    ------
    Interrupted
        On Ctrl-C, after the iteration that was under way (at once on the second Ctrl-C). It is a KeyboardInterrupt that
        carries the `result` so far, with its state.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, LAD, minimize
    >>> A = np.random.default_rng(0).standard_normal((200, 10))
    >>> result = minimize(LAD(A, A[:, 0] - 2 * A[:, 3]), penalty=L1(0.01), eta=0.1)
    >>> result.x[[0, 3]].round(2).tolist(), int(np.count_nonzero(result.x.round(2)))
    ([1.0, -2.0], 2)
    """
    loss, penalty = as_loss(loss), as_penalty(penalty)
    automatic = rule is None and (eta is None or (isinstance(eta, str) and eta == "auto"))
    stop = ("gap" if automatic and tol is not None else "subgradient") if stop is None else stop
    check.one_of(stop, ("subgradient", "gap"), "stop", "minimize")
    check.one_of(on_failure, ("warn", "raise", "ignore"), "on_failure", "minimize")
    max_iter, every = check.count(max_iter, "max_iter", "minimize"), check.count(history, "history", "minimize")
    tol = None if tol is None else check.nonnegative(tol, "tol", "minimize")
    check.flag(finish, "finish", "minimize")
    deadline = np.inf if max_time is None else perf_counter() + check.positive(max_time, "max_time", "minimize")
    if callback is not None and not callable(callback):
        raise TypeError(f"The 'callback' parameter of minimize must be callable. Got {callback!r} instead.")
    with interruptible() as interrupt:
        watched: dict[str, Any] = {"tol": tol, "callback": callback, "every": every, "interrupt": interrupt}
        if automatic:
            return _race(loss, x0, penalty, eps, blocks, stop, state, on_failure, finish, max_iter, deadline, **watched)
        if loss.shape is not None:
            penalty.check_size(int(np.prod(loss.shape)) // loss.shape[0] * (loss.shape[0] - loss.intercept))
        rule = _choose_rule(rule, eta, eps, blocks, penalty)
        certifier = _certifier(loss, penalty, stop)
        state = start(loss, x0, penalty, rule, named=True) if state is None else resume(loss, x0, penalty, rule, state)
        if certifier is not None:
            certifier.remember(state.notes)
        watch = Watch(max_iter, deadline, state=state, certifier=certifier, **watched)
        status = watch.run(lambda rule, state: iterations(loss, penalty, rule, state), rule, state)
        return report(watch, state, status, on_failure)


def _race(
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
    race = Race(loss, penalty, 1e-8 if eps is None else eps, blocks)
    certifier = _certifier(loss, penalty, stop, 1 + len(RESTARTS))
    if state is not None:
        check_state(loss, x0, penalty, race.identity, state)
    leader = race.start(x0) if state is None else race.resume(state)
    leader.problem = describe_problem(loss, penalty, race.identity)
    dual = certifier.dual if certifier is not None and certifier.known else None
    if certifier is not None and dual is not None:
        certifier.remember(leader.notes)
        certifier.back = race.coordinates.back
    tries, tol = None, watched["tol"]
    if finish and certifier is not None and dual is not None and tol is not None:
        tries = Tries(race, certifier, tol, deadline, watched["interrupt"])
    watch = Watch(max_iter, deadline, state=leader, certifier=certifier, show=race.show, tries=tries, **watched)
    if tries is not None and tries.at_once(leader):
        status: Any = Status.CONVERGED
    else:
        status = watch.run(lambda rule, state: race.iterations(state), race.rule(1.0), leader)
    if tries is not None and (tries.done or (status in (*BUDGETS, Status.STALLED) and tries.last())):
        tries.settle(leader)
        status = Status.CONVERGED
    elif leader.n:
        by_gap = bool(watch.certified(leader))
        r = race.settle(leader, status == Status.CONVERGED and not by_gap, dual)
        if certifier is not None and dual is not None and not watch.certified(leader):
            certifier.finish(leader.x, leader.g, None if dual.kinked else r)
        status = watch.reconsider(leader, status, by_gap)
    else:
        race.keep(leader)
    extra = {"eta": race.eta, "rule": race.rule(race.eta), "nfev": race.evaluations + (leader.n > 0)}
    extra["finish"] = _unfinished(certifier, finish, tol) if tries is None else tries.report
    return report(watch, leader, status, on_failure, **extra)


def _unfinished(certifier: Certifier | None, finish: bool, tol: float | None) -> Finish:
    """Why the finish was never tried."""
    if not finish or tol is None:
        return Finish(reason="it was turned off" if not finish else "no tolerance was asked for")
    return Finish(reason=certifier.dual if certifier is not None else "the run was to stop by its subgradient")


def _certifier(loss: Loss, penalty: Penalty, stop: str, trajectories: int = 1) -> Certifier | None:
    if stop != "gap":
        return None
    from ..certificates import Certifier, dual_of

    return Certifier(dual_of(loss, penalty), trajectories)


def _choose_rule(rule: Rule | None, eta: Any, eps: Any, blocks: Any, penalty: Penalty) -> Rule:
    if rule is None:
        if blocks is None and penalty.accepts == "scalar":
            blocks = "all"  # its prox is known for one step only
        return AdaGradDiff(eta, **({} if eps is None else {"eps": eps}), blocks=blocks)
    rule = as_rule(rule)
    for name, value in (("eta", eta), ("eps", eps), ("blocks", blocks)):
        if value is not None:
            raise ValueError(f"{name!r} belongs to the rule: give either 'rule' or {name!r}, not both.")
    return rule
