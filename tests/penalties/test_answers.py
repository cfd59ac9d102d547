"""What penalties tell other packages about themselves, against definitions."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from adagrad_diff import Squared, critical_lam
from adagrad_diff.penalties import (
    L1,
    FusedLasso,
    LInf,
    NumericalProx,
    Precomposed,
    Scaled,
    SparseGroupL2,
    TotalVariation1D,
    Translated,
    Zero,
)
from looping import looped
from prox_cases import CASES

SIZE = 8


def made(case):
    rng = np.random.default_rng(0)
    return case.make(SIZE, rng), case.size(SIZE), rng


@looped("case", CASES)
def test_quadratic_terms(case):
    """Where they are known, they are the function, also of multiples."""
    penalty, size, rng = made(case)
    for phi in (penalty, Scaled(penalty, 3.0)):
        terms = phi.quadratic_terms(size)
        if terms is None:
            continue
        x = np.clip(rng.standard_normal(size), terms.lower, terms.upper)
        expected = terms.l1 @ np.abs(x) + terms.l2 @ x**2 / 2
        if terms.strength is not None:
            expected += terms.strength @ np.sqrt(
                np.bincount(terms.labels, x**2, terms.strength.size)
            )
        assert float(phi.value(x)) == pytest.approx(expected, rel=1e-12)
        bounds = np.r_[terms.lower, terms.upper]
        assert terms.bounded == np.isfinite(bounds).any()
        for sign, bound in ((-1.0, terms.lower), (1.0, terms.upper)):
            for i in np.flatnonzero(np.isfinite(bound)):
                outside = x.copy()
                outside[i] = bound[i] + sign
                assert phi.value(outside) == np.inf


@looped("case", CASES)
def test_the_bound_on_the_conjugate(case):
    """It is above <x, y'> - phi(x) for all x, and y' within e of y."""
    penalty, size, rng = made(case)
    for phi in (penalty, Scaled(penalty, 3.0)):
        finite = 0
        for scale in (0.0, 0.01, 1.0, 30.0):
            y = scale * rng.standard_normal(size)
            y -= y.mean() * rng.integers(2)
            e = 1e-3 * np.abs(y)
            bound = phi.conjugate_bound(y, e)
            finite += bound < np.inf
            for _ in range(20):
                x = phi.prox(10.0 ** rng.uniform(-2, 2) * rng.standard_normal(size), 1.0)
                near = y + e * rng.choice([-1.0, 0.0, 1.0], size)
                total = x @ near - float(phi.value(x))
                assert total <= bound + 1e-9 * (np.abs(x) @ np.abs(near))
        assert finite


@looped("penalty", [L1(2.0), L1(np.arange(1.0, 5.0)), LInf(0.5), TotalVariation1D(2.0)])
@looped("factor", [None, 3.0])
def test_polar_inequalities(penalty, factor):
    """The smallest t is the polar."""
    penalty = penalty if factor is None else Scaled(penalty, factor)
    rows, g = sparse.csc_array((4, 1)), np.array([1.0, -3.0, 0.5, 1.5])
    A, b, extra = penalty.polar_inequalities(rows, g)
    cost = np.zeros(extra + 2)
    cost[-1] = 1.0
    found = linprog(cost, A_ub=A, b_ub=b)
    assert found.fun == pytest.approx(penalty.polar(g), rel=1e-9)


def test_norm_part_has_the_same_slopes_at_zero():
    for case in CASES:
        penalty, size, rng = made(case)
        norm = penalty.norm_part()
        if norm is None:
            continue
        x = rng.standard_normal(size)
        slope = float(penalty.value(1e-9 * x)) / 1e-9
        assert slope == pytest.approx(float(norm.value(x)), rel=1e-6, abs=1e-6)


@looped("penalty", [L1(1.0), TotalVariation1D(2.0), FusedLasso(0.0, 1.0), FusedLasso(1.0, 1.0)])
def test_null_space(penalty):
    basis = penalty.null_space(5)
    for column in basis.T:
        assert penalty.value(column) == 0.0
    assert basis.size == ("seminorm" in penalty.properties) * 5


def test_a_null_space_that_is_not_known():
    with pytest.raises(ValueError, match=r"The null space of Zero is not known"):
        critical_lam(Squared(np.eye(3), np.ones(3)), Zero())


def test_a_subclass_that_changes_the_function_inherits_no_answers():
    class Half(L1):
        def value(self, x):
            return 0.5 * super().value(x)

        def apply(self, z, step, out):
            super().apply(z, 0.5 * step, out)

    assert Half(1.0).quadratic_terms(3) is None
    assert L1(1.0).quadratic_terms(3) is not None

    class Renamed(L1):
        name = "renamed"

    assert Renamed(1.0).quadratic_terms(3) is not None


def test_accuracy_is_that_of_the_least_accurate_part():
    rough = NumericalProx(SparseGroupL2(1.0, 1.0, [0, 0]), accuracy=1e-5)
    for penalty in (Scaled(rough, 2.0), Translated(rough, 1.0), Precomposed(rough, 2.0)):
        assert penalty.accuracy == 1e-5
    assert L1(1.0).accuracy < 1e-12
