"""Proofs of exact answers: true in rational numbers, and as sharp as doubles are."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import aslinearoperator

import certifying
import rational
from adagrad_diff import (
    L1,
    LAD,
    Box,
    ElasticNet,
    GroupL2,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    NonNegative,
    Poisson,
    Quadratic,
    Quantile,
    Ridge,
    Squared,
    minimize,
)
from adagrad_diff.certificates import Certifier, dual_of, prove
from adagrad_diff.data import Source
from adagrad_diff.kernels import two_product, two_sum
from adagrad_diff.losses import SquaredHinge
from adagrad_diff.penalties import SparseGroupL2, Unpenalised, Zero
from exact_pairs import by_highs, by_newton, by_newton_classes
from loss_zoo import named

KINKED = (LAD, Quantile, Hinge)


def data(kind, seed, samples, features, spread=0.0, mean=0.0, integer=False):
    """Columns of sizes 10^-spread to 10^spread, not centered; targets that they explain in part."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((samples, features)) + mean * rng.standard_normal(features)
    A = np.round(A) if integer else A
    sizes = 10.0 ** rng.uniform(-spread, spread, features)
    z = A @ rng.standard_normal(features) / max(1.0, np.sqrt(features))
    y = z - z.mean() + 0.7 * rng.standard_normal(samples)
    y = np.round(y) if integer else y
    if kind in (Hinge, SquaredHinge, Logistic):
        return A * sizes, np.where(y > 0, 1.0, -1.0)
    return A * sizes, rng.poisson(np.exp(np.clip(y, -3, 2))).astype(float) if kind is Poisson else y


def test_nothing_is_lost():
    """TwoSum and TwoProduct as they are compiled: a contraction or a reordering would be seen here."""
    rng = np.random.default_rng(0)
    for a, b in rng.standard_normal((300, 2)) * 10.0 ** rng.integers(-20, 20, (300, 2)):
        (s, e), (p, f) = two_sum(a, b), two_product(a, b)
        assert Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b)
        assert Fraction(p) + Fraction(f) == Fraction(a) * Fraction(b)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    samples=st.sampled_from([3, 6, 12]),
    features=st.sampled_from([1, 2, 4, 8]),
    spread=st.sampled_from([0.0, 3.0, 6.0]),
    lam=st.sampled_from([0.0, 1e-4, 1e-2, 0.3]),
    shape=st.sampled_from(["", "twice", "empty", "integer"]),
    intercept=st.booleans(),
    single=st.booleans(),
)
@pytest.mark.parametrize("kind", KINKED, ids=named)
def test_kinks_in_rational_numbers(kind, seed, samples, features, spread, lam, shape, intercept, single):
    A, b = data(kind, seed, samples, features, spread, mean=float(seed % 3), integer=shape == "integer")
    if shape == "twice":
        A[:, -1] = A[:, 0]
    if shape == "empty":
        A[:, -1] = 0.0
    if single:
        A, b = A.astype(np.float32), b.astype(np.float32)
    weight = np.maximum(np.random.default_rng(seed).integers(0, 3, samples), np.arange(samples) < 2) if seed % 2 else None
    loss = kind(A, b, **({"tau": 0.3} if kind is Quantile else {}), intercept=intercept, sample_weight=weight)
    strengths = lam * np.abs(A).max(axis=0).astype(float) if seed % 3 else lam  # some raw
    penalty = L1(strengths) if np.any(strengths) else Zero()
    x, u = by_highs(loss, strengths)
    proof = prove(dual_of(loss, penalty), x, u, 1e-13)
    true = rational.objective(loss, penalty, x)
    assert abs(Fraction(proof.fun) - true) <= Fraction(proof.error)
    best = min(true, rational.objective(loss, penalty, rational.vertex(loss, x))) if kind is not Hinge else true
    assert Fraction(proof.value) <= best
    assert Fraction(proof.gap) >= true - best
    for size in (1e-12, 1e-6, 1e-1):  # also for points that are not so near
        moved = u + size * np.random.default_rng(seed).standard_normal(samples)
        assert Fraction(prove(dual_of(loss, penalty), x, moved, 1e-13).value) <= best


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.0, 3.0, 6.0]),
    number=st.integers(0, 4),
    intercept=st.booleans(),
    l2=st.sampled_from([0.0, 0.01]),
)
def test_least_squares_in_rational_numbers(seed, spread, number, intercept, l2):
    A, b = data(Squared, seed, 9, 3, spread, mean=float(seed % 3))
    sizes = np.abs(A).max(axis=0)
    penalty = [L1(0.03 * sizes), L1([0.1 * sizes[0], 0.0, 0.0]), Zero(), ElasticNet(0.01 * sizes, 0.01 * sizes**2), Ridge(0.1)][
        number
    ]
    loss = Squared(A, b, intercept=intercept, l2=l2)
    unit = Squared(A / sizes, b, intercept=intercept)  # the same in easier coordinates, to find the support
    l1, ridge = (np.broadcast_to(getattr(penalty, name, 0.0), 3) for name in ("l1", "l2"))
    found = minimize(unit, penalty=ElasticNet(l1 / sizes, (ridge + l2) / sizes**2), tol=1e-9, stop="gap", on_failure="ignore").x
    x, u = by_newton(loss, found / np.append(sizes, 1.0)[: found.size], l1, ridge)
    proof = prove(dual_of(loss, penalty), x, u, 1e-13)
    true, best = (rational.objective(loss, penalty, point) for point in (x, rational.stationary(loss, penalty, x)))
    assert abs(Fraction(proof.fun) - true) <= Fraction(proof.error)
    assert Fraction(proof.value) <= min(best, true)
    assert proof.gap <= 1e-10 * abs(proof.fun)


