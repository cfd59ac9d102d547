"""Every statement on the paper's problems, over step sizes from far too small to far too large."""

from __future__ import annotations

import os
import sys
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
from ..figures import new_figure, save
from ..paper import PROBLEMS, Problem
from ..paper.reproduction import FROM_FILES
from ..style import FINE_PRINT, GREY, RED, clear_ticks, style
from . import inequalities
from .inequalities import Inequality
from .rates import rate
from .run import Run, record

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ETA_FACTORS = 10.0 ** np.array([-3, -1.5, 0, 1.5, 3])  # around the paper's eta
RATE_FACTORS = 10.0 ** np.array([-0.75, 0, 0.75])
LARGEST_ETA = 1e100  # the inequalities have its square, and divide by it
GROUP = 10  # coordinates per block of the partition into groups
MINIMIZER_TOL = 1e-13  # relative duality gap
FALSE = "quasi-Fejer, printed"  # the one statement that is expected to fail somewhere
VIOLATED, EXPECTED = "VIOLATED", ("not violated here", "violated, as expected")

#: Iterations of runs for inequalities and for rates. A record of news20 takes 1.5 MB per iteration.
RUN_ITERATIONS = dict.fromkeys(PROBLEMS, (2000, 20000)) | {"news20": (150, 500)}


LINES: dict[str, dict[str, Any]] = {
    "distance": {"color": "#D55E00", "linestyle": "--", "label": r"its $\Delta_{\max}/2\eta$ term"},
    "steps": {"color": "#009E73", "linestyle": "-.", "label": r"its $\eta$ term"},
    "growth": {"color": GREY, "linestyle": ":", "label": "its last term"},
    "bound_sum": {"color": "black", "label": "bound"},
    "truth": {"color": "#0072B2", "linewidth": 1.6, "label": r"truth, $F(\bar x^n) - F_\star$"},
}
BELOW_TRUTH = 5  # times smaller values are not shown


