"""`adagrad-diff fit`: from a file to a linear model and the gap that is proven for it."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .._check import InputError
from .._files import read_text, write
from .._messages import counted
from .._version import __version__
from ..solvers import Status, minimize
from .group import Problems, click, main, printable, say, strict
from .problem import Problem, problem_of, problem_options

MODEL_FORMAT = "adagrad-diff model 1"
ENDS = {
    Status.STALLED: "its objective hardly improves any more",
    Status.MAX_ITER: "its iterations are used up",
    Status.DIVERGED: "there is no best one, as nothing limits the coefficients of classes that can be separated",
}


@main.command(short_help="Fit a linear model to your data, with a proof.")
@problem_options
@click.option(
    "--tol",
    type=click.FloatRange(min=0.0),
    default=1e-6,
    show_default=True,
    help="Relative duality gap to reach.",
)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=10000,
    show_default=True,
    help="Iterations at most, as for `minimize`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the model as JSON.")
@click.option("--out", type=click.Path(), help="A file for the model as JSON.")
@strict
def fit(tol: float, max_iter: int, as_json: bool, out: str | None, **options: Any) -> None:
    """Fit a linear model to DATA and print its coefficients and how close to the best it is proven to be.

    DATA is a CSV, Parquet, NPZ or LIBSVM file, or the name of a LIBSVM data set. Words become
    indicators, dates become days. The exit code is 1 if the model is not proven to be within --tol of
    the best, and 2 if there is none.
    """
    path, problems = None if out is None else Path(out), Problems()
    if path is not None:
        with problems.catch():
            check_model_file(path)
    problem = problem_of(problems, **options)
    say(problem.message)
    begin = time.perf_counter()
    result = minimize(
        problem.loss, penalty=problem.penalty, tol=tol, max_iter=max_iter, on_failure="ignore"
    )
    model = _model(problem, result, time.perf_counter() - begin)
    text = json.dumps(model, indent=1, ensure_ascii=False, allow_nan=False)
    click.echo(text if as_json else printable(_shown(model)))
    if path is not None:
        write(path, lambda file: file.write(f"{text}\n".encode()))
        say(f"The model is in {path}.")
    if not result.success:
        end = ENDS.get(result.status, "a number was not finite")
        say(
            f"The model is not proven to be within --tol {tol:g} of the best: {end}. Try a larger "
            "--alpha, more iterations (--max-iter), or a larger --tol if that is good enough."
        )
        sys.exit(1)


def check_model_file(path: Path) -> None:
    """Raise unless a model can be written there: in place of another model, and of nothing else."""
    if not path.exists():
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"--out names {str(path)!r}, whose directory cannot be written.")
        return
    try:
        found = json.loads(read_text(path)).get("format")
    except (OSError, ValueError, AttributeError, RecursionError):
        found = None
    if found != MODEL_FORMAT:
        raise InputError(
            f"--out names {str(path)!r}, which exists and is not a model: choose another name."
        )


def _model(problem: Problem, result: Any, seconds: float) -> dict[str, Any]:
    """Return the model as plain data."""
    fun, gap = float(result.fun), float(result.gap)
    rows = np.atleast_2d(result.x.T)
    names = problem.facts["classes"][-len(rows) :] or [None]
    return {
        "format": MODEL_FORMAT,
        "version": __version__,
        **problem.facts,
        "about": problem.about,
        "objective": fun,
        "gap": gap if np.isfinite(gap) else None,
        "relative_gap": gap / (abs(fun) or 1.0) if gap < abs(fun) or gap == 0.0 else None,
        "ended": "certified" if result.certified else Status(result.status).name.lower(),
        "converged": result.success,
        "iterations": result.nit,
        "seconds": round(seconds, 3),
        "models": [_function(problem, *named) for named in zip(names, rows, strict=True)],
    }


def _function(problem: Problem, name: str | None, x: np.ndarray) -> dict[str, Any]:
    """Return a linear function of the columns as they are in the file."""
    own = x.astype(float).tolist()
    intercept = own.pop() if problem.loss.intercept else 0.0
    terms = []
    for feature, coefficient in zip(problem.features, own, strict=True):
        slope = coefficient / feature.scale
        intercept -= slope * feature.shift
        terms.append({**feature.label, "coefficient": slope, "standardized": coefficient})
    return {"of": name, "intercept": intercept, "terms": terms}


def _shown(model: dict[str, Any]) -> str:
    """Return the model for people: what it is, its proof, and its coefficients, the largest first."""
    proof = "nothing is proven"
    if model["relative_gap"] is not None or model["ended"] == "certified":
        proof = f"{model['gap']:.2g}: no such model has an objective that is smaller by more"
    iterations = counted(model["iterations"], "iteration")
    lines = [
        model["title"],
        f"objective    {model['objective']:.10g}",
        f"proven gap   {proof}",
        f"ended        {model['ended']} after {iterations}, {model['seconds']:.2g} s",
    ]
    for function in model["models"]:
        target = f"prediction of {model['target']}"
        if function["of"] is not None:
            target = f"score of {model['target']} = {function['of']}"
        lines += [
            "",
            f"{target}: the intercept, and each column (in its own units) times its coefficient",
        ]
        lines.append(f"{function['intercept']:>14.6g}  (intercept)")
        used = [term for term in function["terms"] if term["coefficient"]]
        for term in sorted(used, key=lambda term: -abs(term["standardized"])):
            column = "=".join(term[name] for name in ("column", "category") if name in term)
            if term["standardized"] != term["coefficient"]:
                column += f"   ({term['standardized']:.4g} per standard deviation)"
            lines.append(f"{term['coefficient']:>14.6g}  {column}")
        if len(used) < len(function["terms"]):
            lines.append(f"{'0':>14}  {len(function['terms']) - len(used)} more")
    return "\n".join(lines)
