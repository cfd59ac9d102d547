"""Objective, bound and gap belong to exactly the point that is returned, and success means that the tolerance was reached."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import adagrad_diff.sklearn as estimators
from adagrad_diff import (
    L1,
    LAD,
    Box,
    ConvergenceWarning,
    Hinge,
    Huber,
    L2Ball,
    Logistic,
    Multinomial,
    NonNegative,
    Poisson,
    Quantile,
    Ridge,
    Simplex,
    Squared,
    SquaredHinge,
    Status,
    Zero,
    duality_gap,
    minimize,
    polish,
)
from adagrad_diff.duality import dual_of
from adagrad_diff.duality import objective as objective_and_error
from adagrad_diff.losses import KernelSVMDual, LinearModel, Quadratic
from certifying import objective
from pairwise import pairwise

LONG = np.longdouble
MARGIN = (Hinge, SquaredHinge, Logistic)
PENALTIES = {
    "L1": L1(0.05),
    "Ridge": Ridge(0.1),
    "Zero": Zero(),
    "Box": Box(-0.4, 0.3),
    "Simplex": Simplex(0.7),
}


def table(seed, kind, dtype, offset=0.0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 3)).astype(dtype)
    z = A @ rng.standard_normal(3) + 0.3 * rng.standard_normal(60)
    if kind in MARGIN:
        return A, np.where(z > 0, 1.0, -1.0).astype(dtype)
    if kind is Poisson:
        return A, rng.poisson(np.exp(np.clip(z, -2, 2))).astype(dtype)
    return (A, rng.integers(0, 3, 60)) if kind is Multinomial else (A, (offset + z).astype(dtype))


@pairwise(
    kind=[LAD, Quantile, Squared, Huber, *MARGIN, Poisson, Multinomial],
    penalty=list(PENALTIES),
    dtype=[np.float32, np.float64],
    intercept=[False, True],
    way=["auto", "given eta", "no polishing", "polish", "a point", "minibatches"],
    tol=[1e-4, 1e-10],
)
def test_the_objective_and_the_gap_are_those_of_x(kind, penalty, dtype, intercept, way, tol):
    if kind is Multinomial and penalty == "Simplex":
        penalty = "Box"  # the simplex is for one vector
    phi, (A, b) = PENALTIES[penalty], table(7, kind, dtype, offset=300.0 if intercept else 0.0)
    loss = kind(A, b, intercept=intercept)
    x0 = np.zeros(loss.shape, dtype)
    if penalty == "Simplex":
        x0[:3] = np.array([0.7, 0, 0], dtype)
    options = {"tol": tol, "stop": "gap", "on_failure": "ignore", "max_iter": 300}
    if way == "polish":
        result = polish(loss, phi, x0, tol=tol)
    elif way == "a point":
        x = minimize(loss, x0, phi, eta=0.5, blocks="all", max_iter=50).x
        result = duality_gap(loss, phi, x)
        assert result.fun == pytest.approx(float(objective(loss, phi, x)), rel=1e-13, abs=1e-300)
        return
    else:
        options |= {
            "given eta": {"eta": 0.5, "blocks": "all"},
            "no polishing": {"finish": False},
        }.get(way, {})
        result = minimize(loss, x0, phi, **options)
    exact = objective(loss, phi, result.x)
    assert result.fun == pytest.approx(float(exact), rel=1e-13, abs=1e-300)
    if np.isfinite(result.gap):
        assert result.gap == result.fun - result.bound
        assert result.gap >= 0
    same = kind(A.astype(float), b, intercept=intercept, sample_weight=loss.weight)
    least = objective(loss, phi, minimize(same, penalty=phi, tol=1e-12, on_failure="ignore").x)
    assert result.gap >= exact - least - LONG(1e-15) * abs(exact)
    if result.success:
        assert exact - least <= tol * max(abs(exact), 1e-6 * objective(loss, phi, 0 * result.x)) * (
            1 + 1e-9
        )


@pairwise(
    kind=[LAD, Squared, Hinge, Logistic, Poisson, Multinomial],
    dtype=[np.float32, np.float64],
    intercept=[False, True],
)
def test_sums_of_doubles_are_as_exact_as_they_are_said_to_be(kind, dtype, intercept):
    """Large data are summed up in doubles where the tolerance is loose, and in pairs of doubles where it is not."""
    rng = np.random.default_rng(4)
    A = (rng.standard_normal((1100, 500)) * 10.0 ** rng.uniform(-2, 2, 500)).astype(dtype)
    x = rng.standard_normal(500) / 10.0 ** rng.uniform(1, 4, 500)
    b = {
        Hinge: np.sign,
        Logistic: np.sign,
        Poisson: lambda t: rng.poisson(1.0, len(t)),
        Multinomial: lambda t: t > 0,
    }
    loss = kind(
        A,
        b.get(kind, lambda t: t)(A[:, 0]).astype(int if kind is Multinomial else dtype),
        intercept=intercept,
    )
    x = np.resize(np.append(x, 0.3), loss.shape).astype(dtype) / 10
    dual = dual_of(loss, L1(0.01))
    exact, fast = objective_and_error(dual, x), objective_and_error(dual, x, accuracy=1e-3)
    assert exact.error < fast.error < 1e-6 * abs(fast.value)
    assert abs(fast.value - exact.value) <= fast.error + exact.error


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_targets_far_from_zero_in_single_precision(offset):
    certified = 0
    for seed in range(12):
        A, b = table(seed, LAD, np.float32, offset)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            model = estimators.LADRegressor(alpha=0.05, tol=1e-6).fit(A, b)
        x = np.append(model.coef_, model.intercept_)
        loss = LAD(A.astype(float), b.astype(float), intercept=True)
        best = minimize(loss, penalty=L1(0.05), tol=1e-12, on_failure="ignore")
        excess = float(objective(loss, PENALTIES["L1"], x)) - best.bound
        assert (
            model.dual_gap_ >= excess * (1 - 1e-6) - 2e-7 * model.objective_
        )  # weights are rounded to single precision
        assert not model.converged_ or excess <= 1.3e-6 * model.objective_
        certified += model.converged_
    assert certified < 12  # there are points in single precision that are not that good


def test_targets_very_far_from_zero_in_double_precision():
    for seed in range(12):
        A, b = table(seed, LAD, np.float64, 1e8)
        loss = LAD(A, b, intercept=True)
        result = minimize(loss, penalty=L1(0.05), tol=1e-9, on_failure="ignore")
        best = minimize(LAD(A, b - 1e8, intercept=True), penalty=L1(0.05), tol=1e-12).fun
        excess = float(objective(loss, PENALTIES["L1"], result.x)) - best
        assert result.gap >= excess - 5e-12  # extended precision has 1e-11 at targets of 1e8
        assert not result.success or excess <= 1e-9 * result.fun + 5e-12


def test_nothing_is_lost_where_the_residuals_vanish():
    """The optimum is zero, and the objective is that of squares of rounding errors."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal((3, 5)), rng.standard_normal(3)
        result = minimize(Squared(A, b), tol=1e-6, on_failure="ignore")
        rows = [[Fraction(v) for v in row] for row in A.tolist()]
        x = [Fraction(v) for v in result.x.tolist()]
        residuals = [
            sum(a * v for a, v in zip(row, x, strict=True)) - Fraction(t)
            for row, t in zip(rows, b.tolist(), strict=True)
        ]
        exact = Fraction(1 / 3) * sum(r * r for r in residuals) / 2
        assert Fraction(result.gap) >= exact  # three equations with five unknowns have a solution


