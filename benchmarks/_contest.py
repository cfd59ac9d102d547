"""Time to an accuracy: ours, which must be proven, beside peers, which need only reach it.

A peer gets the loosest of its own tolerances that reaches the accuracy; the search for it is not timed. An answer counts if its
objective is as close as asked for to the best objective of all contenders. Ours counts if in addition the fit says so itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter, sleep
from typing import Any, Protocol

import numpy as np

from ._timing import PAUSE, Row

LONG = 20.0  # seconds that compiling does not take


class TooSlow(Exception):
    """A solver has used up its seconds."""


class Problem(Protocol):
    def value(self, x: np.ndarray) -> float: ...


@dataclass(frozen=True)
class Peer:
    solve: Callable[
        [Any, float, float], np.ndarray
    ]  # (problem, its own tolerance, seconds it may take) -> x
    rungs: tuple[float, ...]  # its tolerances, the loosest first
    must: float | None = None  # the largest ratio that passes
    aim: float | None = None
    compiles: bool = False  # so that its first call does not count
    bare: bool = False  # a routine that its users do not call themselves: told, not judged


@dataclass
class Run:
    seconds: float
    objective: float
    note: str = ""  # why it does not count


def measure(call: Callable[[], Any], budget: float = 0.4) -> tuple[float, Any]:
    """The shortest of some calls, of at least two if they do not take long, and what the last one returned."""
    times: list[float] = []
    while (
        not times or (sum(times) < budget and len(times) < 100) or (len(times) < 2 and times[0] < 5)
    ):
        if not times or times[-1] > 0.02:
            sleep(PAUSE)
        begin = perf_counter()
        answer = _quiet(call)
        times.append(perf_counter() - begin)
    return min(times), answer


def _quiet(call: Callable[[], Any]) -> Any:
    """What does not converge warns; whether it did is looked at here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def fitted(model: Any) -> np.ndarray:
    """Coefficients and intercept of an estimator as one vector (for several classes, one row each before it is made flat)."""
    coef = np.atleast_2d(model.coef_)
    intercept = (
        np.ravel(model.intercept_) if getattr(model, "fit_intercept", True) else np.zeros((0,))
    )
    return np.column_stack([coef, intercept]).ravel() if intercept.size else coef.ravel()


def proven(model: Any, gap: float) -> bool:
    return bool(model.converged_ and model.dual_gap_ <= gap * abs(model.objective_))


def contest(
    title: str,
    problem: Problem,
    ours: Callable[[float], Any],
    peers: dict[str, Peer],
    gaps: Sequence[float],
    limit: float = 15.0,
    brief: Sequence[float] = (),
    must: float | None = None,
    read: Callable[[Any], np.ndarray] = fitted,
) -> Iterator[Row]:
    """One row per accuracy and peer, the fastest peer first; ours(gap) is a fitted estimator, and read(it) its x.

    At the accuracies in `brief` there is one row, beside the fastest peer, and `must` is its limit; and one more if a bare
    routine was faster.
    """
    gaps = sorted(gaps, reverse=True)
    begin, model = perf_counter(), _quiet(lambda: ours(gaps[0]))  # may compile
    mine = {gaps[0]: (perf_counter() - begin, model)}
    for gap in gaps if mine[gaps[0]][0] < LONG else gaps[1:]:
        mine[gap] = measure(lambda: ours(gap))
    best = min(problem.value(read(model)) for _, model in mine.values())
    climbs: dict[str, list[Run]] = {name: [] for name in peers}
    for _ in range(2):  # the second time, the best objective is known
        for name, peer in peers.items():
            climb(climbs[name], problem, peer, best, gaps[-1], limit)
            best = min([best, *(run.objective for run in climbs[name])])
    for gap in gaps:
        enough = best + gap * abs(best)
        seconds, model = mine[gap]
        if seconds < 5:  # what disturbed the peers may disturb ours, and the other way round
            seconds = min(seconds, measure(lambda: ours(gap))[0])
        name = f"{title}, {gap:.0e}"
        if not proven(model, gap):
            name = f"{name} (took {seconds:.2g} s, proven {model.dual_gap_ / abs(model.objective_):.0e})"
            seconds = np.inf
        elif problem.value(read(model)) > enough + 1e-13 * abs(best):
            name, seconds = f"{name} (PROVEN AND WRONG)", np.inf
        rows = [
            _row(name, seconds, key, peer, climbs[key], problem, enough, limit)
            for key, peer in peers.items()
        ]
        rows.sort(key=lambda row: row.theirs or 0.0)
        if gap in brief:
            judged = next(row for row in rows if not peers[row.peer.split(" (")[0]].bare)
            rows = [replace(judged, must=must)] + [row for row in rows[:1] if row is not judged]
        yield from rows[:1]
        yield from (replace(row, name="") for row in rows[1:])


def climb(
    runs: list[Run], problem: Problem, peer: Peer, best: float, gap: float, limit: float
) -> None:
    """Let a peer answer at tighter and tighter tolerances, up to the first that is good enough."""
    if peer.compiles and not runs:
        _attempt(problem, peer, peer.rungs[0], limit)
    while len(runs) < len(peer.rungs) and not (
        runs and (runs[-1].note or runs[-1].objective <= best + 0.5 * gap * abs(best))
    ):
        runs.append(_attempt(problem, peer, peer.rungs[len(runs)], limit))
        best = min(best, runs[-1].objective)
        if limit < runs[-1].seconds < np.inf and runs[-1].objective > best + gap * abs(best):
            runs.append(Run(np.inf, np.inf, "too slow"))


def _attempt(problem: Problem, peer: Peer, rung: float, limit: float) -> Run:
    begin = perf_counter()
    try:
        x = _quiet(lambda: peer.solve(problem, rung, limit))
    except TooSlow:
        return Run(np.inf, np.inf, "too slow")
    return Run(perf_counter() - begin, problem.value(x) if np.isfinite(x).all() else np.inf)


def _row(
    name: str,
    seconds: float,
    key: str,
    peer: Peer,
    runs: list[Run],
    problem: Any,
    enough: float,
    limit: float,
) -> Row:
    for rung, run in zip(peer.rungs, runs, strict=False):
        if run.objective <= enough:
            time = run.seconds
            if time < 5:
                time = min(time, measure(lambda: peer.solve(problem, rung, limit))[0])
            return Row(name, seconds, key, time, peer.must, peer.aim)
    if runs[-1].note:
        return Row(name, seconds, f"{key} (> limit)", limit, peer.must, peer.aim)
    off = min(run.objective for run in runs)
    return Row(name, seconds, f"{key} (misses it: {off:.6g})", np.inf)