PENALTIES = [L1(0.02), Zero(), ElasticNet(1e-3, 1e-3), Ridge(1e-2)]


@pytest.mark.parametrize("kind", [Squared, Huber, SquaredHinge, Logistic, Poisson], ids=named)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("intercept", [False, True])
def test_smooth_losses_in_extended_precision(kind, penalty, intercept):
    A, b = data(kind, 3, 60, 4, 0.0, mean=1.0)
    loss = kind(A, b, intercept=intercept)
    x = minimize(loss, penalty=penalty, stop="gap", tol=1e-9, max_iter=5000, on_failure="ignore").x
    x, u = by_newton(loss, x, getattr(penalty, "l1", 0.0), getattr(penalty, "l2", 0.0))
    proof = prove(dual_of(loss, penalty), x, u, 1e-14)
    true = certifying.objective(loss, penalty, x)
    assert abs(proof.fun - true) <= proof.error + certifying.rounding(true)
    assert proof.value <= true + certifying.rounding(true)
    assert proof.gap <= 2e-13 * abs(proof.fun)


@pytest.mark.parametrize("penalty", [L1(0.02), Zero(), ElasticNet(1e-3, 1e-3), Ridge(1e-2)], ids=str)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, csr_array, lambda A: A.astype(np.float32)], ids=["dense", "csr", "float32"])
def test_several_classes(penalty, intercept, form):
    A, y = data(Squared, 8, 60, 3, 1.0, mean=1.0)
    A = np.round(np.column_stack([A / np.abs(A).max(axis=0) * [8.0, 1.0, 16.0], np.arange(60) % 2, np.arange(60) % 2 == 0]), 3)
    loss = Multinomial(form(A), np.digitize(y, [-0.4, 0.4]), intercept=intercept)
    l1, l2 = (float(np.ravel(getattr(penalty, name, 0.0))[0]) for name in ("l1", "l2"))
    x = minimize(loss, penalty=penalty, stop="gap", tol=1e-8, max_iter=3000, on_failure="ignore").x
    x, u = by_newton_classes(loss, np.where(np.abs(x) > 1e-6, x, 0.0), l1, l2)
    proof = prove(dual_of(loss, penalty), x, u, 1e-14)
    true = certifying.objective(loss, penalty, x)
    assert abs(proof.fun - true) <= proof.error + certifying.rounding(true)
    assert proof.value <= true + certifying.rounding(true)
    assert proof.gap <= 1e-12 * abs(proof.fun)


@pytest.mark.parametrize("kind", [LAD, Quantile, Hinge], ids=named)
@pytest.mark.parametrize("lam", [1e-2, 1e-4, 0.0])
def test_raw_columns(kind, lam):
    """Where an ordinary certificate loses up to all: sizes 1e-3 to 1e4, means that are not zero, an intercept."""
    A, b = data(kind, 1, 400, 10, 3.5, mean=3.0)
    loss, penalty = kind(A, b, intercept=True), L1(lam) if lam else Zero()
    x, u = by_highs(loss, lam)
    proof, before = prove(dual_of(loss, penalty), x, u, 1e-13), dual_of(loss, penalty).value(u)[0]
    assert proof.gap <= 1e-12 * proof.fun
    assert proof.value >= before
    certifier = Certifier(dual_of(loss, penalty))
    certifier.offer_proof(proof)
    assert certifier.gap(proof.fun) == pytest.approx(proof.gap, rel=1e-9)
    again = Certifier(dual_of(loss, penalty))
    again.remember(certifier.memory())  # the proof is believed when it is read again
    assert again.bound == certifier.bound


class Blocks(Source):
    """Every other block is sparse."""

    def __init__(self, A):
        self.A, self.shape, self.cuts = A, A.shape, [0, 7, 50, len(A)]

    def block(self, k):
        rows = self.A[self.cuts[k] : self.cuts[k + 1]].copy()
        return csr_array(rows) if k % 2 else rows


KINDS_OF_A = {
    "columns first": np.asfortranarray,
    "csr": csr_array,
    "csc": csc_array,
    "float32": lambda A: A.astype(np.float32),
    "part of an array": lambda A: np.hstack([A, A])[:, : A.shape[1]],
    "a source": Blocks,
}


