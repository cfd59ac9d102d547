"""A comparison as plain data: what the report page shows, and what goes into JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from .._version import __version__
from ._about import about_problem, python_lines
from .style import style_of

if TYPE_CHECKING:
    from .result import Sensitivity

PAGE_DIGITS = 6  # significant ones: a page need not have more


def content(found: Sensitivity, title: Any, about: Any, command: Any) -> dict[str, Any]:
    """The dict of `Sensitivity.content`. Numbers are finite or None."""
    data = found.data
    free = dict(zip(found.rules, data.free.values.tolist(), strict=True))
    published = dict(zip(found.rules, data.published.values.tolist(), strict=True))
    etas = [float(f"{eta:.10g}") for eta in found.etas]  # 0.01 and not 0.010000000000000002
    known = (
        about_problem(found.loss, found.penalty)
        if about is None
        else [[str(label), str(text)] for label, text in about]
    )
    whole = {
        "F(0) - F_star": "objective at zero - optimum",
        "F(start) - F_star": "objective at the starts - optimum",
    }
    unit = (
        ""
        if found.unit == "1"
        else f", divided by {whole.get(found.unit, found.unit)} = {found.scale:.4g}"
    )
    known.append(["Gaps", f"objective - optimum{unit}"])
    gaps = {name: found.gap(name).values for name in ("last", "best", "average")}
    curves, steps = found.curve().values, data.mean_step.values
    failed = ~np.isfinite(gaps["last"])
    runs = []
    for row, rule in enumerate(found.rules):
        for column in range(1 if free[rule] else len(etas)):
            curve = curves[row, column]  # (seed, iteration)
            runs.append(
                {
                    "rule": rule,
                    "eta": None if free[rule] else etas[column],
                    **{name: numbers(values[row, column]) for name, values in gaps.items()},
                    "failed": bool(failed[row, column].any()),
                    "curve": {
                        "median": numbers(np.median(curve, axis=0)),
                        "low": numbers(curve.min(axis=0)),
                        "high": numbers(curve.max(axis=0)),
                    },
                    "step": numbers(_mean_known(steps[row, column])),
                }
            )
    return {
        "title": title
        or f"How much does the step size matter? {type(found.loss).__name__}, {found.penalty.name}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "command": python_lines(found) if command is None else [str(line) for line in command],
        "about": known,
        "gap_name": found.gap_name,
        "n_iter": found.n_iter,
        "iterations": data.iteration.values.tolist(),
        "f_star": {
            "value": found.f_star.value,
            "how": found.f_star.how,
            "sentence": found.f_star.sentence,
        },
        "starts": data.sizes["seed"],
        "etas": etas,
        "rules": [
            {
                "name": rule,
                "free": free[rule],
                "published": published[rule] if np.isfinite(published[rule]) else None,
                **style_of(rule),
            }
            for rule in found.rules
        ],
        "runs": runs,
        "scores": [_rounded(score, etas, found.etas) for score in found.scores],
        "verdict": found.verdict,
    }


def numbers(values: np.ndarray) -> list[float | None]:
    """Finite numbers of a few digits, or None."""
    return [
        float(f"{value:.{PAGE_DIGITS}g}") if np.isfinite(value) else None
        for value in values.tolist()
    ]


def _mean_known(steps: np.ndarray) -> np.ndarray:
    """The mean over the seeds whose step is known, by iteration."""
    known = np.isfinite(steps)
    count = known.sum(axis=0)
    with np.errstate(all="ignore"):
        return np.where(
            count > 0, np.where(known, steps, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan
        )


def _rounded(score: Any, etas: list[float], exact: np.ndarray) -> dict[str, Any]:
    """A score whose best eta is one of the list."""
    best = score["best_eta"]
    return {
        **score,
        "best_eta": None if best is None else etas[int(np.argmin(np.abs(exact - best)))],
    }
