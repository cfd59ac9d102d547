"""Total variation, the fused lasso and monotone vectors: what is special to them."""

import numpy as np

from adagrad_diff import L1, FusedLasso, Monotone, TotalVariation1D
from looping import looped
from prox_chains import exact_chain
from prox_harness import STEPS, draw_step

INF = np.inf


# ---------------------------------------------------------------- total variation and the fused lasso


@looped(
    ("l1", "tv", "z", "step"),
    [
        (
            0.0,
            1e-12,
            [2.0, -2.0, 0.0],
            [1.3e-8, 4e8, 1.4e-5],
        ),  # the second is lost in a sum with the first
        (0.0, 1e-3, [5.0, 6.0, 5.0], [1e-8, 1e9, 1e-8]),
        (1.0, 1.0, [1.0, 3.0, 3.0, 3.0], [1e9, 1e9, 1e-8, 1e9]),  # l1 and tv cancel
        (
            0.0,
            1e-3,
            1e10 * (1 + 1e-9 * np.array([-1, 0, 3, 1, 0, -2, 4])),  # equal but for the last digits
            [
                *(
                    1.3482559259367324e-06,
                    2.471057471398066e-05,
                    9761587.0565753728,
                    6026.2106191306666,
                ),
                *(3.2987640250721086e-07, 207.3031500017112, 17822.354375104482),
            ],
        ),
    ],
)
def test_rounding_does_not_choose_the_segments(l1, tv, z, step):
    penalty, z, step = FusedLasso(l1, tv), np.asarray(z), np.asarray(step)
    np.testing.assert_allclose(penalty.prox(z, step), exact_chain(z, step, l1, tv), rtol=1e-7)


@looped("place", [0, 5, 999])
@looped("value", [np.nan, INF])
@looped("steps", ["one", "wild"])
def test_wrong_numbers(place, value, steps):
    rng = np.random.default_rng(15)
    z, step = rng.standard_normal(1_000), draw_step(steps, 1_000, rng)
    z[place] = value
    assert not np.isfinite(TotalVariation1D(1.0).prox(z, step)[place])


def test_total_variation_by_hand():
    assert TotalVariation1D(2.0).value([1.0, 3.0, 0.0]) == 10.0
    assert TotalVariation1D(2.0).value([[1.0, 0.0], [3.0, 1.0]]).tolist() == [4.0, 2.0]
    assert FusedLasso(1.0, 2.0).value([1.0, -3.0, 0.0]) == 4.0 + 14.0
    assert TotalVariation1D(1.0).prox([0.0, 10.0], [1.0, 2.0]).tolist() == [1.0, 8.0]
    assert TotalVariation1D(5.0).prox([5.0], 3.0).tolist() == [5.0]
    assert FusedLasso(1.0, 9.0).prox([5.0], 3.0).tolist() == [2.0]
    z, step = np.array([1.0, -4.0, 8.0, 3.0]), np.array([1e9, 1.0, 1e-8, 1e3])
    np.testing.assert_allclose(
        TotalVariation1D(1e12).prox(z, step),
        np.full(4, np.sum(z / step) / np.sum(1 / step)),
        rtol=1e-14,
    )
    np.testing.assert_array_equal(TotalVariation1D(0).prox(z, step), z)
    assert np.signbit(TotalVariation1D(0).prox([-0.0, 0.0], 1.0)).tolist() == [True, False]
    assert TotalVariation1D(1.0).prox([-0.0, 0.0, 0.0], [1.0, 1e9, 1e-8]).tolist() == [
        0.0,
        0.0,
        0.0,
    ]
    np.testing.assert_allclose(
        TotalVariation1D(1.0).prox(
            np.full(1000, 0.1), draw_step("wild", 1000, np.random.default_rng(0))
        ),
        0.1,
    )


@looped("steps", STEPS)
def test_fused_lasso_contains_its_parts(steps):
    rng = np.random.default_rng(5)
    z, step = rng.standard_normal(100), draw_step(steps, 100, rng)
    np.testing.assert_allclose(
        FusedLasso(0, 0.5).prox(z, step), TotalVariation1D(0.5).prox(z, step), rtol=1e-15
    )
    np.testing.assert_allclose(
        FusedLasso(0.5, 0).prox(z, step), L1(0.5).prox(z, step), rtol=1e-15, atol=0
    )
    soft = L1(0.3).prox(TotalVariation1D(0.5).prox(z, step), step)
    close = np.allclose(FusedLasso(0.3, 0.5).prox(z, step), soft, rtol=1e-9, atol=1e-12)
    assert close == (
        steps == "one"
    )  # thresholding afterwards is right for one step, and wrong for several


