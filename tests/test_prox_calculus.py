"""Penalties of single coordinates and what is made of them: twins, conditions, conjugates, and which metrics they accept."""

import warnings

import numpy as np
import pytest

from adagrad_diff import AdaGradDiff, Squared, minimize
from adagrad_diff.penalties import L1, Box, ElasticNet, NonNegative, Ridge, Zero
from adagrad_diff.penalties.hyperplane import Hyperplane
from adagrad_diff.penalties.l2 import L2
from adagrad_diff.penalties.numerical import NumericalProx
from adagrad_diff.penalties.psd import PSD
from adagrad_diff.penalties.separable import Separable, Unpenalised
from adagrad_diff.penalties.transformed import Precomposed, Scaled, Translated
from prox_calculus import CASES
from prox_harness import STEPS, draw_step

INF = np.inf
every = pytest.mark.parametrize("case", CASES, ids=str)
both = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def points(d, rng):
    """Ordinary, huge, tiny, mixed and tied points, and zeros of both signs."""
    z = rng.standard_normal(d)
    yield from (z, 1e10 * z, 1e-12 * z, z * 10.0 ** rng.uniform(-12, 10, d), rng.integers(-3, 4, d) * 1.0, 0.0 * z)


# ---------------------------------------------------------------- all of them


@every
@pytest.mark.parametrize("d", [1, 2, 5, 40, 200])
def test_prox(case, d):
    """Against the twin and the optimality condition."""
    rng, d = np.random.default_rng(d), case.size(d)
    penalty = case.make(d, rng)
    moved = 0.0 if "Translated" not in case.name and "nested" not in case.name else 1e-15  # relative to the shift
    for kind in STEPS:
        step = draw_step(kind, d, rng)
        for z in points(d, rng):
            before = z.copy()
            x, twin = penalty.prox(z, step), case.naive(penalty, z, step)
            np.testing.assert_array_equal(z, before)
            assert np.isfinite(penalty.value(x))
            assert case.violation(penalty, z, step, x) <= 1e-14
            np.testing.assert_allclose(x, twin, rtol=1e-13, atol=max(moved, 1e-25 * np.abs(z).max()))
            if "set" in penalty.properties:
                assert penalty.prox(x, 1.0).tobytes() == x.tobytes()


@every
@pytest.mark.parametrize("d", [1, 6, 150])
def test_single_precision(case, d):
    rng, d = np.random.default_rng(d), case.size(d)
    penalty = case.make(d, rng)
    for kind in STEPS:
        step = draw_step(kind, d, rng).astype(np.float32)
        for point in points(d, rng):
            z = point.astype(np.float32)
            x = penalty.prox(z, step)
            assert x.dtype == np.float32
            assert np.isfinite(penalty.value(x))
            assert case.violation(penalty, *(v.astype(float) for v in (z, step, x))) <= 1e-6
            if "set" in penalty.properties:
                assert penalty.prox(x, 1.0).tobytes() == x.tobytes()


@every
@both
def test_trajectories_one_by_one(case, dtype):
    rng, d = np.random.default_rng(1), case.size(30)
    penalty = case.make(d, rng)
    z = (3 * rng.standard_normal((d, 4))).astype(dtype)
    for step in (0.3, 10.0 ** rng.uniform(-2, 2, (1, 4)), 10.0 ** rng.uniform(-2, 2, d), 10.0 ** rng.uniform(-2, 2, (d, 4))):
        full = np.broadcast_to(step[:, None] if np.ndim(step) == 1 else step, z.shape)
        columns = np.stack([penalty.prox(z[:, k].copy(), full[:, k].copy()) for k in range(4)], axis=1)
        for layout in (np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, axis=0)[::2]):
            own = layout(z.copy())
            result = penalty.prox(own, step)
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, columns)
            np.testing.assert_array_equal(own, z)
            assert penalty.prox(own, step, out=own) is own
            np.testing.assert_array_equal(own, columns)
        value = penalty.value(columns)
        assert value.shape == (4,)
        np.testing.assert_allclose(value, [penalty.value(columns[:, k].copy()) for k in range(4)], rtol=1e-6)
    line = z[:, 0].copy()
    assert penalty.prox(line, 0.3, out=line) is line
    np.testing.assert_array_equal(line, penalty.prox(z[:, 0], 0.3))


