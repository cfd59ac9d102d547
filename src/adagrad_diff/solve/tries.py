"""When the finish is tried: at once if that is quick, else when the race has come near, and again with back-off."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from ..certificates import Certifier
from ..finishing import Finish, Finisher
from .auto import Race
from .state import State
from .status import Interrupt

FIRST_TRY = 64  # iterations of a race
SETTLED = 0.02  # of the objective: what the last stage may have gained for a try to be promising
TIMES_AS_LONG = 20.0  # times the run so far that a promising try may take
PART = 0.1  # of the run that failed tries may take
# A model of the machine, so that two runs of one problem try at the same iterations: seconds of an iteration of the race,
# per entry of A, and in any case.
PER_ENTRY, PER_ITERATION = 1.6e-9, 2e-4
AT_ONCE, INSTEAD = (
    0.03,
    128,
)  # seconds, or iterations, that the finish of all of the problem may take without a race
TRIES_PREFIX = "finish."
COUNTED = (
    "tries",
    "rounds",
    "samples",
    "coefficients",
    "seconds",
    "failed",
    "reason",
)  # of the report
NUMBERED = ("spent", "near", *COUNTED[:-1])


class Tries:
    """Follows a race, and ends it when the finish has reached the tolerance."""

    def __init__(
        self, race: Race, certifier: Certifier, tol: float, deadline: float, interrupt: Interrupt
    ):
        loss: Any = race.original.whole
        self.race, self.certifier, self.tol = race, certifier, tol
        self.stop = lambda: interrupt.requested or perf_counter() > deadline
        self.finisher = Finisher(loss, race.penalty, certifier.dual, race.coordinates)
        matrix = loss.A if hasattr(loss, "A") else loss.Q
        self.iteration = PER_ITERATION + PER_ENTRY * matrix.size + matrix.overhead
        self.spent = 0.0  # seconds of failed tries, by the model
        self._kept: dict[str, np.ndarray] | None = (
            None  # the memory before the last try: a run that goes on has not made it
        )

    @property
    def report(self) -> Finish:
        return self.finisher.report

    @property
    def done(self) -> bool:
        return self.report.done

    def at_once(self, leader: State) -> bool:
        """Whether the problem is solved before the first iteration: if it is small, or begins where a like one has ended."""
        if leader.n > 0 or not self.finisher.possible:
            return False
        if self.race.opening:  # minibatches will be quicker
            return False
        whole = self.finisher.solver.cost() <= max(AT_ONCE, INSTEAD * self.iteration)
        coefficients = leader.x[:-1] if self.race.original.intercept else leader.x
        return (whole or bool(coefficients.any())) and self._try(leader.x, whole)

    def follow(self, leader: State) -> bool:
        """A stage is over: whether the run is now at its end."""
        opening = self.race.opening
        if not self.finisher.possible or leader.n < (self.race.stage_end if opening else FIRST_TRY):
            return False
        x, run = self._point(), leader.n * self.iteration
        guess = self.finisher.solver.guess(x)
        settled = self.race.past[-2] - self.race.fun <= SETTLED * abs(leader.fun)
        if self.spent + (0.0 if settled else guess) > PART * run or guess > TIMES_AS_LONG * run:
            return False
        return self._try(x)

    def last(self) -> bool:
        """Whether the answer of a run that has ended otherwise can still be finished."""
        if not self.finisher.possible:
            return False
        self._kept = self._memory()
        return self.finisher.attempt(self._point(), self.tol, self.stop)

    def settle(self, leader: State) -> None:
        """The leader is the answer."""
        proof: Any = self.finisher.proof
        self.race.finish(leader, self.finisher.x, proof.fun)
        self.certifier.offer_proof(proof, self.finisher.x)

    def _point(self) -> np.ndarray:
        return self.race.coordinates.back(self.race.best)

    def _try(self, x: np.ndarray, whole: bool = False) -> bool:
        done = self.finisher.attempt(x, self.tol, self.stop, whole)
        if not done:  # what it has found is the race's, too
            self.spent += self.finisher.solver.spent
            if (proof := self.finisher.proof) is not None:
                self.race.adopt(self.finisher.x, proof.fun)
                self.certifier.offer_proof(proof, self.finisher.x)
                self.certifier.doubt()  # the race computes its objectives less exactly than the proof
        return done

    def memory(self) -> dict[str, np.ndarray]:
        """What it takes to go on as if the run had never stopped, by name."""
        return self._kept or self._memory()

    def _memory(self) -> dict[str, np.ndarray]:
        known = {
            "spent": self.spent,
            "near": self.finisher.solver.near if self.finisher.possible else 0.0,
        }
        known |= {name: getattr(self.report, name) for name in COUNTED}
        if self.finisher.proof is not None:  # an answer, and what proves it
            known |= {"x": self.finisher.x} | (
                {} if (u := self.finisher.slopes) is None else {"slopes": u}
            )
        return {f"{TRIES_PREFIX}{name}": np.array(value) for name, value in known.items()}

    def remember(self, notes: dict[str, np.ndarray]) -> None:
        """The inverse of `memory`; nothing, if the run had no finish."""
        known = {
            name.removeprefix(TRIES_PREFIX): array
            for name, array in notes.items()
            if name.startswith(TRIES_PREFIX)
        }
        if not known:
            return
        answer = known.pop("x", None), known.pop("slopes", None)
        first = {name.removeprefix(TRIES_PREFIX): array for name, array in self._memory().items()}
        try:  # no number becomes smaller than it was at the start
            fits = known.keys() == first.keys() and all(
                first[name] <= float(known[name].item()) < np.inf for name in NUMBERED
            )
            numbers = {
                name: type(first[name].item())(array.item()) for name, array in known.items()
            }
            fits &= self._recall(*answer)
        except (TypeError, ValueError, KeyError):
            fits = False
        if not fits:
            raise ValueError("'state' has a memory of the finish that does not fit this problem.")
        self.spent = numbers["spent"]
        if self.finisher.possible:
            self.finisher.solver.near = numbers["near"]
        for name in COUNTED:
            setattr(self.report, name, numbers[name])

    def _recall(self, x: np.ndarray | None, slopes: np.ndarray | None) -> bool:
        """Prove an earlier answer again: a proof that was read from somewhere is none. False, if it cannot be one."""
        if x is None:
            return slopes is None
        fits = (
            self.finisher.possible
            and x.shape == self.race.original.shape
            and x.dtype == self.race.original.dtype
        )
        fits = fits and bool(np.isfinite(x).all())
        if fits and slopes is not None:
            fits = slopes.shape == self.certifier.dual.b.shape and slopes.dtype == np.float64
        if fits:
            self.finisher.recall(x, slopes, self.tol)
        return fits
