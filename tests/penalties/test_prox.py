"""Every penalty in every metric it accepts, against its twin, its optimality condition, its geometry and a solver."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prox_calculus
import prox_chains
import prox_norms
import prox_planes
from looping import looped
from prox_harness import draw_step, fenchel_violation, points

CASES = [case for module in (prox_norms, prox_chains, prox_planes, prox_calculus) for case in module.CASES]
ROUND = ("L2", "GroupL2", "SparseGroupL2", "L2Ball")  # the solver is less exact on second-order cones than we are

SETS = [case for case in CASES if "set" in case.sample.properties]

every = pytest.mark.parametrize("case", CASES, ids=str)
every_step = looped("kind", lambda case: case.steps)
both = looped("dtype", [np.float32, np.float64])


def draw(case, d, kind, rng, size=1.0):
    """A penalty, a point and its steps."""
    d = case.size(d)
    penalty = case.make(d, rng)
    z = size * rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 1)
    if rng.uniform() < 0.3:  # ties and zeros of both signs
        z = np.round(z)
    return penalty, z, draw_step(kind, d, rng)


def violation(case, *arguments):
    return (case.violation or fenchel_violation)(*arguments)


def metric_norm(v, step):
    return np.sqrt(np.sum(v * v / step))


@every
@settings(max_examples=10, deadline=None, derandomize=True)
@given(d=st.integers(1, 200), seed=st.integers(0, 2**32 - 1), exponent=st.sampled_from([-12, -3, 0, 0, 3, 10]))
@every_step
def test_optimality_condition(case, kind, d, seed, exponent):
    penalty, z, step = draw(case, d, kind, np.random.default_rng(seed), 10.0**exponent)
    x = penalty.prox(z, step)
    assert x.dtype == np.float64
    assert np.isfinite(penalty.value(x))
    assert violation(case, penalty, z, step, x) <= 1e-10


@every
@every_step
@looped("d", [1, 6, 150])
def test_single_precision(case, kind, d):
    rng, d = np.random.default_rng(d), case.size(d)
    penalty = case.make(d, rng)
    step = draw_step(kind, d, rng).astype(np.float32)
    for point in points(d, rng):
        z = point.astype(np.float32)
        x = penalty.prox(z, step)
        assert x.dtype == np.float32
        assert np.isfinite(penalty.value(x))
        assert violation(case, penalty, *(v.astype(float) for v in (z, step, x))) <= 1e-6
        if "set" in penalty.properties:
            assert penalty.prox(x, step).tobytes() == x.tobytes()


@every
@every_step
def test_twin(case, kind):
    rng = np.random.default_rng(2)
    for d in (1, 2, 3, 8, 25):
        for _ in range(2):
            penalty, z, step = draw(case, d, kind, rng)
            x, twin = penalty.prox(z, step), case.naive(penalty, z, step)
            # A prox does not expand distances of its metric, so a backward error of 1e-10 is one of 1e-10 there.
            size = np.abs(z) + np.abs(twin) + np.abs(getattr(penalty, "shift", 0.0))
            assert metric_norm(x - twin, step) <= 1e-10 * max(metric_norm(size, step), 1e-300)


@every
@every_step
def test_firmly_nonexpansive_in_the_metric(case, kind):
    rng = np.random.default_rng(3)
    for d in (1, 4, 30):
        for _ in range(3):
            penalty, z, step = draw(case, d, kind, rng)
            y = z + 10.0 ** rng.uniform(-6, 1) * rng.standard_normal(z.size)
            p, q = penalty.prox(z, step), penalty.prox(y, step)
            scale = metric_norm(np.abs(z) + np.abs(y) + np.abs(p) + np.abs(q), step)
            assert np.sum((p - q) ** 2 / step) <= np.sum((p - q) * (z - y) / step) + 1e-13 * scale**2


@pytest.mark.parametrize("case", SETS, ids=str)
@every_step
def test_sets_are_projected_upon(case, kind):
    """The prox of a point outside is in the set, and that of a point in the set is the point."""
    rng, outside = np.random.default_rng(4), 0
    for d in (1, 6, 33):
        for _ in range(3):
            penalty, z, step = draw(case, d, kind, rng)
            x = penalty.prox(z, step)
            outside += penalty.value(z) == np.inf
            assert penalty.value(x) == 0
            assert metric_norm(penalty.prox(x, step) - x, step) <= 1e-10 * metric_norm(np.abs(z) + np.abs(x), step)
    assert outside > 0


def test_all_sets_are_projected_upon():
    kinds = {type(case.sample).__name__ for case in SETS}
    assert kinds >= {"Simplex", "L1Ball", "L2Ball", "LInfBall", "Box", "NonNegative", "Monotone", "Hyperplane", "HalfSpace"}
    assert kinds >= {"Affine", "BoxHyperplane", "PSD", "Separable", "Scaled", "Translated", "Precomposed"}


@every
@both
def test_trajectories_one_by_one(case, dtype):
    """Every shape of step, memory layouts, and writing in place: bit for bit what each trajectory gives alone."""
    rng = np.random.default_rng(5)
    for d in (case.size(1), case.size(30)):
        penalty = case.make(d, rng)
        z = (3 * rng.standard_normal((d, 4))).astype(dtype)
        z[:, 2] = penalty.prox(z[:, 2].copy(), 1.0)  # a point of the set, if it is one
        steps = [0.3, 10.0 ** rng.uniform(-2, 2, (1, 4))]
        if penalty.accepts == "diagonal":
            steps += [draw_step("mild", d, rng), *(draw_step(kind, 4 * d, rng).reshape(d, 4) for kind in ("mild", "wild"))]
        for step in steps:
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
            out = np.full_like(z, np.nan)
            assert penalty.prox(z, step, out) is out
            np.testing.assert_array_equal(out, columns)
            value, alone = penalty.value(columns), [penalty.value(columns[:, k].copy()) for k in range(4)]
            assert value.shape == (4,)
            np.testing.assert_allclose(value, alone, rtol=1e-10 if dtype == np.float64 else 1e-6, atol=1e-12)
            if "set" in penalty.properties:
                np.testing.assert_array_equal(value, 0.0)
                np.testing.assert_array_equal(columns[:, 2], z[:, 2])
        line = z[:, 0].copy()
        assert penalty.prox(line, 0.3, out=line) is line
        np.testing.assert_array_equal(line, penalty.prox(z[:, 0].copy(), 0.3))
        np.testing.assert_array_equal(line, penalty.prox(z[:, 0], 0.3))  # a strided column
        np.testing.assert_array_equal(line[:, None], penalty.prox(z[:, :1], 0.3))
        np.testing.assert_array_equal(penalty.prox(z[:, 0].tolist(), 0.3), penalty.prox(z[:, 0].astype(float), 0.3))


@looped("case", CASES)
def test_one_step_for_all_is_said(case):
    rng = np.random.default_rng(6)
    penalty = case.make(case.size(9), rng)
    if penalty.accepts == "scalar":
        z = rng.standard_normal(case.size(9))
        with pytest.raises(ValueError, match=r"blocks='all'"):
            penalty.prox(z, 1.0 + np.arange(z.size))
        with pytest.raises(ValueError, match=r"blocks='all'"):
            penalty.check_metric(None, False)
        penalty.check_metric(np.zeros(z.size, int), True)
    else:
        assert penalty.accepts == "diagonal"
        penalty.check_metric(None, False)


@every
@settings(max_examples=10, deadline=None, derandomize=True)
@given(d=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_conjugates(case, d, seed):
    """phi(x) + phi*(y) >= <x, y> for any pair, and for a norm <x, y> <= phi(x) polar(y)."""
    rng = np.random.default_rng(seed)
    d = case.size(d)
    penalty, x, y = case.make(d, rng), *(10.0 ** rng.uniform(-1, 1) * rng.standard_normal((2, d)))
    x = penalty.prox(x, 1.0)  # a point where phi is finite
    try:
        conjugate = penalty.conjugate(y)
    except ValueError as error:
        assert "not known" in str(error)  # noqa: PT017
    else:
        assert penalty.value(x) + conjugate >= x @ y - 1e-8 * (1.0 + np.abs(x * y).sum())
    if {"norm", "seminorm"} & penalty.properties and penalty.value(x) > 0:
        assert x @ y <= penalty.value(x) * penalty.polar(y) * (1 + 1e-9) + 1e-9 * np.abs(x * y).sum()


@pytest.mark.peer
@every
@looped("kind", lambda case: [kind for kind in case.steps if kind != "wild"])
def test_solver(case, kind):
    import cvxpy as cp

    for size in (1, 4) if kind == "one" and len(case.steps) > 1 else (2, 12):
        rng, d = np.random.default_rng(size), case.size(size)
        penalty = case.make(d, rng)
        z, step = 2 * rng.standard_normal(d), draw_step(kind, d, rng)
        root, x = np.sqrt(step.min() / step), cp.Variable(d)  # the metric, scaled to what suits a solver
        term, constraints = case.cvx(penalty, x)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.multiply(x - z, root)) / 2 + step.min() * term), constraints)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="cvxpy")
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # it is compared all the same
            problem.solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
        theirs, best = x.value, problem.value
        x.value = penalty.prox(z, step)
        np.testing.assert_allclose(
            root * x.value, root * theirs, rtol=0, atol=1e-5 if type(penalty).__name__ in ROUND else 1e-7
        )
        assert problem.objective.value <= best + 1e-12 * (1 + abs(best))
        x.value = penalty.prox(rng.standard_normal(d), 0.1)  # and the value is that of the same function
        assert penalty.value(x.value) == pytest.approx(float(getattr(term, "value", term)), rel=1e-12)
