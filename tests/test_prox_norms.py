"""Norms, and the balls of norms: twins, optimality conditions, conjugates, and the edges of their definitions."""

import warnings

import numpy as np
import pytest

from adagrad_diff import AdaGradDiff, Squared, minimize
from adagrad_diff.penalties import L1, _groups
from adagrad_diff.penalties.group_l2 import GroupL2
from adagrad_diff.penalties.huber import HuberPenalty
from adagrad_diff.penalties.l1_ball import L1Ball
from adagrad_diff.penalties.l2 import L2
from adagrad_diff.penalties.l2_ball import L2Ball
from adagrad_diff.penalties.linf import LInf
from adagrad_diff.penalties.linf_ball import LInfBall
from adagrad_diff.penalties.nuclear import Nuclear
from adagrad_diff.penalties.simplex import Simplex
from adagrad_diff.penalties.slope import SLOPE
from adagrad_diff.penalties.sparse_group_l2 import SparseGroupL2
from prox_harness import STEPS, draw_step
from prox_norms import CASES

SETS = [Simplex(), Simplex(3.0), L1Ball(1.5), L2Ball(1.5), LInfBall(0.5)]
GROUPS = [5, -2, 5, 0, 0, 5, -2, 9]
NORMS = [
    GroupL2(0.7, GROUPS),
    GroupL2(0.7, GROUPS, [0.5, 2.0, 1.0, 3.0]),
    SparseGroupL2(0.4, 0.5, GROUPS),
    SparseGroupL2(0.4, 0.0, GROUPS),
    SparseGroupL2(0.0, 0.5, GROUPS),
    L2(1.3),
    LInf(1.7),
    SLOPE([2.0, 2.0, 1.5, 1.0, 0.5, 0.5, 0.0, 0.0]),
    Nuclear(0.9, (2, 4)),
]
every = pytest.mark.parametrize("case", CASES, ids=str)
each_set = pytest.mark.parametrize("penalty", SETS, ids=repr)
each_norm = pytest.mark.parametrize("penalty", NORMS, ids=lambda p: type(p).__name__)


def kinds(penalty):
    return STEPS[:1] if penalty.accepts == "scalar" else STEPS


def points(d, rng):
    """Ordinary, huge, tiny, mixed and tied points, and zeros of both signs."""
    z = rng.standard_normal(d)
    yield from (z, 1e10 * z, 1e-12 * z, z * 10.0 ** rng.uniform(-12, 10, d), rng.integers(-3, 4, d) * 1.0, 0.0 * z)


def distance(x, y, step):
    """In the metric of the prox: a relative error of z changes the prox by no more than that, in this norm."""
    return np.sqrt(np.sum((x.astype(float) - y) ** 2 / step, axis=0))


# ---------------------------------------------------------------- all of them


@every
@pytest.mark.parametrize("d", [1, 2, 3, 7, 40, 200])
def test_prox(case, d):
    """Against the twin and the optimality condition."""
    rng, d = np.random.default_rng(d), case.size(d)
    penalty = case.make(d, rng)
    for kind in kinds(penalty):
        step = draw_step(kind, d, rng)
        for z in points(d, rng):
            before = z.copy()
            x, twin = penalty.prox(z, step), case.naive(penalty, z, step)
            assert x.dtype == np.float64
            np.testing.assert_array_equal(z, before)
            assert np.isfinite(penalty.value(x))
            assert case.violation(penalty, z, step, x) <= 1e-12
            assert distance(x, twin, step) <= 1e-13 * (distance(z, 0.0, step) + distance(twin, 0.0, step))


@every
@pytest.mark.parametrize("d", [1, 6, 150])
def test_single_precision(case, d):
    rng, d = np.random.default_rng(d), case.size(d)
    penalty = case.make(d, rng)
    for kind in kinds(penalty):
        step = draw_step(kind, d, rng).astype(np.float32)
        for point in points(d, rng):
            z = point.astype(np.float32)
            x = penalty.prox(z, step)
            assert x.dtype == np.float32
            assert np.isfinite(penalty.value(x))
            assert case.violation(penalty, *(v.astype(float) for v in (z, step, x))) <= 1e-6


