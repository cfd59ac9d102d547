r"""eta = "auto": no step size to choose.

A few trajectories race as columns of one matrix, in stages that double the length of the run. The first stage has eight etas
over seven decades. After every stage the best iterate so far is the ground for the next one, in which three trajectories run:

- the winner goes on as it is;
- two restart from the best iterate, with empty accumulators and eta = rho and rho / 5, where rho is how far (root mean square
  over coordinates) the best iterate has moved during the stage.

A restart forgets steps that were too large, which Algorithm 1 would remember for ever, and its eta shrinks with the distance
that is left: so the method is often ahead of the best constant eta. It costs about three gradients per iteration, which share
one pass over the data.

Where samples are many and the loss is smooth, one trajectory with minibatches comes first (`opening`), for a few rounds: often
its end is all that was asked for, or near enough for the finish.

Coordinates are scaled by the sizes of the columns of A, and with an intercept columns are centered, both inside the products:
the data are neither copied nor, if sparse, filled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..losses import Loss
from ..losses.minibatch import STEPS_MADE
from ..penalties import Penalty
from ..rules import AdaGradDiff
from . import opening
from .algorithm import check_memory, iterations, start
from .problem import recognise
from .race_rule import RaceRule
from .state import State
from .step import penalised

ETAS = np.logspace(-5, 2, 8)  # of the first stage, in units of the typical size of a coordinate
FIRST = 16  # its iterations
RESTARTS = (1.0, 0.2)  # etas of the restarts, in units of the distance moved
MANY = 500_000  # predictions from which on the first stage saves memory: a third of the etas
LEAST = 512  # iterations before a run may count as stalled
PREFIX = "race."


class Race:
    """The trajectories of a run without a step size, and the state of their leader: the best iterate of all."""

    def __init__(self, loss: Loss, penalty: Penalty, eps: float, blocks: Any):
        self.original, self.penalty = loss, penalty
        if (
            loss.shape is not None
        ):  # a foreign penalty may have to know it, to tell which metrics it accepts
            size = int(np.prod(loss.shape))
            penalty.check_size(size - size // loss.shape[0] if loss.intercept else size)
        self.coordinates = loss.coordinates()
        self.loss = self.coordinates.loss
        self.minibatch = opening.opening(self.loss)
        self.opening, self.opened = (
            False,
            0.0,
        )  # whether that is what runs now; passes it took, beside one for each iteration
        # A scale only where the penalty can do with one.
        self.scale = self.coordinates.scale if penalty.accepts == "diagonal" else None
        own = "all" if blocks is None and penalty.accepts == "scalar" else blocks
        self.options: dict[str, Any] = {"eps": eps, "blocks": own, "scale": self.scale}
        self.identity = {"class": "auto", "eps": eps, "blocks": blocks}
        # What is remembered beside the trajectories, all of it in their coordinates.
        self.etas = self._first = self.coordinates.unit * (
            ETAS if loss.predictions < MANY else ETAS[1::3]
        )
        self.eta, self.evaluations, self.stage_end = float(self.etas[0]), 2, FIRST
        self.fun, self.past = (
            np.inf,
            [np.inf],
        )  # the best objective, and what it was after each stage
        self.best = self.ground = np.empty(
            0
        )  # the best iterate, and the one at the beginning of the stage

    def rule(self, eta: Any) -> AdaGradDiff:
        return AdaGradDiff(eta, **self.options)

    def _rule(self, eta: Any) -> RaceRule:
        return RaceRule(eta, **self.options)

    def _within(self, etas: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Step sizes that x, of this dtype, can move by."""
        limits = np.finfo(dtype)
        return np.asarray(
            np.clip(
                etas,
                float(limits.smallest_subnormal),
                0.5 * float(limits.max) * min(self.options["eps"], 1.0),
            )
        )

    def start(self, x0: Any) -> State:
        """The leader before the first iteration."""
        leader = start(self.original, x0, self.penalty, self._rule(1.0))
        if leader.batched:
            raise ValueError(
                f"eta='auto' runs from one start, but x0 has {leader.x.shape[-1]} trajectories. Give eta a number."
            )
        if (
            self.minibatch is not None
            and not (leader.x[:-1] if self.original.intercept else leader.x).any()
        ):
            # A start that is not zero is the end of a like problem, from where the finish is near.
            self.opening, self.stage_end, self.etas = (
                True,
                opening.OPENING_ROUNDS,
                np.array([self.coordinates.unit]),
            )
        self.etas = self._within(self.etas, leader.x.dtype)
        self.best = self.ground = self.coordinates.forward(leader.x)
        leader.rule, leader.memory = "auto", {}
        leader.trajectories = self._begin(self.best, len(self.etas))
        leader.g_first = self._size(leader.trajectories.g[..., 0])
        self.fun = leader.fun
        self.past = [self.fun]
        return leader

    def resume(self, leader: State) -> State:
        """A copy of the leader's state, checked; the race goes on where it was."""
        leader = leader.copy()
        memory = {
            name.removeprefix(PREFIX): value
            for name, value in leader.notes.items()
            if name.startswith(PREFIX)
        }
        run = leader.trajectories
        try:
            self.etas, self.past = memory["etas"], memory["past"].tolist()
            self.eta, self.fun, self.evaluations = (
                float(memory["eta"]),
                float(memory["fun"]),
                int(memory["evaluations"]),
            )
            self.stage_end, self.best, self.ground = (
                int(memory["stage_end"]),
                memory["best"],
                memory["ground"],
            )
            self.opening, self.opened = bool(memory["opening"]), float(memory["opened"])
            wanted = (*leader.x.shape, self.etas.size)
            fits = (
                run is not None
                and run.batched
                and run.x.shape == wanted
                and run.x.dtype == leader.x.dtype
            )
            fits &= self.best.shape == self.ground.shape == leader.x.shape and len(self.past) > 0
            fits &= (
                self.best.dtype == self.ground.dtype == leader.x.dtype
                and self.etas.dtype == np.float64
            )
        except (KeyError, TypeError, ValueError):
            fits = False
        if not fits or run is None:
            raise ValueError(
                "'state' is not one of a run with eta='auto', or does not fit this loss. Give the rule it was made with."
            )
        check_memory(self.current, self._rule(self.etas), run)
        recognise(self.loss, run, self.penalty.value(penalised(self.loss, run)(run.x)))
        if np.isfinite(leader.g).all():  # centered data do not show that all rows were shifted
            recognise(
                self.original,
                leader,
                self.penalty.value(penalised(self.original, leader)(leader.x)),
            )
        leader.f, leader.phi, leader.fun_best = self.fun, 0.0, self.fun
        leader.gain = np.inf  # who goes on wants more
        run.scale = self._scale(leader.x)
        return leader

    def _begin(self, x: np.ndarray, count: int) -> State:
        """As many trajectories at x; one evaluation of the loss is enough for all."""
        one = start(self.current, x[..., None], self.penalty, self._rule(1.0))
        run = one.select(np.zeros(count, int))
        run.scale = self._scale(x)
        return run

    def _scale(self, x: np.ndarray) -> np.ndarray | None:
        """The scale of every coordinate of x, an intercept included."""
        if self.scale is None:
            return None
        scale = np.ones(x.size)
        scale[: self.scale.size] = self.scale
        return scale

    def _unscaled(self, x: np.ndarray) -> np.ndarray:
        """The difference of two points, in units of the scale."""
        if self.scale is None:
            return x
        flat = x.reshape(-1).copy()
        flat[: self.scale.size] /= self.scale
        return flat

    def _size(self, g: np.ndarray) -> float:
        """The norm of a gradient in scaled coordinates."""
        scale = self._scale(g)
        with np.errstate(all="ignore"):
            return float(np.linalg.norm(g.reshape(-1) if scale is None else g.reshape(-1) * scale))

    def iterations(self, leader: State) -> Iterator[State]:
        """The leader's state after each iteration of all trajectories."""
        while True:
            if leader.n >= self.stage_end:
                self._fork(leader)
            run = leader.trajectories
            assert run is not None
            for _ in iterations(self.current, self.penalty, self._rule(self.etas), run):
                self._lead(leader, run)
                yield leader
                if leader.n >= self.stage_end:
                    break

    def _lead(self, leader: State, run: State) -> None:
        """The leader after an iteration of the trajectories: it is the best iterate so far."""
        leader.committing = True
        run.committing = False
        values, all_failed = run.fun_best.tolist(), all(run.failed.tolist())
        fun = min(values)
        self.evaluations += len(values)
        if all_failed and len(self.past) == 1 and not fun < self.fun and not self.opening:
            leader.failed = True  # nothing near the start is finite
            return
        if fun < self.fun:
            column = values.index(fun)
            self.best, self.eta = (
                run.x_best[..., column],
                float(self.etas[column]),
            )  # a view: copied when the stage ends
            self.fun = fun
        leader.f, leader.phi, leader.fun_best = (
            self.fun,
            0.0,
            self.fun,
        )  # their parts are not known until they are shown
        leader.n += 1
        leader.norm = np.nan
        if all_failed:  # there is nothing to go on with
            self.stage_end = leader.n
        ends = leader.n >= self.stage_end
        leader.turning, leader.gain = ends or (self.opening and opening.looks(leader.n)), np.inf
        if ends:
            self.best = self.best.copy()
            self.past.append(self.fun)
            if leader.n >= LEAST:
                leader.gain = self.past[-3] - self.fun

    @np.errstate(over="ignore")  # steps have a largest size
    def _fork(self, leader: State) -> None:
        """The trajectories of the next stage: the winner of this one, and restarts from the best iterate."""
        run, count = leader.trajectories, 1 + len(RESTARTS)
        assert run is not None
        run.oracle = None  # its memory is needed again
        if self.opening:
            leader.committing = True
            self.opened = float(np.max(self.passes(leader.n, run.memory))) - (leader.n + 1)
            self.opening, self.etas = False, self._within(self._first, run.x.dtype)
            self.ground, self.stage_end = self.best, leader.n + FIRST
            leader.trajectories = self._begin(self.best, len(self.etas))
            leader.committing = False
            return
        winner = int(np.argmin(np.where(run.failed, np.inf, run.fun_best)))
        moved = float(np.sqrt(np.mean(self._unscaled(self.best - self.ground) ** 2)))
        eta = float(self.etas[winner])
        rho = (
            moved if moved > 0 else 0.1 * float(self.etas.min() if run.failed.all() else eta)
        )  # steps were too large
        fresh = self._begin(self.best, count)
        for name in ("n", "x", "f", "phi", "g"):
            getattr(fresh, name)[..., 0] = getattr(run, name)[..., winner]
        for name, array in fresh.memory.items():
            array[..., 0] = run.memory[name][..., winner]
        if STEPS_MADE in fresh.memory:  # batches go on, also for those that restart
            fresh.memory[STEPS_MADE].fill(run.memory[STEPS_MADE].max())
        fresh.x_best, fresh.fun_best = fresh.x.copy(), fresh.fun  # a stage is judged by itself
        fresh.f_first = np.full(count, run.f_first[0])
        leader.committing = True
        self.etas = self._within(
            np.array([eta, *(factor * rho for factor in RESTARTS)]), run.x.dtype
        )
        self.evaluations += 1
        self.ground, self.stage_end, leader.trajectories = self.best, 2 * leader.n, fresh
        leader.committing = False

    @property
    def current(self) -> Loss:
        """What the trajectories run on."""
        return self.minibatch if self.opening and self.minibatch is not None else self.loss

    def passes(self, n: Any, memory: dict[str, np.ndarray]) -> Any:
        """Over the data, that n iterations have taken."""
        return self.current.passes(n, memory) + self.opened

    def show(self, leader: State) -> None:
        """Make the leader's state what a caller may see and keep: the best iterate, and what it takes to go on."""
        leader.x = self.coordinates.back(self.best)
        leader.phi = float(self.penalty.value(penalised(self.original, leader)(leader.x)))
        leader.f = self.fun - leader.phi
        leader.g = np.full_like(leader.x, np.nan)  # not known before the run has ended
        self.keep(leader)

    def keep(self, leader: State) -> None:
        """The leader as the average and the best iterate, and the race in its notes."""
        leader.x_best, leader.x_sum = (
            leader.x.copy(),
            max(leader.n, 1) * leader.x.astype(np.float64),
        )
        numbers = {
            "eta": self.eta,
            "evaluations": self.evaluations,
            "stage_end": self.stage_end,
            "fun": self.fun,
        }
        numbers |= {"opening": self.opening, "opened": self.opened}
        known = {
            "etas": self.etas,
            "past": self.past,
            "best": self.best.copy(),
            "ground": self.ground,
            **numbers,
        }
        leader.notes |= {f"{PREFIX}{name}": np.asarray(value) for name, value in known.items()}

    def adopt(self, x: np.ndarray, fun: float) -> None:
        """A better point, from elsewhere: the next stage begins there."""
        if fun < self.fun:
            self.best, self.fun = self.coordinates.forward(x), fun
            self.past[-1] = fun

    def finish(self, leader: State, x: np.ndarray, fun: float) -> None:
        """End at x, whose objective is known to be fun."""
        self.adopt(x, fun)
        leader.x, leader.g = x.copy(), np.empty_like(x)
        self.original.oracle(x)(leader.x, out=leader.g)
        leader.phi = float(self.penalty.value(penalised(self.original, leader)(leader.x)))
        leader.f = fun - leader.phi
        leader.fun_best = leader.fun
        self.keep(leader)

    def curvature(self, leader: State) -> float:
        """The least one where the subgradient was measured."""
        from ..certificates import least_curvature

        run = leader.trajectories
        assert run is not None
        x = run.x[..., run.ahead()]
        return least_curvature(self.loss, x, self._scale(x))

    def settle(self, leader: State, stationary: bool, dual: Any) -> Any:
        """After the run: the loss and its gradient at the answer, in the caller's coordinates. Returns the residuals.

        The answer is the best iterate, or the one that was found stationary.
        """
        run = leader.trajectories
        assert run is not None
        leader.x = self.coordinates.back(run.x[..., run.ahead()] if stationary else self.best)
        oracle, leader.g = self.original.oracle(leader.x), np.empty_like(leader.x)
        leader.f = float(oracle(leader.x, out=leader.g))
        leader.phi = float(self.penalty.value(penalised(self.original, leader)(leader.x)))
        leader.fun_best = leader.fun
        self.keep(leader)
        return None if dual is None else dual.residuals(oracle, None)
