"""No certificate is false: recomputed in extended precision, against exact optima and against HiGHS, on hostile data."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array

import certifying
import rational
from adagrad_diff import (
    L1,
    LAD,
    AdaGradDiff,
    Box,
    ElasticNet,
    GroupL2,
    Hinge,
    Huber,
    L1Ball,
    L2Ball,
    LInf,
    NonNegative,
    Poisson,
    Quadratic,
    Quantile,
    Ridge,
    Simplex,
    Squared,
    duality_gap,
    minimize,
)
from adagrad_diff.penalties import L2, SLOPE, Zero
from exact_pairs import by_highs
from looping import looped
from loss_zoo import LINEAR, PARAMETER, named
from pairwise import pairwise

PENALTIES = {
    "L1": lambda d: L1(0.1),
    "weighted L1": lambda d: L1(np.linspace(0.05, 0.3, d)),
    "Ridge": lambda d: Ridge(0.3),
    "ElasticNet": lambda d: ElasticNet(0.1, 0.2),
    "GroupL2": lambda d: GroupL2(0.2, np.arange(d) // 2),
    "L2": lambda d: L2(0.2),
    "LInf": lambda d: LInf(0.2),
    "SLOPE": lambda d: SLOPE(np.linspace(0.4, 0.1, d)),
    "Box": lambda d: Box(-0.5, 0.75),
    "L1Ball": lambda d: L1Ball(1.0),
    "L2Ball": lambda d: L2Ball(1.0),
    "Simplex": lambda d: Simplex(),
}
# Offset of the targets (or counts), dtype, how the columns are scaled, and options of the loss.
SETTINGS = [
    (0.0, np.float64, 1.0, {}),
    (0.0, np.float32, 1.0, {}),
    (1e3, np.float32, 1.0, {"intercept": True, "sample_weight": True}),
    (1e7, np.float64, 1.0, {"intercept": True}),
    (1e7, np.float64, [1e-8, 1.0, 1e4, 1e8], {"intercept": True, "sample_weight": True}),
    (1.0, np.float32, [1e-8, 1.0, 1e4, 1e8], {"l2": 0.3}),
    (1e3, np.float64, 1.0, {"intercept": True, "l2": 0.3}),
]


def hostile(kind, offset, dtype, columns, options, integer, seed=1):
    """A problem with tied targets, or large ones, or columns of very different sizes."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((24, 4))
    y = A[:, 0] + 0.3 * rng.standard_normal(24)
    if integer:
        A, y = np.round(2 * A), np.round(y)
    b = {
        "Poisson": rng.poisson(np.exp(np.clip(y, -3, 1))) + min(offset, 1e4),
        "Multinomial": np.digitize(y, [-0.3, 0.3]),
    }.get(kind.__name__, y + offset)
    if kind.__name__ in ("Hinge", "SquaredHinge", "Logistic"):
        b = np.where(y > 0, 1.0, -1.0)
    if "sample_weight" in options:
        options = {**options, "sample_weight": np.arange(24) % 4}
    b = b if kind.__name__ == "Multinomial" else b.astype(dtype)
    return kind((A * columns).astype(dtype), b, **PARAMETER.get(kind, {}), **options)


@pairwise(kind=LINEAR, name=PENALTIES, setting=SETTINGS, integer=[False, True])
def test_every_certificate_in_extended_precision(kind, name, setting, integer):
    loss = hostile(kind, *setting, integer)
    penalty = PENALTIES[name](
        math.prod(loss.shape) * (loss.shape[0] - loss.intercept) // loss.shape[0]
    )
    rule = AdaGradDiff(1.0, blocks="all" if penalty.accepts == "scalar" else None)
    run = minimize(
        loss, None, penalty, rule, stop="gap", tol=1e-5, max_iter=60, history=0, on_failure="ignore"
    )
    one = duality_gap(loss, penalty, run.x, refine=False)
    known = certifying.check(loss, penalty, run.x, run.fun, run.bound, run.gap, run.dual_point)
    known += certifying.check(loss, penalty, run.x, one.fun, one.bound, one.gap, one.dual_point)
    simple = setting[:3] == (0.0, np.float64, 1.0)
    assert known or not simple or kind is Poisson  # whose steps may be too large