@every
def test_large(case):
    """A million coordinates, or as many as the sort and the singular values leave time for."""
    rng = np.random.default_rng(0)
    d = case.size({"Nuclear": 10_000, "SLOPE": 20_000}.get(case.name, 1_000_000))
    penalty = case.make(d, rng) if "GroupL2" not in case.name else GroupL2(0.7, np.arange(d) // (d // 7))
    violation = case.violation if "GroupL2" not in case.name else CASES[0].violation
    step = draw_step(kinds(penalty)[-1], d, rng)
    z = rng.standard_normal(d)
    assert violation(penalty, z, step, penalty.prox(z, step)) <= 1e-11
    x = penalty.prox(z.astype(np.float32), step.astype(np.float32))
    assert np.isfinite(penalty.value(x))


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trajectories_one_by_one(case, dtype):
    """Every shape of step, memory layouts, and writing in place."""
    rng, d = np.random.default_rng(1), case.size(30)
    penalty = case.make(d, rng)
    z = (3 * rng.standard_normal((d, 4))).astype(dtype)
    steps = [0.3, 10.0 ** rng.uniform(-2, 2, (1, 4))]
    if penalty.accepts == "diagonal":
        steps += [10.0 ** rng.uniform(-2, 2, d), 10.0 ** rng.uniform(-2, 2, (d, 4))]
    for step in steps:
        full = np.broadcast_to(step[:, None] if np.ndim(step) == 1 else step, z.shape)
        columns = np.stack([penalty.prox(z[:, k].copy(), full[:, k].copy()) for k in range(4)], axis=1)
        values = [penalty.value(columns[:, k].copy()) for k in range(4)]
        for layout in (np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, axis=0)[::2]):
            own = layout(z.copy())
            result = penalty.prox(own, step)
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, columns)
            np.testing.assert_array_equal(own, z)
            assert penalty.prox(own, step, out=own) is own
            np.testing.assert_array_equal(own, columns)
        out = np.full_like(z, np.nan)
        assert penalty.prox(z, step, out) is out
        np.testing.assert_array_equal(out, columns)
        value = penalty.value(columns)
        assert value.shape == (4,)
        np.testing.assert_allclose(value, values, rtol=1e-6)
    line = z[:, 0].copy()
    assert penalty.prox(line, 0.3, out=line) is line
    np.testing.assert_array_equal(line, penalty.prox(z[:, 0].copy(), 0.3))
    np.testing.assert_array_equal(penalty.prox(z[:, 0], 0.3), line)  # a strided column
    np.testing.assert_array_equal(penalty.prox(z[:, :1], 0.3), line[:, None])
    assert isinstance(penalty.prox(line.tolist(), 0.3), np.ndarray)


@every
def test_prox_moves_points_together(case):
    """Firm nonexpansiveness in the metric: ||p - q||^2 <= <p - q, y - z>."""
    rng, d = np.random.default_rng(2), case.size(25)
    penalty = case.make(d, rng)
    for kind in kinds(penalty):
        for scale in (0.1, 1.0, 30.0):
            step = draw_step(kind, d, rng)
            y, z = scale * rng.standard_normal((2, d))
            moved = penalty.prox(y, step) - penalty.prox(z, step)
            rounding = 1e-12 * np.sum((y**2 + z**2) / step)
            assert np.sum(moved**2 / step) <= np.sum(moved * (y - z) / step) + rounding