@every
def test_not_a_number(case):
    rng, d = np.random.default_rng(2), case.size(12)
    penalty = case.make(d, rng)
    z = rng.standard_normal((d, 3))
    expected = penalty.prox(z.copy(), 0.5)
    for place in range(d):
        bad = z.copy()
        bad[place, 1] = np.nan
        x = penalty.prox(bad, 0.5)
        np.testing.assert_array_equal(x[:, [0, 2]], expected[:, [0, 2]])
        assert np.isnan(x[place, 1])


@every
def test_conjugate(case):
    """phi(x) + phi*(u) >= <x, u>, with equality where u is a subgradient, as (z - x) / step is."""
    rng, d = np.random.default_rng(3), case.size(9)
    penalty = case.make(d, rng)
    z, step = 3 * rng.standard_normal((d, 8)), rng.uniform(0.5, 2.0, (d, 1))
    x = penalty.prox(z, step)
    u = (z - x) / step
    inner = np.sum(x * u, axis=0)
    np.testing.assert_allclose(penalty.value(x) + penalty.conjugate(u), inner, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose([penalty.conjugate(v.copy()) for v in u.T], penalty.conjugate(u), rtol=1e-12, atol=1e-12)
    other = penalty.prox(3 * rng.standard_normal((d, 40)), step)
    gap = penalty.value(other)[:, None] + penalty.conjugate(u) - other.T @ u
    assert (gap >= -1e-8 * (1 + np.abs(inner))).all()
    if {"norm", "seminorm"} & penalty.properties:
        polar = penalty.polar(u)
        assert polar.shape == (8,)
        assert (polar <= 1 + 1e-9).all()
        np.testing.assert_array_equal(penalty.conjugate(u), 0.0)
        big = rng.standard_normal((d, 8))  # polar(y) <= t iff the prox of y with step t is 0
        t = penalty.polar(big)
        for k in np.flatnonzero((t > 0) & (t < INF)):
            assert np.abs(penalty.prox(big[:, k].copy(), t[k] * (1 + 1e-9))).max() <= 1e-8
            assert np.abs(penalty.prox(big[:, k].copy(), t[k] * (1 - 1e-3))).max() > 0
            assert penalty.conjugate(big[:, k] / t[k] * (1 + 1e-6)) == INF
    else:
        with pytest.raises(ValueError, match=r"is not a norm or seminorm"):
            penalty.polar(u)


@pytest.mark.peer
@every
def test_prox_equals_the_solver(case):
    import cvxpy as cp

    for size in (2, 9):
        rng, d = np.random.default_rng(size), case.size(size)
        penalty = case.make(d, rng)
        for kind in STEPS[:2]:
            z, step = 2 * rng.standard_normal(d), draw_step(kind, d, rng)
            root = np.sqrt(step.min() / step)
            x = cp.Variable(d)
            term, constraints = case.cvx(penalty, x)
            objective = cp.sum_squares(cp.multiply(x - z, root)) / 2 + step.min() * term
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", module="cvxpy")
                tight = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
                cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL", **tight)
            np.testing.assert_allclose(root * penalty.prox(z, step), root * x.value, atol=1e-6)


# ---------------------------------------------------------------- conjugates in numbers


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
    np.testing.assert_array_equal(NonNegative().conjugate(np.array([[-1.0, 1.0], [0.0, -1.0]])), [0.0, INF])
    np.testing.assert_array_equal(Zero().polar(np.array([[0.0, 1.0]])), [0.0, INF])
    assert Scaled(L1(1.0), 4.0).polar([2.0]) == 0.5
    assert Precomposed(L1(1.0), [2.0, -4.0]).polar([2.0, 2.0]) == 1.0
    assert Translated(Box(0.0, 1.0), 10.0).conjugate([2.0, -1.0]) == 2.0 + 10.0
    assert Scaled(Box(0.0, 1.0), 10.0).conjugate([2.0, -1.0]) == 2.0
    assert Separable([([1], L1(1.0))]).conjugate([0.0, 1.0]) == 0.0
    assert Separable([([1], L1(1.0))]).conjugate([1e-3, 1.0]) == INF


# ---------------------------------------------------------------- sums of parts


def test_parts():
    penalty = Separable([([4, 0], L1([1.0, 2.0])), (slice(1, 3), Box(0.0, 1.0)), ([], Ridge(1.0))])
    z = np.array([5.0, 5.0, -5.0, 5.0, 5.0])
    np.testing.assert_array_equal(penalty.prox(z, 1.0), [3.0, 1.0, 0.0, 5.0, 4.0])
    assert penalty.value(np.array([3.0, 1.0, 0.0, 5.0, 4.0])) == 10.0
    assert penalty.value(np.array([3.0, 1.5, 0.0, 5.0, 4.0])) == INF
    for size in (5, 7, 5):  # one object for vectors of different sizes
        np.testing.assert_array_equal(penalty.prox(np.full(size, 5.0), 1.0)[3:], [5.0, 4.0, *[5.0] * (size - 5)])
    np.testing.assert_array_equal(Separable([]).prox(z, 1.0), z)
    assert Separable([(slice(None), Box(0, 1))]).properties == {"separable", "set"}
    assert Separable([([0], L1(1.0)), ([1], Box(0, 1))]).properties == {"separable"}
    assert Separable([([0], L1(1.0)), ([1], L2(1.0))]).properties == {"seminorm"}
    np.testing.assert_array_equal(Separable([(slice(None, None, -1), L1([0.0, 1.0]))]).prox([3.0, 3.0], 1.0), [2.0, 3.0])


class Lasso:
    """A user's penalty with two methods."""

    def value(self, x):
        return np.sum(np.abs(x), axis=0)

    def prox(self, z, step):
        return np.sign(z) * np.maximum(np.abs(z) - step, 0.0)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda p: Separable([(slice(0, 3), p), ([4, 3], p)]),
        lambda p: Scaled(p, 2.0),
        lambda p: Translated(p, 1.0),
        lambda p: Precomposed(p, -2.0),
        lambda p: Unpenalised(p, 0),
    ],
    ids=["Separable", "Scaled", "Translated", "Precomposed", "Unpenalised"],
)
def test_penalties_that_users_write(wrap):
    rng = np.random.default_rng(0)
    for z in (rng.standard_normal(5), rng.standard_normal((5, 3))):
        step = rng.uniform(0.1, 1.0, z.shape)
        np.testing.assert_allclose(wrap(Lasso()).prox(z, step), wrap(L1(1.0)).prox(z, step), rtol=1e-14)
        np.testing.assert_allclose(wrap(Lasso()).value(z), wrap(L1(1.0)).value(z), rtol=1e-14)


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


