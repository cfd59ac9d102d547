"""Every statement on the paper's problems, over step sizes from far too small to far too large: `adagrad-diff verify`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from ..rules import AdaGrad, AdaGradDiff
from ._inequality import Inequality
from ._optimum import solve
from ._run import Run, record
from .basic import adagrad_inequality, corollary, lemma_1, lemma_1_smooth
from .bounds import main_bound, squared_differences
from .fejer import quasi_fejer, subgradient_inequality
from .metric import weights
from .rates import rate
from .report import FALSE, Bound, Row, Verification

if TYPE_CHECKING:
    from ..paper import Problem

ETA_DECADES = tuple(10.0**k for k in (-3, -1.5, 0, 1.5, 3))  # six decades around the paper's eta
RATE_FACTORS = tuple(10.0**k for k in (-0.75, 0, 0.75))
LARGEST_ETA = 1e100
GROUP = 10  # coordinates per block of the partition into groups

#: Iterations of the runs for the inequalities and of those for the rates. news20 has 62061 coordinates: 1.5 MB per iteration.
RUN_ITERATIONS = {
    "hinge": (2000, 20000),
    "lad": (2000, 20000),
    "news20": (150, 500),
    "splice": (2000, 20000),
    "2moons": (2000, 20000),
}


def verify(
    problems: Iterable[str] = (),
    etas: Sequence[float] = (),
    *,
    iterations: int | None = None,
    seed: int = 0,
    data: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    say: Callable[[str], Any] = lambda line: print(line, file=sys.stderr),
) -> Verification:
    """Check every statement on the paper's problems.

    Parameters
    ----------
    problems : names
        Of `adagrad_diff.paper.PROBLEMS`; all by default.
    etas : numbers
        Step sizes. By default five over six decades around the paper's for the inequalities, three over 1.5 decades for
        the rates.
    iterations : int, optional
        Of every run. By default 2000, and 20000 for the rates; for news20 150 and 500.
    seed : int
        Of data and starts.
    data : path, optional
        Directory of the LIBSVM files; generated stand-ins are used where they are missing, and the messages say so.
    output : path, optional
        Directory for the figure (PDF and PNG) and the numbers (CSV). Nothing is drawn by default.
    say : callable
        What to do with messages; they go to stderr by default.

    Returns
    -------
    Verification

    Examples
    --------
    >>> from adagrad_diff.theory import verify
    >>> found = verify(["lad"], [0.05], iterations=60, say=lambda line: None)
    >>> found.holds, sorted({row.statement for row in found.rows if row.runs})[:3]
    (True, ["AdaGrad's inequality", 'Lemma 1', 'corollary'])
    """
    from ..paper import PROBLEMS

    names = tuple(problems) or tuple(PROBLEMS)
    for name in names:
        _check.one_of(name, tuple(PROBLEMS), "problems", "verify")
    given = [_check.positive(eta, "etas", "verify") for eta in etas]
    for eta in given:  # the inequalities have its square, and divide by it
        if not 1 / LARGEST_ETA <= eta <= LARGEST_ETA:
            ends = f"{1 / LARGEST_ETA:g} and {LARGEST_ETA:g}"
            raise _check.InputError(
                f"The 'etas' parameter of verify must be between {ends}. Got {eta!r} instead."
            )
    if iterations is not None:
        _check.count(iterations, "iterations", "verify", least=1)
    found = Verification()
    for name in PROBLEMS:
        if name not in names:
            continue
        problem = _problem(name, seed, data, say)
        say(f"{problem.title}: minimiser")
        x_star = solve(problem)
        short, long = RUN_ITERATIONS[name] if iterations is None else (iterations, iterations)
        values = given or [problem.paper_eta * factor for factor in ETA_DECADES]
        say(f"  {len(values)} etas x 3 partitions x 2 methods x {short} iterations")
        found.rows += _rows(problem, x_star, values, short, found.bounds)
        for eta in given or [problem.paper_eta * factor for factor in RATE_FACTORS]:
            say(f"  rate at eta = {eta:.3g}, {long} iterations")
            try:
                run = record(
                    problem.loss, problem.x0s[:, 0], problem.penalty, AdaGradDiff(eta), long
                )
                found.rates.append((_label(problem), eta, rate(run, x_star)))
            except ValueError as error:
                found.rates.append((_label(problem), eta, str(error)))
    if output is not None:
        from ._figure import write

        found.files += write(found, output)
    return found


def _problem(name: str, seed: int, data: Any, say: Callable[[str], Any]) -> Problem:
    from ..paper import PROBLEMS

    options: dict[str, Any] = {"starts": 2, "seed": seed}
    if name in ("news20", "splice"):
        options |= {"data": data, "stand_in": True}
    problem = PROBLEMS[name](**options)
    if not problem.real:
        say(
            f"  The data of {name} were not found: a generated {problem.data} is used. With the file: --data DIR."
        )
    return problem


def statements(
    run: Run, rival: Run, x_star: np.ndarray, other: np.ndarray, L: float | None = None
) -> Iterator[tuple[str, Callable[[], Inequality]]]:
    """Every inequality as a name and a function; those for any x are checked at the minimiser and at another point.

    `run` is AdaGrad-Diff's and `rival` AdaGrad's.
    """
    for x in (x_star, other):
        yield "Lemma 1", partial(lemma_1, run, x)
        yield "Lemma 1, smooth", partial(lemma_1_smooth, run, x, L)
        yield "corollary", partial(corollary, run, x)
        yield "main bound, sum", partial(main_bound, run, x)
        yield "main bound, norm", partial(main_bound, run, x, "norm")
        yield "subgradients u", partial(subgradient_inequality, run, x)
        yield "AdaGrad's inequality", partial(adagrad_inequality, rival, x)
    yield "squared differences", partial(squared_differences, run, x_star, L)
    yield "quasi-Fejer, previous", partial(quasi_fejer, run, x_star)
    yield "quasi-Fejer, next", partial(quasi_fejer, run, x_star, "next")
    yield FALSE, partial(quasi_fejer, run, x_star, "printed")
    yield "identity of w", partial(weights, run)
    yield "identity of w", partial(weights, rival)


def partitions(size: int) -> dict[str, Any]:
    """Single coordinates, groups of ten, one block."""
    return {"coordinates": None, "groups": np.arange(size) // GROUP, "one block": "all"}


def _label(problem: Problem) -> str:
    """The name in tables and figures: no result on a stand-in may pass for one on the data."""
    return problem.name if problem.real else f"{problem.name} (stand-in)"


def _rows(
    problem: Problem,
    x_star: np.ndarray,
    etas: Sequence[float],
    iterations: int,
    bounds: list[Bound],
) -> list[Row]:
    """The worst case of every statement; the main bound of single coordinates is kept for the figure."""
    label, (start, other) = _label(problem), problem.x0s.T
    checked: dict[str, list[Row]] = {}
    refused: dict[str, str] = {}
    try:
        L: float | None = problem.loss.lipschitz()
    except ValueError:
        L = None  # the statements that need one refuse
    for blocks, labels in partitions(x_star.size).items():
        for eta in etas:
            run, rival = (
                record(problem.loss, start, problem.penalty, kind(eta, blocks=labels), iterations)
                for kind in (AdaGradDiff, AdaGrad)
            )
            for name, statement in statements(run, rival, x_star, other, L):
                here = checked.setdefault(name, [])
                try:
                    said = statement()
                    here.append(Row(label, name, *said.smallest, eta, blocks, said.rounding, 1))
                except ValueError as error:
                    refused[name] = str(error)
            if blocks == "coordinates":
                best = float(np.sqrt(np.max((run.x[:-1] - x_star) ** 2) / 2))
                bounds.append(
                    Bound(
                        label, eta, best, main_bound(run, x_star), main_bound(run, x_star, "norm")
                    )
                )
    rows = []
    for name, here in checked.items():
        none = Row(label, name, np.inf, 0, np.nan, "", 0.0, 0)
        worst = min(here, key=lambda row: row.relative, default=none)
        rows.append(replace(worst, runs=len(here), refused=refused.get(name, "")))
    return rows
