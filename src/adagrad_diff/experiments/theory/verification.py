"""Every statement on the paper's problems, over step sizes from far too small to far too large."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _check
from ..._messages import require
from ...rules import AdaGrad, AdaGradDiff, Rule
from ...solvers import minimize
from .. import report
from ..paper import PROBLEMS, Problem
from ..paper.reproduction import load_problem, to_stderr
from . import inequalities
from .comparison import Inequality
from .rates import rate
from .run import Run, record

if TYPE_CHECKING:
    import pandas as pd

ETA_FACTORS = 10.0 ** np.array([-3, -1.5, 0, 1.5, 3])  # around the paper's eta
RATE_FACTORS = 10.0 ** np.array([-0.75, 0, 0.75])
LARGEST_ETA = 1e100  # the inequalities have its square, and divide by it
GROUP = 10  # coordinates per block of the partition into groups
MINIMIZER_TOL = 1e-13  # relative duality gap
FALSE = "quasi-Fejer, printed"  # the one statement that is expected to fail somewhere
VIOLATED, EXPECTED = "VIOLATED", ("not violated here", "violated, as expected")

#: Iterations of runs for inequalities and for rates. A record of news20 takes 1.5 MB per iteration.
RUN_ITERATIONS = dict.fromkeys(PROBLEMS, (2000, 20000)) | {"news20": (150, 500)}


@dataclass
class Verification:
    """What `verify` found.

    Attributes
    ----------
    checks : list of dict
        One per statement, run and comparison point: problem, statement, slack (the smallest,
        relative), rounding, n, eta, blocks and result.
    rates : list of dict
        One per run: problem, eta, slope, needed, window and result.
    bounds : list of dict
        One per run with single coordinates as blocks: problem, eta, and eta_of_bound, at which two
        terms of the main bound are equal; and, at the end of the run, its left side (truth), its
        right side in both forms (bound_sum, bound_norm) and its terms.
    files : list of Path
    """

    checks: list[dict[str, Any]] = field(default_factory=list, repr=False)
    rates: list[dict[str, Any]] = field(default_factory=list, repr=False)
    bounds: list[dict[str, Any]] = field(default_factory=list, repr=False)
    files: list[Path] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every statement held, except the one that is printed wrongly."""
        return all(one["result"] != VIOLATED for one in self.checks)

    def table(self) -> pd.DataFrame:
        """Return the worst case of each statement on each problem, and the number of its checks."""
        frame = require("pandas", "paper").DataFrame(self.checks)
        groups = frame.groupby(["problem", "statement"], sort=False)
        worst = frame.loc[groups.slack.idxmin()].set_index(["problem", "statement"])
        worst.insert(0, "runs", groups.n.count())
        return worst.reset_index()

    def __str__(self) -> str:
        frames = self.table(), require("pandas", "paper").DataFrame(self.rates)
        options = {"index": False, "float_format": "{:.2g}".format, "na_rep": ""}
        return "\n\n".join(frame.to_string(**options) for frame in frames)


def verify(
    problems: Iterable[str] = (),
    etas: Sequence[float] = (),
    *,
    iterations: int | None = None,
    seed: int = 0,
    data: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    say: Callable[[str], Any] = to_stderr,
) -> Verification:
    """Check every statement on the paper's problems.

    Parameters
    ----------
    problems : names
        Of `adagrad_diff.experiments.paper.PROBLEMS`; all by default.
    etas : numbers
        Step sizes. By default five over six decades around the paper's for the inequalities, three
        over 1.5 decades for the rates.
    iterations : int, optional
        Of every run. By default 2000, and 20000 for the rates; for news20 150 and 500.
    seed : int
        Of data and starts.
    data : path, optional
        Directory of the LIBSVM files; generated stand-ins are used where they are missing, and the
        messages say so.
    output : path, optional
        Directory for the numbers (CSV).
    say : callable
        What to do with messages; they go to stderr by default.

    Returns
    -------
    Verification

    Examples
    --------
    >>> from adagrad_diff.experiments.theory import verify
    >>> found = verify(["lad"], [0.05], iterations=60, say=lambda line: None)
    >>> found.holds, found.table().statement.tolist()[:3]
    (True, ['Lemma 1', 'Lemma 1, smooth', 'corollary'])
    """
    names = tuple(problems) or tuple(PROBLEMS)
    for name in names:
        _check.one_of(name, tuple(PROBLEMS), "problems", "verify")
    wanted = f"a number between {1 / LARGEST_ETA:g} and {LARGEST_ETA:g}"
    inside = lambda eta: 1 / LARGEST_ETA <= eta <= LARGEST_ETA
    given = [_check.number(eta, "etas", "verify", wanted, inside) for eta in etas]
    if iterations is not None:
        _check.count(iterations, "iterations", "verify", least=1)
    found = Verification()
    for name in filter(names.__contains__, PROBLEMS):
        problem = load_problem(name, data, say, starts=2, seed=seed)
        # No result on a stand-in may pass for one on the data.
        about = {"problem": name if problem.real else f"{name} (stand-in)"}
        x_star = solve(problem)
        short, long = RUN_ITERATIONS[name] if iterations is None else (iterations, iterations)
        say(f"{problem.title}: inequalities, {short} iterations")
        for eta in given or (problem.paper_eta * ETA_FACTORS).tolist():
            _check_statements(found, about, problem, x_star, eta, short)
        for eta in given or (problem.paper_eta * RATE_FACTORS).tolist():
            say(f"  rate at eta = {eta:.3g}, {long} iterations")
            one = {**about, "eta": eta}
            try:
                rated = rate(record_run(problem, AdaGradDiff(eta), long), x_star)
                one |= {"slope": rated.slope, "needed": rated.needed, "window": rated.window}
                one["result"] = "holds" if rated.holds() else "TOO FLAT"
                if not rated.settled:
                    one["result"] = "not yet asymptotic"
            except ValueError as error:
                one["result"] = f"refused: {error}"
            found.rates.append(one)
    if output is not None:
        out = Path(output)
        out.mkdir(parents=True, exist_ok=True)
        bounds = require("pandas", "paper").DataFrame(found.bounds)
        for name, frame in (("inequalities", found.table()), ("bounds", bounds)):
            found.files.append(out / f"{name}.csv")
            report.write_text(found.files[-1], frame.to_csv(index=False, float_format="%.4g"))
    return found


