"""The finish of losses with kinks: what it says is true in rational numbers, and where it says done, it is exact."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from adagrad_diff import L1, LAD, Box, ElasticNet, Hinge, NonNegative, Quantile, Ridge, finish
from adagrad_diff.certificates import dual_of
from adagrad_diff.common.tolerance import unit
from adagrad_diff.data import Source
from adagrad_diff.penalties import Unpenalised, Zero
from kinked_exact import Exact
from looping import looped

LOSSES = {"LAD": LAD, "Quantile": Quantile, "Hinge": Hinge}


def penalty_of(name, features, strength):
    """(penalty, its l1, l2 and bounds)"""
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


PENALTIES = ["none", "L1", "weighted L1", "elastic net", "ridge", "box", "nonnegative", "unpenalised"]


class Own(Source):
    """Rows that somebody else keeps, some at a time."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.cuts = [*range(0, len(array), 7), len(array)]

    def block(self, k):
        return self.array[self.cuts[k] : self.cuts[k + 1]]


FORMATS = {"dense": np.asarray, "csr": sparse.csr_array, "csc": sparse.csc_array, "fortran": np.asfortranarray}


def table(kind, samples, features, rng):
    """A and targets (or scores) of a kind of data."""
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
        A, b = A * 10.0 ** rng.uniform(-6, 6, features) + 10.0 ** rng.uniform(-2, 2, features), b * 10.0 ** rng.integers(-6, 7)
    return A, b


KINDS = ["gaussian", "integers", "duplicated", "zero columns", "equal targets", "separable", "raw"]


def make(loss, A, b, form="dense", **options):
    labels = np.where(b > np.median(b), 1.0, -1.0) if loss == "Hinge" else b
    if loss == "Quantile":
        options["tau"] = 0.25
    return LOSSES[loss](Own(A) if form == "own" else FORMATS[form](A), labels, **options)


def look(loss, penalty, terms, result, tol):
    """Nothing that is said is contradicted by rational numbers."""
    problem, usual = Exact(loss, **terms), dual_of(loss, penalty).scale
    here = problem.at(result.x)
    assert here is not None
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
        allowed = 1.001 * tol * unit(float(here), usual)
        assert result.gap <= allowed
        assert float(here - best) <= allowed


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(list(LOSSES)),
    st.sampled_from(PENALTIES),
    st.sampled_from(KINDS),
    st.sampled_from(["dense", "csr", "csc", "fortran", "own"]),
    st.sampled_from([(20, 1), (12, 2), (25, 4), (6, 9), (1, 2)]),
    st.booleans(),
    st.sampled_from(["equal", "random", "zeros"]),
    st.sampled_from([0.0, 0.0, 0.125]),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_what_is_said_is_true(loss, name, kind, form, size, intercept, weights, l2, single, seed):
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
    result = finish(f, penalty, np.zeros(size[1] + intercept), tol=tol)
    look(f, penalty, terms, result, tol)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
@looped(
    "kind, intercept, form",
    [("gaussian", True, "csr"), ("gaussian", False, "own"), ("raw", True, "dense"), ("integers", True, "csc")],
)
def test_done(loss, name, kind, intercept, form):
    """Ordinary data, degenerate ones and raw ones: finished at 1e-10."""
    rng = np.random.default_rng(3)
    A, b = table(kind, 60, 5, rng)
    f = make(loss, A, b, form, intercept=intercept, sample_weight=rng.integers(0, 3, 60))
    penalty, terms = penalty_of(name, 5, 0.0625)
    result = finish(f, penalty, np.zeros(5 + intercept))
    if (kind, name) == ("raw", "box"):  # of columns of 1e6 in a box that is far too wide, rounding is more than the objective
        assert result.gap <= 1e-5 * result.fun
    else:
        assert result.success, result.message
    look(f, penalty, terms, result, 1e-10)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
@looped("intercept, start", [(True, "zero"), (False, "near"), (True, "far")])
def test_samples_and_columns_join(loss, name, intercept, start, monkeypatch):
    """From few samples and coefficients, those that were right from the start or not, to all that are at kinks."""
    monkeypatch.setattr(sys.modules["adagrad_diff.finishing.finish"], "QUICK", -1.0)  # nothing as a whole
    rng = np.random.default_rng(4)
    A, b = table("gaussian", 400, 6, rng)
    f = make(loss, A, b, intercept=intercept)
    penalty, terms = penalty_of(name, 6, 0.03125)
    x = np.zeros(6 + intercept) if start == "zero" else rng.standard_normal(6 + intercept)
    if start == "near":
        x = finish(f, penalty, 0.0 * x, tol=1e-3).x + 0.01 * x
    x = np.clip(x, *np.transpose(Exact(f, **terms).bounds))
    result = finish(f, penalty, x)
    assert result.success, result.message
    if start == "near":
        assert result.finish.samples < 250  # few have joined
    else:
        assert result.finish.rounds > 1
    look(f, penalty, terms, result, 1e-10)


@looped("loss, intercept", [(loss, intercept) for loss in LOSSES for intercept in (False, True)])
def test_an_optimum_of_zero(loss, intercept):
    """Nothing is left of the objective: that no loss is negative is the proof."""
    A = np.random.default_rng(0).integers(-3, 4, (30, 3)).astype(float)
    A[:, 0] += np.where(A[:, 0] >= 0, 1.0, 0.0)
    f = LOSSES[loss](A, np.sign(A[:, 0]) if loss == "Hinge" else A[:, 0], intercept=intercept)
    result = finish(f, None, np.zeros(3 + intercept), tol=1e-8)  # of a millionth: predictions have rounding errors
    assert result.success, result.message
    assert 0 <= result.fun <= 1e-14
    assert result.bound >= -1e-20
    look(f, Zero(), {}, result, 1e-8)


def test_few_samples_of_many_have_a_weight():
    """The samples to begin with are some of those that count."""
    rng = np.random.default_rng(0)
    A, weight = rng.standard_normal((20000, 2)), np.zeros(20000)
    weight[:50] = 1.0
    b = A[:, 0] + rng.standard_normal(20000)
    result = finish(LAD(A, b, sample_weight=weight), L1(0.01), np.zeros(2))
    few = finish(LAD(A[:50], b[:50]), L1(0.01), np.zeros(2))
    assert result.success
    assert result.fun == pytest.approx(few.fun, rel=1e-9)


def test_many_samples_at_one_kink():
    """More samples at their kinks than coefficients, hundreds of them: independent ones are enough, and it takes no time."""
    rng = np.random.default_rng(0)
    A = np.repeat(rng.integers(-2, 3, (40, 8)).astype(float), 50, axis=0)
    b = np.sign(A @ rng.standard_normal(8) + 0.5)
    for penalty in (Ridge(1e-3), L1(1e-3)):
        result = finish(Hinge(A, b, intercept=True), penalty, np.zeros(9))
        assert result.success, result.message
        assert result.finish.seconds < 1.0
