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

Coordinates are divided by the sizes of the columns of A, and with an intercept columns are centered.
Both happen inside the products, so the data are neither copied nor, if sparse, filled. Where samples
are many and the loss is smooth, a warm-up with minibatches comes first.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from ..losses import Minibatch
from ..losses.minibatch import STEPS_MADE
from ..rules import AdaGradDiff
from .fingerprint import recognise
from .problem import Problem
from .proximal_gradient import Iterate, ProximalGradient, Solver
from .run import DIVERGENCE_FACTOR, Progress, Run, map_arrays
from .state import State, unpack
from .svrg import CHECK_PERIOD, FIRST_CHECK, SVRG, WARM_UP_EPOCHS, warm_up_loss

FIRST_ETAS = np.logspace(-5, 2, 8)  # in units of the typical size of a coordinate
FIRST_STAGE = 16  # iterations
RESTART_ETAS = (1.0, 0.2)  # in units of the distance that the incumbent has moved
MANY_PREDICTIONS = 500_000  # from here on the first stage saves memory: a third of the step sizes
MIN_STALL = 512  # iterations before a run can count as stalled
AUTO_PREFIX, TRAJECTORIES_PREFIX = "auto.", "trajectories."  # prefixes of names in a state


class Auto(Solver):
    """The choice of no step size: parameters of `Portfolio`."""

    name = "auto"

    def __init__(self, eps: float = 1e-8, blocks: Any = None):
        self.rule: Any = {"class": "auto", "eps": eps, "blocks": blocks}  # identifies the method
        self.eps, self.blocks = eps, blocks

    def prepared(self, problem: Problem) -> Auto:
        if problem.trajectories is not None:
            raise ValueError(
                f"eta='auto' runs from one start, but x0 has {problem.trajectories} trajectories. "
                "Give eta a number."
            )
        return self

    def init(self, problem: Problem, x: np.ndarray) -> Iterate:
        raise NotImplementedError("see Portfolio")

    def step(self, problem: Problem, s: Iterate) -> Iterate:
        raise NotImplementedError("see Portfolio")


class Search(NamedTuple):
    """Everything that one iteration of a portfolio changes. It is replaced as a whole."""

    n: int
    # The trajectories of the current stage, in standardized coordinates:
    solver: ProximalGradient
    problem: Problem
    progress: Progress
    etas: np.ndarray
    end: int  # the iteration at which the stage ends
    warm_up: bool  # whether this is the stage with minibatches
    start: np.ndarray  # the incumbent at the beginning of the stage
    # The incumbent of all stages:
    best: np.ndarray
    fun: float
    eta: float  # with which it was found; NaN if it is x0
    past: tuple[float, ...]  # its objective at the start and after each stage
    evaluations: int  # of the loss, so far
    warm_up_passes: float = 0.0  # over the data, in addition to one for each iteration
    failed: bool = False  # no trajectory has come to a finite objective
    norm: float = nan  # of the subgradient at the trajectory with the smallest objective

    @property
    def several(self) -> bool:
        """Whether there is an axis of trajectories: always."""
        return True

    @property
    def leading(self) -> int:
        """The trajectory with the smallest objective."""
        s = self.progress.iterate
        return int(np.argmin(np.where(self.progress.failed, inf, s.f + s.phi)))

    @property
    def stage_over(self) -> bool:
        """Whether the gap is evaluated after this iteration: the stage ends, or it is time in the warm-up."""
        n = self.n
        periodic = self.warm_up and n >= FIRST_CHECK and (n - FIRST_CHECK) % CHECK_PERIOD == 0
        return n > 0 and (n >= self.end or periodic)

    @property
    def gain(self) -> float:
        """What the objective has gained in the last two stages; inf while a run is too short to tell."""
        over = self.n >= self.end and self.n >= MIN_STALL and len(self.past) > 2
        return self.past[-3] - self.fun if over else inf


SAVED = [name for name in Search._fields if name not in ("solver", "problem", "progress")]