# ---------------------------------------------------------------- metrics


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
    best = minimize(Squared(A, b), penalty=penalty, eta=1.0, blocks="all", max_iter=20_000, tol=1e-9)
    blocks = minimize(Squared(A, b), penalty=penalty, eta=1.0, blocks=[0, 0, 0, 0, 1, 2], max_iter=20_000, tol=1e-9)
    numerical = Separable([(slice(0, 4), NumericalProx(PSD(2), accuracy=1e-12)), (slice(4, 6), L1(0.1))])
    single = minimize(Squared(A, b), penalty=numerical, eta=1.0, max_iter=20_000, tol=1e-9)
    assert best.success
    assert blocks.success
    assert single.success
    np.testing.assert_allclose(blocks.x, best.x, atol=1e-7)
    np.testing.assert_allclose(single.x, best.x, atol=1e-7)
    with pytest.raises(ValueError, match=r"PSD has no exact proximal operator"):
        minimize(Squared(A, b), penalty=penalty, eta=1.0)
    scaled = AdaGradDiff(eta=1.0, blocks="all", scale=np.arange(1.0, 7.0))
    with pytest.raises(ValueError, match=r"PSD.* one step"):
        minimize(Squared(A, b), penalty=penalty, rule=scaled)


def test_wrappers_ask_the_penalty_inside():
    for wrap in (lambda p: Scaled(p, 2.0), lambda p: Translated(p, 1.0), lambda p: Precomposed(p, [2.0, -2.0, 2.0, 2.0])):
        assert wrap(L1(1.0)).accepts == "diagonal"
        assert wrap(PSD(2)).accepts == "scalar"
        wrap(PSD(2)).check_metric(None, True)
        with pytest.raises(ValueError, match=r"PSD has no exact proximal operator"):
            wrap(PSD(2)).check_metric(None, False)
        with pytest.raises(ValueError, match=r"has 4 entries, but there are 5|vectors with 4 coordinates, but there are 5"):
            wrap(PSD(2)).check_size(5)
    z = np.array([1.0, 2.0, 2.0, 1.0])
    np.testing.assert_allclose(Precomposed(PSD(2), -2.0).prox(z, np.array([0.7])), -PSD(2).prox(-z, 1.0), rtol=1e-14)
    np.testing.assert_allclose(Scaled(L2(1.0), 2.0).prox([3.0, 4.0], np.array([1.0])), [1.8, 2.4], rtol=1e-14)
    assert NumericalProx(PSD(2)).accepts == "diagonal"
    NumericalProx(PSD(2)).check_metric(None, False)


