"""Every penalty in every metric it accepts: naive formula, optimality condition, duality and a convex solver."""

import warnings

import numpy as np
import pytest

import prox_norms
from adagrad_diff import penalties
from complete import assert_complete
from looping import looped
from prox_calculus import CASES as CALCULUS
from prox_cases import CASES
from prox_harness import distance, draw_step, fenchel_violation, points, shifts

ROUND = (
    "L2",
    "GroupL2",
    "SparseGroupL2",
    "L2Ball",
)  # the solver is less exact on second-order cones than we are
LARGE = {
    "Nuclear": 400,
    "PSD": 400,
    "SLOPE": 5000,
}  # coordinates; the other penalties take more in the same time
every = pytest.mark.parametrize("case", CASES, ids=str)
both = looped("dtype", [np.float32, np.float64])


def test_every_penalty_has_a_case():
    kinds = {type(case.sample).__name__ for case in CASES}
    assert_complete(
        set(penalties.__all__) - {"Penalty", "NumericalProx"},
        kinds,
        "CASES in tests/cases/prox_*.py",
    )


@every
@looped("kind", lambda case: case.steps)
@looped("d", [1, 3, 24])
def test_prox(case, kind, d):
    """The prox agrees with the naive formula in both precisions, and leaves the points of a set where they are."""
    rng, d = np.random.default_rng(d), case.size(d)
    penalty, step = case.make(d, rng), draw_step(kind, d, rng)
    for z in points(d, rng):
        before = z.copy()
        x, expected = penalty.prox(z, step), case.naive(penalty, z, step)
        np.testing.assert_array_equal(z, before)
        sizes = np.abs(z) + np.abs(expected) + shifts(penalty)
        assert distance(x - expected, step) <= case.tolerance * distance(sizes, step)
        z32, step32 = z.astype(np.float32), step.astype(np.float32)
        x32 = penalty.prox(z32, step32)
        assert (x.dtype, x32.dtype) == (np.float64, np.float32)
        expected = case.naive(penalty, z32.astype(float), step32.astype(float))
        sizes = np.abs(z32) + np.abs(expected) + shifts(penalty)
        assert distance(x32 - expected, step32) <= 1e-6 * distance(sizes, step32)
        for point in (x, x32):
            if "set" in penalty.properties:
                assert penalty.value(point) == 0.0
                assert penalty.prox(point, draw_step("one", d, rng)).tobytes() == point.tobytes()
            else:
                assert np.isfinite(penalty.value(point))


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        # Without bounds, the rounding of a multiplier makes the support function of a box infinite.
        if case.name == "BoxHyperplane, narrow"
        or not ("," in case.name or case.name == "BoxHyperplane" or case in CALCULUS)
    ],
    ids=str,
)
def test_large(case):
    """Long vectors take other algorithms and several threads. The optimality condition holds there as well."""
    rng, d = np.random.default_rng(0), case.size(LARGE.get(case.name, 30_000))
    penalty, z, step = (
        case.make(d, rng),
        rng.standard_normal(d),
        draw_step(case.steps[:2][-1], d, rng),
    )
    assert fenchel_violation(penalty, z, step, penalty.prox(z, step)) <= 1e-8
    assert np.isfinite(penalty.value(penalty.prox(z.astype(np.float32), step.astype(np.float32))))


@every
@looped("kind", lambda case: case.steps)
def test_firm_nonexpansiveness(case, kind):
    """|Py - Pz|^2 <= <Py - Pz, y - z> in the metric of the prox."""
    rng, d = np.random.default_rng(4), case.size(24)
    penalty, step = case.make(d, rng), draw_step(kind, d, rng)
    for _ in range(5):
        y, z = rng.standard_normal((2, d)) * 10.0 ** rng.uniform(-3, 3)
        moved = penalty.prox(y, step) - penalty.prox(z, step)
        slack = 1e-12 * distance(np.abs(y) + np.abs(z) + shifts(penalty), step) ** 2
        assert np.sum(moved * (moved - (y - z)) / step) <= slack


@every
@both
def test_trajectories_one_by_one(case, dtype):
    """Every shape of step and writing in place: bitwise what each trajectory gives alone."""
    rng = np.random.default_rng(5)
    for d in (case.size(1), case.size(15)):
        penalty = case.make(d, rng)
        z = (3 * rng.standard_normal((d, 4))).astype(dtype)
        steps = [0.3, 10.0 ** rng.uniform(-2, 2, (1, 4))]
        if penalty.accepts == "diagonal":
            steps += [draw_step("mild", d, rng), draw_step("wild", 4 * d, rng).reshape(d, 4)]
        for step in steps:
            full = np.broadcast_to(step[:, None] if np.ndim(step) == 1 else step, z.shape)
            columns = np.stack(
                [penalty.prox(z[:, k].copy(), full[:, k].copy()) for k in range(4)], axis=1
            )
            for own in (z.copy(), np.asfortranarray(z)):
                np.testing.assert_array_equal(penalty.prox(own, step), columns)
                assert penalty.prox(own, step, out=own) is own
                np.testing.assert_array_equal(own, columns)
            value, alone = (
                penalty.value(columns),
                [penalty.value(columns[:, k].copy()) for k in range(4)],
            )
            assert value.shape == (4,)
            np.testing.assert_allclose(
                value, alone, rtol=1e-10 if dtype == np.float64 else 1e-6, atol=1e-12
            )
        line = z[:, 0].copy()
        assert penalty.prox(line, 0.3, out=line) is line
        np.testing.assert_array_equal(line, penalty.prox(z[:, 0], 0.3))


