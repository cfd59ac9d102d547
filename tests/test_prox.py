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
from prox_harness import STEPS, draw_step, fenchel_violation

CASES = [case for module in (prox_norms, prox_chains, prox_planes, prox_calculus) for case in module.CASES]
ROUND = (
    "L2",
    "GroupL2",
    "SparseGroupL2",
    "L2Ball",
    "Separable",
    "Unpenalised",
)  # the solver is less exact on second-order cones than we are

every = pytest.mark.parametrize("case", CASES, ids=str)
steps = pytest.mark.parametrize("kind", STEPS)


def draw(case, d, kind, rng, size=1.0):
    """A penalty, a point and its steps; None if the penalty does not accept such steps."""
    d = case.size(d)
    penalty = case.make(d, rng)
    if penalty.accepts == "scalar" and kind != "one" and d > 1:
        return None
    z = size * rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 1)
    if rng.uniform() < 0.3:  # ties and zeros of both signs
        z = np.round(z)
    step = draw_step("one" if penalty.accepts != "diagonal" else kind, d, rng)
    return penalty, z, step


def violation(case, *arguments):
    return (case.violation or fenchel_violation)(*arguments)


def metric_norm(v, step):
    return np.sqrt(np.sum(v * v / step))


@every
@steps
@settings(max_examples=25, deadline=None, derandomize=True)
@given(d=st.integers(1, 200), seed=st.integers(0, 2**32 - 1), exponent=st.sampled_from([-12, -3, 0, 0, 3, 10]))
def test_optimality_condition(case, kind, d, seed, exponent):
    rng = np.random.default_rng(seed)
    if drawn := draw(case, d, kind, rng, 10.0**exponent):
        penalty, z, step = drawn
        x = penalty.prox(z, step)
        assert x.dtype == np.float64
        assert np.isfinite(penalty.value(x))
        assert violation(case, penalty, z, step, x) <= 1e-10


@every
@steps
def test_single_precision(case, kind):
    rng = np.random.default_rng(1)
    for d in (1, 5, 40):
        if drawn := draw(case, d, kind, rng):
            penalty, z, step = drawn
            z, step = z.astype(np.float32), step.astype(np.float32)
            x = penalty.prox(z, step)
            assert x.dtype == np.float32
            assert np.isfinite(penalty.value(x))
            assert violation(case, penalty, *(a.astype(np.float64) for a in (z, step, x))) <= 1e-4


@every
@steps
def test_twin(case, kind):
    rng = np.random.default_rng(2)
    for d in (1, 2, 3, 8, 25):
        for _ in range(4):
            if drawn := draw(case, d, kind, rng):
                penalty, z, step = drawn
                x, twin = penalty.prox(z, step), case.naive(penalty, z, step)
                # A prox does not expand distances of its metric, so a backward error of 1e-10 is one of 1e-10 there.
                size = np.abs(z) + np.abs(twin) + np.abs(getattr(penalty, "shift", 0.0))
                assert metric_norm(x - twin, step) <= 1e-10 * max(metric_norm(size, step), 1e-300)


@every
@steps
def test_firmly_nonexpansive_in_the_metric(case, kind):
    rng = np.random.default_rng(3)
    for d in (1, 4, 30):
        for _ in range(5):
            if drawn := draw(case, d, kind, rng):
                penalty, z, step = drawn
                y = z + 10.0 ** rng.uniform(-6, 1) * rng.standard_normal(z.size)
                p, q = penalty.prox(z, step), penalty.prox(y, step)
                scale = metric_norm(np.abs(z) + np.abs(y) + np.abs(p) + np.abs(q), step)
                assert np.sum((p - q) ** 2 / step) <= np.sum((p - q) * (z - y) / step) + 1e-10 * scale**2


@every
@steps
def test_sets_are_projected_upon(case, kind):
    rng = np.random.default_rng(4)
    for d in (1, 6, 33):
        drawn = draw(case, d, kind, rng)
        if drawn and "set" in drawn[0].properties:
            penalty, z, step = drawn
            x = penalty.prox(z, step)
            assert penalty.value(x) == 0
            assert metric_norm(penalty.prox(x, step) - x, step) <= 1e-10 * metric_norm(np.abs(z) + np.abs(x), step)


@every
@steps
def test_trajectories_side_by_side(case, kind):
    rng = np.random.default_rng(5)
    for d in (1, 7):
        if drawn := draw(case, d, kind, rng):
            penalty, z, step = drawn
            Z = np.stack([z, -2.0 * z, rng.standard_normal(z.size)], axis=1)
            S = np.stack([step, 0.3 * step, 2.0 * step], axis=1)
            columns = np.stack([penalty.prox(Z[:, k], S[:, k]) for k in range(3)], axis=1)
            before = Z.copy()
            np.testing.assert_allclose(penalty.prox(Z, S), columns, rtol=1e-10, atol=1e-10 * np.abs(Z).max())
            assert np.array_equal(Z, before)
            np.testing.assert_allclose(
                penalty.value(columns), [penalty.value(columns[:, k].copy()) for k in range(3)], rtol=1e-10, atol=1e-12
            )
            np.testing.assert_allclose(penalty.prox(Z.copy(), S[:1] if penalty.accepts == "scalar" else S), columns, rtol=1e-10,
                                       atol=1e-10 * np.abs(Z).max())  # fmt: skip
            target = Z.copy()
            assert penalty.prox(target, S, out=target) is target
            np.testing.assert_allclose(target, columns, rtol=1e-10, atol=1e-10 * np.abs(Z).max())


@every
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
    elif penalty.accepts == "diagonal":
        penalty.check_metric(None, False)


@every
@settings(max_examples=15, deadline=None, derandomize=True)
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
@pytest.mark.parametrize("kind", ["one", "mild"])
def test_solver(case, kind):
    import cvxpy as cp

    rng = np.random.default_rng(7)
    for d in (1, 6):
        if not (drawn := draw(case, d, kind, rng)):
            continue
        penalty, z, step = drawn
        x = cp.Variable(z.size)
        term, constraints = case.cvx(penalty, x)
        distance = lambda v: np.sum((v - z) ** 2 / step) / 2  # noqa: E731, B023
        objective = cp.sum_squares(cp.multiply(step**-0.5, x - z)) / 2 + term
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="cvxpy")
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # it is compared all the same
            problem = cp.Problem(cp.Minimize(objective), constraints)
            if problem.is_qp():
                problem.solve(solver="OSQP", eps_abs=1e-12, eps_rel=1e-12, max_iter=200_000, polishing=True)
            else:
                problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        ours = penalty.prox(z, step)
        tolerance = 1e-4 if type(penalty).__name__ in ROUND else 1e-6
        scale = max(metric_norm(z, step), metric_norm(ours, step))
        assert metric_norm(ours - x.value, step) <= tolerance * scale + 1e-9
        if np.isfinite(theirs := penalty.value(x.value)):
            assert distance(ours) + penalty.value(ours) <= (distance(x.value) + theirs) * (1 + 1e-8) + 1e-9
