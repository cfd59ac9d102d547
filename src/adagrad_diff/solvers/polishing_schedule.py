"""When a run without a step size is polished: directly if that is quick, else when it is promising."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..polishing import Finish, Finisher
from .auto import Auto
from .problem import Problem

if TYPE_CHECKING:
    from .loop import Loop

FIRST_ATTEMPT = 64  # iterations
SETTLED_GAIN = 0.02  # relative gain of the last stage above which an attempt is unpromising
MAX_ATTEMPT = 20.0  # times the duration of the run that a promising attempt may take
MAX_FAILED_SHARE = 0.1  # of the duration of the run that unsuccessful attempts may take
# A model of the machine, so that two runs of one problem are polished at the same iterations:
# seconds of an iteration of the portfolio, per entry of A and in any case.
SECONDS_PER_ENTRY, SECONDS_PER_ITERATION = 1.6e-9, 2e-4
# Below these estimates, in seconds or in iterations of the portfolio, the problem is polished directly.
SMALL_PROBLEM_SECONDS, SMALL_PROBLEM_ITERATIONS = 0.03, 128


class PolishingSchedule:
    """Polishes the incumbent of a portfolio now and then; ends the run when the gap is small."""

    def __init__(self, problem: Problem, criterion: Any, deadline: float):
        loss: Any = problem.original.loss.whole
        self.certifier, self.tol = criterion.certifier, criterion.tol or 0.0
        self.stop = lambda: perf_counter() > deadline
        self.finisher = Finisher(loss, problem.penalty, self.certifier.dual, problem.coordinates)
        matrix = loss.matrix
        self.iteration = SECONDS_PER_ITERATION + SECONDS_PER_ENTRY * matrix.size + matrix.overhead
        self.spent = 0.0  # seconds of unsuccessful attempts, by the model

    @property
    def report(self) -> Finish:
        """What polishing has done so far: `result.finish`."""
        return self.finisher.report

    def before_iterations(self, loop: Loop) -> bool:
        """Return whether polishing solves the problem without any iteration of the portfolio."""
        if loop.n > 0 or not self.finisher.possible or loop.state.memory["warm_up"]:
            return False
        limit = max(SMALL_PROBLEM_SECONDS, SMALL_PROBLEM_ITERATIONS * self.iteration)
        small = self.finisher.solver.cost() <= limit
        started = bool(loop.state.iterate.x[: loop.problem.penalized_size].any())
        return (small or started) and self._attempt(loop, small)

    def after_iteration(self, loop: Loop) -> bool:
        """Return whether an attempt after this iteration solves the problem."""
        solver, s = loop.solver, loop.state.iterate
        if not solver.suggests_check(s) or not self.finisher.possible:
            return False
        if loop.n < (s.memory["end"] if s.memory["warm_up"] else FIRST_ATTEMPT):
            return False
        past, fun, seconds = s.memory["past"], s.memory["fun"], loop.n * self.iteration
        estimate = self.finisher.solver.guess(loop.points()[0])
        settled = len(past) > 1 and past[-2] - fun <= SETTLED_GAIN * abs(fun)
        failed = self.spent + (0.0 if settled else estimate)
        if failed > MAX_FAILED_SHARE * seconds or estimate > MAX_ATTEMPT * seconds:
            return False
        return self._attempt(loop)

    def at_end(self, loop: Loop) -> bool:
        """Return whether the answer of a run that ends without success can be polished."""
        return self.finisher.possible and self._attempt(loop)

    def _attempt(self, loop: Loop, whole: bool = False) -> bool:
        finisher, solver = self.finisher, loop.solver
        done = finisher.attempt(loop.points()[0], self.tol, self.stop, whole)
        proof: Any = finisher.proof
        if done:
            loop.polished = finisher.x
            self.certifier.offer_proof(proof, finisher.x)
            return True
        self.spent += finisher.solver.spent
        if proof is not None and np.isfinite(proof.fun):
            assert isinstance(solver, Auto)
            loop.state = solver.adopt(
                loop.state, loop.problem.layout.forward(finisher.x), proof.fun
            )
            self.certifier.offer_proof(proof, finisher.x)
        return False