def record_run(problem: Problem, rule: Rule, iterations: int) -> Run:
    """Record a run from the first start of a problem."""
    return record(problem.loss, problem.x0s[:, 0], problem.penalty, rule, iterations)


def solve(problem: Problem) -> np.ndarray:
    """Return a minimizer of F, accurate enough to be the x_star of the statements."""
    options: dict[str, Any] = {"tol": MINIMIZER_TOL, "on_failure": "ignore", "history": 0}
    x: np.ndarray = minimize(problem.loss, penalty=problem.penalty, **options).x
    return x


def statements(
    run: Run, rival: Run, x_star: np.ndarray, other: np.ndarray
) -> Iterator[tuple[str, Callable[[], Inequality]]]:
    """Yield every inequality as a name and a function.

    `run` is AdaGrad-Diff's and `rival` AdaGrad's. Those for any x are checked at the minimizer and
    at another point.
    """
    for x in (x_star, other):
        yield "Lemma 1", partial(inequalities.lemma_1, run, x)
        yield "Lemma 1, smooth", partial(inequalities.lemma_1_smooth, run, x)
        yield "corollary", partial(inequalities.corollary, run, x)
        yield "main bound, sum", partial(inequalities.main_bound, run, x)
        yield "main bound, norm", partial(inequalities.main_bound, run, x, "norm")
        yield "subgradients u", partial(inequalities.subgradient_inequality, run, x)
        yield "AdaGrad's inequality", partial(inequalities.adagrad_inequality, rival, x)
    yield "squared differences", partial(inequalities.squared_differences, run, x_star)
    for form in inequalities.FEJER_FORMS:
        yield f"quasi-Fejer, {form}", partial(inequalities.quasi_fejer, run, x_star, form)
    yield "identity of w", partial(inequalities.weights, run)
    yield "identity of w", partial(inequalities.weights, rival)


def partitions(size: int) -> dict[str, Any]:
    """Return single coordinates, groups of ten, and one block."""
    return {"coordinates": None, "groups": np.arange(size) // GROUP, "one block": "all"}


def _check_statements(
    found: Verification,
    about: dict[str, Any],
    problem: Problem,
    x_star: np.ndarray,
    eta: float,
    n: int,
) -> None:
    """Check every statement at one step size, on runs of n iterations."""
    for blocks, labels in partitions(x_star.size).items():
        run = record_run(problem, AdaGradDiff(eta, blocks=labels), n)
        rival = record_run(problem, AdaGrad(eta, blocks=labels), n)
        for name, statement in statements(run, rival, x_star, problem.x0s[:, 1]):
            one = {**about, "statement": name, "slack": np.inf, "n": np.nan, "rounding": np.nan}
            one |= {"eta": eta, "blocks": blocks}
            try:
                said = statement()
                (one["slack"], one["n"]), one["rounding"] = said.smallest, said.rounding
                results = EXPECTED if name == FALSE else ("holds", VIOLATED)
                one["result"] = results[0 if said.holds() else 1]
            except ValueError as error:
                one["result"] = f"refused: {error}"
            found.checks.append(one)
        if labels is None:
            distance = np.max((run.x[:-1] - x_star) ** 2)
            bound, norm = (
                inequalities.main_bound(run, x_star, form) for form in inequalities.BOUND_FORMS
            )
            lines = {"n": bound.n, "truth": bound.left, "bound_sum": bound.right, **bound.terms}
            ends = {name: line[-1] for name, line in (lines | {"bound_norm": norm.right}).items()}
            one = {**about, "eta": eta, "eta_of_bound": np.sqrt(distance / 2), **ends}
            found.bounds.append(one)
