"""Norms, and the balls of norms: twins, optimality conditions, conjugates, and the edges of their definitions."""

import numpy as np
import pytest

from adagrad_diff import AdaGradDiff, Squared, minimize
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
from looping import looped
from prox_harness import distance, draw_step, points
from prox_norms import CASES

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
each_norm = pytest.mark.parametrize("penalty", NORMS, ids=lambda p: type(p).__name__)


@every
@looped("d", [1, 2, 3, 7, 70])
def test_prox(case, d):
    """Against the twin and the optimality condition."""
    rng, d = np.random.default_rng(d), case.size(d)
    penalty = case.make(d, rng)
    for kind in case.steps:
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
def test_large(case):
    """Many coordinates, or as many as the sort and the singular values leave time for."""
    rng = np.random.default_rng(0)
    d = case.size({"Nuclear": 10_000, "SLOPE": 20_000}.get(case.name, 300_000))
    penalty = case.make(d, rng) if "GroupL2" not in case.name else GroupL2(0.7, np.arange(d) // (d // 7))
    violation = case.violation if "GroupL2" not in case.name else CASES[0].violation
    step = draw_step(case.steps[-1], d, rng)
    z = rng.standard_normal(d)
    assert violation(penalty, z, step, penalty.prox(z, step)) <= 1e-11
    x = penalty.prox(z.astype(np.float32), step.astype(np.float32))
    assert np.isfinite(penalty.value(x))


@looped(
    ("case", "bad"),
    [(case, bad) for case in CASES for bad in (np.nan, np.inf) if (case.name, bad) != ("LInfBall", np.inf)],
)
def test_what_is_not_finite_stays_so(case, bad):
    rng, d = np.random.default_rng(3), case.size(20)
    penalty = case.make(d, rng)
    for kind in case.steps:
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


@pytest.mark.parametrize(
    "penalty",
    [L2(1.0), LInf(1.0), Simplex(), Simplex(3.0), L1Ball(1.5), L2Ball(1.5), SLOPE(np.ones(9)), Nuclear(1.0, (3, 3))],
    ids=repr,
)
def test_nan_spreads_where_coordinates_depend_on_each_other(penalty):
    z = np.arange(9.0)
    z[4] = np.nan
    for step in (0.5, np.arange(1.0, 10.0))[: 2 if penalty.accepts == "diagonal" else 1]:
        assert np.isnan(penalty.prox(z, step)).all()


@each_norm
@looped("dtype", [np.float32, np.float64])
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


@looped(
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
