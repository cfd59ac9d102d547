"""Runs with a given rule: `iterate`, and what `minimize` does with a rule or an eta."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import Loss, Minibatch, as_loss
from ..penalties import Penalty, as_penalty
from ..rules import FISTA, as_rule
from .fingerprint import check_same, describe_problem, recognise
from .fista import FISTASolver
from .gap import GapCriterion
from .loop import Loop
from .problem import Problem, problem_at
from .proximal_gradient import ProximalGradient, Solver
from .result import result_of, told
from .run import Run
from .saved_run import RunCheckpoint
from .state import State
from .status import Interrupted, Status
from .svrg import SVRG

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


def as_solver(rule: Any, loss: Loss | None = None) -> Solver:
    """Return the solver that runs a rule on a loss."""
    rule = as_rule(rule)
    if isinstance(rule, FISTA):
        return FISTASolver(rule)
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
    return _states(begin(loss, x0, penalty, as_solver(rule, loss), state))


def _states(run: Run) -> Iterator[State]:
    while True:
        with np.errstate(all="ignore"):
            run.advance()
        yield run.state()


def begin(loss: Loss, x0: Any, penalty: Penalty, solver: Solver, state: State | None) -> Run:
    """Return a run from x0, or from a state that is checked to belong to this problem and solver."""
    if state is None:
        run = Run.begin(solver, *problem_at(loss, x0, penalty, solver.trajectories))
        run.described = describe_problem(loss, penalty, solver.rule)
        return run
    if not isinstance(state, State):
        raise TypeError(
            f"'state' must be a State, such as result.state or load_state(path). Got {type(state).__name__} instead."
        )
    if loss.dtype is not None and state.x.dtype != loss.dtype:
        raise ValueError(
            f"'state' has x of dtype {state.x.dtype}, but this loss works in {loss.dtype}."
        )
    if x0 is not None and np.shape(x0) != state.x.shape:
        raise ValueError(
            f"'x0' has shape {np.shape(x0)}, but 'state' has x of shape {state.x.shape}. Leave x0 out."
        )
    if loss.shape is not None and state.x.shape[: len(loss.shape)] != loss.shape:
        raise ValueError(
            f"'state' has x of shape {state.x.shape}, but this loss needs {loss.shape}."
        )
    described = describe_problem(loss, penalty, solver.rule)
    check_same(state.problem, described)
    problem = Problem(loss, penalty, state.x, state.x.shape[-1] if state.batched else None)
    _check_memory(solver, problem, state)
    recognise(loss, state, problem.phi(problem.flat(state.x)))
    run = Run.resume(solver, problem, state)
    run.described = described
    return run


def _check_memory(solver: Solver, problem: Problem, state: State) -> None:
    """Raise if the memory of a state does not fit the rule: a file may have been changed."""
    wanted = solver.prepared(problem).memory_like(problem.flat(state.x))
    if wanted.keys() != state.memory.keys():
        raise ValueError(
            f"'state' was made with another rule than {solver.name}: it remembers other things."
        )
    for name, array in wanted.items():
        if state.memory[name].shape != np.shape(array):
            raise ValueError("'state' was made with other blocks than this rule's.")


def minimize_with(
    solver: Solver,
    loss: Loss,
    x0: Any,
    penalty: Penalty,
    *,
    max_iter: int,
    max_time: float,
    tol: float | None,
    stop: str,
    callback: Callable[[OptimizeResult], Any] | None,
    history: int,
    state: State | None,
    on_failure: str,
    checkpoint: Any,
    every: float,
    finish: bool,
) -> OptimizeResult:
    """Run a solver to its end; see `minimize` for the parameters, which have been checked."""
    started = perf_counter()
    with ExitStack() as stack:
        saved: RunCheckpoint | None = None
        if checkpoint is not None:
            call = {
                "tol": tol,
                "stop": stop,
                "finish": finish,
                "max_iter": max_iter,
                "max_time": max_time,
            }
            saved = stack.enter_context(
                closing(RunCheckpoint(checkpoint, every, x0, state, **call))
            )
            state = saved.saved.state if saved.saved else state
        try:
            gap = GapCriterion(loss, penalty, tol) if stop == "gap" else None
            with _checked(saved):
                run = begin(loss, x0, penalty, solver, state)
                if gap is not None and state is not None:
                    gap.resume(state)
            if gap is not None:
                run.notes = gap.memory
            seconds = saved.seconds if saved else 0.0
            loop = Loop(
                run,
                max_iter=max_iter if saved is None else saved.left(run.state(), max_iter),
                deadline=started + max_time - seconds,
                tol=tol,
                gap=gap,
                callback=None if callback is None else lambda loop: _called_off(loop, callback),
                record=history,
                history=saved.saved.history if saved and saved.saved else None,
                codes=saved.codes() if saved else None,
                begin=started - seconds,
                save=None if saved is None else lambda loop: _save_when_due(loop, saved),
            )
        except KeyboardInterrupt as error:
            raise Interrupted("The run was interrupted before its first iteration.") from error
        if saved is not None and saved.finished(loop):
            return told(result_of(loop), on_failure)
        loop.iterate()
        result = result_of(loop)
        loop.codes = np.atleast_1d(result.status)
        if saved is not None and (np.any(result.nit) or Status.CONVERGED in loop.codes):
            saved.write(loop, ended=True)
        if loop.interrupted:
            text = result.message
            if saved is not None:
                text += (
                    f" The same call with checkpoint={str(saved.file.path)!r} goes on from here."
                )
            raise Interrupted(text, result)
        return told(result, on_failure)


def _save_when_due(loop: Loop, saved: RunCheckpoint) -> None:
    if perf_counter() >= saved.file.due:
        saved.write(loop)


@contextmanager
def _checked(saved: RunCheckpoint | None) -> Iterator[None]:
    """Where a state is compared with the problem: if it is that of a file, the error is about the file."""
    try:
        yield
    except ValueError as error:
        if saved is None or saved.saved is None:
            raise
        what = str(error).partition(". ")[0].rstrip(".").replace("'state' ", "it ")
        raise saved.file.refusal(what) from error


def _called_off(loop: Loop, callback: Callable[[OptimizeResult], Any]) -> bool:
    """Call the callback with a result; return whether it ends the run."""
    from scipy.optimize import OptimizeResult

    loop.run.subgradient_norm()
    state = loop.run.state()
    now = OptimizeResult(
        x=state.x.copy(), fun=state.fun, fun_best=state.fun_best, nit=state.n, state=state
    )
    now.update(subgradient_norm=state.norm, mean_step=state.mean_step)
    try:
        with np.errstate(**loop.errors):
            callback(now)
    except StopIteration:
        return True
    return False