@dataclass
class Verification:
    """What `verify` found.

    Attributes
    ----------
    checks : list of dict
        One per statement, run and comparison point: problem, statement, slack (the smallest, relative),
        rounding, n, eta, blocks and result.
    rates : list of dict
        One per run: problem, eta, slope, needed, window and result.
    bounds : list of dict
        One per run with single coordinates as blocks: problem, eta, the values at its end (n, truth,
        bound_sum, bound_norm, the terms of the bound), eta_of_bound, at which two terms are equal, and
        `run`, the main bound along the run.
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
        rates = require("pandas", "paper").DataFrame(self.rates)
        options = {"index": False, "float_format": "{:.2g}".format, "na_rep": ""}
        return f"{self.table().to_string(**options)}\n\n{rates.to_string(**options)}"


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
        Of `adagrad_diff.experiments.paper.PROBLEMS`; all by default.
    etas : numbers
        Step sizes. By default five over six decades around the paper's for the inequalities, three over
        1.5 decades for the rates.
    iterations : int, optional
        Of every run. By default 2000, and 20000 for the rates; for news20 150 and 500.
    seed : int
        Of data and starts.
    data : path, optional
        Directory of the LIBSVM files; generated stand-ins are used where they are missing, and the
        messages say so.
    output : path, optional
        Directory for the figure (PDF and PNG) and the numbers (CSV). Nothing is drawn by default.
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
    names, known = tuple(problems) or tuple(PROBLEMS), tuple(PROBLEMS)
    for name in names:
        _check.one_of(name, known, "problems", "verify")
    wanted = f"a number between {1 / LARGEST_ETA:g} and {LARGEST_ETA:g}"
    inside = lambda eta: 1 / LARGEST_ETA <= eta <= LARGEST_ETA
    given = [_check.number(eta, "etas", "verify", wanted, inside) for eta in etas]
    if iterations is not None:
        _check.count(iterations, "iterations", "verify", least=1)
    found = Verification()
    for name in sorted(names, key=known.index):
        files = {"data": data, "stand_in": True} if name in FROM_FILES else {}
        problem = PROBLEMS[name](starts=2, seed=seed, **files)
        # No result on a stand-in may pass for one on the data.
        about = {"problem": name if problem.real else f"{name} (stand-in)"}
        if not problem.real:
            say(f"  The data of {name} were not found: generated data are used. See --data DIR.")
        x_star = solve(problem)
        short, long = RUN_ITERATIONS[name] if iterations is None else (iterations, iterations)
        say(f"{problem.title}: inequalities, {short} iterations")
        for eta in given or problem.paper_eta * ETA_FACTORS:
            _check_statements(found, about, problem, x_star, float(eta), short)
        for eta in given or problem.paper_eta * RATE_FACTORS:
            say(f"  rate at eta = {eta:.3g}, {long} iterations")
            one = {**about, "eta": float(eta)}
            try:
                rated = rate(record_run(problem, AdaGradDiff(float(eta)), long), x_star)
                result = "holds" if rated.holds() else "TOO FLAT"
                one |= {"slope": rated.slope, "needed": rated.needed, "window": rated.window}
                one["result"] = result if rated.settled else "not yet asymptotic"
            except ValueError as error:
                one["result"] = f"refused: {error}"
            found.rates.append(one)
    if output is not None:
        out = Path(output)
        out.mkdir(parents=True, exist_ok=True)
        numbers = require("pandas", "paper").DataFrame(found.bounds).drop(columns="run")
        found.files += save(draw(found.bounds), numbers, out, "bound_against_truth")
        found.files.append(out / "inequalities.csv")
        found.table().to_csv(found.files[-1], index=False, float_format="%.4g")
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

    `run` is AdaGrad-Diff's and `rival` AdaGrad's. Those for any x are checked at the minimizer and at
    another point.
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
            said, norm = (inequalities.main_bound(run, x_star, form) for form in ("sum", "norm"))
            ends = {
                "n": said.n,
                "truth": said.left,
                "bound_sum": said.right,
                "bound_norm": norm.right,
            }
            last = {name: values[-1] for name, values in {**ends, **said.terms}.items()}
            distance = np.max((run.x[:-1] - x_star) ** 2)
            one = {**about, "eta": eta, **last, "eta_of_bound": np.sqrt(distance / 2), "run": said}
            found.bounds.append(one)


def draw(bounds: Sequence[dict[str, Any]]) -> Figure:
    """Draw one column per problem: along the run with the middle eta, and at its end against eta."""
    names = list(dict.fromkeys(one["problem"] for one in bounds))
    with style():
        figure, grid = new_figure(1.9 * len(names) + 0.5, 3.9, 2, len(names))
        for (along, across), name in zip(grid.T, names, strict=True):
            here = [one for one in bounds if one["problem"] == name]
            here.sort(key=lambda one: one["eta"])
            etas, middle = [one["eta"] for one in here], here[len(here) // 2]
            run = middle["run"]
            values = {**run.terms, "bound_sum": run.right, "truth": run.left}
            for key, look in LINES.items():
                along.plot(run.n, values[key], **look)
                across.plot(etas, [one[key] for one in here], marker=".", **look)
            best = min(here, key=lambda one: one["bound_sum"])["eta_of_bound"]
            across.axvline(
                best, color=RED, linestyle=":", label=r"$\eta = (\Delta_{\max}/2)^{1/2}$"
            )
            along.set_title(f"{name}, $\\eta$ = {middle['eta']:.2g}")
            for ax, label in ((along, "$n$"), (across, r"$\eta$")):
                truth = np.asarray(ax.get_lines()[len(LINES) - 1].get_ydata())
                least = truth[truth > 0].min(initial=1.0)
                ax.set(xscale="log", yscale="log", xlabel=label, ylim=(least / BELOW_TRUTH, None))
                clear_ticks(ax)
        grid[0, 0].set_ylabel("along a run")
        grid[1, 0].set_ylabel("at its end")
        entries = grid[1, 0].get_legend_handles_labels()
        columns = 3 if len(names) > 1 else 1
        figure.legend(*entries, loc="outside lower center", ncols=columns, fontsize=FINE_PRINT)
    return figure  # type: ignore[no-any-return]