@pytest.mark.parametrize("kind", [Squared, LAD, Huber], ids=named)
def test_a_large_mean(kind):
    """Once, imbalances of the dual point were multiplied by it."""
    rng = np.random.default_rng(0)
    A, penalty = rng.standard_normal((100, 3)), L1(0.01)
    b = 1e7 + A[:, 0] + 0.1 * rng.standard_normal(100)
    options = {"stop": "gap", "max_iter": 2000, "history": 0, "on_failure": "ignore"}
    best = minimize(kind(A, b - 1e7, intercept=True), penalty=penalty, tol=1e-7, **options)
    assert best.gap <= 1e-2 * best.fun
    for start in (0.0, 1e7):
        result = minimize(
            kind(A, b, intercept=True), [0.0, 0.0, 0.0, start], penalty, tol=1e-4, **options
        )
        assert result.bound <= best.fun * (1 + 1e-8)  # b - 1e7 is rounded
        assert result.gap >= (result.fun - best.fun) * (1 - 1e-8)
    assert result.success


def test_float32_with_a_large_mean():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 5)).astype(np.float32)
    b = (2000 + A[:, 0] + 0.1 * rng.standard_normal(200)).astype(np.float32)
    exact = Squared(A.astype(np.float64), b.astype(np.float64) - 2000, intercept=True)
    best = minimize(exact, penalty=L1(0.01), stop="gap", tol=1e-9, max_iter=20000)
    result = minimize(
        Squared(A, b, intercept=True),
        penalty=L1(0.01),
        stop="gap",
        tol=1e-4,
        max_iter=3000,
        on_failure="ignore",
    )
    true = (
        exact.value_and_grad(np.r_[result.x[:-1], result.x[-1] - 2000.0])[0]
        + 0.01 * np.abs(result.x[:-1]).sum()
    )
    assert result.bound <= best.fun
    assert result.gap >= true - best.fun


