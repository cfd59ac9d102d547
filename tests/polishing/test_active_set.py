"""Polishing for nonsmooth losses: results are true in rational numbers, and exact where they are certified."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import certifying
from adagrad_diff import L1, LAD, Box, ElasticNet, Hinge, NonNegative, Quantile, Ridge, polish
from adagrad_diff.penalties import Unpenalised, Zero
from exact_pairs import by_highs
from kinked_exact import Exact
from looping import looped
from own_sources import Remote, Stored
from pairwise import pairwise

LOSSES = {"LAD": LAD, "Quantile": Quantile, "Hinge": Hinge}


def penalty_of(name, features, strength):
    """Return a penalty, and its l1, l2 and bounds."""
    weights = strength * (1.0 + np.arange(features) % 3)
    some = np.where(np.arange(features) == 0, 0.0, strength)
    return {
        "none": (Zero(), {}),
        "L1": (L1(strength), {"l1": strength}),
        "weighted L1": (L1(weights), {"l1": weights}),
        "elastic net": (ElasticNet(strength, 2 * strength), {"l1": strength, "l2": 2 * strength}),
        "ridge": (Ridge(strength), {"l2": strength}),
        "box": (Box(-0.25, 0.5), {"lower": -0.25, "upper": 0.5}),
        "nonnegative": (NonNegative(), {"lower": 0.0}),
        "unpenalised": (Unpenalised(L1(strength), [0]), {"l1": some}),
    }[name]


PENALTIES = [
    "none",
    "L1",
    "weighted L1",
    "elastic net",
    "ridge",
    "box",
    "nonnegative",
    "unpenalised",
]


FORMATS = {
    "dense": np.asarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "fortran": np.asfortranarray,
    "source": Stored,
    "remote": Remote,
}


def table(kind, samples, features, rng):
    """Return A and targets (or scores) of a kind of data."""
    A = rng.standard_normal((samples, features))
    if kind in ("integers", "duplicated", "zero columns", "equal targets"):
        A = rng.integers(-2, 3, (samples, features)).astype(float)
    b = A[:, 0] - 0.5 * A[:, -1] + rng.standard_normal(samples)
    if kind == "integers":
        b = np.round(b)
    if kind == "duplicated":
        A, b = (
            np.repeat(A[: (samples + 1) // 2], 2, axis=0)[:samples],
            np.round(np.repeat(b[: (samples + 1) // 2], 2)[:samples]),
        )
        A[:, -1] = A[:, 0]
    if kind == "zero columns":
        A[:, 0] = 0.0
    if kind == "equal targets":
        b[:] = 3.0
    if kind == "separable":
        b = A[:, 0] + 3 * np.sign(A[:, 0])
        A[:, 0] = b
    if kind == "raw":
        A, b = (
            A * 10.0 ** rng.uniform(-6, 6, features) + 10.0 ** rng.uniform(-2, 2, features),
            b * 10.0 ** rng.integers(-6, 7),
        )
    return A, b


KINDS = ["gaussian", "integers", "duplicated", "zero columns", "equal targets", "separable", "raw"]


def make(loss, A, b, form="dense", **options):
    labels = np.where(b > np.median(b), 1.0, -1.0) if loss == "Hinge" else b
    if loss == "Quantile":
        options["tau"] = 0.25
    return LOSSES[loss](FORMATS[form](A), labels, **options)


def check(loss, terms, result, tol):
    """Assert that rational numbers contradict nothing in the result."""
    problem = Exact(loss, **terms)
    here = problem.at(result.x)
    assert here is not None
    usual = float(problem.at(np.clip(np.zeros(len(result.x)), *np.transpose(problem.bounds))))
    assert float(abs(here - Fraction(result.fun))) <= 1e-12 * float(here) + 1e-14 * usual
    lower = [here]
    if len(result.x) <= 2 and not any(problem.l2):
        lower.append(problem.least())
    if (near := problem.near(result.x)) is not None and (value := problem.at(near)) is not None:
        lower.append(value)
    best = min(lower)
    if np.isfinite(result.bound):
        assert Fraction(result.bound) <= best
        assert Fraction(result.gap) * (1 + Fraction(1e-15)) + Fraction(1e-15) * here >= here - best
    if result.success:
        allowed = (
            1.001 * tol * max(float(here), 1e-6 * usual)
        )  # an objective of almost zero counts as a millionth
        assert result.gap <= allowed
        assert float(here - best) <= allowed


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(list(LOSSES)),
    st.sampled_from(PENALTIES),
    st.sampled_from(KINDS),
    st.sampled_from(list(FORMATS)),
    st.sampled_from([(20, 1), (12, 2), (25, 4), (6, 9), (1, 2)]),
    st.booleans(),
    st.sampled_from(["equal", "random", "zeros"]),
    st.sampled_from([0.0, 0.0, 0.125]),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_results_are_true_in_rational_numbers(
    loss, name, kind, form, size, intercept, weights, l2, single, seed
):
    rng = np.random.default_rng(seed)
    A, b = table(kind, *size, rng)
    if single:
        A, b = A.astype(np.float32), b.astype(np.float32)
    weight = None if weights == "equal" else rng.uniform(0.5, 2.0, size[0])
    if weights == "zeros":
        weight[1:][rng.random(size[0] - 1) < 0.4] = 0.0
    f = make(loss, A, b, form, intercept=intercept, sample_weight=weight, l2=l2)
    penalty, terms = penalty_of(name, size[1], float(rng.choice([0.03125, 0.25])))
    tol = 1e-5 if single else 1e-10
    check(f, terms, polish(f, penalty, np.zeros(size[1] + intercept), tol=tol), tol)


@pairwise(
    name=PENALTIES,
    data=[
        ("gaussian", True, "csr"),
        ("gaussian", False, "source"),
        ("raw", True, "dense"),
        ("integers", True, "csc"),
    ],
    loss=list(LOSSES),
)
def test_the_tolerance_is_reached(name, data, loss):
    """The data are ordinary, degenerate (integers) or have columns of very different sizes (raw)."""
    rng, (kind, intercept, form) = np.random.default_rng(3), data
    A, b = table(kind, 60, 5, rng)
    f = make(loss, A, b, form, intercept=intercept, sample_weight=rng.integers(0, 3, 60))
    penalty, terms = penalty_of(name, 5, 0.0625)
    result = polish(f, penalty, np.zeros(5 + intercept))
    if (kind, name) == (
        "raw",
        "box",
    ):  # with such columns the box is far too wide, and rounding exceeds the objective
        assert result.gap <= 1e-5 * result.fun
    else:
        assert result.success, result.message
    check(f, terms, result, 1e-10)


@pairwise(
    shape=[(60, 7), (12, 12), (8, 25), (5, 1)],
    loss=list(LOSSES),
    kind=["gaussian", "integers", "duplicated"],
    intercept=[False, True],
    lam=[0.0, 0.02, 0.3],
)
def test_linear_programs_against_highs(shape, loss, kind, intercept, lam):
    A, b = table(kind, *shape, np.random.default_rng(shape[0]))
    f = make(loss, A, b, intercept=intercept)
    penalty = L1(lam) if lam else Zero()
    start = 100.0 * np.ones(shape[1] + intercept)  # far from the optimum
    result, x = polish(f, penalty, start), by_highs(f, lam)[0]
    best = f.value_and_grad(x)[0] + penalty.value(x[: shape[1]])
    assert result.fun == pytest.approx(best, rel=1e-8, abs=1e-8)
    assert result.bound <= best * (1 + 1e-9) + 1e-12
    # Objectives of zero and many more coefficients than samples are known limits of accuracy.
    assert result.success or ((result.fun <= 1e-12 or shape == (8, 25)) and result.gap <= 1e-7), (
        result.message
    )


@pytest.mark.peer
@pytest.mark.parametrize(
    ("loss", "name"), [("LAD", "ridge"), ("Quantile", "elastic net"), ("Hinge", "box")]
)
def test_quadratic_programs_against_clarabel(loss, name):
    cp = pytest.importorskip("cvxpy")
    A, b = table("gaussian", 30, 5, np.random.default_rng(5))
    f = make(loss, A, b)
    penalty, terms = penalty_of(name, 5, 0.125)
    x = cp.Variable(5)
    t = A @ x - f.b if loss != "Hinge" else 1 - cp.multiply(f.b, A @ x)
    losses = {"LAD": cp.abs(t), "Quantile": cp.maximum(-0.25 * t, 0.75 * t), "Hinge": cp.pos(t)}[
        loss
    ]
    total = (
        cp.sum(losses) / 30
        + terms.get("l1", 0.0) * cp.norm1(x)
        + terms.get("l2", 0.0) / 2 * cp.sum_squares(x)
    )
    inside = [x >= terms["lower"], x <= terms["upper"]] if "lower" in terms else []
    best = cp.Problem(cp.Minimize(total), inside).solve(solver=cp.CLARABEL)
    assert polish(f, penalty, np.zeros(5)).fun == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize(
    ("loss", "name", "start"),
    [("LAD", "L1", "zero"), ("Quantile", "weighted L1", "near"), ("Hinge", "elastic net", "far")],
)
def test_samples_and_columns_join(loss, name, start):
    """Where all of the problem would take long, a few samples and coefficients come first and others join."""
    rng = np.random.default_rng(4)
    A, b = table("gaussian", 460, 430, rng)
    f = make(loss, A, b, intercept=True)
    penalty, terms = penalty_of(name, 430, 0.25)
    x = np.zeros(431)
    if start != "zero":
        x[:3] = rng.standard_normal(3)
    if start == "near":
        x = polish(f, penalty, x, tol=1e-3).x * (1 + 1e-3 * rng.standard_normal(431))
    result = polish(f, penalty, np.clip(x, *np.transpose(Exact(f, **terms).bounds)))
    assert result.success, result.message
    assert result.finish.samples < 460 or result.finish.coefficients < 430
    assert result.finish.rounds > 1 or start == "near"
    assert certifying.check(
        f, penalty, result.x, result.fun, result.bound, result.gap, result.dual_point
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_many_samples_per_coefficient(loss):
    """Some of the samples come first."""
    A, b = table("gaussian", 4000, 2, np.random.default_rng(0))
    f = make(loss, A, b)
    result = polish(f, L1(0.01), np.zeros(2))
    assert result.success, result.message
    assert result.finish.samples < 4000
    assert certifying.check(
        f, L1(0.01), result.x, result.fun, result.bound, result.gap, result.dual_point
    )


@looped("loss, intercept", [(loss, intercept) for loss in LOSSES for intercept in (False, True)])
def test_an_optimum_of_zero(loss, intercept):
    """The certificate is that no loss is negative."""
    A = np.random.default_rng(0).integers(-3, 4, (30, 3)).astype(float)
    A[:, 0] += np.where(A[:, 0] >= 0, 1.0, 0.0)
    f = LOSSES[loss](A, np.sign(A[:, 0]) if loss == "Hinge" else A[:, 0], intercept=intercept)
    result = polish(
        f, None, np.zeros(3 + intercept), tol=1e-8
    )  # of a millionth: predictions have rounding errors
    assert result.success, result.message
    assert 0 <= result.fun <= 1e-14
    assert result.bound >= -1e-19
    check(f, {}, result, 1e-8)


def test_few_samples_of_many_have_a_weight():
    """The samples to begin with have a weight."""
    rng = np.random.default_rng(0)
    A, weight = rng.standard_normal((20000, 2)), np.zeros(20000)
    weight[:50] = 1.0
    b = A[:, 0] + rng.standard_normal(20000)
    result = polish(LAD(A, b, sample_weight=weight), L1(0.01), np.zeros(2))
    few = polish(LAD(A[:50], b[:50]), L1(0.01), np.zeros(2))
    assert result.success
    assert result.fun == pytest.approx(few.fun, rel=1e-9)


def test_many_samples_at_one_kink():
    """There are hundreds more samples at their kinks than coefficients. Independent ones are enough."""
    rng = np.random.default_rng(0)
    A = np.repeat(rng.integers(-2, 3, (40, 8)).astype(float), 50, axis=0)
    b = np.sign(A @ rng.standard_normal(8) + 0.5)
    for penalty in (Ridge(1e-3), L1(1e-3)):
        result = polish(Hinge(A, b, intercept=True), penalty, np.zeros(9))
        assert result.success, result.message


@looped("loss", LOSSES)
@looped("shift", [1e3, 1e6, 1e8])
def test_shifts_of_columns_do_not_matter_with_an_intercept(loss, shift):
    A, b = table("gaussian", 200, 4, np.random.default_rng(0))
    here, shifted = (make(loss, X, b, intercept=True) for X in (A, A + shift))
    tol = 1e-9 + 1e-13 * shift  # entries lose digits
    expected, result = (polish(f, L1(0.01), np.zeros(5), tol=tol) for f in (here, shifted))
    assert result.success, result.message
    assert result.fun == pytest.approx(expected.fun, rel=1e-8)
    np.testing.assert_allclose(result.x[:4], expected.x[:4], atol=1e-6)


@looped("loss", LOSSES)
def test_nearly_duplicate_columns(loss):
    A, b = table("gaussian", 200, 4, np.random.default_rng(0))
    A = np.column_stack([A, A[:, 0] + 1e-9 * np.random.default_rng(1).standard_normal(200)])
    result = polish(make(loss, A, b, intercept=True), None, np.zeros(6), tol=1e-5)
    assert result.success, result.message
