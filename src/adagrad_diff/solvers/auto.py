"""Runs without a step size: a portfolio of step sizes that share every pass over the data.

Trajectories run side by side in stages that double the length of the run. The first stage tries
eight step sizes over seven decades. Each later stage starts from the incumbent, the best iterate so
far, and runs three trajectories:

- the winner of the last stage continues;
- two restart from the incumbent with empty accumulators and eta = rho and rho / 5, where rho is the
  root mean square distance that the incumbent has moved during the last stage.

A restart forgets early gradients that were large, which Algorithm 1 remembers, and its step size
shrinks with the remaining distance. The portfolio is therefore often ahead of the best constant eta,
at the price of about three gradients per iteration.

The problem is standardized: columns of A are scaled and, with an intercept, centered. Where samples
are many and the loss is smooth, a warm-up with minibatches comes first.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import Minibatch
from ..losses.minibatch import STEPS_MADE
from ..rules import AdaGradDiff
from .problem import Layout, Problem
from .proximal_gradient import Iterate, ProximalGradient, Solver
from .result import Status
from .state import State, map_arrays
from .svrg import SVRG, WARM_UP_CHECKS, WARM_UP_EPOCHS, warm_up_loss

if TYPE_CHECKING:
    from .loop import Loop

FIRST_ETAS = np.logspace(-5, 2, 8)  # in units of the typical size of a coordinate
FIRST_STAGE = 16  # iterations
RESTART_ETAS = (1.0, 0.2)  # in units of the distance that the incumbent has moved
MANY_PREDICTIONS = 500_000  # from here on the first stage saves memory: a third of the step sizes
MIN_STALL = 512  # iterations before a run can count as stalled


class Auto(Solver):
    """A portfolio of step sizes, as one method: its iterate is that of the leading trajectory.

    The memory holds the state of the trajectories of the current stage, the incumbent and how it
    was found. It decides everything, so a run resumes from it.
    """

    name, answers_best = "auto", True

    def __init__(self, eps: float = 1e-8, blocks: Any = None):
        self.rule: Any = _Parameters(eps, blocks)
        self.minibatch: Minibatch | None = None  # the loss of the warm-up, if there is one
        self._stage: tuple[Any, Any, Any] = None, None, None  # etas, solver and problem of a stage

    def prepared(self, problem: Problem) -> Auto:
        """Return this solver for a standardized problem."""
        if problem.trajectories is not None:
            raise ValueError(
                f"eta='auto' runs from one start, but x0 has {problem.trajectories} trajectories. "
                "Give eta a number."
            )
        solver = Auto(self.rule.eps, self.rule.blocks)
        solver.minibatch = warm_up_loss(problem.loss)
        return solver

    # ------------------------------------------------------------------ the search

    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        # A start other than zero is the answer of a similar problem, and polishing will be quick.
        warm_up = self.minibatch is not None and not x[: problem.penalized_size].any()
        etas = np.array([problem.coordinates.unit]) if warm_up else self._first_etas(problem)
        trajectories = self._started(problem, x, etas, warm_up)
        memory = {
            "trajectories": trajectories,
            "etas": self._representable(problem, etas),
            "warm_up": warm_up,
            "end": WARM_UP_EPOCHS
            if warm_up
            else FIRST_STAGE,  # the iteration at which the stage ends
            "start": x,  # the incumbent at the beginning of the stage
            "best": x,  # the incumbent, its objective, and the eta that found it
            "fun": float(trajectories.fun_best[0]),
            "eta": nan,
            "past": trajectories.fun_best[:1],  # the objective at the start and after each stage
            "evaluations": 1,
            "warm_up_passes": 0.0,  # in addition to one for each iteration
        }
        return self._iterate(0, memory)

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        memory = s.memory if s.n < s.memory["end"] else self._next_stage(problem, s)
        solver, inner = self._solver(problem, memory["etas"], memory["warm_up"])
        old: State = memory["trajectories"]
        new = old.advanced(solver.step(inner, old.iterate))
        inner.set_evaluated(new.iterate.x)
        evaluations = memory["evaluations"] + len(memory["etas"])
        memory = memory | {"trajectories": new, "evaluations": evaluations}
        k, failed = _leading(memory), new.failed.all()
        fun = float(new.iterate.f[k] + new.iterate.phi[k])
        if not failed and fun < memory["fun"]:
            memory |= {
                "best": new.iterate.x[:, k].copy(),
                "fun": fun,
                "eta": float(memory["etas"][k]),
            }
        elif failed and len(memory["past"]) == 1 and not memory["warm_up"]:
            return s._replace(f=nan)  # no iterate near the start is finite
        if failed or s.n + 1 >= memory["end"]:
            memory |= {"past": np.append(memory["past"], memory["fun"]), "end": s.n + 1}
        return self._iterate(s.n + 1, memory)

    @np.errstate(over="ignore")  # step sizes are limited afterwards
    def _next_stage(self, problem: Problem, s: Iterate) -> dict[str, Any]:
        """Return the memory at the beginning of the next stage."""
        memory, best = s.memory, s.memory["best"]
        old: State = memory["trajectories"]
        common = {"start": best, "warm_up": False, "evaluations": memory["evaluations"] + 1}
        if memory["warm_up"]:
            etas = self._representable(problem, self._first_etas(problem))
            common["warm_up_passes"] = self.passes(problem, s) - (s.n + 1)
            new = self._started(problem, best, etas)
            return memory | common | {"trajectories": new, "etas": etas, "end": s.n + FIRST_STAGE}
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

        pair = (s.iterate._replace(point=None, step=None) for s in (new, old))
        iterate = map_arrays(with_winner, *pair)
        if STEPS_MADE in iterate.memory:  # restarts do not see the same batches again
            iterate.memory[STEPS_MADE][:] = old.memory[STEPS_MADE].max()
        # A stage is judged by its own iterates.
        new = new._replace(iterate=iterate, fun_best=iterate.f + iterate.phi)
        return memory | common | {"trajectories": new, "etas": etas, "end": 2 * s.n}

    def _started(
        self, problem: Problem, x: np.ndarray, etas: np.ndarray, warm_up: bool = False
    ) -> State:
        """Return the state of trajectories, one for each eta, that all start at x."""
        solver, inner = self._solver(problem, self._representable(problem, etas[:1]), warm_up)
        state = State.first(solver, inner, x[:, None], averages=False)
        return state.select(np.zeros(len(etas), int))

    def _solver(
        self, problem: Problem, etas: np.ndarray, warm_up: bool
    ) -> tuple[ProximalGradient, Problem]:
        """Return the solver and the problem of the trajectories of a stage."""
        if self._stage[0] is not etas:
            accepts, blocks = problem.penalty.accepts, self.rule.blocks
            scale = problem.scale if np.ndim(problem.scale) else None
            blocks = "all" if blocks is None and accepts == "scalar" else blocks
            rule = AdaGradDiff(etas, eps=self.rule.eps, blocks=blocks, scale=scale)
            inner = problem.narrowed(len(etas))
            if warm_up:
                inner.loss = self.minibatch  # type: ignore[assignment]
            kind = SVRG if isinstance(inner.loss, Minibatch) else ProximalGradient
            self._stage = etas, kind(rule).prepared(inner), inner
        return self._stage[1:]

    def _first_etas(self, problem: Problem) -> np.ndarray:
        few = problem.loss.predictions < MANY_PREDICTIONS
        etas: np.ndarray = problem.coordinates.unit * (FIRST_ETAS if few else FIRST_ETAS[1::3])
        return etas

    def _representable(self, problem: Problem, etas: np.ndarray) -> np.ndarray:
        """Return step sizes that x, in its precision, can move by."""
        limits, eps = np.finfo(problem.dtype), min(self.rule.eps, 1.0)
        largest = 0.5 * float(limits.max) * eps
        return np.asarray(np.clip(etas, float(limits.smallest_subnormal), largest))

    def _iterate(self, n: int, memory: dict[str, Any]) -> Iterate:
        """Return the iterate of the leading trajectory."""
        k, s = _leading(memory), memory["trajectories"].iterate
        point, step = (None, None) if s.step is None else (s.point[:, k], s.step[:, k])
        return Iterate(
            n,
            s.x[:, k].copy(),
            float(s.f[k]),
            s.g[:, k].copy(),
            float(s.phi[k]),
            memory,
            point,
            step,
        )

    # ------------------------------------------------------------------ what the loop asks

    def memory_like(self, x: np.ndarray) -> dict[str, Any]:
        raise NotImplementedError("see resumed")

    def resumed(self, problem: Problem, state: State) -> State:
        memory = {
            k: v.item() if isinstance(v, np.ndarray) and v.ndim == 0 else v
            for k, v in state.memory.items()
        }
        try:
            solver, inner = self._solver(problem, memory["etas"], memory["warm_up"])
            trajectories = memory["trajectories"]
            origin = replace(trajectories.origin, layout=Layout(problem.shape))
            memory["trajectories"] = trajectories._replace(origin=origin)
            solver.resumed(inner, memory["trajectories"])
            shapes = {memory[name].shape for name in ("best", "start")}
            if shapes != {(problem.size,)} or memory["past"].ndim != 1:
                raise ValueError("its iterates do not have the shape of x")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("'state' is not one of a run with eta='auto'.") from error
        best = memory["best"]
        origin = replace(state.origin, layout=problem.layout)
        state = state._replace(best=best, fun_best=float(memory["fun"]), origin=origin)
        return state._replace(iterate=self._iterate(int(state.n), memory))

    def oracle(self, problem: Problem, s: Iterate, column: int | None) -> tuple[Any, int | None]:
        trajectories = s.memory["trajectories"]
        _, inner = self._solver(problem, s.memory["etas"], s.memory["warm_up"])
        return inner.oracle_at(trajectories.iterate.x), _leading(s.memory)

    def suggests_check(self, s: Iterate) -> bool:
        """Return whether a stage is over, or it is time for a check in the warm-up."""
        in_warm_up = s.memory["warm_up"] and s.n in WARM_UP_CHECKS
        return s.n > 0 and (s.n >= s.memory["end"] or in_warm_up)

    def gain(self, s: Iterate) -> float:
        """Return what the objective has gained in the last two stages."""
        past = s.memory["past"]
        over = s.n >= s.memory["end"] and s.n >= MIN_STALL and len(past) > 2
        return float(past[-3] - s.memory["fun"]) if over else inf

    def evaluations(self, s: Iterate) -> int:
        return int(s.memory["evaluations"]) + 1  # the last one at the answer

    def passes(self, problem: Problem, s: Iterate) -> float:
        memory = s.memory
        solver, inner = self._solver(problem, memory["etas"], memory["warm_up"])
        trajectories = memory["trajectories"].iterate._replace(n=s.n)
        return float(solver.passes(inner, trajectories)) + float(memory["warm_up_passes"])

    def found(self, state: State) -> dict[str, Any]:
        """Return the eta and the rule that led to the incumbent; None if no iteration did."""
        eta = float(state.memory["eta"])
        if np.isnan(eta):
            return {"eta": None, "rule": None}
        return {"eta": eta, "rule": replace(self._stage[1].rule, eta=eta)}

    def adopt(self, state: State, x: np.ndarray, fun: float) -> State:
        """Return the state with a better incumbent, from which the next stage starts."""
        if not fun < state.fun_best:
            return state
        memory = state.memory
        past = np.append(memory["past"][:-1], fun)
        iterate = state.iterate._replace(memory=memory | {"best": x, "fun": fun, "past": past})
        return state._replace(iterate=iterate, best=x, fun_best=fun)


class _Parameters:
    """The parameters of `Auto`, in the place of a rule."""

    average_power = 0.0

    def __init__(self, eps: float, blocks: Any):
        self.eps, self.blocks = eps, blocks


def _leading(memory: dict[str, Any]) -> int:
    """Return the trajectory with the smallest objective of those that have not failed."""
    state: State = memory["trajectories"]
    return int(np.argmin(np.where(state.failed, inf, state.iterate.f + state.iterate.phi)))


def settled(loop: Loop) -> State:
    """Return the state at the answer: the polished point, a stationary point, or the incumbent."""
    state, problem, criterion = loop.state, loop.problem.original, loop.criterion
    x, converged = loop.polished, loop.codes[0] == Status.CONVERGED
    if x is None:
        x = state.x_best
        usual = criterion.usual(state.f_first)
        stationary = converged and not (
            criterion.bounds and criterion.within(criterion.tol or 0.0, [x], usual)[0]
        )
        x = state.x if stationary else x
    flat = problem.layout.flat(x)
    with np.errstate(all="ignore"):
        f, g = problem.evaluate(flat)
        phi = problem.phi(flat)
    if criterion.bounds and loop.polished is None:
        criterion.improve_at(x, problem.layout.shaped(g), problem.oracle_at(flat))
    iterate = state.iterate._replace(x=flat, f=f, g=g, phi=phi, point=None, step=None)
    origin = replace(state.origin, layout=problem.layout)
    return state._replace(iterate=iterate, best=flat, fun_best=f + phi, origin=origin)