@every
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_so(case, bad):
    rng, d = np.random.default_rng(3), case.size(20)
    penalty = case.make(d, rng)
    if bad == np.inf and case.name == "LInfBall":
        return  # whose prox is finite
    for kind in kinds(penalty):
        step = draw_step(kind, d, rng)
        z = rng.standard_normal((d, 3))
        z[d // 2, 1] = bad
        with np.errstate(invalid="ignore"):
            x = penalty.prox(z, np.broadcast_to(step[:, None], z.shape))
        assert not np.isfinite(x[:, 1]).all()
        np.testing.assert_array_equal(x[:, [0, 2]], penalty.prox(z[:, [0, 2]], step))
        assert not np.isfinite(penalty.value(x)[1])
        with np.errstate(invalid="ignore"):
            assert not np.isfinite(penalty.prox(z[:, 1].copy(), step)).all()


@pytest.mark.parametrize("penalty", [L2(1.0), LInf(1.0), *SETS[:4], SLOPE(np.ones(9)), Nuclear(1.0, (3, 3))], ids=repr)
def test_nan_spreads_where_coordinates_depend_on_each_other(penalty):
    z = np.arange(9.0)
    z[4] = np.nan
    for step in (0.5, np.arange(1.0, 10.0))[: 2 if penalty.accepts == "diagonal" else 1]:
        assert np.isnan(penalty.prox(z, step)).all()


@pytest.mark.peer
@every
def test_prox_is_what_a_convex_solver_finds(case):
    import cvxpy as cp

    rng, d = np.random.default_rng(4), case.size(12)
    for penalty in (case.make(d, rng), case.make(d, rng)):
        for kind in kinds(penalty)[:2]:
            z = 2 * rng.standard_normal(d)
            step = np.full(d, 0.8) if kind == "one" else 10.0 ** rng.uniform(-1, 1, d)
            x = cp.Variable(d)
            term, constraints = case.cvx(penalty, x)
            problem = cp.Problem(cp.Minimize(term + cp.sum(cp.multiply(0.5 / step, cp.square(x - z)))), constraints)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Solution may be inaccurate")  # near the apex of a cone it cannot be better
                problem.solve(cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
            theirs, best = x.value, problem.value
            x.value = penalty.prox(z, step)
            np.testing.assert_allclose(x.value, theirs, atol=1e-4 if "L2" in case.name else 1e-6)
            assert problem.objective.value <= best + 1e-9 * (1 + abs(best))
            # and the value is that of the same function
            y = penalty.prox(rng.standard_normal(d), 0.1)
            x.value = y
            assert penalty.value(y) == pytest.approx(float(getattr(term, "value", term)), rel=1e-8)


# ---------------------------------------------------------------- conjugates


@each_norm
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_polar(penalty, dtype):
    """y is a subgradient of t phi at 0 iff the prox with step t is 0 at y."""
    rng = np.random.default_rng(5)
    y = (rng.standard_normal((8, 5)) * 10.0 ** rng.uniform(-3, 3, 5)).astype(dtype)
    t = penalty.polar(y)
    assert t.shape == (5,)
    np.testing.assert_allclose([penalty.polar(column) for column in y.T.copy()], t, rtol=1e-6)
    y, near = y.astype(float), 1e-10 if dtype == np.float64 else 1e-6
    np.testing.assert_array_equal(penalty.prox(y, t[None] * (1 + near)), 0.0 * y)
    assert np.all(np.any(penalty.prox(y, t[None] * (1 - near)) != 0, axis=0))
    np.testing.assert_array_equal(penalty.conjugate(y / (t * (1 + 1e-12))), 0.0)
    np.testing.assert_array_equal(penalty.conjugate(y / (t * (1 - 1e-8))), np.inf)
    assert penalty.conjugate((y[:, 0] / t[0]).astype(dtype)) == 0.0
    assert penalty.polar(np.zeros(8, dtype)) == 0.0
    assert np.isnan(penalty.polar(np.full(8, np.nan)))
    assert penalty.conjugate(np.full(8, np.nan)) == np.inf


@each_norm
def test_norms_are_norms(penalty):
    assert penalty.properties == {"norm"}
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((2, 8, 100))
    np.testing.assert_allclose(penalty.value(-3.0 * x), 3.0 * penalty.value(x), rtol=1e-13)
    assert np.all(penalty.value(x + y) <= (penalty.value(x) + penalty.value(y)) * (1 + 1e-14))
    assert np.all(np.sum(x * y, axis=0) <= penalty.value(x) * penalty.polar(y) * (1 + 1e-12))
    # equality for y a subgradient at x, which the prox provides
    p = penalty.prox(5 * x, 0.5)
    np.testing.assert_allclose(penalty.polar((5 * x - p) / 0.5), 1.0, rtol=1e-10)
    assert penalty.value(np.zeros(8)) == 0.0


@pytest.mark.parametrize(
    "penalty",
    [GroupL2(0.0, [0, 1, 0]), SparseGroupL2(0.0, 0.0, [0, 1, 0]), L2(0.0), LInf(0.0), SLOPE([0, 0, 0]), Nuclear(0, (1, 3))],
    ids=lambda p: type(p).__name__,
)
def test_strength_zero(penalty):
    z = np.array([1.0, -2e10, 3e-12])
    np.testing.assert_array_equal(penalty.prox(z, 5.0), z)
    assert penalty.value(z) == 0.0
    assert penalty.polar(z) == np.inf
    assert penalty.polar(0 * z) == 0.0
    np.testing.assert_array_equal(penalty.conjugate(np.stack([z, 0 * z], axis=1)), [np.inf, 0.0])


@each_set
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
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


@pytest.mark.parametrize("lam", [0.0, 0.8])
def test_conjugate_of_huber(lam):
    penalty, grid = HuberPenalty(lam, 0.6), np.linspace(-5, 5, 100_001)
    value = np.array([penalty.value(np.array([x])) for x in (-2.0, 0.3, 0.6)])
    np.testing.assert_allclose(value, lam * np.array([0.6 * 1.7, 0.045, 0.18]), rtol=1e-14)
    for y in (0.0, 0.1, -0.3, 0.48):
        brute = np.max(grid * y - penalty.value(grid[None]))
        expected = brute if abs(y) <= lam * 0.6 else np.inf
        assert penalty.conjugate(np.array([y])) == pytest.approx(expected, abs=1e-8)
    assert penalty.conjugate(np.array([0.1, 0.5])) == np.inf
    np.testing.assert_array_equal(penalty.conjugate(np.array([[0.0, 0.5], [0.0, 0.0]])), [0.0, np.inf])
    assert penalty.properties == {"separable"}


# ---------------------------------------------------------------- sets


@each_set
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 5, 3000])
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


