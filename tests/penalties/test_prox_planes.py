"""Sets cut out by linear equations, and the semidefinite cone: support functions and the edges of their definitions."""

import numpy as np
import pytest
from scipy.optimize import linprog

from adagrad_diff import PSD, Affine, BoxHyperplane, HalfSpace, Hyperplane
from looping import looped
from prox_planes import CASES

INF = np.inf


def test_box_hyperplane_with_every_kind_of_bound():
    """Vertices, single points, bounds that are equal, and coordinates that the plane does not see."""
    z, step = np.array([3.0, -2.0, 0.5, 0.1]), np.array([1e9, 1e-8, 1.0, 1e3])
    ones = np.ones(4)
    np.testing.assert_array_equal(BoxHyperplane(0.0, 1.0, ones, 4.0).prox(z, step), ones)
    np.testing.assert_array_equal(BoxHyperplane(0.0, 1.0, ones, 0.0).prox(z, step), 0 * ones)
    np.testing.assert_array_equal(BoxHyperplane(0.25, 0.25, ones, 1.0).prox(z, step), 0.25 * ones)
    np.testing.assert_array_equal(
        BoxHyperplane([2.0], [2.0], [3.0], 6.0).prox(z[:1], step[:1]), [2.0]
    )
    np.testing.assert_array_equal(BoxHyperplane(-INF, INF, [4.0], 6.0).prox([1e10], 1.0), [1.5])
    x = BoxHyperplane([0, 0, -1, -1], [1, 1, 1, INF], [0.0, 0.0, 1.0, -1.0], 0.0).prox(z, 1.0)
    np.testing.assert_allclose(x, [1.0, 0.0, 0.3, 0.3], rtol=1e-14)
    vertex = BoxHyperplane(
        np.full(7, 0.1), np.full(7, 0.3), np.ones(7), 0.1 * 7
    )  # 0.1 * 7 is not 0.1 + ... + 0.1
    np.testing.assert_allclose(vertex.prox(np.arange(7.0), 1.0), 0.1, rtol=1e-12)