@pairwise(
    penalty=[Box(-0.1, 0.05), Simplex(0.3), L2Ball(0.2), NonNegative()],
    kind=[Squared, Hinge, Quadratic, KernelSVMDual],
)
def test_sets_in_single_precision(penalty, kind):
    """Rounding moves points out of a set by a bit, where the objective may be below the optimum: the gap accounts for that."""
    for seed in range(5):
        A, b = table(seed, Hinge if kind in (Hinge, KernelSVMDual) else Squared, np.float32)
        if kind is Quadratic:
            loss, phi = Quadratic(A.T @ A / 60, A.T @ b / 60), penalty
        elif kind is KernelSVMDual:
            loss = KernelSVMDual(A @ A.T + np.eye(60, dtype=np.float32), b, 0.1)
            phi = loss.box()
        else:
            loss, phi = kind(A, b), penalty
        result = minimize(loss, penalty=phi, tol=1e-9, max_iter=200, on_failure="ignore")
        assert result.gap >= 0


@pytest.mark.parametrize("options", [{}, {"finish": False}, {"eta": 1.0, "stop": "gap"}])
def test_almost_equal_columns_are_no_success(options):
    """The subgradient is small because the curvature is tiny."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, e = rng.standard_normal((2, 60))
        b = a + 3 * e
        result = minimize(
            Squared(np.column_stack([a, a + 1e-8 * e]), b), tol=1e-6, on_failure="ignore", **options
        )
        assert not result.success or result.fun < 1e-5  # the optimum is zero but for rounding


class LogCosh(LinearModel):
    """A loss whose conjugate is not known."""

    smoothness = 1.0

    @staticmethod
    def scalar(z, b, theta):
        t = abs(z - b)
        return t + math.log1p(math.exp(-2.0 * t)) - math.log(2.0), math.tanh(z - b)


@pytest.mark.parametrize("apart", [1.0, 1e-8])
def test_without_a_dual_function_the_subgradient_decides_if_it_means_something(apart):
    a, e = np.random.default_rng(0).standard_normal((2, 60))
    loss = LogCosh(np.column_stack([a, a + apart * e]), a + 3 * e)
    result = minimize(loss, tol=1e-4, max_iter=2000, on_failure="ignore")
    assert result.success == (apart == 1.0)
    assert not result.certified
    assert result.gap == np.inf


@pytest.mark.parametrize("labels", ["two classes", "three classes", "counts of zero"])
def test_classes_that_can_be_separated(labels):
    """There is no minimizer, which is said, and no success."""
    X = np.random.default_rng(0).standard_normal((100, 3))
    if labels == "counts of zero":
        model, y, loss = (
            estimators.PoissonRegressor(alpha=0),
            np.zeros(100),
            Poisson(X, np.zeros(100), intercept=True),
        )
    else:
        y = (
            (X[:, 0] > 0).astype(int)
            if labels == "two classes"
            else np.digitize(X[:, 0], [-0.5, 0.5])
        )
        model = estimators.LogisticRegression(alpha=0)
        loss = (
            Logistic(X, np.where(y, 1, -1))
            if labels == "two classes"
            else Multinomial(X, y, intercept=True)
        )
    with pytest.warns(match="There is no minimizer: the objective keeps decreasing"):
        model.fit(X, y)
    assert not model.converged_
    with pytest.warns(ConvergenceWarning, match="There is no minimizer"):
        result = minimize(loss, tol=1e-4)
    assert not result.success
    assert result.status == Status.DIVERGED
    if labels != "counts of zero":  # whose intercept has no limit
        assert minimize(loss, penalty=Ridge(1e-3), tol=1e-4).success


def test_kernel_svc_in_single_precision():
    """The gap is that of the coefficients as they are stored."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)).astype(np.float32)
    X = np.vstack([X, X[:20]])  # equal samples share a coefficient
    y = (X**2).sum(axis=1) > 1
    model = estimators.KernelSVC(
        C=10.0, kernel="linear", fit_intercept=False, tol=1e-7, max_iter=300
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
        best = estimators.KernelSVC(C=10.0, kernel="linear", fit_intercept=False, tol=1e-10)
        best.fit(X.astype(float), y)
    w = model.dual_coef_[0].astype(LONG) @ X[model.support_].astype(LONG)
    alpha = LONG(1) / (10 * len(y))
    margins = np.where(y, 1, -1) * (X.astype(LONG) @ w)
    exact = np.maximum(0, 1 - margins).mean() + alpha / 2 * (w @ w)
    assert model.objective_ == pytest.approx(
        float(exact), rel=1e-6
    )  # the kernel matrix is in single precision
    assert model.dual_gap_ >= 0
    assert model.dual_gap_ >= float(exact) - best.objective_ - 1e-6 * best.objective_