@pytest.mark.parametrize("kind", [Simplex, L1Ball, L2Ball])
@pytest.mark.parametrize("radius", [1e-12, 1.0, 1e10])
def test_sums_are_right_beside_numbers_of_any_size(kind, radius):
    """z is up to 1e10 and the steps from 1e-8 to 1e9: the radius must not drown in rounding."""
    rng, penalty = np.random.default_rng(9), kind(radius)
    for _ in range(100):
        z, step = rng.standard_normal(60) * 10.0 ** rng.uniform(-12, 10, 60), 10.0 ** rng.uniform(-8, 9, 60)
        assert penalty.value(penalty.prox(z, step)) == 0.0
        assert penalty.value(penalty.prox(1e10 * np.ones(60), step)) == 0.0


# ---------------------------------------------------------------- groups


def test_groups_of_any_order():
    rng = np.random.default_rng(10)
    groups, z, step = rng.integers(-9, 9, 40) * 3, rng.standard_normal(40), 10.0 ** rng.uniform(-2, 1, 40)
    weights, order = rng.uniform(0.5, 2.0, np.unique(groups).size), np.argsort(groups, kind="stable")
    x = GroupL2(0.5, groups, weights).prox(z, step)
    np.testing.assert_array_equal(x[order], GroupL2(0.5, groups[order], weights).prox(z[order], step[order]))
    for name, weight in zip(np.unique(groups), weights, strict=True):
        mine = groups == name
        np.testing.assert_allclose(x[mine], L2(0.5 * weight).prox(z[mine], step[mine]), rtol=1e-13)
    assert 0 < np.count_nonzero(x == 0) < 40


def test_groups_of_one_and_of_all():
    rng = np.random.default_rng(11)
    z, step = rng.standard_normal((20, 3)), 10.0 ** rng.uniform(-2, 1, (20, 3))
    np.testing.assert_allclose(GroupL2(0.5, np.arange(20)).prox(z, step), L1(0.5).prox(z, step), rtol=1e-15)
    np.testing.assert_allclose(GroupL2(0.5, np.zeros(20, int)).prox(z, step), L2(0.5).prox(z, step), rtol=1e-14)
    np.testing.assert_array_equal(SparseGroupL2(0.5, 0.0, np.zeros(20, int)).prox(z, step), L1(0.5).prox(z, step))
    np.testing.assert_allclose(SparseGroupL2(0.0, 0.5, np.zeros(20, int)).prox(z, step), L2(0.5).prox(z, step), rtol=1e-14)