def test_rescaled_parts_need_the_same_factor():
    """A part that needs one step does not get it from different factors."""
    parts = Separable([(slice(0, 4), PSD(2)), (slice(4, 6), L1(1.0))])
    labels = np.array([0, 0, 0, 0, 1, 2])
    even, uneven = Precomposed(parts, [2, 2, -2, 2, 3, 4]), Precomposed(parts, [2, 3, 2, 2, 3, 4])
    for penalty in (even, uneven):
        penalty.check_size(6)
    even.check_metric(labels, False)
    even.check_metric(None, True)
    for metric in ((labels, False), (None, True), (np.zeros(6, int), True)):
        with pytest.raises(ValueError, match=r"PSD has no exact proximal operator"):
            uneven.check_metric(*metric)


# ---------------------------------------------------------------- by iteration


@pytest.mark.parametrize(
    "inner", [L1(0.7), Hyperplane(np.linspace(-1, 2, 6), 1.0), L2(1.3), Box(-0.1, 0.3)], ids=lambda p: p.name
)
def test_numerical_prox_is_the_exact_one(inner):
    """Of penalties whose prox is known in any metric."""
    rng = np.random.default_rng(0)
    penalty = NumericalProx(inner, accuracy=1e-11)
    for z in (rng.standard_normal(6), 1e6 * rng.standard_normal((6, 3)), 1e-6 * rng.standard_normal((6, 2))):
        step = 10.0 ** rng.uniform(-1, 1, z.shape)
        exact = inner.prox(z, step)
        scale = max(np.abs(z).max(), np.abs(exact).max())
        np.testing.assert_allclose(penalty.prox(z, step), exact, rtol=0, atol=1e-9 * scale)
    x = inner.prox(z, 1.0)
    if "set" in inner.properties:
        assert penalty.prox(x, step).tobytes() == x.tobytes()
    assert penalty.value(x[:, 0]) == inner.value(x[:, 0])
    assert penalty.properties == inner.properties


@both
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
    np.testing.assert_array_equal(penalty.prox(z[:, 0], 2.0), PSD(4).prox(z[:, 0], 2.0))  # nothing to iterate


