"""Penalties that need one step, alone and inside of others: which metrics they accept, and their prox by iteration."""

import numpy as np
import pytest

from adagrad_diff import (
    L1,
    L2,
    PSD,
    AdaGradDiff,
    Box,
    Hyperplane,
    NumericalProx,
    Precomposed,
    Scaled,
    Separable,
    Squared,
    Translated,
    minimize,
)


def test_parts_that_need_one_step():
    penalty = Separable([(slice(0, 4), PSD(2)), (slice(4, 6), L1(1.0))])
    assert penalty.accepts == "block"
    penalty.check_size(6)
    penalty.check_metric(None, True)
    penalty.check_metric(np.array([1, 1, 1, 1, 0, 2]), False)
    penalty.check_metric(np.array([1, 1, 1, 1, 0, 2, 3]), False)  # with an intercept
    remedy = r"coordinates 0 to 3 have a penalty that does not fit the metric: PSD has no exact .* one label in 'blocks'"
    for labels in (None, np.array([1, 1, 1, 0, 0, 2])):
        with pytest.raises(ValueError, match=remedy):
            penalty.check_metric(labels, False)
    with pytest.raises(ValueError, match=remedy):
        Separable([(slice(0, 4), PSD(2))]).check_metric(None, False)  # whatever the size
    single = Separable([([3], PSD(1))])
    single.check_size(4)
    single.check_metric(None, False)  # one coordinate always has one step
    nested = Separable([(slice(1, None), penalty)])
    nested.check_size(7)
    nested.check_metric(np.array([5, 1, 1, 1, 1, 0, 2]), False)
    with pytest.raises(ValueError, match=r"coordinates 1 to 6 .* coordinates 0 to 3 .* PSD"):
        nested.check_metric(None, False)
    z = np.arange(6.0)
    np.testing.assert_allclose(penalty.prox(z, [2.0, 2.0, 2.0, 2.0, 1.0, 3.0])[4:], [3.0, 2.0])
    with pytest.raises(ValueError, match=r"PSD, on the coordinates 0 to 3, needs one step"):
        penalty.prox(z, np.arange(1.0, 7.0))


def test_parts_that_need_one_step_in_a_run():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 6)), rng.standard_normal(30)
    penalty = Separable([(slice(0, 4), PSD(2)), (slice(4, 6), L1(0.1))])
    best = minimize(Squared(A, b), penalty=penalty, eta=1.0, blocks="all", max_iter=5000, tol=1e-8)
    blocks = minimize(
        Squared(A, b), penalty=penalty, eta=1.0, blocks=[0, 0, 0, 0, 1, 2], max_iter=5000, tol=1e-8
    )
    numerical = Separable(
        [(slice(0, 4), NumericalProx(PSD(2), accuracy=1e-12)), (slice(4, 6), L1(0.1))]
    )
    single = minimize(Squared(A, b), penalty=numerical, eta=1.0, max_iter=5000, tol=1e-8)
    assert best.success
    assert blocks.success
    assert single.success
    np.testing.assert_allclose(blocks.x, best.x, atol=1e-6)
    np.testing.assert_allclose(single.x, best.x, atol=1e-6)
    with pytest.raises(ValueError, match=r"PSD has no exact proximal operator"):
        minimize(Squared(A, b), penalty=penalty, eta=1.0)
    scaled = AdaGradDiff(eta=1.0, blocks="all", scale=np.arange(1.0, 7.0))
    with pytest.raises(ValueError, match=r"PSD.* one step"):
        minimize(Squared(A, b), penalty=penalty, rule=scaled)


