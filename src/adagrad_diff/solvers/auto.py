"""Runs without a step size: a portfolio of step sizes that share every pass over the data.

Trajectories run side by side in stages that double the length of the run. The first stage tries
eight step sizes over seven decades. Each later stage starts from the incumbent, the best iterate so
far, and runs three trajectories:

- the winner of the last stage continues;
- two restart from the incumbent with empty accumulators and eta = rho and rho / 5, where rho is the
  root mean square distance that the incumbent has moved during the last stage.

A restart forgets early gradients that were large, which Algorithm 1 remembers, and its step size
shrinks with the remaining distance. The portfolio is therefore often ahead of the best constant
eta, at the price of about three gradients per iteration.

The problem is standardized: columns of A are scaled and, with an intercept, centered. Where samples
are many and the loss is smooth, a warm-up with minibatches comes first. The incumbent is polished
now and then, and before the first iteration if that is quick.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import Minibatch
from ..losses.minibatch import STEPS_MADE
from ..polishing import Polisher, PolishReport
from ..rules import AdaGradDiff
from .problem import Problem
from .proximal_gradient import Iterate, ProximalGradient, Solver
from .result import Status
from .state import State, check_state, map_arrays
from .svrg import SVRG, WARM_UP_CHECKS, WARM_UP_EPOCHS, warm_up_loss

if TYPE_CHECKING:
    from .loop import Loop

FIRST_ETAS = np.logspace(-5, 2, 8)  # in units of the typical size of a coordinate
FIRST_STAGE = 16  # iterations
RESTART_ETAS = (1.0, 0.2)  # in units of the distance that the incumbent has moved
MANY_PREDICTIONS = 500_000  # from here on the first stage saves memory: a third of the step sizes
MIN_STALL = 512  # iterations before a run can count as stalled

FIRST_ATTEMPT = 64  # iterations before the first attempt to polish
SETTLED_GAIN = 0.02  # relative gain of the last stage above which an attempt is unpromising
MAX_ATTEMPT = 20.0  # times the work of the run that a promising attempt may take
MAX_FAILED_SHARE = 0.1  # of the work of the run that unsuccessful attempts may take
# Work is counted in multiplications of a factorization, so that two runs of one problem are
# polished at the same iterations. An iteration of the portfolio is memory-bound: measured in these
# units, it costs so much per entry of A, at least so much, and so much per second of a remote pass.
WORK_PER_ENTRY, MIN_WORK, WORK_PER_SECOND = 23.0, 3e6, 1.4e10
# Below this work, or so many iterations of the portfolio, the problem is polished directly.
MAX_DIRECT_WORK, MAX_DIRECT_ITERATIONS = 4e8, 128


class Portfolio(AdaGradDiff):
    """The parameters of `AdaGradDiff` for `Auto`, which ignores eta."""

    def accumulated(self, memory: dict[str, Any]) -> None:
        """Return None: sums of a stage say nothing about the gradient at the start."""


class Auto(Solver):
    """A portfolio of step sizes, as one method: its iterate is that of the leading trajectory.

    The memory holds the state of the trajectories of the current stage, the incumbent and how it
    was found. It decides everything, so a run resumes from it.
    """

    name, answers_best = "auto", True

    def __init__(self, rule: Portfolio, minibatch: Minibatch | None = None):
        super().__init__(rule)
        self.minibatch = minibatch  # the loss of the warm-up, if there is one
        self._stage: tuple[Any, Any, Any] = None, None, None  # etas, solver and problem of a stage

    def prepared(self, problem: Problem) -> Auto:
        """Return this solver for a standardized problem."""
        if problem.trajectories is not None:
            raise ValueError(
                f"eta='auto' runs from one start, but x0 has {problem.trajectories} trajectories. "
                "Give eta a number."
            )
        return Auto(self.rule, warm_up_loss(problem.loss))

    # ------------------------------------------------------------------ the search

    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        # A start other than zero is the answer of a similar problem, and polishing will be quick.
        warm_up = self.minibatch is not None and not x[: problem.penalized_size].any()
        unit = problem.coordinates.unit
        return self._init(problem, x, np.array([unit]) if warm_up else first_etas(problem), warm_up)

    def resumed(self, problem: Problem, state: State) -> State:
        """Return a state to continue from; raise if it belongs to another solver or problem."""
        try:
            memory, iterate = state.memory, _leading_iterate(state.iterate, int(state.n))
            best, fun, past = memory["best"], float(memory["fun"]), memory["past"].ravel()
            like = self._init(problem, iterate.x, memory["etas"].ravel(), bool(memory["warm_up"]))
        except (KeyError, AttributeError, TypeError, IndexError) as error:
            raise ValueError("'state' is not one of a run with eta='auto'.") from error
        like = like._replace(memory=like.memory | {"past": past})
        check_state(problem, state._replace(iterate=iterate), like)
        origin = replace(state.origin, layout=problem.layout)
        return state._replace(iterate=iterate, best=best, fun_best=fun, origin=origin)

    def _init(self, problem: Problem, x: np.ndarray, etas: np.ndarray, warm_up: bool) -> Iterate:
        """Return the first iterate of a stage with these step sizes."""
        etas = self._representable(problem, etas)
        trajectories = self._started(problem, x, etas, warm_up)
        memory = {
            "trajectories": trajectories,
            "etas": etas,
            "warm_up": warm_up,
            "end": WARM_UP_EPOCHS if warm_up else FIRST_STAGE,  # the last iteration of the stage
            "start": x,  # the incumbent at the beginning of the stage
            "best": x,  # the incumbent, its objective, and the eta that found it
            "fun": float(trajectories.fun_best[0]),
            "eta": nan,
            "past": trajectories.fun_best[:1],  # the objective at the start and after each stage
        }
        return _leading_iterate(Iterate(0, x, 0.0, x, 0.0, memory), 0)

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        memory, evaluations = s.memory, s.evaluations
        if s.n >= memory["end"]:
            memory, evaluations = self._next_stage(problem, s), evaluations + 1
        etas, old = memory["etas"], memory["trajectories"]
        solver, inner = self._solver(problem, etas, memory["warm_up"])
        stepped = solver.step(inner, old.iterate)
        new = old.advanced(stepped)
        memory = memory | {"trajectories": new}
        k, failed = _leading(memory), new.failed.all()
        fun = float(new.iterate.f[k] + new.iterate.phi[k])
        if not failed and fun < memory["fun"]:
            memory |= {"best": new.iterate.x[:, k].copy(), "fun": fun, "eta": float(etas[k])}
        elif failed and len(memory["past"]) == 1 and not memory["warm_up"]:
            return s._replace(f=nan)  # no iterate near the start is finite
        if failed or s.n + 1 >= memory["end"]:
            memory |= {"past": np.append(memory["past"], memory["fun"]), "end": s.n + 1}
        passes = s.passes + new.iterate.passes - old.iterate.passes
        counts = {"evaluations": evaluations + len(etas), "passes": passes}
        s = _leading_iterate(s._replace(memory=memory, **counts), s.n + 1)
        problem.set_evaluated(s.x, inner.oracle_at(stepped.x)[0], k)
        return s

    @np.errstate(over="ignore")  # step sizes are limited afterwards
    def _next_stage(self, problem: Problem, s: Iterate) -> dict[str, Any]:
        """Return the memory at the beginning of the next stage."""
        memory, best = s.memory, s.memory["best"]
        old: State = memory["trajectories"]
        if memory["warm_up"]:
            etas = self._representable(problem, first_etas(problem))
            stage = {"trajectories": self._started(problem, best, etas), "end": s.n + FIRST_STAGE}
            return memory | stage | {"etas": etas, "start": best, "warm_up": False}
        winner = int(np.argmin(np.where(old.failed, inf, old.fun_best)))
        moved = float(np.sqrt(np.mean(((best - memory["start"]) / problem.scale) ** 2)))
        eta = float(memory["etas"][winner])
        if not moved > 0:  # steps were too large
            moved = 0.1 * float(memory["etas"].min() if old.failed.all() else eta)
        etas = self._representable(problem, np.array([eta, *(k * moved for k in RESTART_ETAS)]))
        new = self._started(problem, best, etas)

        def with_winner(fresh: np.ndarray, last: np.ndarray) -> np.ndarray:
            fresh = fresh.copy()
            fresh[..., 0] = last[..., winner]
            return fresh

        pair = (state.iterate._replace(point=None, step=None) for state in (new, old))
        iterate = map_arrays(with_winner, *pair)
        if STEPS_MADE in iterate.memory:  # restarts do not see the same batches again
            iterate.memory[STEPS_MADE][:] = old.memory[STEPS_MADE].max()
        # A stage is judged by its own iterates.
        new = new._replace(iterate=iterate, fun_best=iterate.fun)
        return memory | {"trajectories": new, "etas": etas, "start": best, "end": 2 * s.n}

    def _started(
        self, problem: Problem, x: np.ndarray, etas: np.ndarray, warm_up: bool = False
    ) -> State:
        """Return the state of trajectories, one for each eta, that all start at x."""
        solver, inner = self._solver(problem, etas[:1], warm_up)
        state = State.first(solver, inner, x[:, None], averages=False)
        return state.select(np.zeros(len(etas), int))

    def _solver(
        self, problem: Problem, etas: np.ndarray, warm_up: bool
    ) -> tuple[ProximalGradient, Problem]:
        """Return the solver and the problem of the trajectories of a stage."""
        if self._stage[0] is not etas:
            blocks, scale = self.rule.blocks, problem.scale if np.ndim(problem.scale) else None
            blocks = "all" if blocks is None and problem.penalty.accepts == "scalar" else blocks
            rule = AdaGradDiff(etas, eps=self.rule.eps, blocks=blocks, scale=scale)
            inner = problem.narrowed(len(etas))
            if warm_up:
                inner.loss = self.minibatch  # type: ignore[assignment]
            kind = SVRG if isinstance(inner.loss, Minibatch) else ProximalGradient
            self._stage = etas, kind(rule).prepared(inner), inner
        return self._stage[1:]

    def _representable(self, problem: Problem, etas: np.ndarray) -> np.ndarray:
        """Return step sizes that x, in its precision, can move by."""
        limits, eps = np.finfo(problem.dtype), min(self.rule.eps, 1.0)
        largest = 0.5 * float(limits.max) * eps
        return np.asarray(np.clip(etas, float(limits.smallest_subnormal), largest))

    # ------------------------------------------------------------------ the answer

    def found(self, state: State) -> dict[str, Any]:
        """Return the eta and the rule that led to the incumbent; None if no iteration did."""
        eta = float(state.memory["eta"])
        if np.isnan(eta):
            return {"eta": None, "rule": None}
        return {"eta": eta, "rule": replace(self._stage[1].rule, eta=eta)}


def first_etas(problem: Problem) -> np.ndarray:
    """Return the step sizes of the first stage."""
    few = problem.loss.predictions < MANY_PREDICTIONS
    etas: np.ndarray = problem.coordinates.unit * (FIRST_ETAS if few else FIRST_ETAS[1::3])
    return etas


def _leading(memory: dict[str, Any]) -> int:
    """Return the trajectory with the smallest objective of those that have not failed."""
    state: State = memory["trajectories"]
    return int(np.argmin(np.where(state.failed, inf, state.iterate.fun)))


def _leading_iterate(s: Iterate, n: int) -> Iterate:
    """Return the iterate n, which is that of the leading trajectory in the memory of s."""
    memory = s.memory
    k, inner = _leading(memory), memory["trajectories"].iterate
    point, step = (None, None) if inner.step is None else (inner.point[:, k], inner.step[:, k])
    stage_ends = n > 0 and n >= memory["end"]
    past, fun = memory["past"], memory["fun"]
    gain = float(past[-3] - fun) if stage_ends and n >= MIN_STALL and len(past) > 2 else inf
    return s._replace(
        n=n,
        x=inner.x[:, k].copy(),
        f=float(inner.f[k]),
        g=inner.g[:, k].copy(),
        phi=float(inner.phi[k]),
        point=point,
        step=step,
        stage_ends=stage_ends or bool(memory["warm_up"] and n in WARM_UP_CHECKS),
        gain=gain,
    )


def settled(loop: Loop) -> State:
    """Return the state at the answer: the polished point, a stationary point, or the incumbent."""
    state, problem, criterion = loop.state, loop.problem.original, loop.criterion
    x = loop.polished
    if x is None:
        x = state.x_best
        if loop.codes[0] == Status.CONVERGED and not criterion.within(state, [x]).any():
            x = state.x  # the run has converged there by its subgradient
    flat = problem.layout.flat(x)
    with np.errstate(all="ignore"):
        f, g = problem.evaluate(flat)
        phi = problem.phi(flat)
    if loop.polished is None:
        criterion.improve_at(x, problem.layout.shaped(g), problem.oracle_at(flat)[0])
    values = {"x": flat, "f": f, "g": g, "phi": phi, "point": None, "step": None}
    iterate = state.iterate._replace(**values)
    origin = replace(state.origin, layout=problem.layout)
    return state._replace(iterate=iterate, best=flat, fun_best=f + phi, origin=origin)


class PolishingSchedule:
    """Polishes the incumbent of a portfolio now and then; ends the run when the gap is small."""

    def __init__(self, problem: Problem, criterion: Any, deadline: float):
        loss: Any = problem.original.loss.whole
        self.certifier, self.tol = criterion.certifier, criterion.tol or 0.0
        self.stop = lambda: perf_counter() > deadline
        self.polisher = Polisher(loss, problem.penalty, self.certifier.dual, problem.coordinates)
        matrix = loss.matrix
        self.iteration = MIN_WORK + WORK_PER_ENTRY * matrix.size
        self.iteration += WORK_PER_SECOND * matrix.overhead
        self.spent = 0.0  # multiplications of unsuccessful attempts

    @property
    def report(self) -> PolishReport:
        """What polishing has done so far: `result.finish`."""
        return self.polisher.report

    def before_iterations(self, loop: Loop) -> bool:
        """Return whether polishing solves the problem without any iteration of the portfolio."""
        if loop.n > 0 or not self.polisher.possible or loop.state.memory["warm_up"]:
            return False
        limit = max(MAX_DIRECT_WORK, MAX_DIRECT_ITERATIONS * self.iteration)
        small = self.polisher.solver.cost() <= limit
        started = bool(loop.state.iterate.x[: loop.problem.penalized_size].any())
        return (small or started) and self.attempt(loop, small)

    def after_iteration(self, loop: Loop) -> bool:
        """Return whether an attempt after this iteration solves the problem."""
        s = loop.state.iterate
        if not s.stage_ends or not self.polisher.possible:
            return False
        if loop.n < (s.memory["end"] if s.memory["warm_up"] else FIRST_ATTEMPT):
            return False
        past, fun, work = s.memory["past"], s.memory["fun"], loop.n * self.iteration
        estimate = self.polisher.solver.cost(loop.points()[0])
        settled = len(past) > 1 and past[-2] - fun <= SETTLED_GAIN * abs(fun)
        failed = self.spent + (0.0 if settled else estimate)
        if failed > MAX_FAILED_SHARE * work or estimate > MAX_ATTEMPT * work:
            return False
        return self.attempt(loop)

    def attempt(self, loop: Loop, whole: bool = False) -> bool:
        """Return whether polishing the incumbent solves the problem, or keep a better point."""
        polisher = self.polisher
        if not polisher.possible:
            return False
        done = polisher.attempt(loop.points()[0], self.tol, self.stop, whole)
        proof: Any = polisher.proof
        if done:
            loop.polished = polisher.x
        else:
            self.spent += polisher.solver.work
            if proof is None or not np.isfinite(proof.fun):
                return False
            x = loop.problem.layout.forward(polisher.x)
            loop.state = _with_incumbent(loop.state, x, proof.fun)
        self.certifier.record(proof, polisher.x)
        return done


def _with_incumbent(state: State, x: np.ndarray, fun: float) -> State:
    """Return the state with an incumbent, if it is better, from which the next stage starts."""
    if not fun < state.fun_best:
        return state
    past = np.append(state.memory["past"][:-1], fun)
    memory = state.memory | {"best": x, "fun": fun, "past": past}
    return state._replace(iterate=state.iterate._replace(memory=memory), best=x, fun_best=fun)
