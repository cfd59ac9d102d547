"""When a run without a step size is polished: at once if that is quick, else as soon as it is promising."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..finishing import Finish, Finisher
from .auto import Portfolio
from .result import Status

if TYPE_CHECKING:
    from .gap import PortfolioGap
    from .loop import Loop

FIRST_ATTEMPT = 64  # iterations
SETTLED_GAIN = (
    0.02  # of the objective: a larger gain in the last stage makes an attempt unpromising
)
MAX_ATTEMPT = 20.0  # times the duration of the run that a promising attempt may take
MAX_FAILED_SHARE = 0.1  # of the duration of the run that unsuccessful attempts may take
# A model of the machine, so that two runs of one problem are polished at the same iterations:
# seconds of an iteration of the portfolio, per entry of A and in any case.
SECONDS_PER_ENTRY, SECONDS_PER_ITERATION = 1.6e-9, 2e-4
# Below these estimates, in seconds or in iterations of the portfolio, the problem is polished directly.
SMALL_PROBLEM_SECONDS, SMALL_PROBLEM_ITERATIONS = 0.03, 128
NOTES_PREFIX = "finish."
REPORTED = ("done", "tries", "rounds", "samples", "coefficients", "seconds", "failed", "reason")


class PolishingSchedule:
    """Polishes the incumbent of a portfolio now and then; ends the run when the tolerance is proven."""

    def __init__(self, run: Portfolio, gap: PortfolioGap, tol: float, deadline: float):
        loss: Any = run.problem.loss.whole
        self.run, self.certifier, self.tol = run, gap.certifier, tol
        self.stop = lambda: perf_counter() > deadline
        dual = gap.certifier.dual
        self.finisher = Finisher(loss, run.problem.penalty, dual, run.coordinates)
        matrix = loss.A if hasattr(loss, "A") else loss.Q
        self.iteration = SECONDS_PER_ITERATION + SECONDS_PER_ENTRY * matrix.size + matrix.overhead
        self.spent = 0.0  # seconds of unsuccessful attempts, by the model
        self._notes: dict[str, np.ndarray] | None = None  # those before the attempt at the end

    @property
    def report(self) -> Finish:
        """What polishing has done so far: `result.finish`."""
        return self.finisher.report

    def before_iterations(self) -> bool:
        """Return whether polishing solves the problem without any iteration of the portfolio."""
        run, self.report.done = self.run, False  # of an earlier call, say
        if run.search.n > 0 or not self.finisher.possible or run.search.warm_up:
            return False
        limit = max(SMALL_PROBLEM_SECONDS, SMALL_PROBLEM_ITERATIONS * self.iteration)
        small, x = self.finisher.solver.cost() <= limit, run.points()[0]
        started = bool(run.problem.flat(x)[: run.problem.penalized_size].any())
        return (small or started) and self._attempt(x, small)

    def after_iteration(self) -> bool:
        """Return whether an attempt after this iteration solves the problem."""
        search = self.run.search
        if not search.stage_over or not self.finisher.possible:
            return False
        if search.n < (search.end if search.warm_up else FIRST_ATTEMPT):
            return False
        x, seconds = self.run.points()[0], search.n * self.iteration
        estimate = self.finisher.solver.guess(x)
        settled = len(search.past) > 1 and search.past[-2] - search.fun <= SETTLED_GAIN * abs(
            search.fun
        )
        failed = self.spent + (0.0 if settled else estimate)
        if failed > MAX_FAILED_SHARE * seconds or estimate > MAX_ATTEMPT * seconds:
            return False
        return self._attempt(x)

    def at_end(self) -> bool:
        """Return whether the answer of a run that ends without success can be polished."""
        if not self.finisher.possible:
            return False
        self._notes = self.notes()
        return self.finisher.attempt(self.run.points()[0], self.tol, self.stop)

    def _attempt(self, x: np.ndarray, whole: bool = False) -> bool:
        done = self.finisher.attempt(x, self.tol, self.stop, whole)
        if not done:
            self.spent += self.finisher.solver.spent
            if (proof := self.finisher.proof) is not None:
                self.run.adopt(self.finisher.x, proof.fun)
                self.certifier.offer_proof(proof, self.finisher.x)
                self.certifier.doubt()  # the run computes its objectives less precisely
        return done

    def settle(self) -> None:
        """Make the polished point the answer of the run."""
        proof: Any = self.finisher.proof
        self.run.adopt(self.finisher.x, proof.fun)
        self.run.settle(self.finisher.x, proof.fun)
        self.certifier.offer_proof(proof, self.finisher.x)

    def notes(self) -> dict[str, np.ndarray]:
        """Return what a state keeps: attempts so far and their cost, but not what they have found."""
        if self._notes is not None:
            return self._notes
        near = self.finisher.solver.near if self.finisher.possible else 0.0
        known = {"spent": self.spent, "near": near}
        known |= {name: getattr(self.report, name) for name in REPORTED}
        return {f"{NOTES_PREFIX}{name}": np.array(value) for name, value in known.items()}

    def resume(self, notes: dict[str, np.ndarray]) -> None:
        """Continue from what `notes` returned; from nothing if the run was not to be polished."""
        known = {
            name.removeprefix(NOTES_PREFIX): array
            for name, array in notes.items()
            if name.startswith(NOTES_PREFIX)
        }
        if not known:
            return
        try:
            numbers = {name: known[name].item() for name in ("spent", "near", *REPORTED)}
            fits = all(0 <= value < np.inf for name, value in numbers.items() if name != "reason")
        except (TypeError, ValueError, KeyError):
            fits = False
        if not fits:
            raise ValueError("'state' has a memory of polishing that does not fit this problem.")
        self.spent = numbers.pop("spent")
        near = numbers.pop("near")
        if self.finisher.possible:
            self.finisher.solver.near = near
        vars(self.report).update(numbers)


def settle(loop: Loop) -> None:
    """Evaluate the loss at the answer: the polished point, a stationary point, or the incumbent."""
    run, gap = loop.run, loop.gap
    assert isinstance(run, Portfolio)
    if loop.polish is not None and loop.polish.report.done:
        loop.polish.settle()
        return
    x = run.points()[0]
    if loop.codes[0] == Status.CONVERGED:
        usual = 0.0 if gap is None else gap.usual(run.f_first)
        if gap is None or not gap.within(loop.tol or 0.0, [x], usual)[0]:
            x = run.stationary_point()
    run.settle(x)
    if gap is not None:
        gap.settle(run)  # type: ignore[attr-defined]