@pytest.mark.parametrize("delta", [1.35, 0.1])
def test_huber_in_single_precision(delta):
    """float32(1.35) is more than 1.35: slopes are rounded into the domain of the conjugate."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 4)).astype(np.float32)
    loss = Huber(A, A[:, 0] + 3 * rng.standard_normal(60), delta, intercept=True)
    result = minimize(loss, penalty=L1(0.05), eta=1.0, stop="gap", tol=1e-4, max_iter=5000)
    assert result.success, result.message


# ------------------------------------------------------------ where nothing may be known


def test_a_start_outside_of_the_set():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 4))
    loss = Squared(A, A @ [0.5, 0.5, 0.0, 0.0] + 0.1 * rng.standard_normal(20))
    outside = duality_gap(loss, Simplex(), np.zeros(4))
    assert (outside.fun, outside.gap, outside.relative) == (math.inf, math.inf, math.inf)
    assert "the objective is inf" in outside.message
    result = minimize(loss, penalty=Simplex(), eta=0.1, stop="gap", tol=1e-3)
    assert result.nit > 0
    assert result.success
    assert np.isfinite(result.fun)


@pytest.mark.parametrize(
    "empty", [csr_array((6, 3)), csc_array((6, 3)), np.zeros((6, 3))], ids=["csr", "csc", "dense"]
)
@pytest.mark.parametrize("kind", [LAD, Squared], ids=named)
def test_a_matrix_without_entries(kind, empty):
    result = minimize(
        kind(empty, np.arange(6.0), intercept=True),
        penalty=L1(0.1),
        eta=1.0,
        stop="gap",
        tol=1e-2,
        max_iter=2000,
    )
    assert result.success
    assert result.fun == pytest.approx(
        {LAD: 1.5, Squared: np.var(np.arange(6)) / 2}[kind], rel=1e-2
    )


@pytest.mark.parametrize(
    "penalty",
    [GroupL2(1.0, np.zeros(10_000, int)), SLOPE(np.ones(5)), L1(np.ones(7))],
    ids=lambda p: p.name,
)
def test_sizes_are_checked(penalty):
    for loss in (
        Squared(np.eye(3), np.ones(3)),
        Squared(np.eye(3), np.ones(3), intercept=True),
        Quadratic(np.eye(3), np.ones(3)),
    ):
        with pytest.raises(ValueError, match="penalized coordinates"):
            duality_gap(loss, penalty, np.zeros(loss.shape))


@pairwise(kind=[Squared, LAD, Huber], unit=[1e-6, 1.0, 1e6], intercept=[False, True])
def test_an_optimum_of_zero_is_certified(kind, unit, intercept):
    """The tolerance is then relative to a millionth of a typical objective, whatever the unit of the targets."""
    A = np.random.default_rng(0).standard_normal((20, 3))
    loss = kind(A, unit * (A @ [1.0, -2.0, 0.5] + 3.0 * intercept), intercept=intercept)
    result = minimize(loss, tol=1e-4, on_failure="ignore")
    assert result.certified, result.message
    usual = loss.value_and_grad(np.zeros(loss.shape))[0]
    # The rounding of the targets may be seen in the bound: the optimum is then not quite zero.
    assert 0 <= result.fun <= result.gap * (1 + 1e-3) + 1e-28 * usual
    assert 0 < result.gap <= 1e-9 * usual or result.fun == 0.0


# ------------------------------------------------------------ against optima from outside


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    samples=st.sampled_from([1, 2, 3, 5, 12]),
    lam=st.sampled_from([0.01, 0.1, 0.5, 2.0]),
    intercept=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
@pytest.mark.parametrize("kind", [LAD, Quantile, Hinge], ids=named)
def test_integer_data_against_highs(kind, seed, samples, lam, intercept, dtype):
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, (samples, 2)).astype(dtype)
    A = np.column_stack([A, A[:, :1]]) if seed % 2 else A  # a column twice
    b = (
        rng.choice([-1.0, 1.0], samples)
        if kind is Hinge
        else rng.integers(0, 4, samples).astype(dtype)
    )
    weight = np.maximum(rng.integers(0, 3, samples), np.arange(samples) == 0)
    loss = kind(
        A,
        b,
        **({"tau": 0.3} if kind is Quantile else {}),
        sample_weight=weight,
        intercept=intercept,
    )
    best = float(rational.objective(loss, L1(lam), by_highs(loss, lam)[0]))
    result = minimize(
        loss,
        penalty=L1(lam),
        eta=0.3,
        stop="gap",
        tol=1e-4,
        max_iter=300,
        history=0,
        on_failure="ignore",
    )
    assert result.bound <= best + 1e-9
    assert result.gap >= result.fun - best - (1e-5 if dtype == np.float32 else 1e-9)
    if result.success:
        assert result.fun <= best * (1 + 1.1e-4) + 1e-6


def exact_least_squares(A, b):
    """Return the least mean of (A x - b)^2 / 2 in rational numbers, and x; None if columns are dependent."""
    A, b = [rational.numbers(row) for row in A], rational.numbers(b)
    columns = list(zip(*A, strict=True))
    dot = lambda p, q: sum((u * v for u, v in zip(p, q, strict=True)), Fraction(0))
    x = rational.solve(
        [[dot(p, q) for q in columns] for p in columns], [dot(p, b) for p in columns]
    )
    return (
        None
        if x is None
        else (sum((dot(a, x) - t) ** 2 for a, t in zip(A, b, strict=True)) / (2 * len(b)), x)
    )


def exact_nonnegative(A, b, free):
    """Return the same for x >= 0, except for the last columns: the best of all sets of columns."""
    features, best = A.shape[1] - free, None
    for count in range(features + 1):
        for chosen in itertools.combinations(range(features), count):
            found = exact_least_squares(A[:, [*chosen, *range(features, features + free)]], b)
            if found is not None and all(v >= 0 for v in found[1][:count]):
                best = found[0] if best is None else min(best, found[0])
    return best


@looped("seed", range(12))
@pytest.mark.parametrize("penalty", [Zero(), NonNegative()], ids=str)
def test_directions_without_a_penalty(penalty, seed):
    """A certificate needs independent columns, and is true of columns that nearly are not."""
    rng = np.random.default_rng(seed)
    samples, features, intercept = int(rng.choice([4, 8])), 1 + seed % 3, bool(seed % 2)
    A = np.round(rng.standard_normal((samples, features)), 2)
    if seed % 4 == 1:
        A *= np.array([1e-8, 1e8, 1.0])[:features]
    if seed % 4 == 2 and features > 1:
        A[:, 1] = A[:, 0] + 1e-6 * np.round(rng.standard_normal(samples), 1)
    b = np.round(rng.standard_normal(samples), 2) + (1e5 if seed % 3 == 1 else 0.0)
    full = np.column_stack([A, np.ones(samples)]) if intercept else A
    solve = (
        exact_least_squares
        if isinstance(penalty, Zero)
        else lambda A, b: (exact_nonnegative(A, b, int(intercept)),)
    )
    loss, best = Squared(A, b, intercept=intercept), solve(full, b)[0]
    result = minimize(
        loss, penalty=penalty, stop="gap", tol=1e-6, max_iter=3000, history=0, on_failure="ignore"
    )
    if np.isfinite(result.bound):
        assert Fraction(float(result.bound)) <= best * (
            1 + Fraction(1, 10**15)
        )  # equal weights are rounded, too
    twice = Squared(np.column_stack([A, A]), b, intercept=intercept)
    again = duality_gap(twice, penalty, np.append(result.x[:features], result.x))
    assert Fraction(again.bound) <= best * (1 + Fraction(1, 10**15))


def test_plain_least_squares_is_certified():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 5))
    for intercept in (False, True):
        loss = Squared(A, A[:, 0] + rng.standard_normal(40), intercept=intercept)
        assert minimize(loss, eta=1.0, stop="gap", tol=1e-8, max_iter=3000).success


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "penalty", [L1(0.3), NonNegative(), Zero(), Box(0.1, 0.5), Simplex()], ids=str
)
def test_quadratic_functions_with_a_diagonal(penalty, seed):
    """Their minimisers are known coordinate by coordinate; on the simplex, by bisection in rational numbers."""
    rng = np.random.default_rng(seed)
    q, c = np.round(rng.random(4) + 0.25, 3), np.round(rng.standard_normal(4), 3)
    dtype = np.float32 if seed % 2 else np.float64
    loss = Quadratic(np.diag(q).astype(dtype), c.astype(dtype))
    q, c = ([Fraction(float(v)) for v in array.astype(dtype)] for array in (q, c))
    if isinstance(penalty, Simplex):
        low, high = Fraction(-10), Fraction(10)
        for _ in range(80):
            middle = (low + high) / 2
            total = sum(max(ci - middle, 0) / qi for qi, ci in zip(q, c, strict=True))
            low, high = (middle, high) if total > 1 else (low, middle)
        x = [max(ci - low, 0) / qi for qi, ci in zip(q, c, strict=True)]
        best = sum(qi * v * v / 2 - ci * v for qi, ci, v in zip(q, c, x, strict=True)) + Fraction(
            1, 10**15
        )
    else:
        lam = Fraction(0.3) if isinstance(penalty, L1) else Fraction(0)
        lower = {"NonNegative": 0, "Box": Fraction(0.1)}.get(penalty.name, -100)
        upper = Fraction(0.5) if penalty.name == "Box" else 100
        x = [
            min(
                max((abs(ci) - lam if abs(ci) > lam else 0) * (1 if ci > 0 else -1) / qi, lower),
                upper,
            )
            for qi, ci in zip(q, c, strict=True)
        ]
        best = sum(
            qi * v * v / 2 - ci * v + lam * abs(v) for qi, ci, v in zip(q, c, x, strict=True)
        )
    result = minimize(
        loss,
        np.full(4, 0.25, dtype),
        penalty,
        eta=0.5,
        stop="gap",
        tol=1e-4,
        max_iter=3000,
        on_failure="ignore",
    )
    assert np.isfinite(result.bound)
    assert Fraction(float(result.bound)) <= best
    assert result.gap <= 1e-4 * abs(result.fun)