@pytest.mark.parametrize("B", [None, 1, 3, 130, 300])
@pytest.mark.parametrize("largest", [2, 9, 256, 257])
def test_groups_of_all_sizes_in_tiles_and_threads(monkeypatch, largest, B):
    """More groups than a tile, of different sizes, in any order; in one thread and in three."""
    rng = np.random.default_rng(largest)
    labels = rng.permutation(np.concatenate([np.full(largest, 7), rng.integers(10, 180, 300)]))
    shape = labels.size if B is None else (labels.size, B)
    z, step = rng.standard_normal(shape), 10.0 ** rng.uniform(-3, 1, shape)
    penalty = SparseGroupL2(0.1, 0.7, labels)
    soft = np.sign(z) * np.maximum(np.abs(z) - 0.1 * step, 0.0)
    expected = np.empty_like(z)
    for label in np.unique(labels):
        expected[labels == label] = L2(0.7).prox(soft[labels == label], step[labels == label])
    for threads in (1, 3):
        monkeypatch.setattr(_groups, "thread_count", lambda work, threads=threads: threads)
        np.testing.assert_allclose(penalty.prox(z, step), expected, rtol=1e-12, atol=1e-14)
        target = z.copy()
        penalty.prox(target, step, out=target)
        np.testing.assert_allclose(target, expected, rtol=1e-12, atol=1e-14)


def test_a_group_of_weight_zero_is_not_penalised():
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


def test_long_vectors_start_from_a_sample():
    """A sample that says nothing about the rest, in either direction."""
    rng, d = np.random.default_rng(12), 5000
    for quiet in (slice(None, None, 32), slice(1, None, 2)):
        z, step = rng.standard_normal(d), 10.0 ** rng.uniform(-8, 9, d)
        z[quiet] *= 1e-9
        for lam in (1e-3, 1.0, 1e3):
            x, h = L2(lam).prox(z, step), np.linalg.norm(L2(lam).prox(z, step))
            np.testing.assert_allclose(x + step * lam * x / h, z, rtol=1e-12)
            x = L2Ball(lam / 30).prox(z, step)
            assert np.linalg.norm(x) == pytest.approx(min(lam / 30, np.linalg.norm(z)), rel=1e-12)
    assert not L2(1.0).prox(np.where(np.arange(d) % 32, 0.0, 0.9 / np.sqrt(d / 32)), rng.uniform(1.0, 1.1, d)).any()


# ---------------------------------------------------------------- definitions


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GroupL2(-1.0, [0]), r"'lam' parameter of GroupL2 must be a number >= 0"),
        (lambda: GroupL2(1.0, [0.5, 1.0]), r"'groups' parameter of GroupL2 must be a vector of integers"),
        (lambda: GroupL2(1.0, []), r"'groups' parameter of GroupL2"),
        (lambda: GroupL2(1.0, [[0, 1]]), r"'groups' parameter of GroupL2"),
        (lambda: GroupL2(1.0, [True, False]), r"'groups' parameter of GroupL2"),
        (lambda: GroupL2(1.0, [3, 7, 3], [1.0]), r"one number >= 0 per group, here 2"),
        (lambda: GroupL2(1.0, [3, 7], [1.0, -1.0]), r"one number >= 0 per group"),
        (lambda: GroupL2(1.0, [3, 7], [1.0, np.nan]), r"one number >= 0 per group"),
        (lambda: SparseGroupL2(np.inf, 1.0, [0]), r"'l1' parameter of SparseGroupL2"),
        (lambda: SparseGroupL2(1.0, -1.0, [0]), r"'l2' parameter of SparseGroupL2"),
        (lambda: SparseGroupL2(1.0, 1.0, [0.0]), r"'groups' parameter of SparseGroupL2"),
        (lambda: L2("x"), r"'lam' parameter of L2 "),
        (lambda: LInf(None), r"'lam' parameter of LInf "),
        (lambda: HuberPenalty(1.0, 0.0), r"'delta' parameter of HuberPenalty must be a positive number"),
        (lambda: HuberPenalty(-1.0, 1.0), r"'lam' parameter of HuberPenalty"),
        (lambda: SLOPE([1.0, 2.0]), r"'lams' parameter of SLOPE must not increase.*entry 1 is larger"),
        (lambda: SLOPE([1.0, -1.0]), r"'lams' parameter of SLOPE must be a vector of numbers >= 0"),
        (lambda: SLOPE([]), r"'lams' parameter of SLOPE"),
        (lambda: SLOPE(1.0), r"'lams' parameter of SLOPE"),
        (lambda: Nuclear(1.0, (2, 0)), r"'shape' parameter of Nuclear must be two integers >= 1"),
        (lambda: Nuclear(1.0, (2, 2, 2)), r"'shape' parameter of Nuclear"),
        (lambda: Nuclear(1.0, 4), r"'shape' parameter of Nuclear"),
        (lambda: Nuclear(1.0, (2.0, 2)), r"'shape' parameter of Nuclear"),
        (lambda: Nuclear(np.nan, (2, 2)), r"'lam' parameter of Nuclear"),
        (lambda: Simplex(-1.0), r"'radius' parameter of Simplex must be a number >= 0"),
        (lambda: L1Ball(np.nan), r"'radius' parameter of L1Ball"),
        (lambda: L2Ball(np.inf), r"'radius' parameter of L2Ball"),
        (lambda: LInfBall(-1.0), r"'radius' parameter of LInfBall"),
    ],
)
def test_impossible_definitions(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "penalty", [GroupL2(1.0, [0, 1]), SparseGroupL2(1.0, 1.0, [0, 1]), SLOPE([1.0, 1.0]), Nuclear(1.0, (1, 2))]
)
def test_size(penalty):
    penalty.check_size(2)
    with pytest.raises(ValueError, match=rf"^{type(penalty).__name__} .*, but there are 3 penalised coordinates"):
        penalty.check_size(3)


