"""`minimize` and `iterate`: from what users pass to a run, and from a run to its result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from ..losses import Loss, Minibatch, as_loss
from ..penalties import Penalty, as_penalty
from ..polishing import PolishReport
from ..rules import FISTA, AdaGradDiff, Rule, as_rule
from ..rules.base import AveragingRule
from .auto import Auto, PolishingSchedule, Portfolio, settled
from .checkpoint import RunCheckpoint
from .fingerprint import describe_problem, difference
from .fista import FISTASolver
from .loop import Loop, StoppingCriterion
from .problem import Layout, Problem
from .proximal_gradient import Averaging, ProximalGradient, Solver
from .result import RUNNING, Interrupted, Result, Status, result_of, result_so_far, warned
from .state import State, check_state, other_problem
from .svrg import SVRG

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

DEFAULT_TOL = 1e-4  # relative gap of runs without a rule, eta or budget, as in the estimators
PORTFOLIO_GRADIENTS = 3  # of an iteration without eta, after the first stage
AUTO_MAX_ITER, MAX_ITER = 10_000, 1000  # iterations without and with a given rule or eta


def as_solver(rule: Any, loss: Loss | None = None) -> Solver:
    """Return the solver that runs a rule on a loss."""
    rule = as_rule(rule)
    if isinstance(rule, FISTA):
        return FISTASolver(rule)
    if isinstance(rule, AveragingRule):
        return Averaging(rule)
    return SVRG(rule) if isinstance(loss, Minibatch) else ProximalGradient(rule)


def iterate(
    loss: Any, x0: Any = None, penalty: Any = None, rule: Any = None, *, state: State | None = None
) -> Iterator[State]:
    r"""Yield the state after each iteration of Algorithm 1, without end.

    .. math:: x^{n+1} = \text{prox}^{W_n}_{\eta\varphi}(x^n - \eta W_n^{-1} g^n), \quad g^n \in \partial f(x^n)

    Parameters
    ----------
    loss, x0, penalty, rule
        As for `minimize`.
    state : State, optional
        Where to start from instead of x0.

    Yields
    ------
    State
        The n-th state holds x^{n+1}. States are not modified later.

    Examples
    --------
    >>> from itertools import islice
    >>> from adagrad_diff import AdaGradDiff, iterate
    >>> states = iterate(lambda x: (0.5 * x @ x, x), [1.0], rule=AdaGradDiff(eta=0.5))
    >>> [round(float(s.x[0]), 3) for s in islice(states, 3)]
    [0.5, 0.276, 0.155]
    """
    loss, penalty = as_loss(loss), as_penalty(penalty)
    return _states(*begin(loss, x0, penalty, as_solver(rule, loss), state))


def _states(solver: Solver, problem: Problem, state: State) -> Iterator[State]:
    while True:
        with np.errstate(all="ignore"):
            state = state.advanced(solver.step(problem, state.iterate))
        yield state


def begin(
    loss: Loss, x0: Any, penalty: Penalty, solver: Solver, state: State | None
) -> tuple[Solver, Problem, State]:
    """Return what a run consists of, from x0 or from a state that is checked to belong to it."""
    if state is None:
        problem, x = Problem.at(loss, penalty, x0, solver.rule.trajectories)
    else:
        problem = _problem_of(state, loss, x0, penalty, solver)
    if solver.answers_best:
        problem = problem.standardized()
    solver = solver.prepared(problem)
    if state is not None:
        if isinstance(solver, Auto):
            return solver, problem, solver.resumed(problem, state)
        with np.errstate(all="ignore"):
            check_state(problem, state, solver.init(problem, state.iterate.x))
        return solver, problem, state
    if problem.layout.center is not None:
        x = problem.layout.forward(problem.layout.shaped(x))
    return solver, problem, State.first(solver, problem, x)


def _problem_of(state: Any, loss: Loss, x0: Any, penalty: Penalty, solver: Solver) -> Problem:
    """Return the problem of a run that continues, or raise if it is not that of the state."""
    if not isinstance(state, State):
        raise TypeError(
            "'state' must be a State, such as result.state or load_state(path). Got "
            f"{type(state).__name__} instead."
        )
    origin, x = state.origin, state.x
    if loss.dtype is not None and x.dtype != loss.dtype:
        raise ValueError(f"'state' has x of dtype {x.dtype}, but this loss works in {loss.dtype}.")
    if x0 is not None and np.shape(x0) != x.shape:
        raise ValueError(
            f"'x0' has shape {np.shape(x0)}, but 'state' has x of shape {x.shape}. Leave x0 out."
        )
    if loss.shape is not None and x.shape[: len(loss.shape)] != loss.shape:
        raise ValueError(f"'state' has x of shape {x.shape}, but this loss needs {loss.shape}.")
    parts = loss, penalty, solver.rule
    same = origin.parts and all(a is b for a, b in zip(origin.parts, parts, strict=True))
    where = None if same else difference(origin.problem, describe_problem(*parts))
    if where is not None:
        what = "the data of the loss are" if where.startswith("data") else f"{where} is"
        raise other_problem(f"{what} not the same")
    trajectories = len(state.f) if state.batched else None
    return Problem(loss, penalty, Layout(origin.layout.shape), x.dtype, trajectories)


def minimize(
    loss: Any,
    x0: Any = None,
    penalty: Any = None,
    rule: Rule | None = None,
    *,
    eta: Any = None,
    eps: float | None = None,
    blocks: Any = None,
    max_iter: int | None = None,
    max_time: float | None = None,
    tol: float | None = None,
    stop: str | None = None,
    callback: Callable[[OptimizeResult], Any] | None = None,
    history: int = 1,
    state: State | None = None,
    on_failure: str = "warn",
    finish: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
) -> OptimizeResult:
    r"""Minimize F(x) = f(x) + phi(x) by AdaGrad-Diff.

    Without a rule, eta or budget the run ends when the relative duality gap is at most 1e-4.

    Parameters
    ----------
    loss : Loss or callable
        f: a loss of `adagrad_diff.losses`, or any function x -> (value, gradient).
    x0 : array, optional
        The start, zeros by default. A trailing axis of trajectories is allowed: shape (d, B).
    penalty : Penalty, optional
        phi: a penalty of `adagrad_diff.penalties`, or any object with value(x) and prox(z, step).
    rule : Rule, optional
        The step-size rule. With a rule, `eta`, `eps` and `blocks` are left out.
    eta : "auto", float, array or callable, optional
        The step size of `AdaGradDiff`. "auto", the default without a rule, runs a portfolio of step
        sizes, about three gradients per iteration. With a tolerance, which is 1e-4 if no budget is
        given either, it polishes its answer (docs/guide/auto.md).
    eps, blocks : optional
        Further parameters of `AdaGradDiff`: 1e-8 and single coordinates by default (one block if
        the penalty has no prox in a metric with several weights).
    max_iter : int, optional
        Iterations of this call at most: 1000 by default, 10,000 with eta="auto".
    max_time : float, optional
        Seconds after which to stop.
    tol : float, optional
        The tolerance; see `stop`. With eta="auto" and no budget it is 1e-4. Otherwise only budgets
        end a run by default.
    stop : {"subgradient", "gap"}, optional
        What the tolerance is about. "subgradient", the default with a rule or eta: stop when
        ||u|| <= tol ||g^1||, where u = W_n (x^n - x^{n+1}) / eta + g^{n+1} - g^n is a subgradient
        of F at x^{n+1}. It tends to zero if f is smooth, but need not if f is nonsmooth. "gap", the
        default with eta="auto": stop when the duality gap, which bounds F(x) - F_star, is at most
        tol |F(x)| (see `adagrad_diff.duality`). If no dual point is found, a small subgradient is
        accepted where the curvature of the loss shows that the objective is then near its optimum.
        Both criteria have an absolute part, so that an optimum or a first gradient of zero can be
        reached: |F(x)| counts as at least a millionth of the usual size of the objective (for
        linear models that of constant predictions, otherwise that at the start), and ||g^1|| as at
        least a millionth of what gradients have changed by since.
    callback : callable, optional
        Called with an `OptimizeResult` (x, fun, nit, state) after every iteration. It may raise
        StopIteration.
    history : int
        Record every k-th iteration; 0 records nothing.
    state : State, optional
        The state of an earlier result, from which the run continues as if it had never stopped.
        Problem and rule must be the same, which takes one evaluation of the loss to check. Budgets,
        tolerance and recording may differ.
    on_failure : {"warn", "raise", "ignore"}
        What to do when the run ends without success.
    finish : bool
        Whether to polish the answer of a run with eta="auto" and a tolerance for the gap (see
        `adagrad_diff.polish`). Small problems are polished directly.
    checkpoint : path, optional
        A file that is written every `every` seconds, on Ctrl-C and at the end. The same call
        resumes from it, also after a kill. Budgets then count from the very first call. A run that
        has ended is not repeated: its result is returned, unless the call has a larger budget or
        another tolerance. A checkpoint of another problem, rule, x0 or state is rejected with a
        ValueError, one that cannot be written with an OSError, and one that another run is using
        with a BlockingIOError; the last good file stays unchanged.
    every : float
        Seconds between two writings of the checkpoint.

    Returns
    -------
    OptimizeResult
        After n iterations: x = x^{n+1}, fun = F(x), jac = gradient of f at x, x_avg = mean of
        x^2 ... x^{n+1}, x_best and fun_best, subgradient_norm = ||u||, nit = n, nfev (both counted
        from the very first start), status (see `Status`), success, message, history (iteration,
        objective, mean_step, subgradient_norm, time, passes) and state.
        With stop="gap" also gap >= F(x) - F_star (infinite if nothing is known), bound = F(x) -
        gap, dual_point, and certified: whether the tolerance was reached by the gap. Then fun,
        fun_best and gap are evaluated at exactly x and x_best in double precision or better, and
        rounding errors count against the gap.
        success means that the tolerance was reached, or that none was given and a budget was used
        (docs/guide/auto.md).
        With eta="auto", x and x_best are the best iterate, nfev counts the gradients of all step
        sizes, eta and rule are those that led to x (None if no iteration did), finish says
        what polishing has done (see `PolishReport`), and subgradients are measured in coordinates
        in which columns have unit size. The run also ends, with `Status.STALLED` and without
        success, when the best objective has improved by less than tol |F(x)| over the last three
        quarters of at least 512 iterations.
        With an axis of trajectories, fun, status, success, nit and the like have shape (B,), and a
        trajectory that ends early keeps the point where it ended.

    Raises
    ------
    Interrupted
        On Ctrl-C. It is a KeyboardInterrupt that carries the `result` so far, with its state.

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
    started = perf_counter()
    loss, penalty = as_loss(loss), as_penalty(penalty)
    for kind, name in ((Penalty, "penalty"), (Rule, "rule")):  # as `sweep` would take them
        if isinstance(x0, kind):
            raise TypeError(f"'x0' is a {name}. Did you mean {name}={_check.shown(x0)}?")
    automatic = rule is None and (eta is None or (isinstance(eta, str) and eta == "auto"))
    if automatic and tol is None and max_iter is None and max_time is None:
        tol = DEFAULT_TOL
    if max_iter is None:
        max_iter = AUTO_MAX_ITER if automatic else MAX_ITER
    stop = ("gap" if automatic and tol is not None else "subgradient") if stop is None else stop
    _check.one_of(stop, ("subgradient", "gap"), "stop", "minimize")
    _check.one_of(on_failure, ("warn", "raise", "ignore"), "on_failure", "minimize")
    max_iter = _check.count(max_iter, "max_iter", "minimize")
    history = _check.count(history, "history", "minimize")
    tol = None if tol is None else _check.nonnegative(tol, "tol", "minimize")
    _check.flag(finish, "finish", "minimize")
    seconds = np.inf if max_time is None else _check.positive(max_time, "max_time", "minimize")
    every = _check.nonnegative(every, "every", "minimize")
    if callback is not None and not callable(callback):
        raise TypeError(
            f"The 'callback' parameter of minimize must be callable. Got {callback!r} instead."
        )
    solver = _solver(automatic, loss, rule, eta, eps, blocks, penalty)
    criterion = StoppingCriterion(tol)
    if stop == "gap":
        from ..duality import Certifier, dual_of

        gradients = PORTFOLIO_GRADIENTS if automatic else 1
        criterion = StoppingCriterion(tol, Certifier(dual_of(loss.whole, penalty), gradients))
    with ExitStack() as stack:
        saved: RunCheckpoint | None = None
        try:
            if checkpoint is not None:
                saved = stack.enter_context(closing(RunCheckpoint(checkpoint, every)))
                call = {"tol": tol, "stop": stop, "finish": finish}
                state = saved.begin(x0, state, call | {"max_iter": max_iter, "max_time": seconds})
            try:
                solver, problem, state = begin(loss, x0, penalty, solver, state)
            except ValueError as error:
                raise error if saved is None else saved.refused(error) from error
            loop = Loop(
                solver,
                problem,
                state,
                criterion,
                max_iter=max_iter,
                deadline=started + seconds,
                callback=None if callback is None else lambda loop: loop.call_back(callback),
                record=history,
                checkpoint=saved,
            )
            loop.begin = started
            if automatic and finish and criterion.certifies and tol is not None:
                loop.polish = PolishingSchedule(problem, criterion, loop.deadline)
            if saved is not None and saved.restore(loop):
                return warned(_result(loop, _final(loop), finish), on_failure)
        except KeyboardInterrupt as error:
            raise Interrupted("The run was interrupted before its first iteration.") from error
        interrupted = False
        try:
            loop.run()
            final = _final(loop)
            result = _result(loop, final, finish)
        except KeyboardInterrupt:
            interrupted = True
            loop.codes[loop.codes == RUNNING] = Status.INTERRUPTED
            try:
                final = _final(loop)
                result = _result(loop, final, finish)
            except KeyboardInterrupt as error:  # the data cannot be read any more
                raise Interrupted(str(error), result_so_far(loop.whole_state())) from error
        loop.codes = np.atleast_1d(result.status)
        if saved is not None and (np.any(result.nit) or Status.CONVERGED in loop.codes):
            saved.save(loop, final)
        if interrupted:
            text = result.message
            if saved is not None:
                text += f" The same call with checkpoint={str(saved.path)!r} resumes from here."
            raise Interrupted(text, result)
        return warned(result, on_failure)