@every
def test_nan_stays_in_its_trajectory(case):
    rng, d = np.random.default_rng(2), case.size(10)
    penalty = case.make(d, rng)
    z = rng.standard_normal((d, 3))
    expected = penalty.prox(z, 0.5)
    infinite = case in prox_norms.CASES and case.name != "LInfBall"
    for place in {0, d // 2, d - 1}:
        for wrong in (np.nan, np.inf)[: 1 + infinite]:
            bad = z.copy()
            bad[place, 1] = wrong
            with np.errstate(invalid="ignore"):
                x = penalty.prox(bad, 0.5)
            np.testing.assert_array_equal(x[:, [0, 2]], expected[:, [0, 2]])
            assert not np.isfinite(x[:, 1]).all()
            assert np.isnan(x[place, 1]) or np.isinf(wrong)
            assert not np.isfinite(penalty.value(x)[1]) or case in CALCULUS


@every
def test_metrics(case):
    """A penalty that needs one step for all coordinates raises an error otherwise."""
    penalty = case.sample
    z = np.ones(case.size(9))
    penalty.check_metric(np.zeros(z.size, int), True)
    if penalty.accepts == "diagonal":
        penalty.check_metric(None, False)
        return
    np.testing.assert_array_equal(penalty.prox(z, np.full(z.size, 0.5)), penalty.prox(z, 0.5))
    for call in (
        lambda: penalty.prox(z, 1.0 + np.arange(z.size)),
        lambda: penalty.check_metric(None, False),
    ):
        with pytest.raises(
            ValueError, match=rf"^{penalty.name} has no exact proximal operator .*blocks='all'"
        ):
            call()


@every
def test_conjugate_and_polar(case):
    """phi(x) + phi*(u) >= <x, u> with equality at a subgradient, and polar(y) <= t iff the prox of y with step t is 0."""
    rng, d = np.random.default_rng(3), case.size(9)
    penalty = case.make(d, rng)
    z, diagonal = 3 * rng.standard_normal((d, 8)), penalty.accepts == "diagonal"
    step = np.broadcast_to(rng.uniform(0.5, 2.0, (d, 1) if diagonal else (1, 8)), z.shape)
    x = penalty.prox(z, step)
    u = (z - x) / step
    inner, conjugate = np.sum(x * u, axis=0), penalty.conjugate(u)
    np.testing.assert_allclose(penalty.value(x) + conjugate, inner, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        [penalty.conjugate(v.copy()) for v in u.T], conjugate, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        penalty.conjugate(u.astype(np.float32)), conjugate, rtol=1e-3, atol=1e-3
    )
    other = penalty.prox(3 * rng.standard_normal((d, 40)), 1.0)
    gap = penalty.value(other)[:, None] + conjugate - other.T @ u
    assert (gap >= -1e-8 * (1 + np.abs(inner))).all()
    if not {"norm", "seminorm"} & penalty.properties:
        with pytest.raises(ValueError, match=r"is not a norm or seminorm"):
            penalty.polar(u)
        return
    np.testing.assert_allclose(penalty.value(-3 * x), 3 * penalty.value(x), rtol=1e-12)
    assert (penalty.polar(u) <= 1 + 1e-9).all()
    np.testing.assert_array_equal(conjugate, 0.0)
    y = rng.standard_normal((d, 8)) * 10.0 ** rng.uniform(-3, 3, 8)
    polar = penalty.polar(y)
    assert polar.shape == (8,)
    np.testing.assert_allclose([penalty.polar(v.copy()) for v in y.T], polar, rtol=1e-12)
    np.testing.assert_allclose(penalty.polar(y.astype(np.float32)), polar, rtol=1e-5)
    for v, t in zip(y.T, polar, strict=True):
        if 0 < t < np.inf:
            assert np.abs(penalty.prox(v, t * (1 + 1e-9))).max() <= 1e-8 * np.abs(v).max()
            assert np.abs(penalty.prox(v, t * (1 - 1e-3))).max() > 0
            assert penalty.conjugate(v / t * (1 - 1e-12)) == 0.0
            assert penalty.conjugate(v / t * (1 + 1e-6)) == np.inf


@pytest.mark.peer
@every
def test_solver(case):
    import cvxpy as cp

    rng, d = np.random.default_rng(5), case.size(5)
    penalty = case.make(d, rng)
    z, step = 2 * rng.standard_normal(d), draw_step(case.steps[:2][-1], d, rng)
    root, x = (
        np.sqrt(step.min() / step),
        cp.Variable(d),
    )  # the metric, scaled to what suits a solver
    term, constraints = case.cvx(penalty, x)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(cp.multiply(x - z, root)) / 2 + step.min() * term), constraints
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="cvxpy")
        warnings.filterwarnings(
            "ignore", message="Solution may be inaccurate"
        )  # it is compared all the same
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    theirs, best = x.value, problem.value
    x.value = penalty.prox(z, step)
    np.testing.assert_allclose(
        root * x.value, root * theirs, rtol=0, atol=1e-5 if penalty.name in ROUND else 1e-7
    )
    assert problem.objective.value <= best + 1e-12 * (1 + abs(best))
    x.value = penalty.prox(
        rng.standard_normal(d), 0.1
    )  # and the value is that of the same function
    assert penalty.value(x.value) == pytest.approx(float(getattr(term, "value", term)), rel=1e-12)
