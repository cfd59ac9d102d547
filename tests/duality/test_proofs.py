"""Certificates of exact answers: as sharp as double precision is, on raw, dependent and bounded columns."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.sparse import csr_array

import certifying
import rational
from adagrad_diff import (
    L1,
    LAD,
    Box,
    ElasticNet,
    GroupL2,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    NonNegative,
    Poisson,
    Quantile,
    Ridge,
    Squared,
    SquaredHinge,
    polish,
)
from adagrad_diff.penalties import SparseGroupL2, Unpenalised, Zero
from exact_pairs import by_highs, by_newton, by_newton_classes
from loss_zoo import named
from own_sources import Stored
from pairwise import pairwise


def data(kind, seed, samples, features, spread=0.0, mean=0.0, integer=False):
    """Return columns of sizes 10^-spread to 10^spread, not centered, and targets that they explain in part."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((samples, features)) + mean * rng.standard_normal(features)
    A = np.round(A) if integer else A
    sizes = 10.0 ** rng.uniform(-spread, spread, features)
    z = A @ rng.standard_normal(features) / max(1.0, np.sqrt(features))
    y = z - z.mean() + 0.7 * rng.standard_normal(samples)
    y = np.round(y) if integer else y
    if kind in (Hinge, SquaredHinge, Logistic):
        return A * sizes, np.where(y > 0, 1.0, -1.0)
    return A * sizes, rng.poisson(np.exp(np.clip(y, -3, 2))).astype(float) if kind is Poisson else y


PENALTIES = [L1(0.02), Zero(), ElasticNet(1e-3, 1e-3), Ridge(1e-2)]
SMOOTH = [Squared, Huber, SquaredHinge, Logistic, Poisson]


@pairwise(
    kind=[*SMOOTH, Multinomial],
    penalty=PENALTIES,
    intercept=[False, True],
    form=[np.asarray, csr_array, Stored],
)
def test_smooth_losses_in_extended_precision(kind, penalty, intercept, form):
    """The answer is that of Newton's method on its support, and the gap is a few units in the last place."""
    A, y = data(kind, 3, 60, 4, 0.5, mean=1.0)
    classes = kind is Multinomial
    loss = kind(form(A), np.digitize(y, [-0.4, 0.4]) if classes else y, intercept=intercept)
    result = polish(loss, penalty, np.zeros(loss.shape), tol=1e-12)
    assert result.success, result.message
    assert result.gap <= 1e-12 * abs(result.fun)
    assert certifying.check(
        loss, penalty, result.x, result.fun, result.bound, result.gap, result.dual_point
    ) or (isinstance(penalty, Zero))
    strengths = [float(np.ravel(getattr(penalty, name, 0.0))[0]) for name in ("l1", "l2")]
    x, _ = (by_newton_classes if classes else by_newton)(loss, result.x, *strengths)
    if not (classes and isinstance(penalty, Zero)):  # whose minimizer is not unique
        np.testing.assert_allclose(result.x, x, rtol=1e-7, atol=1e-7 * np.abs(x).max())


@pairwise(kind=[LAD, Quantile, Hinge], lam=[1e-2, 1e-4, 0.0])
def test_raw_columns(kind, lam):
    """Columns have sizes from 1e-3 to 1e4 and means that are not zero, and there is an intercept."""
    A, b = data(kind, 1, 200, 8, 3.5, mean=3.0)
    loss, penalty = kind(A, b, intercept=True), L1(lam) if lam else Zero()
    x, _ = by_highs(loss, lam)
    result = polish(loss, penalty, x, tol=1e-11)
    assert result.gap <= 1e-11 * result.fun
    assert result.fun == pytest.approx(loss.value_and_grad(x)[0] + penalty.value(x[:-1]), rel=1e-9)
    true = rational.objective(loss, penalty, result.x)
    best = (
        true
        if kind is Hinge
        else min(true, rational.objective(loss, penalty, rational.vertex(loss, result.x)))
    )
    assert Fraction(result.bound) <= best
    assert abs(Fraction(result.fun) - true) <= Fraction(1e-12) * true


@pytest.mark.parametrize("kind", [LAD, Hinge, Squared, Logistic, Poisson], ids=named)
def test_dependent_columns_without_a_penalty(kind):
    """One-hot columns sum to the column of the intercept, and some columns are multiples of others."""
    rng = np.random.default_rng(0)
    A, b = data(kind, 4, 120, 3)
    A = np.column_stack(
        [np.eye(4)[rng.integers(0, 4, 120)], A, A[:, 1], -2.0 * A[:, 2], np.zeros(120)]
    )
    loss = kind(A, b, intercept=True)
    result = polish(loss, None, np.zeros(A.shape[1] + 1))
    assert result.success, result.message
    x, _ = (
        by_highs(loss, 0.0) if kind in (LAD, Hinge) else by_newton(loss, np.zeros(A.shape[1] + 1))
    )
    assert result.fun == pytest.approx(loss.value_and_grad(x)[0], rel=1e-8)
    # With one more column, that is almost dependent on others, the optimum can only be smaller.
    nearly = np.column_stack([A, A[:, 4] + 1e-9 * rng.standard_normal(120)])
    bound = polish(kind(nearly, b, intercept=True), None, np.zeros(A.shape[1] + 2), tol=1e-14).bound
    assert bound <= result.fun + 1e-12 * abs(result.fun)


@pairwise(intercept=[False, True], bounded=[False, True])
def test_boxes(intercept, bounded):
    sizes = np.array([1e-3, 1.0, 16.0, 1e4])
    A, b = data(Squared, 5, 80, 4, mean=1.0)
    A, end = A * sizes, 0.25
    full = np.column_stack([A / sizes, np.ones(80)])[:, : 4 + intercept]
    low, high = (
        np.append(np.full(4, value), side)[: 4 + intercept]
        for value, side in ((-end * bounded, -np.inf), (end if bounded else np.inf, np.inf))
    )
    y = lsq_linear(full, b, (low, high), method="bvls", tol=1e-15).x
    loss = Squared(A, b, intercept=intercept)
    result = polish(
        loss,
        Box(-end / sizes, end / sizes) if bounded else NonNegative(),
        np.zeros(y.size),
        tol=1e-12,
    )
    assert result.gap <= 1e-12 * result.fun
    assert Fraction(result.bound) <= rational.objective(loss, None, result.x)
    np.testing.assert_allclose(result.x * np.append(sizes, 1.0)[: y.size], y, atol=1e-7)


@pairwise(
    penalty=[
        GroupL2(0.2, [0, 0, 1, 1]),
        SparseGroupL2(0.05, 0.05, [0, 0, 1, 1]),
        Unpenalised(L1(0.1), free=0),
        GroupL2(1.0, [0, 1, 1, 2], [0, 0.1, 1]),
    ],
    l2=[0.0, 0.01],
)
def test_groups_and_free_coordinates(penalty, l2):
    A, b = data(Squared, 6, 50, 4)
    loss, x = Squared(A, b, intercept=True, l2=l2), np.zeros(5)
    step = 1.0 / loss.lipschitz()
    for _ in range(500):  # proximal gradient steps, because the problem is well conditioned
        x -= step * loss.value_and_grad(x)[1]
        x[:4] = penalty.prox(x[:4], step)
    result = polish(loss, penalty, np.zeros(5), tol=1e-12)
    assert result.gap <= 1e-12 * result.fun
    assert result.bound <= loss.value_and_grad(x)[0] + penalty.value(x[:4]) + 1e-15
    np.testing.assert_allclose(result.x, x, atol=1e-6)
