"""Balls of norms, and the simplex: support functions, points that stay, and what counts as outside."""

import numpy as np
import pytest

from adagrad_diff.penalties.l1_ball import L1Ball
from adagrad_diff.penalties.l2_ball import L2Ball
from adagrad_diff.penalties.linf_ball import LInfBall
from adagrad_diff.penalties.simplex import Simplex
from looping import looped

SETS = [Simplex(), Simplex(3.0), L1Ball(1.5), L2Ball(1.5), LInfBall(0.5)]
each_set = pytest.mark.parametrize("penalty", SETS, ids=repr)


@each_set
@looped("dtype", [np.float32, np.float64])
def test_support_functions(penalty, dtype):
    """The largest <x, y> over the set is attained where the set touches a far away point in the direction y."""
    assert "set" in penalty.properties
    rng = np.random.default_rng(7)
    y = rng.standard_normal((8, 20)).astype(dtype)
    support = penalty.conjugate(y)
    assert support.shape == (20,)
    np.testing.assert_allclose([penalty.conjugate(column) for column in y.T.copy()], support, rtol=1e-6)
    y = y.astype(float)
    np.testing.assert_allclose(np.sum(penalty.prox(1e9 * y, 1.0) * y, axis=0), support, rtol=1e-6)
    for scale in (0.01, 0.1, 1.0):  # Fenchel-Young
        inside = penalty.prox(scale * rng.standard_normal((8, 20)), 1.0)
        assert np.all(np.sum(inside * y, axis=0) <= support * (1 + 1e-12))


@each_set
@looped("dtype", [np.float32, np.float64])
@looped("d", [1, 5, 3000])
def test_points_of_a_set_stay(penalty, dtype, d):
    """Bit for bit, whatever the step: also those that the projection returns."""
    rng = np.random.default_rng(8)
    for scale in (1e-3, 1.0, 1e10):
        step = (10.0 ** rng.uniform(-8, 9, (d, 6))).astype(dtype)
        x = penalty.prox((scale * rng.standard_normal((d, 6))).astype(dtype), step)
        np.testing.assert_array_equal(penalty.value(x), 0.0)
        again = penalty.prox(x, 10.0 ** rng.uniform(-8, 9, (d, 6)))
        assert again.tobytes() == x.tobytes()
    if not isinstance(penalty, Simplex):
        x = (0.4 / d * rng.uniform(-1, 1, d)).astype(dtype)
        x[0] = -0.0
        assert penalty.prox(x, 1e9).tobytes() == x.tobytes()


@each_set
def test_outside(penalty):
    inside = penalty.prox(np.array([5.0, 1.0, -3.0]), 1.0)
    for factor, value in ((1 + 1e-10, 0.0), (1 + 1e-7, np.inf), (1.1, np.inf), (np.nan, np.inf)):
        assert penalty.value(factor * inside) == value
    np.testing.assert_array_equal(penalty.value(np.stack([inside, 2 * inside], axis=1)), [0.0, np.inf])
    single = inside.astype(np.float32)
    assert penalty.value(single) == 0.0
    assert penalty.value(single * np.float32(1.0001)) == np.inf


def test_simplex_needs_both():
    assert Simplex().value(np.array([1.5, -0.5])) == np.inf
    assert Simplex().value(np.array([0.5, 0.25])) == np.inf
    assert Simplex().value(np.array([0.5, 0.5])) == 0.0
    for point in (np.full(10, 0.1), np.array([1 / 3, 1 / 3, 1 / 3]), np.array([1.0, 0.0, -0.0])):
        assert Simplex().prox(point, 7.0).tobytes() == point.tobytes()
    np.testing.assert_array_equal(Simplex().prox([7.0], 1e9), [1.0])
    np.testing.assert_allclose(Simplex().prox([-1e10, -1e10, -1e10], 1.0), 1 / 3, rtol=1e-12)


@pytest.mark.parametrize("kind", [Simplex, L1Ball, L2Ball, LInfBall])
def test_radius_zero(kind):
    penalty = kind(0.0)
    for z in (np.array([1.0, -2e10, 3e-12]), np.zeros(3), np.array([5.0])):
        np.testing.assert_array_equal(penalty.prox(z, 10.0 ** np.arange(len(z))), 0.0)
    assert penalty.value(np.zeros(3)) == 0.0
    assert penalty.value(np.array([0.0, 1.0])) == np.inf
    assert penalty.conjugate(np.array([0.0, 1.0])) == 0.0
    assert np.isnan(penalty.prox(np.array([1.0, np.nan]), 1.0)).any()


@looped("kind", [Simplex, L1Ball, L2Ball])
@looped("radius", [1e-12, 1.0, 1e10])
def test_sums_are_right_beside_numbers_of_any_size(kind, radius):
    """z is up to 1e10 and the steps from 1e-8 to 1e9: the radius must not drown in rounding."""
    rng, penalty = np.random.default_rng(9), kind(radius)
    for _ in range(100):
        z, step = rng.standard_normal(60) * 10.0 ** rng.uniform(-12, 10, 60), 10.0 ** rng.uniform(-8, 9, 60)
        assert penalty.value(penalty.prox(z, step)) == 0.0
        assert penalty.value(penalty.prox(1e10 * np.ones(60), step)) == 0.0
