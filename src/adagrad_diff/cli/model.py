"""A fitted model with its proof, as a plain dict, as text for people and as a file."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .._check import InputError
from .._files import read_text, reason, write
from .._messages import counted, require
from .._version import __version__
from .group import one_line
from .problem import Problem

MODEL_FORMAT = "adagrad-diff model 1"
ENDINGS = {
    "stalled": "its objective hardly improves any more",
    "max_iter": "its iterations are used up",
    "no_minimizer": "there is no best one, as nothing limits the coefficients of classes that can be separated",
    "failed": "a number was not finite, and the best model before that was kept",
}


def fitted(problem: Problem, tol: float, max_iter: int) -> dict[str, Any]:
    """The model as a plain dict."""
    from ..sklearn import LinearClassifier, LinearRegressor  # first: it says what to install

    ConvergenceWarning = require("sklearn.exceptions", "paper").ConvergenceWarning
    kind = LinearClassifier if problem.task.loss.of_classes else LinearRegressor
    plain = problem.penalty.name == "nonnegative"
    estimator = kind(
        loss=problem.task.loss.make,
        penalty=problem.penalty_object() if plain else problem.penalty.name,
        alpha=1.0 if plain else problem.alpha,
        l1_ratio=problem.penalty.l1_ratio,
        groups=problem.groups if problem.penalty.name == "group" else None,
        fit_intercept=problem.intercept,
        tol=tol,
        max_iter=max_iter,
    )
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is part of the answer
        estimator.fit(problem.table.A, problem.task.b)
    seconds = time.perf_counter() - begin
    coefficients, intercepts = np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_)
    objective, gap = float(estimator.objective_), float(estimator.dual_gap_)
    proven = gap < abs(objective) or (objective == 0 and gap == 0)
    return {
        "format": MODEL_FORMAT,
        "version": __version__,
        "title": problem.title,
        "about": problem.about,
        "target": problem.table.target,
        "classes": problem.task.classes,
        "loss": problem.task.loss.name,
        "penalty": problem.penalty.name,
        "alpha": problem.alpha,
        "objective": objective,
        "gap": gap if np.isfinite(gap) else None,
        "relative_gap": gap / abs(objective) if proven and objective else (0.0 if proven else None),
        "ended": estimator.stop_reason_,
        "converged": bool(estimator.converged_),
        "iterations": int(estimator.n_iter_),
        "seconds": round(seconds, 3),
        "models": _models(problem, coefficients, intercepts),
    }


def _models(
    problem: Problem, coefficients: np.ndarray, intercepts: np.ndarray
) -> list[dict[str, Any]]:
    """One linear function per class, or one in all: of the columns as they are in the file."""
    features = problem.table.features
    shift, scale = np.array([f.shift for f in features]), np.array([f.scale for f in features])
    standard = bool(shift.any() or (scale != 1.0).any())
    found = []
    for k, (row, c) in enumerate(zip(coefficients.astype(np.float64), intercepts, strict=True)):
        raw = row / scale
        terms = []
        for feature, slope, own in zip(features, raw.tolist(), row.tolist(), strict=True):
            term: dict[str, Any] = {"column": feature.column}
            if feature.category is not None:
                term["category"] = feature.category
            term["coefficient"] = slope
            if standard and feature.category is None:
                term["standardized"] = own
            terms.append(term)
        name = (
            None
            if not problem.task.classes
            else problem.task.classes[k if len(coefficients) > 1 else 1]
        )
        found.append({"of": name, "intercept": float(c - raw @ shift), "terms": terms})
    return found


def to_text(model: dict[str, Any]) -> str:
    """The model for people: what it is, its proof, and its coefficients, the largest first."""
    if model["relative_gap"] is None and model["ended"] == "certified":
        proof = f"{model['gap']:.2g}: the objective is zero, as far as that can be told"
    elif model["relative_gap"] is not None:
        sizes = f"{model['gap']:.2g} (relative {model['relative_gap']:.1e})"
        proof = f"{sizes}: no such model has an objective that is smaller by more"
    else:
        proof = "nothing is proven"
    lines = [
        model["title"],
        f"objective    {model['objective']:.10g}",
        f"proven gap   {proof}",
        f"ended        {model['ended']} after {counted(model['iterations'], 'iteration')}, {model['seconds']:.2g} s",
    ]
    for part in model["models"]:
        lines += ["", *_coefficients(part, model["target"])]
    return "\n".join(map(one_line, lines))


def _coefficients(part: dict[str, Any], target: str) -> list[str]:
    used = [term for term in part["terms"] if term["coefficient"]]
    used.sort(key=lambda term: -abs(term.get("standardized", term["coefficient"])))
    head = (
        f"score of {target} = {part['of']}" if part["of"] is not None else f"prediction of {target}"
    )
    lines = [
        f"{head}: the intercept, and each column times its coefficient",
        f"{part['intercept']:>14.6g}  (intercept)",
    ]
    for term in used:
        name = term["column"] + (f"={term['category']}" if "category" in term else "")
        note = (
            f"   ({term['standardized']:.4g} per standard deviation)"
            if "standardized" in term
            else ""
        )
        lines.append(f"{term['coefficient']:>14.6g}  {name}{note}")
    zeros = len(part["terms"]) - len(used)
    return [*lines, f"{'0':>14}  {zeros} more"] if zeros else lines


def shortfall(model: dict[str, Any], tol: float) -> str:
    """What is not proven, why, and what to do."""
    return (
        f"The model is not proven to be within --tol {tol:g} of the best: {ENDINGS[model['ended']]}. Try --standardize, "
        "a larger --alpha, more iterations (--max-iter), or a larger --tol if such an answer is good enough."
    )


def to_json(model: dict[str, Any]) -> str:
    """The model for machines."""
    return json.dumps(model, indent=1, ensure_ascii=False, allow_nan=False)


def save(path: Path, model: dict[str, Any]) -> None:
    """Write it, whole or not at all."""
    try:
        write(path, lambda file: file.write((to_json(model) + "\n").encode()))
    except OSError as error:
        raise OSError(f"The model cannot be written to {str(path)!r}: {reason(error)}.") from error


def refuse_foreign(path: Path) -> None:
    """A model takes the place of a model, and of nothing else."""
    if not path.exists():
        return
    try:
        ours = json.loads(read_text(path)).get("format") == MODEL_FORMAT
    except (OSError, ValueError, AttributeError, RecursionError):
        ours = False
    if not ours:
        raise InputError(
            f"--out names {str(path)!r}, which is there already and is no model: choose another name."
        )