def _final(loop: Loop) -> State:
    """Return the state at the answer."""
    return settled(loop) if loop.solver.answers_best else loop.whole_state()


def _result(loop: Loop, final: State, finish: bool) -> Result:
    """Return the result of a run; without a step size, with its eta and what polishing has done."""
    result, certifier = result_of(loop, final), loop.criterion.certifier
    if isinstance(loop.solver, Auto):
        reason = "it was turned off" if not finish else "no tolerance was asked for"
        if finish and loop.criterion.tol is not None:
            reason = "the run was to stop by its subgradient"
            if certifier is not None:
                reason = certifier.dual
        report = PolishReport(reason=reason) if loop.polish is None else loop.polish.report
        result.update(loop.solver.found(loop.state), finish=report)
    return result


def _solver(
    automatic: bool, loss: Loss, rule: Any, eta: Any, eps: Any, blocks: Any, penalty: Penalty
) -> Solver:
    """Return the solver for the arguments of `minimize`."""
    options = {} if eps is None else {"eps": eps}
    if automatic:
        return Auto(Portfolio(1.0, **options, blocks=blocks))
    if loss.shape is not None:
        # A user's penalty may need to know the size to tell which metrics it accepts.
        features = loss.shape[0] - loss.intercept
        penalty.check_size(int(np.prod(loss.shape)) // loss.shape[0] * features)
    if rule is not None:
        solver = as_solver(rule, loss)
        for name, value in (("eta", eta), ("eps", eps), ("blocks", blocks)):
            if value is not None:
                raise ValueError(
                    f"{name!r} belongs to the rule: give either 'rule' or {name!r}, not both."
                )
        return solver
    if blocks is None and penalty.accepts == "scalar":
        blocks = "all"  # its prox is known for one step only
    return as_solver(AdaGradDiff(eta, **options, blocks=blocks), loss)