class Portfolio(Run):
    """Several step sizes at work, as one run for the loop: its iterate is the incumbent."""

    search: Search
    answer: tuple[np.ndarray, float, np.ndarray, float] | None = None  # x, f, g, phi at the end

    def __init__(self, solver: Auto, problem: Problem):
        solver.prepared(problem)
        loss, penalty = problem.loss, problem.penalty
        self.solver, self.problem, self.several, self.columns = solver, problem, False, np.arange(1)
        self.ended, self.described, self.notes = [], {}, dict
        self.coordinates = loss.coordinates()
        blocks = "all" if solver.blocks is None and penalty.accepts == "scalar" else solver.blocks
        scale = self.coordinates.scale if penalty.accepts == "diagonal" else None
        self._options: dict[str, Any] = {"eps": solver.eps, "blocks": blocks, "scale": scale}
        self._scale: Any = 1.0  # of every coordinate, 1 for an intercept
        if scale is not None:
            self._scale = np.ones(int(np.prod(problem.shape)))
            self._scale[: scale.size] = scale
        few = loss.predictions < MANY_PREDICTIONS
        self._first_etas = self.coordinates.unit * (FIRST_ETAS if few else FIRST_ETAS[1::3])
        self._minibatch = warm_up_loss(self.coordinates.loss)

    # ------------------------------------------------------------------ the search

    @classmethod
    def begin(
        cls, solver: Any, problem: Problem, x: np.ndarray, averages: bool = True
    ) -> Portfolio:
        run = cls(solver, problem)
        start = run._forward(x)
        # A start other than zero is the answer of a similar problem: polishing is near.
        zero = not x[: problem.penalized_size].any()
        warm_up = zero and run._minibatch is not None
        etas = np.array([run.coordinates.unit]) if warm_up else run._first_etas
        run.search = run._stage(start, etas, warm_up=warm_up)
        s = run.search.progress.iterate
        run._remember_start(float(s.f[0]), run._norm(s.g[:, 0]))
        return run

    def _remember_start(self, f: float, norm: float) -> None:
        self.f_first, self.g_first = f, norm
        with np.errstate(over="ignore"):
            self.limit = DIVERGENCE_FACTOR * (1.0 + np.abs(f))

    def _stage(self, x: np.ndarray, etas: np.ndarray, n: int = 0, warm_up: bool = False) -> Search:
        """Return a search whose trajectories, one for each eta, all start at x."""
        etas = self._representable(etas)
        one, solver = self._inner(etas[:1], warm_up)
        begun = Run.begin(solver, one, x[:, None])
        progress = begun._select(np.zeros(len(etas), int))._replace(x_sum=None)
        problem, solver = one.narrowed(len(etas)), self._solver(etas, warm_up)
        fun = float(progress.fun_best[0])
        return Search(
            n=n,
            solver=solver.prepared(problem),
            problem=problem,
            progress=progress,
            etas=etas,
            end=n + (WARM_UP_EPOCHS if warm_up else FIRST_STAGE),
            warm_up=warm_up,
            start=x,
            best=x,
            fun=fun,
            eta=nan,
            past=(fun,),
            evaluations=1,
            failed=bool(progress.failed.all()),
        )

    def _inner(self, etas: np.ndarray, warm_up: bool) -> tuple[Problem, ProximalGradient]:
        """Return the standardized problem and the solver of a stage."""
        loss = self._minibatch if warm_up else self.coordinates.loss
        shape, count = self.problem.shape, len(etas)
        x = np.empty((*shape, count), self.problem.dtype)
        return Problem(loss, self.problem.penalty, x, count), self._solver(etas, warm_up)  # type: ignore[arg-type]

    def _solver(self, etas: np.ndarray, warm_up: bool) -> ProximalGradient:
        batches = warm_up or isinstance(self.coordinates.loss, Minibatch)
        return (SVRG if batches else ProximalGradient)(AdaGradDiff(etas, **self._options))

    def _representable(self, etas: np.ndarray) -> np.ndarray:
        """Return step sizes that x, in its precision, can move by."""
        limits, eps = np.finfo(self.problem.dtype), min(self.solver.eps, 1.0)  # type: ignore[attr-defined]
        least, most = float(limits.smallest_subnormal), 0.5 * float(limits.max) * eps
        return np.asarray(np.clip(etas, least, most))

    def advance(self) -> None:
        """Make one iteration of all trajectories."""
        old = self.search if self.search.n < self.search.end else self._next_stage(self.search)
        progress = old.progress.advanced(old.solver.step(old.problem, old.progress.iterate))
        old.problem.put_back(progress.iterate.x)
        values, count = progress.fun_best.tolist(), len(old.etas)
        changes: dict[str, Any] = {
            "progress": progress,
            "evaluations": old.evaluations + count,
            "norm": nan,
        }
        n, best, fun = old.n + 1, old.best, min(values)
        all_failed = np.count_nonzero(progress.failed) == count
        if all_failed and len(old.past) == 1 and not fun < old.fun and not old.warm_up:
            n, changes["failed"] = old.n, True  # no iterate near the start is finite
        if fun < old.fun:
            k = values.index(fun)
            best = progress.x_best[:, k]
            changes |= {"best": best, "fun": fun, "eta": float(old.etas[k])}
        if all_failed or n >= old.end:
            past = (*old.past, min(fun, old.fun))
            changes |= {"best": best.copy(), "past": past, "end": n}
        new = old._replace(n=n, **changes)
        # All at once: an interrupt must not come in between.
        vars(self).update(search=new, answer=None, gain=new.gain)

    @np.errstate(over="ignore")  # step sizes are limited afterwards
    def _next_stage(self, old: Search) -> Search:
        """Return a search at the beginning of its next stage."""
        if old.warm_up:
            new = self._stage(old.best, self._first_etas, old.n)
            passes = old.solver.passes(old.problem, old.progress.iterate) - (old.n + 1)
            return self._carried(new, old)._replace(warm_up_passes=passes)
        progress = old.progress
        winner = int(np.argmin(np.where(progress.failed, inf, progress.fun_best)))
        moved = float(np.sqrt(np.mean(((old.best - old.start) / self._scale) ** 2)))
        eta = float(old.etas[winner])
        if not moved > 0:  # steps were too large
            moved = 0.1 * float(old.etas.min() if progress.failed.all() else eta)
        etas = np.array([eta, *(factor * moved for factor in RESTART_ETAS)])
        new = self._stage(old.best, etas, old.n)

        def continued(fresh: np.ndarray, last: np.ndarray) -> np.ndarray:
            fresh = fresh.copy()
            fresh[..., 0] = last[..., winner]
            return fresh

        s = map_arrays(
            continued,
            new.progress.iterate._replace(point=None, step=None),
            progress.iterate._replace(point=None, step=None),
        )
        if STEPS_MADE in s.memory:  # restarts do not see the same batches again
            s.memory[STEPS_MADE][:] = progress.iterate.memory[STEPS_MADE].max()
        # A stage is judged by its own iterates.
        started = new.progress._replace(iterate=s, x_best=s.x, fun_best=s.f + s.phi)
        return self._carried(new._replace(progress=started, end=2 * old.n), old)

    def _carried(self, new: Search, old: Search) -> Search:
        """Return the new stage with the incumbent of the old one."""
        return new._replace(
            fun=old.fun,
            eta=old.eta,
            past=old.past,
            evaluations=old.evaluations + 1,
            warm_up_passes=old.warm_up_passes,
            failed=False,
        )

    def adopt(self, x: np.ndarray, fun: float) -> None:
        """Take a better point from elsewhere as the incumbent, from which the next stage starts."""
        if fun < self.search.fun:
            past = (*self.search.past[:-1], fun)
            self.search = self.search._replace(best=self._forward(x), fun=fun, past=past)

    def settle(self, x: np.ndarray, fun: float | None = None) -> None:
        """End at x (in the shape of the caller), whose objective is `fun` if that is known better."""
        x = self.problem.flat(x)
        f, g = self.problem.evaluate(x)
        phi = self.problem.phi(x)
        self.answer = x, float(f) if fun is None else fun - phi, g, phi

    # ------------------------------------------------------------------ what the loop sees

    @property
    def progress(self) -> Progress:  # type: ignore[override]
        search = self.search
        f, phi = (search.fun, 0.0) if search.fun < inf else (self.f_first, inf)
        s = Iterate(search.n, search.best, f, search.best, phi, {})
        return Progress(s, None, search.best, search.fun, search.failed, search.norm)

    def subgradient_norm(self) -> float:
        """Return the norm at the leading trajectory, in standardized coordinates."""
        search, s = self.search, self.search.progress.iterate
        if s.step is not None and search.norm != search.norm:
            k = search.leading
            u = (s.point[:, k] - s.x[:, k]) / s.step[:, k] + s.g[:, k]
            self.search = search._replace(norm=self._norm(u))
        return self.search.norm

    def subgradient_rounding(self) -> float:
        search, s = self.search, self.search.progress.iterate
        if s.step is None:
            return inf
        k, eps = search.leading, float(np.finfo(s.x.dtype).eps)
        with np.errstate(all="ignore"):
            return eps * (float(self.g_first) + self._norm(s.x[:, k] / s.step[:, k]))

    def gradient_change(self) -> float:
        total = self.search.progress.iterate.memory["total"][:, self.search.leading]
        size = np.size(self._scale) if np.size(total) == np.size(self._scale) else 0
        return float(np.sqrt(np.sum(total * self._scale**2 if size else total)))

    def row(self, norms: bool) -> tuple[Any, Any, Any]:
        """Return objective, mean step and subgradient norm of the leading trajectory."""
        k, s = self.search.leading, self.search.progress.iterate
        norm = self.subgradient_norm() if norms else nan
        return float(s.f[k] + s.phi[k]), float(s.step[:, k].mean()), norm

    def passes(self) -> float:
        search = self.search
        s = search.progress.iterate._replace(n=search.n)
        return float(search.solver.passes(search.problem, s)) + search.warm_up_passes

    def points(self) -> list[np.ndarray]:
        """Return the point that would be the answer now."""
        return [
            self.problem.for_caller(
                self._back(self.search.best) if self.answer is None else self.answer[0]
            )
        ]

    def stationary_point(self) -> np.ndarray:
        """Return the iterate of the leading trajectory, where the subgradient was measured."""
        search = self.search
        return self.problem.for_caller(self._back(search.progress.iterate.x[:, search.leading]))

    def least_curvatures(self) -> np.ndarray:
        from ..certificates import least_curvature

        search, loss = self.search, self.coordinates.loss
        x = search.progress.iterate.x[:, search.leading]
        scale = None if np.ndim(self._scale) == 0 else self._scale
        return np.array([least_curvature(loss, x.reshape(self.problem.shape), scale)])

    @property
    def evaluations(self) -> int:
        return self.search.evaluations + (self.answer is not None)

    def extra(self) -> dict[str, Any]:
        """Return the step size with which the incumbent was found, if there was one."""
        eta = None if np.isnan(self.search.eta) else self.search.eta
        rule = None if eta is None else AdaGradDiff(eta, **self._options)
        return {"eta": eta, "rule": rule}

    # ------------------------------------------------------------------ states

    def state(self) -> State:
        search, shape = self.search, self.problem.shape
        if self.answer is not None:
            x, f, g, phi = self.answer
        else:
            x = self._back(search.best)
            phi = self.problem.phi(x)
            f, g = search.fun - phi, np.full_like(x, nan)  # not known before the end of a run
        x = x.reshape(shape)
        return State(
            n=search.n,
            x=x,
            f=f,
            phi=phi,
            g=g.reshape(shape),
            memory={},
            x_sum=max(search.n, 1) * x.astype(np.float64),
            x_best=x,
            fun_best=f + phi,
            f_first=self.f_first,
            g_first=self.g_first,
            norm=search.norm,
            failed=search.failed,
            rule=self.solver.name,
            batched=False,
            problem=self.described,
            notes=self.notes() | self._memory(),
        )

    def _memory(self) -> dict[str, np.ndarray]:
        """Return the search as arrays by name."""
        values = {name: np.array(getattr(self.search, name)) for name in SAVED}
        _, arrays = self._run_of(self.search).state().pack()
        values |= {f"{TRAJECTORIES_PREFIX}{name}": array for name, array in arrays.items()}
        return {f"{AUTO_PREFIX}{name}": array for name, array in values.items()}

    def _run_of(self, search: Search) -> Run:
        """Return the trajectories of the current stage as a run of their own."""
        count = len(search.etas)
        first = np.full(count, self.f_first), np.full(count, self.g_first)
        return Run(search.solver, search.problem, search.progress, first)

    @classmethod
    def resume(cls, solver: Any, problem: Problem, state: State) -> Portfolio:
        run = cls(solver, problem)
        own = {
            k.removeprefix(AUTO_PREFIX): v
            for k, v in state.notes.items()
            if k.startswith(AUTO_PREFIX)
        }
        try:
            saved = {name: own.pop(name) for name in SAVED}
            values: dict[str, Any] = {k: v.item() if v.ndim == 0 else v for k, v in saved.items()}
            arrays = {name.removeprefix(TRAJECTORIES_PREFIX): array for name, array in own.items()}
            inner = unpack({"rule": "auto", "batched": True, "problem": {}}, arrays)
            one, stage = run._inner(values["etas"], bool(values["warm_up"]))
            trajectories = Run.resume(stage, one, inner)
            like = {name: state.x.reshape(-1) for name in ("best", "start")}
            if any(
                values[k].shape != a.shape or values[k].dtype != a.dtype for k, a in like.items()
            ):
                raise ValueError("its iterates do not have the shape of x")
            values["past"] = tuple(values["past"].tolist())
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("'state' is not one of a run with eta='auto'.") from error
        solved: Any = trajectories.solver
        progress = trajectories.progress
        run.search = Search(solver=solved, problem=one, progress=progress, **values)
        run._remember_start(float(state.f_first), float(state.g_first))
        if np.isfinite(state.g).all():  # the run had ended
            x, g = problem.flat(state.x), problem.flat(state.g)
            recognise(problem.loss, state, problem.phi(x))
            run.answer = x, float(state.f), g, float(state.phi)
        return run

    # ------------------------------------------------------------------ coordinates

    def _forward(self, x: np.ndarray) -> np.ndarray:
        """Return x (in any shape) in standardized coordinates, with one axis."""
        return self.coordinates.forward(x.reshape(self.problem.shape)).reshape(-1)

    def _back(self, x: np.ndarray) -> np.ndarray:
        return self.coordinates.back(x.reshape(self.problem.shape)).reshape(-1)

    def _norm(self, g: np.ndarray) -> float:
        """Return the norm of a gradient with respect to scaled coordinates."""
        with np.errstate(all="ignore"):
            return float(np.linalg.norm(g * self._scale))