def test_wrappers_ask_the_penalty_inside():
    for wrap in (
        lambda p: Scaled(p, 2.0),
        lambda p: Translated(p, 1.0),
        lambda p: Precomposed(p, [2.0, -2.0, 2.0, 2.0]),
    ):
        assert wrap(L1(1.0)).accepts == "diagonal"
        assert wrap(PSD(2)).accepts == "scalar"
        wrap(PSD(2)).check_metric(None, True)
        with pytest.raises(ValueError, match=r"PSD has no exact proximal operator"):
            wrap(PSD(2)).check_metric(None, False)
        with pytest.raises(
            ValueError,
            match=r"has 4 entries, but there are 5|vectors with 4 coordinates, but there are 5",
        ):
            wrap(PSD(2)).check_size(5)
    z = np.array([1.0, 2.0, 2.0, 1.0])
    np.testing.assert_allclose(
        Precomposed(PSD(2), -2.0).prox(z, np.array([0.7])), -PSD(2).prox(-z, 1.0), rtol=1e-14
    )
    np.testing.assert_allclose(
        Scaled(L2(1.0), 2.0).prox([3.0, 4.0], np.array([1.0])), [1.8, 2.4], rtol=1e-14
    )
    assert NumericalProx(PSD(2)).accepts == "diagonal"
    NumericalProx(PSD(2)).check_metric(None, False)


def test_rescaled_parts_need_the_same_factor():
    """A part that needs one step does not get it from different factors."""
    parts = Separable([(slice(0, 4), PSD(2)), (slice(4, 6), L1(1.0))])
    Precomposed(parts, 2.0).check_metric(np.array([0, 0, 0, 0, 1, 2]), False)
    with pytest.raises(ValueError, match=r"Separable needs one step for several coordinates"):
        Precomposed(parts, [2, 2, -2, 2, 3, 4])


@pytest.mark.parametrize(
    "inner",
    [L1(0.7), Hyperplane(np.linspace(-1, 2, 6), 1.0), L2(1.3), Box(-0.1, 0.3)],
    ids=lambda p: p.name,
)
def test_numerical_prox_is_the_exact_one(inner):
    """Of penalties whose prox is known in any metric."""
    rng = np.random.default_rng(0)
    penalty = NumericalProx(inner, accuracy=1e-11)
    for z in (
        rng.standard_normal(6),
        1e6 * rng.standard_normal((6, 3)),
        1e-6 * rng.standard_normal((6, 2)),
    ):
        step = 10.0 ** rng.uniform(-1, 1, z.shape)
        exact = inner.prox(z, step)
        scale = max(np.abs(z).max(), np.abs(exact).max())
        np.testing.assert_allclose(penalty.prox(z, step), exact, rtol=0, atol=1e-9 * scale)
    x = inner.prox(z, 1.0)
    if "set" in inner.properties:
        assert penalty.prox(x, step).tobytes() == x.tobytes()
    assert penalty.value(x[:, 0]) == inner.value(x[:, 0])
    assert penalty.properties == inner.properties


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numerical_prox_of_matrices(dtype):
    """Z - X, weighted, is negative semidefinite and orthogonal to X; the same result every time, and for each trajectory."""
    rng = np.random.default_rng(1)
    penalty = NumericalProx(PSD(4), accuracy=1e-9)
    z = rng.standard_normal((16, 3)).astype(dtype)
    step = (10.0 ** rng.uniform(-1, 1, (16, 3))).astype(dtype)
    x = penalty.prox(z, step)
    assert x.dtype == dtype
    np.testing.assert_array_equal(penalty.prox(z, step), x)
    near = 1e-7 if dtype == np.float64 else 1e-4
    for k in range(3):
        np.testing.assert_array_equal(penalty.prox(z[:, k].copy(), step[:, k].copy()), x[:, k])
        u = ((z - x) / step)[:, k].reshape(4, 4).astype(float)
        assert np.linalg.eigvalsh((u + u.T) / 2).max() <= near * np.abs(u).max()
        assert abs(np.sum(u.ravel() * x[:, k])) <= near * np.abs(u).max() * np.abs(x).max()
    z[3, 1] = np.nan
    np.testing.assert_array_equal(np.isnan(penalty.prox(z, step)).all(axis=0), [False, True, False])
    np.testing.assert_array_equal(
        penalty.prox(z[:, 0], 2.0), PSD(4).prox(z[:, 0], 2.0)
    )  # nothing to iterate


def test_numerical_prox_says_when_it_has_not_arrived():
    penalty = NumericalProx(PSD(3), max_iter=20)
    rng = np.random.default_rng(0)
    with pytest.raises(
        RuntimeError,
        match=r"has not reached the accuracy 1e-08 in 20 steps: .* differ by a factor of .*max_iter",
    ):
        penalty.prox(rng.standard_normal(9), 10.0 ** rng.uniform(-8, 9, 9))
