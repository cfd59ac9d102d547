"""Time to a proven relative gap beside exact solvers, each in the strongest form known, which need not prove theirs.

Losses with kinks have an intercept. HiGHS solves the dual form (the primal form took 5 times as long at 5000 x 200, SciPy's
linprog 1.5 times): interior point with crossover and without, and simplex. Frisch-Newton is quantreg's Fortran from pinball-qr,
with the L1 norm as in R's rq.fit.lasso, and with Portnoy and Koenker's preprocessing where it leaves out half of the samples at
least. The L1 strengths of logistic problems are shares of the smallest one at which all coefficients are zero.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from adagrad_diff import datasets

from . import _kinked_peers as kinked
from . import _smooth_peers as smooth
from ._contest import Peer, contest
from ._timing import Row, optional

DATA = os.environ.get("DATA", "../shared/data")
GAPS = (1e-4, 1e-9)
SLOW = 10.0  # seconds that a peer may take, if it can be told


def regression(samples: int, features: int, true: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian columns, some true coefficients, errors with heavy tails."""
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((samples, features)), np.zeros(features)
    w[rng.choice(features, true, replace=False)] = rng.standard_normal(true)
    return A, A @ w + rng.standard_t(3, samples)


def linear_programs(
    must: float | None = 1 / 3, others: float | None = 1.0, **more: Peer
) -> dict[str, Peer]:
    """HiGHS in three forms, and Frisch-Newton."""

    def highs(solver: str, crossover: str) -> Any:
        return lambda problem, tol, limit: kinked.highs_dual(problem, solver, crossover, tol, limit)

    peers = {}
    if optional("highspy"):
        peers["HiGHS, ipm"] = Peer(highs("ipm", "choose"), (1e-8,), must)
        peers["HiGHS, ipm, no crossover"] = Peer(highs("ipm", "off"), (1e-3, 1e-6, 1e-9), must)
        peers["HiGHS, simplex"] = Peer(highs("simplex", "off"), (1e-8,), must)
    if optional("pinball"):
        peers = {
            "Frisch-Newton": Peer(kinked.frisch_newton, (1e-1, 1e-2, 1e-4, 1e-6, 1e-9), others)
        } | peers
    return peers | more


def of_shape(samples: int, features: int, true: int, **more: Peer) -> Iterator[Row]:
    """Absolute errors with alpha = 0.02, and the quantile 0.8 with 0.01."""
    from adagrad_diff.sklearn import LADRegressor, QuantileRegressor

    A, b = regression(samples, features, true)
    peers = linear_programs(**more)
    if "Frisch-Newton" in peers and np.sqrt(features + 1) * samples ** (2 / 3) < samples / 2:
        peers["Frisch-Newton, preprocessed"] = Peer(
            kinked.preprocessed, (1e-2, 1e-4, 1e-6, 1e-9), 1.0
        )
    name = f"{samples} x {features}, {true} true"
    yield from contest(
        f"LAD {name}",
        kinked.absolute(A, b, 0.02),
        lambda gap: LADRegressor(alpha=0.02, tol=gap).fit(A, b),
        peers,
        GAPS,
        SLOW,
        brief=GAPS[:1],
    )
    yield from contest(
        f"quantile 0.8 {name}",
        kinked.quantile(A, b, 0.8, 0.01),
        lambda gap: QuantileRegressor(quantile=0.8, alpha=0.01, tol=gap).fit(A, b),
        peers,
        GAPS,
        SLOW,
        brief=GAPS[:1],
    )


def few_true() -> Iterator[Row]:
    more = {}
    if optional("clarabel"):
        more["Clarabel"] = Peer(kinked.clarabel_dual, (1e-5, 1e-8, 1e-10), 1.0)
    if optional("statsmodels"):
        more["statsmodels"] = Peer(kinked.statsmodels_irls, (1e-2, 1e-4, 1e-6), 1.0)
    yield from of_shape(5000, 200, 20, **more)


def all_true() -> Iterator[Row]:
    yield from of_shape(5000, 200, 200)


def large() -> Iterator[Row]:
    yield from of_shape(20000, 500, 20)


def tall() -> Iterator[Row]:
    yield from of_shape(100000, 50, 20)


def wide() -> Iterator[Row]:
    yield from of_shape(2000, 1000, 20)


def hinge() -> Iterator[Row]:
    """Signs of the first problem, alpha = 0.01."""
    from adagrad_diff.sklearn import SparseSVC

    A, b = regression(5000, 200, 20)
    b = np.where(b > 0, 1.0, -1.0)
    more = (
        {"Clarabel": Peer(kinked.clarabel_dual, (1e-5, 1e-8, 1e-10))}
        if optional("clarabel")
        else {}
    )
    yield from contest(
        "hinge + L1 5000 x 200",
        kinked.hinge(A, b, 0.01),
        lambda gap: SparseSVC(alpha=0.01, tol=gap).fit(A, b),
        linear_programs(1 / 5, None, **more),
        GAPS,
        SLOW,
        brief=GAPS[:1],
    )


def labelled(name: str) -> tuple[str, Any, np.ndarray]:
    data = datasets.load(name, DATA if os.path.isdir(DATA) else None, stand_in=True)
    return data.name, data.A, np.where(data.b <= 10, 1.0, -1.0) if name == "news20" else data.b


def l1_logistic() -> Iterator[Row]:
    """Without an intercept."""
    from adagrad_diff.sklearn import LogisticRegression

    limits = {"must": 2.0, "aim": 1.0}
    peers = {
        "liblinear": smooth.logistic("liblinear", **limits),
        "saga": smooth.logistic("saga", most=500, **limits),
    }
    if optional("skglm"):
        peers["skglm"] = smooth.skglm_logistic(**limits)
    if optional("celer"):
        peers["celer"] = smooth.celer_logistic(**limits)
    for key in ("a9a", "news20"):
        name, A, b = labelled(key)
        critical = float(np.abs(A.T @ b).max() / (2 * len(b)))
        for share in (0.1, 0.01):
            problem = smooth.Smooth(A, b, "logistic", l1=share * critical, intercept=False)
            yield from contest(
                f"logistic + L1 ({share:g}) {name}",
                problem,
                lambda gap: LogisticRegression(
                    "l1", alpha=problem.l1, fit_intercept=False, tol=gap
                ).fit(A, b),
                peers,
                (1e-6,),
                SLOW,
            )


def l2_logistic() -> Iterator[Row]:
    """Without an intercept, alpha = 1e-4 (C = 0.63). (liblinear's dual method took 74 s: these are raw counts.)"""
    from adagrad_diff.sklearn import LogisticRegression

    limits = {"must": 2.0, "aim": 1.0}
    name, A, b = labelled("news20")
    peers = {
        solver: smooth.logistic(solver, **limits) for solver in ("liblinear", "newton-cg", "lbfgs")
    }
    yield from contest(
        f"logistic + L2 {name}",
        smooth.Smooth(A, b, "logistic", l2=1e-4, intercept=False),
        lambda gap: LogisticRegression("l2", alpha=1e-4, fit_intercept=False, tol=gap).fit(A, b),
        peers,
        (1e-8,),
        SLOW,
    )


CASES = [few_true, all_true, large, tall, wide, hinge, l1_logistic, l2_logistic]