@looped("seed", range(6))
def test_box_hyperplane_ends(seed):
    """Ties in the bends, bounds and steps of any size, many coordinates: the loops end and the equation holds."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 3000))
    a = rng.choice([-1.0, 1.0, 2.0], d) * 10.0 ** (rng.uniform(-6, 6, d) * (seed % 2))
    lower = rng.choice([-INF, -1.0, 0.0, 0.0], d)
    upper = np.where(lower == -INF, 0.0, lower) + rng.choice([0.0, 1e-9, 1.0, INF], d)
    inside = np.clip(rng.integers(-2, 3, d), lower, upper)
    penalty = BoxHyperplane(lower, upper, a, float(a @ inside))
    for scale in (1.0, 1e10, 1e-12):
        z, step = scale * rng.integers(-3, 4, d), 10.0 ** rng.integers(-8, 10, d)
        assert penalty.value(penalty.prox(z, step)) == 0.0


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name.startswith("BoxHyperplane")], ids=str
)
def test_support_of_a_box_in_a_plane_by_linear_programming(case):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 9))
        penalty = case.make(d, rng)
        y = rng.standard_normal(d) if seed % 3 else rng.standard_normal() * penalty.a
        bounds = np.column_stack(
            [np.broadcast_to(bound, d) for bound in (penalty.lower, penalty.upper)]
        )
        best = linprog(-y, A_eq=penalty.a[None], b_eq=[penalty.beta], bounds=bounds)
        assert best.status in (0, 3)
        expected = -best.fun if best.status == 0 else INF
        np.testing.assert_allclose(penalty.conjugate(y), expected, rtol=1e-7, atol=1e-9)


def test_support_functions_of_planes():
    a = np.array([3.0, -1.0, 0.0])
    assert Hyperplane(a, 2.0).conjugate(-0.5 * a) == pytest.approx(-1.0)
    assert HalfSpace(a, 2.0).conjugate(0.5 * a) == pytest.approx(1.0)
    assert HalfSpace(a, 2.0).conjugate(-0.5 * a) == INF
    for penalty in (
        Hyperplane(a, 2.0),
        HalfSpace(a, 2.0),
        Affine([a, [0.0, 0.0, 1.0]], [2.0, 5.0]),
    ):
        assert penalty.conjugate(a + np.array([0.0, 1e-3, 0.0])) == INF
        assert penalty.conjugate((a * (1 + 1e-15)).astype(np.float32)) < INF
    assert Affine([a, [0.0, 0.0, 1.0]], [2.0, 5.0]).conjugate(
        a + np.array([0.0, 0.0, 2.0])
    ) == pytest.approx(12.0)
    assert PSD(2).conjugate(np.array([-1.0, 0.5, 0.5, -1.0])) == 0.0
    assert PSD(2).conjugate(np.array([-1.0, 1.5, 1.5, -1.0])) == INF
    np.testing.assert_array_equal(PSD(1).conjugate(np.array([[-1.0, 0.0, 1.0]])), [0.0, 0.0, INF])


def test_affine_with_dependent_equations():
    A = np.array(
        [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [2.0, 4.0, 0.0, 0.0], [0.0, 0.0, 1e-6, 1e-6]]
    )
    penalty = Affine(A, [3.0, 0.0, 6.0, 5e-6])
    x = penalty.prox([1e10, -1.0, 0.0, 0.0], [1e-8, 1e9, 1.0, 4.0])
    np.testing.assert_allclose(A @ x, [3.0, 0.0, 6.0, 5e-6], rtol=1e-12)
    np.testing.assert_allclose(x[2:], [1.0, 4.0], rtol=1e-14)
    point = Affine(
        np.vstack([np.eye(3), np.ones((1, 3))]), [1.0, 2.0, 3.0, 6.0]
    )  # more equations than coordinates
    np.testing.assert_allclose(
        point.prox(np.full(3, 1e10), [1e9, 1.0, 1e-8]), [1.0, 2.0, 3.0], rtol=1e-14
    )


@looped("beta", [0.0, 1e-3, 1e6])
def test_planes_far_away(beta):
    """The rounding errors of a huge z do not stay in x."""
    for d in (1, 2, 50):
        rng = np.random.default_rng(d)
        a, z, step = (
            rng.standard_normal(d),
            1e10 * rng.standard_normal(d),
            10.0 ** rng.uniform(-8, 9, d),
        )
        z[:] = z.max() if d > 1 else z
        for penalty in (
            Hyperplane(a, beta),
            HalfSpace(-a, beta),
            HalfSpace(a, beta),
            Affine([a], [beta]),
        ):
            x = penalty.prox(z, step)
            assert penalty.value(x) == 0.0
            normal = getattr(penalty, "a", a)
            if not (isinstance(penalty, HalfSpace) and (x == z).all()):
                assert abs(normal @ x - beta) <= 1e-14 * (np.abs(a) @ np.abs(x) + beta)


def test_values_have_walls():
    for penalty in (
        Hyperplane([1.0, 1.0], 2.0),
        Affine([[1.0, 1.0]], [2.0]),
        BoxHyperplane(0.0, 5.0, [1.0, 1.0], 2.0),
    ):
        np.testing.assert_array_equal(
            penalty.value(np.array([[0.5, 0.5, 0.5], [1.5, 1.5 + 1e-7, 1.4]])), [0.0, INF, INF]
        )
        assert penalty.value(np.array([0.5, 1.5 + 1e-5], np.float32)) == INF
        assert penalty.value(np.array([0.5, np.nan])) == INF
    np.testing.assert_array_equal(
        HalfSpace([1.0], 2.0).value(np.array([[2.0, 1.0, 2.0 + 1e-7]])), [0.0, 0.0, INF]
    )
    assert BoxHyperplane(0.0, 5.0, [1.0, 1.0], 2.0).value([-1.0, 3.0]) == INF
    np.testing.assert_array_equal(
        PSD(2).value(
            np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0], [2.0, 1.0, 0.5], [1.0, 1.0, 1.0]])
        ),
        [INF, 0.0, INF],
    )
    assert PSD(2).value(np.array([1.0, np.nan, np.nan, 1.0])) == INF


def test_psd_takes_the_symmetric_part_and_one_step():
    z = np.array([2.0, 1.0, -1.0, 3.0])
    np.testing.assert_allclose(PSD(2).prox(z, 1.0), [2.0, 0.0, 0.0, 3.0], atol=1e-15)
    assert PSD(1).prox([-3.0], 1.0) == [0.0]
    np.testing.assert_array_equal(PSD(2).prox(np.stack([z, -z], axis=1), [[1.0, 2.0]])[:, 1], 0.0)