def test_repr():
    assert repr(Simplex()) == "Simplex(radius=1.0)"
    assert repr(LInfBall(2)) == "LInfBall(radius=2.0)"
    assert repr(Nuclear(1, [2, 3])) == "Nuclear(lam=1.0, shape=(2, 3))"
    assert repr(HuberPenalty(1, 2)) == "HuberPenalty(lam=1.0, delta=2.0)"
    assert repr(GroupL2(1, [0, 1])) == "GroupL2(lam=1.0, groups=array([0, 1]), weights=None)"
    assert repr(SparseGroupL2(1, 2, [0, 1])) == "SparseGroupL2(l1=1.0, l2=2.0, groups=array([0, 1]))"


@pytest.mark.parametrize("penalty", [SLOPE([1.0, 0.5]), Nuclear(1.0, (1, 2))])
def test_one_step_only(penalty):
    z = np.array([3.0, -2.0])
    np.testing.assert_array_equal(penalty.prox(z, [0.5, 0.5]), penalty.prox(z, 0.5))
    with pytest.raises(ValueError, match="no exact proximal operator in a metric with more than one weight"):
        penalty.prox(z, [0.5, 0.6])


def test_nuclear_reads_row_by_row():
    """A matrix of rank one, of which soft-thresholding leaves a multiple."""
    matrix = np.outer([1.0, 2.0], [2.0, 0.0, 1.0])
    singular = np.sqrt(5.0) * np.sqrt(5.0)
    np.testing.assert_allclose(Nuclear(1.0, (2, 3)).prox(matrix.ravel(), 1.0), matrix.ravel() * (1 - 1 / singular), atol=1e-15)
    assert Nuclear(2.0, (2, 3)).value(matrix.ravel()) == pytest.approx(2 * singular)
    assert Nuclear(2.0, (2, 3)).polar(matrix.ravel()) == pytest.approx(singular / 2)


@pytest.mark.parametrize(
    "penalty",
    [
        GroupL2(0.5, [0, 1, 0, 1]),
        SparseGroupL2(0.2, 0.5, [0, 0, 1, 1]),
        L2(1.0),
        LInf(2.0),
        HuberPenalty(1.0, 0.5),
        SLOPE([1.0, 0.8, 0.5, 0.1]),
        Nuclear(1.0, (2, 2)),
        Simplex(),
        L1Ball(1.0),
        L2Ball(1.0),
        LInfBall(1.0),
    ],
    ids=lambda p: type(p).__name__,
)
def test_minimize_ends_at_a_prox(penalty):
    """The minimiser of ||x - target||^2 / 2 + phi is the prox of the target, whichever metric the solver takes."""
    target = np.array([3.0, -4.0, 0.5, 12.0])
    blocks = "all" if penalty.accepts == "scalar" else None
    loss, rule = Squared(2 * np.eye(4), 2 * target), AdaGradDiff(eta=3.0, blocks=blocks)
    result = minimize(loss, penalty=penalty, rule=rule, max_iter=5000, tol=1e-11, on_failure="ignore")
    np.testing.assert_allclose(result.x, penalty.prox(target, 1.0), atol=1e-7)
