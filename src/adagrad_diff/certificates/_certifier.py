"""Following a run with a lower bound on F_star, at a small part of its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, isfinite
from typing import Any

import numpy as np

from ._conditioning import has_no_minimizer
from ._correct import most_rows
from ._dual import Dual, LinearDual
from ._exact import Proof, corrected_bound, lower_bound
from ._extended import Known
from ._objective import Certificate, is_provable, objective
from ._refine import EVALUATIONS, ROUNDS, refined, samples_nearest_kinks

LOOKS, REFINEMENTS, AUTO = (
    0.02,
    0.025,
    0.5,
)  # of a run's time: for plain candidates, for refinements, and these with eta="auto"
ROUND_LOOKS, ROUND = (
    0.2,
    8,
)  # of a run with minibatches, which may end after a few rounds; iterations that one takes as long as
# A model of the machine, in seconds, so that two runs of one problem look at the same iterations.
CALL, MULTIPLICATION = 4e-6, 1.2e-10  # one iteration: what it costs at least
FAR_STRIDE, FAR_FOLDS = (
    7,
    3,
)  # iterations between residuals that have to be fetched, and how often a look goes there
LOOK_SECONDS, SAMPLE_SECONDS = 2e-4, 3e-8  # one evaluation of the dual function
TRIAL = 3e-5  # one evaluation inside the refinement
EXACT_PASS, CORRECTION = (
    10.0,
    5e-10,
)  # products in twice the precision, in ordinary ones; seconds of a least squares problem
ENTRIES = 4_000_000  # numbers that are copied without asking how large A is
FEW_SAMPLES, LEAST_EVALUATIONS = 100, 30  # of a refinement
LATER = 1.3  # by which factor the run grows between two refinements
LOST, SMOOTH_SHARE = (
    1e-6,
    0.2,
)  # part of a dual point that scaling has cost, so that a correction is tried; of its seconds
KEPT = 8  # additions that the mean before a restart counts for
FINAL = 8e-3  # seconds that a refinement may take in the end, however short the run was
CERTIFIER_PREFIX = "certifier."
REMEMBERED = (
    "tried",
    "value",
    "noise",
    "bound",
    "n",
    "refined_at",
    "next",
    "spent",
)  # the numbers among what it remembers
LARGEST_FLOAT = np.finfo(np.float64).max


class Certifier:
    """The best lower bound on F_star so far, from the residuals the iteration leaves behind.

    `dual` may be a phrase that says why there is no dual function: then nothing is ever known.
    """

    def __init__(self, dual: Dual | str, trajectories: int = 1, rounds: bool = False):
        self.dual: Any = dual
        self.value: float = -np.inf  # of the dual function, the best so far
        self.noise = 0.0  # how precisely the run knows its objective, as of the last look
        self.bound: float = (
            -np.inf
        )  # value - noise, so that F(x) - F_star <= fun - bound for the computed fun, too
        self.point: np.ndarray | None = None
        self.known, self.tried = (
            not isinstance(dual, str),
            False,
        )  # whether there is a dual function, and a value of it
        self.accuracy = (
            0.0  # the relative accuracy of objectives that matters; zero: as accurate as possible
        )
        self._evaluated: tuple[np.ndarray, Known] | None = (
            None  # the last x whose objective was evaluated
        )
        self._kept: dict[str, np.ndarray] | None = (
            None  # the memory before the last look: a run that goes on has not taken it
        )
        self.back: Callable[[np.ndarray], np.ndarray] = lambda x: (
            x
        )  # from the run's coordinates to the loss's own
        if isinstance(dual, str):
            return
        self.mean: Any = None  # of the residuals over the last half to three quarters of the run
        loss: Any = dual.loss  # type: ignore[attr-defined]
        matrix = getattr(loss, "A", None) or loss.Q
        samples, far = matrix.shape[0], matrix.overhead
        self.work = trajectories * (CALL + MULTIPLICATION * matrix.size) + far
        look = FAR_FOLDS * far + LOOK_SECONDS + SAMPLE_SECONDS * samples + self.work * dual.kinked
        look += 0.5 * MULTIPLICATION * matrix.size * dual.products
        self.every = ceil(look / (ROUND_LOOKS * ROUND * self.work if rounds else LOOKS * self.work))
        # Adding up residuals takes time as well; an odd stride does not fall into step with an oscillation.
        self.stride = FAR_STRIDE if matrix.far else 1 if self.work > 50 * CALL else 3
        # Rows that may be copied: a fiftieth of A, or as many as a vertex of a polyhedral problem has samples at their kinks.
        self.most = max(
            FEW_SAMPLES, samples // 50, min(3 * matrix.shape[1], ENTRIES // matrix.shape[1])
        )
        self.n = self.refined_at = 0
        self.share, self.final = (REFINEMENTS, FINAL) if trajectories == 1 else (AUTO, 3 * FINAL)
        self.next, self.spent = (
            1,
            0.0,
        )  # the iteration of the next look, the seconds refinements have taken
        self.known_samples, self.known_multipliers = (
            np.empty(0, int),
            np.empty(0),
        )  # of the last refinement

    @property
    def scale(self) -> float:
        """The scale of the problem: the mean loss of constant predictions; 0 if it is not known."""
        return 0.0 if isinstance(self.dual, str) else self.dual.scale

    @property
    def hopeless(self) -> bool:
        """Whether no dual point was found that says more than the loss's smallest value, because none is feasible.

        A feasible one that says less so far is no reason to give up: bounds become better as x does.
        """
        return isinstance(self.dual, str) or (
            self.tried and self.value <= self.dual.floor and self.dual.reason != ""
        )

    def gap(self, fun: Any) -> Any:
        """A guess of F(x) - F_star for the objectives that a run has computed. What is reported is that of `certificate`."""
        if np.ndim(fun):
            return np.where(
                np.isfinite(fun) & isfinite(self.bound),
                fun - max(self.bound, -LARGEST_FLOAT),
                np.inf,
            )
        gap = fun - self.bound
        return gap if isfinite(gap) else np.inf

    def objective(self, x: np.ndarray) -> Known:
        """F(x), evaluated once for each x."""
        if self._evaluated is None or not np.array_equal(self._evaluated[0], x):
            self._evaluated = x.copy(), objective(self.dual, x, self.accuracy)
        return self._evaluated[1]

    def certificate(self, x: np.ndarray) -> Certificate:
        """What is proven about exactly this x."""
        if isinstance(self.dual, str):
            raise TypeError("There is no dual function, and so no certificate.")
        found = Certificate.at(self.objective(x), self.value, self.point)
        return replace(found, message=self.message(found.fun, found))

    def has_no_minimizer(self, x: np.ndarray) -> bool:
        """Return whether the objective keeps decreasing along x."""
        return not isinstance(self.dual, str) and has_no_minimizer(
            self.dual.loss, self.dual.penalty, x
        )

    def doubt(self) -> None:
        """The guess was too good: make none until the next look."""
        self.bound = -np.inf

    def message(self, fun: float, found: Certificate | None = None) -> str:
        """One sentence about what is certified."""
        if isinstance(self.dual, str):
            return f"There is no certificate: {self.dual}."
        if not np.isfinite(fun):
            return f"There is no certificate: the objective is {fun}."
        if found is None or not np.isfinite(found.gap):
            return f"The duality gap is infinite: {self.dual.reason or 'there was no iteration'}."
        if self.value <= self.dual.floor:
            known = f"All that is proven about the objective {fun:.6g} is that the optimum is at least {found.bound:.6g}"
            return f"{known}: {self.dual.reason}." if self.dual.reason else f"{known}."
        return f"The objective {fun:.6g} is within {found.gap:.2e} of the optimum ({found.relative:.1e} relative)."

    def follow(self, state: Any) -> None:
        """One more iteration is complete."""
        if isinstance(self.dual, str):
            return
        self.n += 1
        if self.dual.kinked and self.n % self.stride == 0:
            # Of the leading trajectory: a mean over several of them is as good.
            r = state.oracle.residuals(state.ahead() if state.batched else None)
            if self.mean is None:
                self.mean = LateMean(r)
            self.mean.add(r)
        if self.n >= self.next:
            self._look(state, self._affordable(last=False))
            self.next = self.n + self.every
        if state.turning:
            self._look(state, 0.0)
            if self.dual.kinked and self.mean is not None:
                self.mean.restart()

    def look_closely(self, state: Any) -> None:
        """At the last iterate."""
        if not isinstance(self.dual, str):
            self._kept = self._memory()
            self._look(state, self._affordable(last=True))

    def finish(self, x: np.ndarray, g: np.ndarray, r: np.ndarray | None) -> None:
        """The last look, at the best of several trajectories: an iterate, its gradient and residuals."""
        self._kept = self._memory()
        self.back = lambda x: x
        self._consider(x, g, r, x, self._affordable(last=True))

    def memory(self) -> dict[str, np.ndarray]:
        """What it takes to go on as if the run had never stopped, by name."""
        return {} if isinstance(self.dual, str) else self._kept or self._memory()

    def _memory(self) -> dict[str, np.ndarray]:
        known = {name: np.array(getattr(self, name)) for name in REMEMBERED}
        known |= {"known_samples": self.known_samples, "known_multipliers": self.known_multipliers}
        known["reason"] = np.array(self.dual.reason)  # it decides whether there is hope
        if self.point is not None:
            known["point"] = self.point
        if self.mean is not None:
            known |= {"latest": self.mean.latest, "before": self.mean.before}
            known |= {
                "count": np.array(self.mean.count),
                "count_before": np.array(self.mean.count_before),
            }
        return {f"{CERTIFIER_PREFIX}{name}": value for name, value in known.items()}

    def remember(self, memory: dict[str, np.ndarray], x: np.ndarray) -> None:
        """The inverse of `memory`; nothing, if the run had no certifier. The bound is computed again, perhaps for x."""
        ours = (name for name in memory if name.startswith(CERTIFIER_PREFIX))
        known = {name.removeprefix(CERTIFIER_PREFIX): memory[name] for name in ours}
        if isinstance(self.dual, str) or not known:
            return
        try:
            numbers = {name: type(getattr(self, name))(known[name].item()) for name in REMEMBERED}
            samples, multipliers, point = (
                known["known_samples"],
                known["known_multipliers"],
                known.get("point"),
            )
            reason = str(known["reason"].item())
            like, mean = (
                (np.empty_like(self.dual.loss.b) if self.dual.kinked else np.empty(0)),
                None,
            )
            fits = (
                samples.ndim == 1
                and samples.shape == multipliers.shape
                and samples.dtype.kind == "i"
            )
            fits &= samples.size == 0 or (samples.min() >= 0 and samples.max() < like.size)
            if "latest" in known:
                mean = LateMean(like)
                mean.count, mean.count_before = int(known["count"]), int(known["count_before"])
                fits &= (
                    known["latest"].shape == known["before"].shape == like.shape
                    and mean.count >= 0 < mean.count_before
                )
                mean.latest[...], mean.before[...] = known["latest"], known["before"]
            fits &= numbers["noise"] >= 0 and numbers["bound"] <= numbers["value"]
            fits &= point is None or self._fits(point)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"'state' has a memory of its duality gap that does not fit: {error}."
            ) from None
        if not fits:
            raise ValueError(
                "'state' has a memory of its duality gap that does not fit this problem."
            )
        self.__dict__.update(numbers)
        self.dual.reason = reason
        self.known_samples, self.known_multipliers, self.mean = samples, multipliers, mean
        self.value, self.point = self._proven(point, numbers["value"], x)
        self.bound = min(self.bound, self.value - self.noise)

    def recall(self, point: np.ndarray, value: float, x: np.ndarray) -> None:
        """Offer the dual point of a run that had ended at x, with at most the value that it is said to have."""
        if self.known and self._fits(point):
            self.offer(*self._proven(point, value, x))  # type: ignore[arg-type]

    def _fits(self, point: np.ndarray) -> bool:
        """Whether a dual point that was read from a file can be one."""
        shape = self.dual.b.shape if isinstance(self.dual, LinearDual) else self.dual.loss.shape
        return point.shape == shape and point.dtype.kind == "f" and bool(np.isfinite(point).all())

    @np.errstate(all="ignore")
    def _proven(
        self, point: np.ndarray | None, value: float, x: np.ndarray
    ) -> tuple[float, np.ndarray | None]:
        """At most `value`: what the dual function is at a point that was read from a file."""
        if point is None:
            return -np.inf, None
        if isinstance(self.dual, LinearDual):
            again = self.dual.value(point)
            if value > again[0] and is_provable(self.dual):
                again = max(again, lower_bound(self.dual, point, value), key=lambda pair: pair[0])
        else:
            g = np.empty_like(x)
            self.dual.loss.oracle(x)(x, g)
            again = self.dual.bound(x, g, None)
        return (value, point) if value <= again[0] else again

    def _affordable(self, last: bool) -> float:
        """How many seconds a refinement may take now."""
        credit = self.share * self.n * self.work - self.spent
        return (
            max(credit, self.final)
            if last
            else credit
            if self.n >= LATER * self.refined_at
            else 0.0
        )

    def _look(self, state: Any, seconds: float) -> None:
        """Improve the bound by the candidates at hand, and by a refinement if there is time for one."""
        column = state.ahead() if state.batched else None
        x, g, best = (
            a if a is None or column is None else a[..., column]
            for a in (state.x, state.g, state.x_best)
        )
        r = self.dual.residuals(state.oracle, column)
        self._consider(x, g, r, x if best is None else best, seconds)

    @np.errstate(all="ignore")  # a bound that overflows is infinite, and proves nothing
    def _consider(self, x: Any, g: Any, r: Any, best: np.ndarray, seconds: float) -> None:
        if not self.dual.kinked:
            self.offer(*self.dual.bound(x, g, r))
            if r is not None and self.dual.lost > LOST:
                self._correct(
                    self.dual.multipliers(r), self.dual.loss.A.shape[0], SMOOTH_SHARE * seconds
                )
                self.refined_at = self.n
        elif self.mean is not None:
            u = self.dual.multipliers(self.mean.value())
            v = self.dual.product(u)
            self.try_(u, v)
            if seconds > ROUNDS * LEAST_EVALUATIONS * TRIAL:
                self._refine(self.back(best), u, v, seconds)
        self.measure(self.back(x), r)

    def _refine(self, x: np.ndarray, u: np.ndarray, v: np.ndarray, seconds: float) -> None:
        """A refinement of the mean u, v = A'(w u), from where the last one has ended if that is better."""
        matrix = self.dual.loss.A
        row = 4 * MULTIPLICATION * max(matrix.size / matrix.shape[0], 1.0)
        most = int(
            (seconds / (ROUNDS * LEAST_EVALUATIONS) - TRIAL) / row
        )  # samples that there is time for
        samples = samples_nearest_kinks(self.dual, x, min(most, self.most))
        cost = ROUNDS * (TRIAL + row * samples.size)
        evaluations = min(EVALUATIONS, int(seconds / cost))
        if evaluations < LEAST_EVALUATIONS:
            return
        start = u[samples]
        place = np.minimum(
            np.searchsorted(self.known_samples, samples), max(self.known_samples.size - 1, 0)
        )
        if self.known_samples.size:
            same = self.known_samples[place] == samples
            start[same] = self.known_multipliers[place[same]]
        for better in refined(self.dual, x, u, v, samples, start, evaluations=evaluations):
            self.try_(better.u, better.v)
            self.known_samples, self.known_multipliers = samples, better.u[samples]
        self.spent += evaluations * cost + ROUNDS * self.work * self.dual.loss.intercept
        self._correct(u, samples.size, seconds)
        self.refined_at = self.n

    def _correct(self, u: np.ndarray, most: int, seconds: float) -> None:
        """Move u into the dual set, where scaling it would cost more: by a change of at most so many samples."""
        matrix = self.dual.loss.A
        columns = min(most, matrix.shape[1])
        most = min(most, most_rows(matrix, columns))
        cost = (
            EXACT_PASS * MULTIPLICATION * matrix.size * self.dual.b[:1].size
            + CORRECTION * float(most) * columns**2
        )
        if cost <= seconds:
            self.offer(*corrected_bound(self.dual, u))
            self.spent += cost

    def try_(self, u: np.ndarray, v: np.ndarray) -> None:
        """The dual function at u, which may be overwritten later, and v = A'(w u)."""
        self.offer(*self.dual.value(u, v))

    def offer(self, value: float, point: np.ndarray) -> None:
        """A value of the dual function and its dual point: keep the best."""
        self.tried = True
        if value > self.value:
            self.value, self.point = value, point
            self.bound = value - self.noise

    def offer_proof(self, proof: Proof, x: np.ndarray) -> None:
        """What `prove` has found out about x: from here on `gap(proof.fun)` is the proven one, until the next look."""
        self._evaluated = x.copy(), Known(proof.fun, proof.error)
        if proof.point is not None and not np.isnan(proof.value):
            self.offer(proof.value, proof.point)
        self.noise = np.inf if np.isnan(proof.error) else proof.error
        self.bound = self.value - self.noise

    def measure(self, x: np.ndarray, r: np.ndarray | None) -> None:
        """See how precise objectives are near x, with residuals r."""
        if np.isfinite(self.value) and np.isfinite(x).all():
            noise = self.dual.noise(x, r)
            self.noise = np.inf if np.isnan(noise) else noise  # where something overflows
            self.bound = self.value - self.noise


class LateMean:
    """The mean of what was added in the last half to three quarters of the time."""

    def __init__(self, like: np.ndarray):
        self.latest, self.before = (
            np.zeros(like.shape, like.dtype),
            np.zeros(like.shape, like.dtype),
        )
        self.count = self.count_before = 0

    def add(self, r: np.ndarray) -> None:
        self.latest += r
        self.count += 1
        if self.count == max(
            1, 2 * self.count_before
        ):  # as much again as was added before this half began
            self.latest, self.before = self.before, self.latest
            self.latest[...] = 0.0
            self.count, self.count_before = 0, self.count

    def restart(self) -> None:
        """Keep the mean with the weight of a few additions only: soon others take its place."""
        self.before = self.value()
        self.before *= KEPT
        self.latest[...] = 0.0
        self.count, self.count_before = 0, KEPT

    def value(self) -> np.ndarray:
        total = self.latest + self.before
        total /= self.count + self.count_before
        return total
