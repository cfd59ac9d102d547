"""Norms and the balls of norms: their parameters, groups, and the edges of their definitions."""

import numpy as np
import pytest

from adagrad_diff import (
    L1,
    L2,
    SLOPE,
    AdaGradDiff,
    GroupL2,
    HuberPenalty,
    L1Ball,
    L2Ball,
    LInf,
    LInfBall,
    Nuclear,
    Simplex,
    SparseGroupL2,
    Squared,
    minimize,
)
from looping import looped


@looped(
    "penalty",
    [
        GroupL2(0.0, [0, 1, 0]),
        SparseGroupL2(0.0, 0.0, [0, 1, 0]),
        L2(0.0),
        LInf(0.0),
        SLOPE([0, 0, 0]),
        Nuclear(0, (1, 3)),
    ],
)
def test_strength_zero(penalty):
    z = np.array([1.0, -2e10, 3e-12])
    np.testing.assert_array_equal(penalty.prox(z, 5.0), z)
    assert penalty.value(z) == 0.0
    assert penalty.polar(z) == np.inf
    assert penalty.polar(0 * z) == 0.0
    np.testing.assert_array_equal(penalty.conjugate(np.stack([z, 0 * z], axis=1)), [np.inf, 0.0])


@looped("kind", [Simplex, L1Ball, L2Ball, LInfBall])
def test_radius_zero(kind):
    penalty = kind(0.0)
    for z in (np.array([1.0, -2e10, 3e-12]), np.zeros(3), np.array([5.0])):
        np.testing.assert_array_equal(penalty.prox(z, 10.0 ** np.arange(len(z))), 0.0)
    assert penalty.value(np.zeros(3)) == 0.0
    assert penalty.value(np.array([0.0, 1.0])) == np.inf
    assert penalty.conjugate(np.array([0.0, 1.0])) == 0.0
    assert np.isnan(penalty.prox(np.array([1.0, np.nan]), 1.0)).any()


@looped("penalty", [Simplex(), Simplex(3.0), L1Ball(1.5), L2Ball(1.5), LInfBall(0.5)])
def test_which_points_are_outside(penalty):
    inside = penalty.prox(np.array([5.0, 1.0, -3.0]), 1.0)
    for factor, value in ((1 + 1e-10, 0.0), (1 + 1e-7, np.inf), (1.1, np.inf), (np.nan, np.inf)):
        assert penalty.value(factor * inside) == value
    np.testing.assert_array_equal(
        penalty.value(np.stack([inside, 2 * inside], axis=1)), [0.0, np.inf]
    )
    single = inside.astype(np.float32)
    assert penalty.value(single) == 0.0
    assert penalty.value(single * np.float32(1.0001)) == np.inf
    if not isinstance(penalty, Simplex):
        small = np.array([-0.0, 1e-3, -1e-3])
        assert penalty.prox(small, 1e9).tobytes() == small.tobytes()


def test_the_simplex_has_a_sum_and_signs():
    assert Simplex().value(np.array([1.5, -0.5])) == np.inf
    assert Simplex().value(np.array([0.5, 0.25])) == np.inf
    for point in (np.full(10, 0.1), np.array([1 / 3, 1 / 3, 1 / 3]), np.array([1.0, 0.0, -0.0])):
        assert Simplex().prox(point, 7.0).tobytes() == point.tobytes()
    np.testing.assert_array_equal(Simplex().prox([7.0], 1e9), [1.0])
    np.testing.assert_allclose(Simplex().prox([-1e10, -1e10, -1e10], 1.0), 1 / 3, rtol=1e-12)


@looped("kind", [Simplex, L1Ball, L2Ball])
@looped("radius", [1e-12, 1.0, 1e10])
def test_the_radius_is_kept_next_to_numbers_of_any_size(kind, radius):
    rng, penalty = np.random.default_rng(9), kind(radius)
    for _ in range(25):
        z, step = (
            rng.standard_normal(60) * 10.0 ** rng.uniform(-12, 10, 60),
            10.0 ** rng.uniform(-8, 9, 60),
        )
        assert penalty.value(penalty.prox(z, step)) == 0.0
        assert penalty.value(penalty.prox(1e10 * np.ones(60), step)) == 0.0


@looped("lam", [0.0, 0.8])
def test_conjugate_of_huber(lam):
    penalty, grid = HuberPenalty(lam, 0.6), np.linspace(-5, 5, 100_001)
    value = np.array([penalty.value(np.array([x])) for x in (-2.0, 0.3, 0.6)])
    np.testing.assert_allclose(value, lam * np.array([0.6 * 1.7, 0.045, 0.18]), rtol=1e-14)
    for y in (0.0, 0.1, -0.3, 0.48):
        expected = np.max(grid * y - penalty.value(grid[None])) if abs(y) <= lam * 0.6 else np.inf
        assert penalty.conjugate(np.array([y])) == pytest.approx(expected, abs=1e-8)
    assert penalty.conjugate(np.array([0.1, 0.5])) == np.inf
    assert penalty.properties == {"separable"}


