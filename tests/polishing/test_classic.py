"""Classic tables: the quantiles that R's quantreg finds."""

from fractions import Fraction

import numpy as np
import pytest

from classic import QUANTREG, TABLES

pytest.importorskip("sklearn")

from adagrad_diff.sklearn import LADRegressor, QuantileRegressor

pytestmark = pytest.mark.peer


def pinball(A, b, tau, x):
    """The mean loss in exact arithmetic."""
    x = [Fraction(float(v)) for v in x]
    total = Fraction(0)
    for row, target in zip(A, b, strict=True):
        t = (
            Fraction(float(target))
            - x[-1]
            - sum(Fraction(float(a)) * w for a, w in zip(row, x, strict=False))
        )
        total += max(Fraction(tau) * t, (Fraction(tau) - 1) * t)
    return float(total / len(b))


def rounding(A, x):
    """What the loss of a sample may change by because its coefficients are double precision."""
    return 4 * np.finfo(float).eps * float((np.abs(A) @ np.abs(x[:-1])).max() + abs(x[-1]))


@pytest.mark.parametrize(("table", "tau"), QUANTREG)
def test_quantreg(table, tau):
    A, b = TABLES[table]
    expected = np.array(QUANTREG[table, tau])
    model = QuantileRegressor(quantile=tau, alpha=0, tol=1e-10).fit(A, b)
    found = np.append(model.coef_, model.intercept_)
    optimum = pinball(A, b, tau, expected)
    assert abs(pinball(A, b, tau, found) - optimum) <= 1e-10 * optimum + rounding(A, found)
    np.testing.assert_allclose(
        found, expected, rtol=1e-6, atol=1e-6 * np.abs(b).max() / np.abs(A).max()
    )
    assert model.converged_
    assert model.stop_reason_ == "certified"
    assert model.dual_gap_ <= 1e-10 * model.objective_ + rounding(A, found)


@pytest.mark.parametrize("table", TABLES)
def test_least_absolute_deviations_are_the_median(table):
    A, b = TABLES[table]
    model = LADRegressor(alpha=0, tol=1e-10).fit(A, b)
    found = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(
        found, QUANTREG[table, 0.5], rtol=1e-6, atol=1e-6 * np.abs(b).max() / np.abs(A).max()
    )
    assert model.converged_


@pytest.mark.parametrize("table", TABLES)
def test_units_do_not_matter(table):
    """Columns in other units: coefficients in the inverse ones."""
    A, b = TABLES[table]
    units = np.geomspace(1e-4, 1e5, A.shape[1] + 1)
    model = QuantileRegressor(quantile=0.25, alpha=0, tol=1e-10).fit(A * units[1:], b * units[0])
    found = np.append(model.coef_ * units[1:], model.intercept_) / units[0]
    np.testing.assert_allclose(
        found, QUANTREG[table, 0.25], rtol=1e-6, atol=1e-6 * np.abs(b).max() / np.abs(A).max()
    )
    assert model.converged_