@pytest.mark.parametrize("accuracy", [1e-2, 1e-4, 1e-8])
def test_numerical_prox_is_as_exact_as_it_says(accuracy):
    """The result is the prox of a point that differs from z by at most this, also where the steps are large."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z, step = rng.standard_normal(30), 10.0 ** rng.uniform(-2, 2, 30)
        x = NumericalProx(L1(0.3), accuracy=accuracy).prox(z, step)
        pull = 0.3 * step
        miss = np.where(x != 0, np.abs(x + pull * np.sign(x) - z), np.maximum(np.abs(z) - pull, 0.0))
        assert miss.max() <= accuracy * (1 + 1e-6) * max(np.abs(z).max(), np.abs(x).max())


def test_numerical_prox_says_when_it_has_not_arrived():
    penalty = NumericalProx(PSD(3), max_iter=20)
    rng = np.random.default_rng(0)
    with pytest.raises(
        RuntimeError, match=r"has not reached the accuracy 1e-08 in 20 steps: .* differ by a factor of .*max_iter"
    ):
        penalty.prox(rng.standard_normal(9), 10.0 ** rng.uniform(-8, 9, 9))


# ---------------------------------------------------------------- what cannot be defined

ERRORS = [
    (lambda: Separable([(slice(0, 3), L1(1)), ([2], L1(1))]), r"Part 1 of Separable names coordinates a second time"),
    (lambda: Separable([(slice(3, None), L1(1)), ([4], L1(1))]), r"Part 1 of Separable names coordinates a second time"),
    (lambda: Separable([([1, 1], L1(1))]), r"Part 0 of Separable names coordinates a second time"),
    (lambda: Separable([([0], L1(1)), ([-3], L1(1))]).check_size(3), r"Part 1 of Separable names coordinates a second time"),
    (lambda: Separable([([5], L1(1))]).check_size(5), r"Part 0 of Separable names 5, but there are 5 penalised coordinates"),
    (lambda: Separable([(slice(0, 6), L1(1))]).check_size(5), r"Part 0 of Separable names 6, but there are 5"),
    (lambda: Separable([([-6], L1(1))]).prox(np.ones(5), 1.0), r"Part 0 of Separable names -6, but there are 5"),
    (lambda: Separable([(slice(0, 3), L1([1, 2]))]).check_size(5), r"2 strengths, but there are 3"),
    (lambda: Separable([([0.5], L1(1))]), r"coordinates of part 0 of Separable must be a slice or integers"),
    (lambda: Separable([([[0]], L1(1))]), r"coordinates of part 0 of Separable must be a slice or integers"),
    (lambda: Separable([("a", L1(1))]), r"coordinates of part 0 of Separable must be a slice or integers"),
    (lambda: Separable([(1, 2, 3)]), r"'parts' parameter of Separable must be a list of pairs"),
    *(
        (lambda v=v: Scaled(L1(1), v), r"The 'factor' parameter of Scaled must be a number >= 0")
        for v in (-1, np.nan, INF, "a")
    ),
    (lambda: Scaled(Ridge(1.0), 0.0), r"The 'factor' parameter of Scaled is 0, but 0 times Ridge .* Use Zero\(\)"),
    (lambda: Translated(L1(1), [1.0, np.nan]), r"The 'shift' parameter of Translated must be a finite number"),
    (lambda: Translated(L1(1), [[1.0]]), r"The 'shift' parameter of Translated must be a finite number"),
    (lambda: Translated(L1(1), [1.0, 2.0]).check_size(3), r"The 'shift' of Translated has 2 entries, but there are 3"),
    (lambda: Translated(L1(1), [1.0, 2.0]).prox(np.ones(3), 1.0), r"has 2 entries, but there are 3"),
    (lambda: Precomposed(L1(1), [1.0, 0.0]), r"The 'diagonal' parameter of Precomposed has a zero"),
    (lambda: Precomposed(L1(1), [1.0, 2.0]).check_size(3), r"The 'diagonal' of Precomposed has 2 entries, but there are 3"),
    (lambda: Precomposed(PSD(2), [1.0, 2.0, 2.0, 1.0]), r"PSD needs one step .* Use NumericalProx\(penalty\) inside"),
    (lambda: NumericalProx(L1(1), accuracy=0.0), r"The 'accuracy' parameter of NumericalProx must be a positive number"),
    *((lambda n=n: NumericalProx(L1(1), max_iter=n), r"The 'max_iter' parameter of NumericalProx") for n in (0, 1.5, True)),
]


@pytest.mark.parametrize(("call", "sentence"), ERRORS)
def test_errors(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("call", [lambda: Separable([(0, 3.0)]), lambda: Scaled("l1", 2.0), lambda: Separable(3)])
def test_what_is_no_penalty(call):
    with pytest.raises(TypeError, match=r"'parts' parameter|'penalty' must be None or have methods"):
        call()
