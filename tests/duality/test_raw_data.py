"""Certificates on raw data: the bound does not depend on the units of a column."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from adagrad_diff import (
    L1,
    LAD,
    ElasticNet,
    Hinge,
    Huber,
    Logistic,
    Quantile,
    Squared,
    duality_gap,
    minimize,
)
from adagrad_diff.penalties import Zero
from pairwise import pairwise


def table(kind, samples=120, features=8, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((samples, features)) + rng.uniform(0, 2, features)
    y = A @ rng.standard_normal(features) + rng.standard_normal(samples)
    return A, np.where(y > np.median(y), 1.0, -1.0) if kind in (Hinge, Logistic) else y


@pairwise(
    kind=[LAD, Quantile, Hinge, Squared, Logistic, Huber],
    make=[
        lambda units: L1(0.02 * units),
        lambda units: ElasticNet(0.02 * units, 1e-3 * units**2),
        lambda units: Zero(),
    ],
)
def test_units_do_not_matter(kind, make):
    A, b = table(kind)
    units = 2.0 ** np.array([-20, -7, -1, 0, 3, 9, 15, 20])
    x = np.linspace(-0.3, 0.4, 9)
    one = duality_gap(kind(A, b, intercept=True), make(np.ones(8)), x)
    other = duality_gap(kind(A * units, b, intercept=True), make(units), x / np.append(units, 1.0))
    assert other.fun == pytest.approx(one.fun, rel=1e-12)
    assert other.bound == pytest.approx(one.bound, rel=1e-9, abs=1e-9)
    runs = [
        minimize(
            kind(A * scale, b, intercept=True),
            penalty=make(scale),
            stop="gap",
            tol=1e-4,
            on_failure="ignore",
        )
        for scale in (np.ones(8), units)
    ]
    for run in runs:  # trajectories differ, because the eps of the rule has the units of a gradient
        assert run.gap <= 3e-4 * run.fun
        assert run.bound == pytest.approx(runs[0].bound, rel=1e-4)


@pairwise(kind=[LAD, Hinge, Squared, Logistic], lam=[1e-2, 0.0])
def test_one_strength_for_raw_columns(kind, lam):
    """Scaling a dual point into the dual set, instead of moving it, would cost 10 to 100 percent."""
    A, b = table(kind, 200, 12)
    A = (A * 10.0 ** np.linspace(-3, 4, 12)).astype(np.float64)
    loss, penalty = kind(A, b, intercept=True), L1(lam) if lam else Zero()
    run = minimize(loss, penalty=penalty, stop="gap", tol=1e-4, on_failure="ignore")
    assert run.gap <= 1e-3 * run.fun
    assert duality_gap(loss, penalty, run.x).relative <= 5e-3
    sparse = duality_gap(kind(csr_array(A), b, intercept=True), penalty, run.x)
    assert sparse.relative <= 5e-3
