"""`adagrad-diff fit`: from a file to a linear model and the gap that is proven for it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from .._files import write
from .._messages import counted
from .._version import __version__
from ..solvers import Status, minimize
from .group import Problems, check_output, printable, say
from .problem import Problem, problem_of

MODEL_FORMAT = "adagrad-diff model 1"
PRINTED_COLUMNS = ["coefficient", "standardized", "column", "category"]  # as they are printed
ENDS = {
    Status.STALLED: "its objective hardly improves any more",
    Status.MAX_ITER: "its iterations are used up",
    Status.DIVERGED: "there is no best one, as nothing limits the coefficients of classes that can "
    "be separated",
}


def fit_model(tol: float, max_iter: int, as_json: bool, out: str | None, **options: Any) -> None:
    """Fit, print and write a model."""
    path, problems = None if out is None else Path(out), Problems()
    if path is not None:
        problems.check(check_output, path, MODEL_FORMAT, "a model")
    problem = problem_of(problems, **options)
    begin = time.perf_counter()
    result = minimize(
        problem.loss, penalty=problem.penalty, tol=tol, max_iter=max_iter, on_failure="ignore"
    )
    model = _model(problem, result, time.perf_counter() - begin)
    text = json.dumps(model, indent=1, ensure_ascii=False, allow_nan=False)
    click.echo(text if as_json else printable(_shown(model)))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, lambda file: file.write(f"{text}\n".encode()))
        say(f"The model is in {path}.")
    if not result.success:
        end = ENDS.get(result.status, "a number was not finite")
        say(
            f"The model is not proven to be within --tol {tol:g} of the best: {end}. Try a larger "
            "--alpha, more iterations (--max-iter), or a larger --tol if that is good enough."
        )
        sys.exit(1)


def _model(problem: Problem, result: Any, seconds: float) -> dict[str, Any]:
    """Return the model as plain data."""
    fun, gap = float(result.fun), float(result.gap)
    rows = np.atleast_2d(result.x.T)
    names = problem.facts["classes"][-len(rows) :] or [None]
    return {
        "format": MODEL_FORMAT,
        "version": __version__,
        "title": problem.title,
        **problem.facts,
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
    _, _, _, _, labels, shift, scale = problem.table
    own, c = x[: len(labels)].astype(float), x[len(labels) :].sum()
    raw = own / scale
    terms = [
        {**label, "coefficient": slope, "standardized": standardized}
        for label, slope, standardized in zip(labels, raw.tolist(), own.tolist(), strict=True)
    ]
    return {"of": name, "intercept": float(c - raw @ shift), "terms": terms}


def _shown(model: dict[str, Any]) -> str:
    """Return the model for people: what it is, its proof, its coefficients, the largest first."""
    proof = "nothing is proven"
    if model["relative_gap"] is not None or model["ended"] == "certified":
        proof = f"{model['gap']:.2g}: no such model has an objective that is smaller by more"
    lines = [
        model["title"],
        f"objective    {model['objective']:.10g}",
        f"proven gap   {proof}",
        f"ended        {model['ended']}, {counted(model['iterations'], 'iteration')}, "
        f"{model['seconds']:.2g} s",
    ]
    for function in model["models"]:
        target = f"prediction of {model['target']}"
        if function["of"] is not None:
            target = f"score of {model['target']} = {function['of']}"
        terms = function["terms"]
        used = [term for term in terms if term["coefficient"]]
        used.sort(key=lambda term: -abs(term["standardized"]))
        intercept = {"column": "(intercept)", "coefficient": function["intercept"]}
        table = pd.DataFrame([intercept, *used], columns=PRINTED_COLUMNS)
        lines += [
            "",
            f"{target}: the sum of coefficient x column, in the units of the file",
            table.to_string(index=False, na_rep="", float_format="{:.6g}".format),
            f"{counted(len(terms) - len(used), 'other coefficient')} = 0",
        ]
    return "\n".join(lines)