def slow_polar(y, l1, tv):
    """The largest ratio over all intervals."""
    d, best = len(y), 0.0
    for a in range(d):
        for b in range(a + 1, d + 1):
            size = l1 * (b - a) + tv * ((a > 0) + (b < d))
            best = max(best, abs(np.sum(y[a:b])) / size)
    return best


@looped(("l1", "tv"), [(0.01, 0.1), (0.01, 50.0), (1.0, 0.0), (1.0, 1.0), (30.0, 0.1)])
def test_polar_of_the_fused_lasso(l1, tv):
    rng, penalty = np.random.default_rng(7), FusedLasso(l1, tv)
    for d in (1, 2, 5, 20):
        for y in (
            rng.standard_normal(d),
            np.abs(rng.standard_normal(d)),
            np.zeros(d),
            rng.integers(-1, 2, d) * 1.0,
        ):
            polar = penalty.polar(y)
            np.testing.assert_allclose(polar, slow_polar(y, l1, tv), rtol=1e-12)
            np.testing.assert_allclose(penalty.polar(-3 * y), 3 * polar, rtol=1e-12)
            if polar > 0:
                # No x does better, and the prox of a point far along y shows whether y is a subgradient at zero.
                x = rng.standard_normal((d, 200))
                assert np.all(y @ x <= polar * penalty.value(x) * (1 + 1e-12))
                assert not penalty.prox(y / (1.0001 * polar), 1.0).any()
                assert penalty.prox(y / (0.999 * polar), 1.0).any()
                assert penalty.conjugate(y / polar) == 0.0
                assert penalty.conjugate(1.001 * y / polar) == INF


def test_polar_of_total_variation():
    rng, penalty = np.random.default_rng(8), TotalVariation1D(0.5)
    for d in (2, 5, 40):
        y = rng.standard_normal(d)
        assert penalty.polar(y) == penalty.conjugate(y) == INF  # phi does not see constants
        y -= y.mean()
        polar = penalty.polar(y)
        ends = [(np.arange(d) < k) * 1.0 for k in range(1, d)]
        np.testing.assert_allclose(
            polar, max(abs(y @ x) / penalty.value(x) for x in ends), rtol=1e-12
        )
        assert np.all(
            y @ (x := rng.standard_normal((d, 200))) <= polar * penalty.value(x) * (1 + 1e-12)
        )
        assert np.ptp(penalty.prox(y / (1.0001 * polar), 1.0)) < 1e-14
        assert np.ptp(penalty.prox(y / (0.999 * polar), 1.0)) > 1e-6
        assert penalty.conjugate(y / polar) == 0.0
        assert penalty.conjugate(1.001 * y / polar) == INF
        np.testing.assert_allclose(FusedLasso(0, 0.5).polar(y), polar)
        assert TotalVariation1D(0).polar(y) == FusedLasso(0, 0).polar(y) == INF
    assert penalty.polar(np.zeros(3)) == TotalVariation1D(0).polar(np.zeros(3)) == 0.0
    assert penalty.polar([1.0]) == INF
    assert penalty.polar([0.0]) == 0.0


# ---------------------------------------------------------------- monotone vectors


def test_monotone_cone_and_its_polar():
    assert Monotone().value([1.0, 2.0, 1.9999]) == INF
    assert Monotone().value([1.0, 2.0, 2.0 * (1 - 1e-10)]) == 0.0
    assert Monotone(False).value([[1.0, 0.0], [0.0, 1.0]]).tolist() == [0.0, INF]
    assert Monotone().value([0.0, np.nan]) == INF
    assert Monotone().value([np.nan]) == INF
    rng = np.random.default_rng(12)
    for increasing in (True, False):
        penalty = Monotone(increasing)
        for d in (1, 2, 6):
            # Constants and steps generate the cone.
            steps = np.array([(np.arange(d) >= k) * 1.0 for k in range(1, d)]).reshape(-1, d) * (
                1 if increasing else -1
            )
            for y in [*rng.integers(-1, 2, (200, d)) * 1.0, rng.standard_normal(d)]:
                inside = np.all(steps @ y <= 0) and np.sum(y) == 0
                assert penalty.conjugate(y) == (0.0 if inside else INF)
