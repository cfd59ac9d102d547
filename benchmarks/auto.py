"""eta="auto" beside the best of 60 constant etas after the same number of iterations: gaps relative to F_star, and times."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from adagrad_diff import (
    L1,
    LAD,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
    datasets,
    minimize,
)
from adagrad_diff.experiments.paper import PROBLEMS

from ._timing import Row, optional, race

DATA = os.environ.get("DATA", "../shared/data")
ETAS = np.geomspace(1e-5, 1e3, 60)
TINY = (
    1e-6  # relative gaps of the grid below this count as this: then ten times as much is below 1e-5
)
BINARY = (Logistic, Hinge, SquaredHinge)


def paper() -> Iterator[tuple[str, Any, Any, Any, int]]:
    """The five problems from the paper's first start: name, loss, penalty, x0, iterations."""
    for name, make in PROBLEMS.items():
        options = {"data": DATA, "stand_in": True} if name in ("news20", "splice") else {}
        problem = make(starts=1, **options)
        iterations = 150 if name == "news20" else problem.n_iter
        yield (
            f"paper: {name}{'' if problem.real else ' (stand-in)'}",
            problem.loss,
            problem.penalty,
            problem.x0s[:, 0],
            iterations,
        )


def real() -> Iterator[tuple[str, Any, Any, Any, int]]:
    """Real data, every loss, an intercept, from zero; two sets as they are and with columns of variance one."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    for name in ("a9a", "mushrooms", "splice"):
        data = datasets.load(name, DATA if os.path.isdir(DATA) else None, stand_in=True)
        b = np.where(data.b == data.b.max(), 1.0, -1.0)
        for kind in BINARY:
            yield f"{name}: {kind.__name__}", kind(data.A, b, intercept=True), L1(1e-3), None, 500
    A, y = load_breast_cancer(return_X_y=True)
    for how, X in (("raw", A), ("scaled", (A - A.mean(0)) / A.std(0))):
        for kind in BINARY:
            loss = kind(X, np.where(y > 0, 1.0, -1.0), intercept=True)
            yield f"breast_cancer {how}: {kind.__name__}", loss, L1(1e-2), None, 1000
        yield (
            f"breast_cancer {how}: Multinomial",
            Multinomial(X, y, intercept=True),
            L1(1e-2),
            None,
            1000,
        )
    A, y = load_diabetes(return_X_y=True, scaled=False)
    for how, X in (("raw", A), ("scaled", (A - A.mean(0)) / A.std(0))):
        for kind in (LAD, Quantile, Squared, Huber, Poisson):
            loss = kind(X, y / 50 if kind is Poisson else y, intercept=True)
            yield (
                f"diabetes {how}: {kind.__name__}",
                loss,
                L1(1e-2 if kind is Poisson else 1e-1),
                None,
                1000,
            )


def table(problems: Iterator[tuple[str, Any, Any, Any, int]]) -> Iterator[Row]:
    ratios, times, total = [], [], np.zeros(2)
    for name, loss, penalty, x0, n in problems:
        auto = minimize(loss, x0, penalty, max_iter=n, history=0)
        options: dict[str, Any] = {"max_iter": n, "history": 0, "on_failure": "ignore"}
        grid = np.concatenate(
            [
                minimize(loss, x0, penalty, eta=part, **options).fun_best
                for part in np.split(ETAS, 6)
            ]
        )
        long = minimize(
            loss, x0, penalty, max_iter=10 * n, tol=1e-10, history=0, on_failure="ignore"
        ).fun
        star = min(long, auto.fun, np.nanmin(grid))
        unit = abs(star)
        row = Row(
            name,
            (auto.fun - star) / unit,
            "best of 60 etas",
            max((np.nanmin(grid) - star) / unit, TINY),
            must=10,
            unit="",
        )
        ratios.append(row.ours / row.theirs)
        yield row
        one = float(ETAS[np.nanargmin(grid)])
        if n >= 500:
            took = race(
                phases=2,
                auto=lambda: minimize(loss, x0, penalty, max_iter=n, history=0),
                one=lambda: minimize(
                    loss, x0, penalty, eta=one, max_iter=n, history=0, on_failure="ignore"
                ),
            )
            times.append(took["auto"] / took["one"])
            total += took["auto"], took["one"]
            yield Row("  its time", took["auto"], "one run with that eta", took["one"])
    yield Row("median of the ratios of gaps", float(np.median(ratios)), "", 1.0, must=2, unit="")
    yield Row("time of all", float(total[0]), "one run each", float(total[1]), must=3)
    yield Row("median of the ratios of times", float(np.median(times)), "", 1.0, unit="")
    yield Row("largest ratio of times", max(times), "", 1.0, unit="")


def papers_problems() -> Iterator[Row]:
    if optional("sklearn"):
        yield from table(paper())


def real_data() -> Iterator[Row]:
    if optional("sklearn"):
        yield from table(real())


CASES = [papers_problems, real_data]