def test_nuclear_reads_row_by_row():
    """Soft-thresholding leaves a multiple of a matrix of rank one."""
    matrix = np.outer([1.0, 2.0], [2.0, 0.0, 1.0]).ravel()  # its singular value is 5
    np.testing.assert_allclose(Nuclear(1.0, (2, 3)).prox(matrix, 1.0), matrix * 0.8, atol=1e-15)
    assert Nuclear(2.0, (2, 3)).value(matrix) == pytest.approx(10.0)
    assert Nuclear(2.0, (2, 3)).polar(matrix) == pytest.approx(2.5)


# ---------------------------------------------------------------- groups


def test_groups_of_one_and_of_all():
    rng = np.random.default_rng(11)
    z, step = rng.standard_normal((20, 3)), 10.0 ** rng.uniform(-2, 1, (20, 3))
    np.testing.assert_allclose(
        GroupL2(0.5, np.arange(20)).prox(z, step), L1(0.5).prox(z, step), rtol=1e-15
    )
    one = np.zeros(20, int)
    np.testing.assert_allclose(GroupL2(0.5, one).prox(z, step), L2(0.5).prox(z, step), rtol=1e-14)
    np.testing.assert_array_equal(SparseGroupL2(0.5, 0.0, one).prox(z, step), L1(0.5).prox(z, step))
    np.testing.assert_allclose(
        SparseGroupL2(0.0, 0.5, one).prox(z, step), L2(0.5).prox(z, step), rtol=1e-14
    )


@pytest.mark.parametrize(("largest", "trajectories"), [(2, None), (9, 130), (257, 3)])
def test_groups_of_all_sizes(largest, trajectories):
    """Many groups of different sizes, in any order."""
    rng = np.random.default_rng(largest)
    labels = rng.permutation(np.concatenate([np.full(largest, 7), rng.integers(10, 180, 300)]))
    shape = labels.size if trajectories is None else (labels.size, trajectories)
    z, step = rng.standard_normal(shape), 10.0 ** rng.uniform(-3, 1, shape)
    penalty = SparseGroupL2(0.1, 0.7, labels)
    soft = np.sign(z) * np.maximum(np.abs(z) - 0.1 * step, 0.0)
    expected = np.empty_like(z)
    for label in np.unique(labels):
        expected[labels == label] = L2(0.7).prox(soft[labels == label], step[labels == label])
    np.testing.assert_allclose(penalty.prox(z, step), expected, rtol=1e-12, atol=1e-14)
    assert penalty.prox(z, step, out=z) is z
    np.testing.assert_allclose(z, expected, rtol=1e-12, atol=1e-14)


def test_a_group_of_weight_zero_is_not_penalized():
    penalty = GroupL2(2.0, [3, 8, 3, 8], weights=[1.0, 0.0])
    z = np.array([0.1, -5.0, 0.1, 1e-12])
    np.testing.assert_array_equal(penalty.prox(z, [1.0, 2.0, 3.0, 4.0]), [0.0, -5.0, 0.0, 1e-12])
    assert penalty.value(z) == pytest.approx(2.0 * np.hypot(0.1, 0.1))
    assert penalty.polar(z) == np.inf
    assert penalty.polar(z * [1, 0, 1, 0]) == pytest.approx(np.hypot(0.1, 0.1) / 2)


def test_the_edge_of_a_group():
    """Just where the whole group becomes zero, with steps that differ within it."""
    z, step = np.array([3.0, 4.0]), np.array([1.0, 2.0])
    lam = np.sqrt(9.0 + 4.0)  # norm(z / step)
    np.testing.assert_array_equal(L2(lam * (1 + 1e-15)).prox(z, step), 0.0)
    x = L2(lam * (1 - 1e-9)).prox(z, step)
    np.testing.assert_allclose(x / np.linalg.norm(x), z / step / lam, rtol=1e-8)
    assert 0 < np.linalg.norm(x) < 1e-7


@pytest.mark.parametrize(
    "penalty",
    [
        GroupL2(0.5, [0, 1, 0, 1]),
        HuberPenalty(1.0, 0.5),
        SLOPE([1.0, 0.8, 0.5, 0.1]),
        Nuclear(1.0, (2, 2)),
        L1Ball(1.0),
    ],
    ids=lambda p: type(p).__name__,
)
def test_minimize_ends_at_a_prox(penalty):
    """The minimizer of ||x - target||^2 / 2 + phi is the prox of the target, whichever metric the solver takes."""
    target = np.array([3.0, -4.0, 0.5, 12.0])
    rule = AdaGradDiff(eta=3.0, blocks="all" if penalty.accepts == "scalar" else None)
    result = minimize(
        Squared(2 * np.eye(4), 2 * target),
        penalty=penalty,
        rule=rule,
        max_iter=2000,
        tol=1e-9,
        on_failure="ignore",
    )
    np.testing.assert_allclose(result.x, penalty.prox(target, 1.0), atol=1e-6)
