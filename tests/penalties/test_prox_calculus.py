"""Penalties of single coordinates, sums over parts, and transformed penalties: values, conjugates and edges by hand."""

import numpy as np
import pytest

from adagrad_diff import (
    L1,
    L2,
    Box,
    ElasticNet,
    NonNegative,
    Precomposed,
    Ridge,
    Scaled,
    Separable,
    Translated,
    Unpenalised,
    Zero,
)

INF = np.inf


def test_values():
    x = np.array([0.5, -2.0, 0.0])
    assert L1([1.0, 2.0, 5.0]).value(x) == 4.5
    assert Ridge([1.0, 2.0, 5.0]).value(x) == 4.125
    assert ElasticNet(1.0, [1.0, 2.0, 5.0]).value(x.astype(np.float32)) == 2.5 + 4.125
    for penalty in (L1(0.5), Ridge(0.5), ElasticNet(0.5, 0.5), L1([0.5, 0.0, 1.0])):
        for point in ([INF, 0.0, 1.0], [INF, -INF, 1.0], [[INF], [0.0], [0.0]]):
            assert penalty.value(point) == INF
        assert np.isnan(penalty.value([INF, 1.0, np.nan]))
    assert Box(0.0, 1.0).value([0.5, 1.0 + 1e-6]) == INF
    assert Box(0.0, 1e-3).value([-1e-9]) == INF
    assert NonNegative().value([[1.0, 1.0], [0.0, -1e-6]]).tolist() == [0.0, INF]
    assert Box(0.0, 1.0).value([np.nan]) == INF


def test_conjugates_in_numbers():
    assert L1([1.0, 0.0]).polar([0.5, 0.0]) == 0.5
    assert L1([1.0, 0.0]).polar([0.5, 1e-9]) == INF
    assert L1(2.0).conjugate([2.0 * (1 + 1e-12), -2.0]) == 0.0
    assert L1(2.0).conjugate([2.0 + 1e-6, 0.0]) == INF
    assert L1(2.0).conjugate(np.array([2.0 + 1e-6, 0.0], np.float32)) == 0.0
    assert L1(1.0).properties == {"separable", "norm"}
    assert L1([1.0, 0.0]).properties == L1(0.0).properties == {"separable", "seminorm"}
    assert Ridge(2.0).conjugate([3.0, 1.0]) == pytest.approx(2.5)
    assert Ridge([2.0, 0.0]).conjugate([3.0, 1e-3]) == INF
    assert ElasticNet(1.0, 2.0).conjugate([3.0, 0.5]) == pytest.approx(1.0)
    assert Box(-1.0, [2.0, INF]).conjugate([3.0, -2.0]) == 8.0
    assert Box(-1.0, [2.0, INF]).conjugate([3.0, 1e-3]) == INF
    assert Box(-1.0, [2.0, INF]).conjugate([3.0, 1e-12]) == 6.0
    np.testing.assert_array_equal(
        NonNegative().conjugate(np.array([[-1.0, 1.0], [0.0, -1.0]])), [0.0, INF]
    )
    np.testing.assert_array_equal(Zero().polar(np.array([[0.0, 1.0]])), [0.0, INF])
    assert Scaled(L1(1.0), 4.0).polar([2.0]) == 0.5
    assert Precomposed(L1(1.0), [2.0, -4.0]).polar([2.0, 2.0]) == 1.0
    assert Translated(Box(0.0, 1.0), 10.0).conjugate([2.0, -1.0]) == 2.0 + 10.0
    assert Scaled(Box(0.0, 1.0), 10.0).conjugate([2.0, -1.0]) == 2.0
    assert Separable([([1], L1(1.0))]).conjugate([0.0, 1.0]) == 0.0
    assert Separable([([1], L1(1.0))]).conjugate([1e-3, 1.0]) == INF


def test_parts():
    penalty = Separable([([4, 0], L1([1.0, 2.0])), (slice(1, 3), Box(0.0, 1.0)), ([], Ridge(1.0))])
    z = np.array([5.0, 5.0, -5.0, 5.0, 5.0])
    np.testing.assert_array_equal(penalty.prox(z, 1.0), [3.0, 1.0, 0.0, 5.0, 4.0])
    assert penalty.value(np.array([3.0, 1.0, 0.0, 5.0, 4.0])) == 10.0
    assert penalty.value(np.array([3.0, 1.5, 0.0, 5.0, 4.0])) == INF
    for size in (5, 7, 5):  # one object for vectors of different sizes
        np.testing.assert_array_equal(
            penalty.prox(np.full(size, 5.0), 1.0)[3:], [5.0, 4.0, *[5.0] * (size - 5)]
        )
    np.testing.assert_array_equal(Separable([]).prox(z, 1.0), z)
    assert Separable([(slice(None), Box(0, 1))]).properties == {"separable", "set"}
    assert Separable([([0], L1(1.0)), ([1], Box(0, 1))]).properties == {"separable"}
    assert Separable([([0], L1(1.0)), ([1], L2(1.0))]).properties == {"seminorm"}
    np.testing.assert_array_equal(
        Separable([(slice(None, None, -1), L1([0.0, 1.0]))]).prox([3.0, 3.0], 1.0), [2.0, 3.0]
    )


def test_free_coordinates():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(6)
    soft = np.sign(z) * np.maximum(np.abs(z) - 0.2, 0.0)
    for free in (2, [2, -1], slice(1, 4), slice(None), [], slice(4, None)):
        expected = soft.copy()
        expected[free] = z[free]
        np.testing.assert_array_equal(Unpenalised(L1(0.2), free).prox(z, 1.0), expected)
    assert Unpenalised(L1([1.0, 2.0]), 0).value([9.0, 1.0, 1.0]) == 3.0
    with pytest.raises(ValueError, match=r"2 strengths, but there are 3"):
        Unpenalised(L1([1.0, 2.0]), 0).check_size(4)


def test_zero_times_a_penalty():
    z = np.array([3.0, -4.0])
    for penalty in (Scaled(L1(1.0), 0.0), Scaled(L2(1.0), 0), Scaled(Zero(), 0)):
        np.testing.assert_array_equal(penalty.prox(z, 1.0), z)
        assert penalty.value(z) == 0.0
        assert penalty.conjugate(z) == penalty.polar(z) == INF
        assert penalty.conjugate(0 * z) == penalty.polar(0 * z) == 0.0
        assert "norm" not in penalty.properties
    np.testing.assert_array_equal(Scaled(Box(0.0, 1.0), 0.0).prox(z, 1.0), [1.0, 0.0])
    assert Scaled(Box(0.0, 1.0), 0.0).value(z) == INF


def test_sets_far_from_zero():
    """What rounding of the shift leaves outside a small set counts as inside; what is outside does not."""
    penalty = Translated(Box(0.0, 1e-3), 1e10)
    x = penalty.prox(np.array([0.0, 2e10]), 1.0)
    assert penalty.value(x) == 0.0
    assert penalty.value(x + 100.0) == INF
    assert penalty.value(np.array([np.nan, 1e10])) == INF
    inside = np.random.default_rng(0).uniform(0.0, 1e-3, 50)
    assert np.any(inside - 1.0 + 1.0 != inside)
    assert Translated(Box(-2.0, 2.0), 1.0).prox(inside, 1.0).tobytes() == inside.tobytes()
    assert Precomposed(Box(-1.0, 1.0), 3.0).value(np.array([1 / 3], np.float32)) == 0.0
    assert Precomposed(Box(-1.0, 1.0), 3.0).value(np.array([0.334], np.float32)) == INF
