"""`minimize`: Algorithm 1, or a race of several, watched by the driver."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from ..losses import Loss, as_loss
from ..penalties import Penalty, as_penalty
from ..rules import AdaGradDiff, Rule
from ..solvers.fingerprint import OTHER_PROBLEM
from ..solvers.minimize import as_solver, minimize_with
from ..solvers.proximal_gradient import Solver
from ..solvers.state import State
from .keeping import Keeper
from .racing import race
from .state import State as AutoState
from .status import interruptible

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


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
    state: Any = None,
    on_failure: str = "warn",
    finish: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
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
        Where no dual point is found, a small subgradient will do as well, if the curvature of the loss at x shows that the
        objective is near its optimum then. (With nearly dependent columns a small subgradient means nothing.)
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
    checkpoint : path, optional
        A file that is written every so many seconds (`every`), on Ctrl-C and at the end. The same call goes on from it, also
        after a kill, and ends where a call that was never interrupted does, bit for bit, its history included but for the
        times. So budgets count from the very first start: max_iter the iterations, max_time the seconds, of all calls
        together. A run that has ended is not run again: its result is returned, unless the call has a larger budget or another
        tol. (After its callback has stopped it, a run goes on.) A checkpoint of another problem, rule, x0 or state is refused,
        and one that cannot be written is an OSError; the last good one stays. One run at a time uses it: for a second one, in
        whatever process or thread, it is a BlockingIOError.
    every : float
        Seconds between two writings of the checkpoint.

    Returns
    -------
    OptimizeResult
        After n iterations: x = x^{n+1}, fun = F(x), jac = gradient of f at x, x_avg = mean of x^2 ... x^{n+1}, x_best and
        fun_best, subgradient_norm = ||u||, nit = n and nfev = n + 1 (both counted from the very first start), status (see
        `Status`), success, message, history (iteration, objective, mean_step, subgradient_norm, time, passes) and state. With
        stop="gap" also gap >= F(x) - F_star (infinite if nothing is known), bound = F(x) - gap, dual_point, and certified:
        whether the tolerance was reached by the gap (and not by a subgradient). Then fun, fun_best and gap are evaluated at
        exactly x and x_best, in double precision or better, and rounding counts against the gap.
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

    A run that may be killed, and is called again until it is through:

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.npz"
    >>> for _ in range(2):  # the second call has nothing left to do
    ...     result = minimize(LAD(A, A[:, 0]), eta=0.1, max_iter=500, checkpoint=path)
    >>> result.nit, len(result.history.iteration)
    (500, 500)
    """
    loss, penalty = as_loss(loss), as_penalty(penalty)
    for kind, name in ((Penalty, "penalty"), (Rule, "rule")):  # as `sweep` would take them
        if isinstance(x0, kind):
            raise TypeError(f"'x0' is a {name}. Did you mean {name}={_check.shown(x0)}?")
    automatic = rule is None and (eta is None or (isinstance(eta, str) and eta == "auto"))
    stop = ("gap" if automatic and tol is not None else "subgradient") if stop is None else stop
    _check.one_of(stop, ("subgradient", "gap"), "stop", "minimize")
    _check.one_of(on_failure, ("warn", "raise", "ignore"), "on_failure", "minimize")
    max_iter, recorded = (
        _check.count(max_iter, "max_iter", "minimize"),
        _check.count(history, "history", "minimize"),
    )
    tol = None if tol is None else _check.nonnegative(tol, "tol", "minimize")
    _check.flag(finish, "finish", "minimize")
    seconds = np.inf if max_time is None else _check.positive(max_time, "max_time", "minimize")
    begin, pause = perf_counter(), _check.nonnegative(every, "every", "minimize")
    if callback is not None and not callable(callback):
        raise TypeError(
            f"The 'callback' parameter of minimize must be callable. Got {callback!r} instead."
        )
    if type(state) is (State if automatic else AutoState):
        raise ValueError(OTHER_PROBLEM.format("rule.class is not the same"))
    if not automatic:
        return minimize_with(
            _choose_solver(loss, rule, eta, eps, blocks, penalty),
            loss,
            x0,
            penalty,
            max_iter=max_iter,
            max_time=seconds,
            tol=tol,
            stop=stop,
            callback=callback,
            history=recorded,
            state=state,
            on_failure=on_failure,
            checkpoint=checkpoint,
            every=pause,
            finish=finish,
        )
    with interruptible() as interrupt, ExitStack() as held:
        keeper = None
        if checkpoint is not None:
            ends = {
                "tol": tol,
                "stop": stop,
                "finish": finish,
                "max_iter": max_iter,
                "max_time": seconds,
            }
            keeper = held.enter_context(closing(Keeper(checkpoint, pause, x0, state, **ends)))
            state = keeper.continued(state)
        deadline = begin + seconds - (keeper.seconds if keeper else 0.0)
        watched: dict[str, Any] = {"tol": tol, "callback": callback, "every": recorded}
        watched |= {"interrupt": interrupt, "keeper": keeper, "passes": loss.passes}
        return race(
            loss,
            x0,
            penalty,
            eps,
            blocks,
            stop,
            state,
            on_failure,
            finish,
            max_iter,
            deadline,
            **watched,
        )


def _choose_solver(
    loss: Loss, rule: Any, eta: Any, eps: Any, blocks: Any, penalty: Penalty
) -> Solver:
    if (
        loss.shape is not None
    ):  # a penalty of the user may have to know the size to tell which metrics it accepts
        penalty.check_size(
            int(np.prod(loss.shape)) // loss.shape[0] * (loss.shape[0] - loss.intercept)
        )
    if rule is None:
        if blocks is None and penalty.accepts == "scalar":
            blocks = "all"  # its prox is known for one step only
        return as_solver(
            AdaGradDiff(eta, **({} if eps is None else {"eps": eps}), blocks=blocks), loss
        )
    solver = as_solver(rule, loss)
    for name, value in (("eta", eta), ("eps", eps), ("blocks", blocks)):
        if value is not None:
            raise ValueError(
                f"{name!r} belongs to the rule: give either 'rule' or {name!r}, not both."
            )
    return solver