@pytest.mark.parametrize("name", KINDS_OF_A)
@pytest.mark.parametrize("lam", [0.02, 0.0])
def test_data_of_all_kinds(name, lam):
    A, b = data(LAD, 2, 90, 4, 1.0)
    A[np.abs(A) < 0.3 * np.abs(A).max(axis=0)] = 0.0
    loss, penalty = LAD(KINDS_OF_A[name](A), b, intercept=True), L1(lam) if lam else Zero()
    x, u = by_highs(loss, lam)
    proof = prove(dual_of(loss, penalty), x, u, 1e-13)
    assert proof.gap <= 1e-13 * proof.fun
    assert abs(Fraction(proof.fun) - rational.objective(loss, penalty, x)) <= Fraction(proof.error)


@pytest.mark.parametrize("kind", [LAD, Hinge, Squared, Logistic, Poisson], ids=named)
def test_dependent_columns_without_a_penalty(kind):
    """One-hot columns add up to the intercept's, and some columns are multiples of others; but not nearly so."""
    rng = np.random.default_rng(0)
    A, b = data(kind, 4, 120, 3)
    A = np.column_stack([np.eye(4)[rng.integers(0, 4, 120)], A, A[:, 1], -2.0 * A[:, 2], np.zeros(120)])
    loss = kind(A, b, intercept=True)
    x, u = by_highs(loss, 0.0) if kind in KINKED else by_newton(loss, np.zeros(A.shape[1] + 1))
    proof = prove(dual_of(loss, Zero()), x, u, 1e-13)
    assert proof.gap <= 1e-11 * abs(proof.fun)
    nearly = kind(np.column_stack([A[:, :7], A[:, 4] + 1e-14 * rng.standard_normal(120)]), b, intercept=True)
    near = prove(dual_of(nearly, Zero()), x[[*range(7), 7, -1]] * ([1] * 7 + [0, 1]), u, 1e-13)
    assert near.value < 0.5 * proof.value if proof.value > 0 else near.value < proof.value  # it is not known


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
def test_boxes(intercept, bounded):
    sizes = np.array([1e-3, 1.0, 16.0, 1e4])
    A, b = data(Squared, 5, 80, 4, mean=1.0)
    A, end = A * sizes, 0.25
    full = np.column_stack([A / sizes, np.ones(80)])[:, : 4 + intercept]
    low, high = (
        np.append(np.full(4, value), side)[: 4 + intercept]
        for value, side in ((-end * bounded, -np.inf), (end if bounded else np.inf, np.inf))
    )
    y = lsq_linear(full, b, (low, high), method="bvls", tol=1e-15).x
    penalty = Box(-end / sizes, end / sizes) if bounded else NonNegative()
    x = y / np.append(sizes, 1.0)[: y.size]
    x[:4] = penalty.prox(x[:4], 1.0)
    loss = Squared(A, b, intercept=intercept)
    proof = prove(dual_of(loss, penalty), x, full @ y - b, 1e-13)
    assert abs(Fraction(proof.fun) - rational.objective(loss, None, x)) <= Fraction(proof.error)
    assert Fraction(proof.value) <= rational.objective(loss, None, x)
    assert proof.gap <= 1e-12 * proof.fun


@pytest.mark.parametrize(
    "penalty",
    [
        GroupL2(0.2, [0, 0, 1, 1]),
        SparseGroupL2(0.05, 0.05, [0, 0, 1, 1]),
        Unpenalised(L1(0.1), free=0),
        GroupL2(1.0, [0, 1, 1, 2], [0, 0.1, 1]),
    ],
    ids=str,
)
@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_groups_and_free_coordinates(penalty, l2):
    A, b = data(Squared, 6, 50, 4)
    loss, x = Squared(A, b, intercept=True, l2=l2), np.zeros(5)
    step = 1.0 / loss.lipschitz()
    for _ in range(500):  # proximal gradients: the problem is well conditioned
        x -= step * loss.value_and_grad(x)[1]
        x[:4] = penalty.prox(x[:4], step)
    proof = prove(dual_of(loss, penalty), x, loss.predict(x) - b, 1e-14)
    assert proof.gap <= 1e-12 * proof.fun
    assert proof.value <= loss.value_and_grad(x)[0] + penalty.value(x[:4]) + 1e-15


def test_what_is_not_known_falls_back():
    A, b = data(Squared, 6, 50, 4)
    operator = Squared(aslinearoperator(A), b)
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    assert prove(dual_of(operator, L1(0.1)), x, A @ x - b, 1e-6).gap > 0
    quadratic = Quadratic(np.diag([1.0, 2.0]), [1.0, 1.0])
    assert prove(dual_of(quadratic, L1(0.1)), np.array([0.9, 0.45]), None, 1e-9).gap <= 1e-12


def test_what_is_not_finite_proves_nothing():
    A, b = data(LAD, 7, 30, 3)
    dual = dual_of(LAD(A, b), L1(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, u in (
            ([np.nan, 0, 0], np.zeros(30)),
            ([0, 0, 0], np.full(30, np.nan)),
            ([1e308, 1e308, 0], np.full(30, np.inf)),
        ):
            gap = prove(dual, np.array(x, float), u, 1e-9).gap
            assert gap > 0
