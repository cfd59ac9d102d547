"""Polishing for smooth losses: answers fulfil the optimality condition, evaluated by other code in extended precision."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import certifying
import rational
from adagrad_diff import minimize, polish
from adagrad_diff.losses import (
    Huber,
    KernelSVMDual,
    Logistic,
    Multinomial,
    Poisson,
    Quadratic,
    Squared,
    SquaredHinge,
)
from adagrad_diff.penalties import (
    L1,
    Box,
    BoxHyperplane,
    ElasticNet,
    GroupL2,
    NonNegative,
    Ridge,
    Scaled,
    Separable,
    SparseGroupL2,
    Unpenalised,
    Zero,
)
from own_sources import OneBuffer, Remote, SparseWaves, Waves
from pairwise import pairwise

KINDS = [Logistic, Squared, SquaredHinge, Huber, Poisson, Multinomial]
PENALTIES = {
    "zero": lambda n: Zero(),
    "l1": lambda n: L1(0.02),
    "weighted": lambda n: L1(0.02 * (np.arange(n) % 3)),
    "elastic": lambda n: ElasticNet(0.02, 0.1),
    "ridge": lambda n: Ridge(0.05),
    "box": lambda n: Box(-0.2, 0.3),
    "nonnegative": lambda n: NonNegative(),
    "group": lambda n: GroupL2(0.03, np.arange(n) // 3, 1.0 + np.arange(-(-n // 3)) % 2),
    "sparse group": lambda n: SparseGroupL2(0.01, 0.02, np.arange(n) // 3),
    "some": lambda n: Unpenalised(L1(0.05), free=[0]),
    "scaled": lambda n: Scaled(Scaled(ElasticNet(0.1, 0.5), 0.4), 0.5),
    "scaled groups": lambda n: Scaled(
        GroupL2(0.01, np.arange(n) // 3, 1.0 + np.arange(-(-n // 3)) % 2), 3.0
    ),
    "scaled parts": lambda n: Separable(
        [(slice(0, 2), Scaled(L1(0.1), 0.2)), ([3], Scaled(Box(-0.2, 0.3), 2.0))]
    ),
    "parts": lambda n: Separable([(slice(0, 2), L1(0.02)), ([3], Ridge(0.1))]),
}
FORMS = {
    "array": np.array,
    "columns": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "remote": Remote,
}


def named(penalty):
    return type(penalty).__name__


def data(kind, samples, features, rng):
    A = rng.standard_normal((samples, features))
    z = A[:, :3].sum(axis=1) + 1.5 * rng.standard_normal(samples)  # far from separable
    targets = {
        Poisson: lambda: np.floor(np.exp(np.clip(z, -2, 2))),
        Multinomial: lambda: np.arange(samples) % 3,
    }
    return A, targets.get(
        kind, lambda: z if kind in (Squared, Huber) else np.where(z > 0, 1.0, -1.0)
    )()


def slopes(kind, z, b):
    """Return the derivatives of the losses, by their formulas."""
    if kind is Multinomial:
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True) - np.eye(3)[b]
    z = z[:, 0]
    with np.errstate(over="ignore"):
        formulas = {
            Logistic: lambda: -b / (1 + np.exp(b * z)),
            Squared: lambda: z - b,
            SquaredHinge: lambda: -2 * b * np.maximum(1 - b * z, 0),
            Huber: lambda: np.clip(z - b, -1, 1),
            Poisson: lambda: np.exp(z) - b,
        }
        return formulas[kind]()[:, None]


def distance(loss, A, penalty, x):
    """Return the distance of x to the proximal point of a gradient step, relative to the terms of the gradient."""
    A = np.asarray(A, np.longdouble)
    if loss.intercept:
        A = np.hstack([A, np.ones((len(A), 1), np.longdouble)])
    X = x.reshape(A.shape[1], -1)
    weight = loss.weight.astype(np.longdouble)[:, None]
    own = slopes(type(loss), A @ X.astype(np.longdouble), loss.b)
    tail = int(loss.intercept)
    ridge = np.full((len(X), 1), loss.l2)
    ridge[len(X) - tail :] = 0.0
    g = (A.T @ (weight * own) + ridge * X).astype(float)
    curve = np.broadcast_to(np.maximum((A**2).T @ weight, 1e-300).astype(float), g.shape)
    unit = np.sqrt(curve * (1e-300 + float(np.sum(weight * own**2))))
    inner = len(X) - tail
    step = 1.0 / curve[:inner].max() * np.ones(X[:inner].size)
    free = np.abs(g[inner:] / unit[inner:])
    moved = penalty.prox(X[:inner].ravel() - step * g[:inner].ravel(), step) - X[:inner].ravel()
    return max(float(np.abs(moved / step / unit[:inner].max()).max()), float(free.max(initial=0.0)))


def solve(loss, penalty, x=None, tol=1e-10):
    return polish(loss, penalty, np.zeros(loss.shape) if x is None else x, tol=tol)


@pairwise(
    name=sorted(PENALTIES),
    kind=KINDS,
    form=FORMS,
    intercept=[False, True],
    l2=[0.0, 0.1],
    weighted=[False, True],
)
def test_every_pair_is_optimal(name, kind, form, intercept, l2, weighted):
    rng = np.random.default_rng(len(name))
    A, b = data(kind, 60, 8, rng)
    weight = rng.integers(0, 3, 60) + (np.arange(60) < 45) if weighted else None
    loss = kind(FORMS[form](A), b, intercept=intercept, l2=l2, sample_weight=weight)
    penalty = PENALTIES[name](8 * (3 if kind is Multinomial else 1))
    result = solve(loss, penalty)
    assert result.x.shape == loss.shape
    assert distance(loss, A, penalty, result.x) < 1e-9
    if (
        kind is not Multinomial or "parts" not in name
    ):  # without a penalty on many coefficients, its bound is not sharp
        assert result.success, result.message
        assert 0 <= result.gap <= 1e-10 * abs(result.fun)
    certifying.check(
        loss, penalty, result.x, result.fun, result.bound, result.gap, result.dual_point
    )


@pairwise(
    seed=[0, 1, 2], spread=[0.0, 6.0], number=range(5), intercept=[False, True], l2=[0.0, 0.01]
)
def test_least_squares_in_rational_numbers(seed, spread, number, intercept, l2):
    """Columns have sizes from 10^-spread to 10^spread and means that are not zero."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-spread, spread, 3)
    A = (rng.standard_normal((9, 3)) + seed * rng.standard_normal(3)) * sizes
    b = A @ (1 / sizes) + rng.standard_normal(9)
    l1s = L1([0.1 * sizes[0], 0.0, 0.0])
    penalty = [
        L1(0.03 * sizes),
        l1s,
        Zero(),
        ElasticNet(0.01 * sizes, 0.01 * sizes**2),
        Ridge(0.1 * sizes**2),
    ][number]
    loss = Squared(A, b, intercept=intercept, l2=l2)
    result = solve(loss, penalty, tol=1e-9)
    true, best = (
        rational.objective(loss, penalty, x)
        for x in (result.x, rational.stationary(loss, penalty, result.x))
    )
    assert abs(Fraction(result.fun) - true) <= Fraction(1e-12) * true
    assert Fraction(result.bound) <= min(best, true)
    assert result.success, result.message


@pytest.mark.parametrize("kind", [Logistic, Poisson, Squared])
def test_agrees_with_a_plain_newton_method(kind):
    A, b = data(kind, 80, 6, np.random.default_rng(1))
    loss, x = kind(A, b, l2=0.1), np.zeros(6)
    for _ in range(50):
        z = A @ x
        h = kind.curvature(z, b, 0.0)
        x = x - 0.7 * np.linalg.solve(
            (A.T * h) @ A / 80 + 0.1 * np.eye(6),
            A.T @ slopes(kind, z[:, None], b)[:, 0] / 80 + 0.1 * x,
        )
    np.testing.assert_allclose(solve(loss, Zero()).x, x, atol=1e-10)


@pytest.mark.parametrize(
    "penalty", [L1(0.01), GroupL2(0.02, np.arange(5) // 2), Box(-0.1, 0.1)], ids=named
)
def test_all_kinds_of_sources_agree(penalty):
    A, b = SparseWaves().to_dense(), np.where(np.arange(60) % 3, 1.0, -1.0)
    x = solve(Logistic(A, b, intercept=True), penalty).x
    for other in (SparseWaves(), Remote(A), sparse.csc_array(A), aslinearoperator(A)):
        np.testing.assert_allclose(
            solve(Logistic(other, b, intercept=True), penalty).x, x, atol=1e-8
        )
    dense = solve(Logistic(Waves().to_dense(), b), penalty).x
    np.testing.assert_allclose(solve(Logistic(OneBuffer(), b), penalty).x, dense, atol=1e-8)
    single = solve(
        Logistic(A.astype(np.float32), b.astype(np.float32), intercept=True), penalty, tol=1e-5
    )
    assert single.success
    np.testing.assert_allclose(single.x, x, atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, Remote])
def test_units_of_columns_do_not_matter(form):
    A, b = data(Logistic, 100, 10, np.random.default_rng(2))
    scale, mean = 10.0 ** np.linspace(-6, 6, 10), np.linspace(-100, 100, 10)
    x = solve(Logistic(A, b, intercept=True), L1(0.02)).x
    result = solve(Logistic(form(A * scale + mean * scale), b, intercept=True), L1(0.02 * scale))
    assert result.success
    np.testing.assert_allclose(result.x[:-1] * scale, x[:-1], atol=1e-9)


@pairwise(
    penalty=[
        L1(0.02),
        Ridge(1e-2),
        ElasticNet(0.01, 0.01),
        NonNegative(),
        GroupL2(0.02, np.arange(300) // 3),
    ],
    form=[np.array, sparse.csc_array],
)
def test_more_columns_than_samples(penalty, form):
    A, b = data(Squared, 30, 300, np.random.default_rng(3))
    A[np.abs(A) < 0.5] = 0.0
    loss = Squared(form(A), b, l2=0.01)
    assert distance(loss, A, penalty, solve(loss, penalty).x) < 1e-9


@pairwise(kind=[Logistic, Squared, SquaredHinge], penalty=[L1(1e-3), Box(-0.1, 0.2), Ridge(1e-3)])
def test_a_matrix_of_which_only_products_are_seen(kind, penalty):
    A, b = data(kind, 60, 250, np.random.default_rng(4))
    loss = kind(aslinearoperator(A), b, l2=0.05)
    assert distance(loss, A, penalty, solve(loss, penalty, tol=1e-8).x) < 1e-7


def test_many_free_coordinates_of_a_sparse_matrix():
    rng = np.random.default_rng(5)
    A = sparse.random_array((300, 1100), density=0.05, rng=rng, format="csr")
    b = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    for penalty in (ElasticNet(1e-5, 1e-3), Box(-0.1, 0.1)):
        loss = Logistic(A, b, intercept=True, l2=1e-3)
        result = solve(loss, penalty)
        assert result.success
        assert result.finish.coefficients > 900 or isinstance(penalty, Box)
        assert distance(loss, A.toarray(), penalty, result.x) < 1e-9


DEGENERATE = {
    "zero columns": lambda A, b: (A * (np.arange(A.shape[1]) > 3), b),
    "all zero": lambda A, b: (0 * A, b),
    "duplicates": lambda A, b: (np.hstack([A, A, -A]), b),
    "equal targets": lambda A, b: (A, np.ones_like(b)),
    "one sample": lambda A, b: (A[:1], b[:1]),
    "constant columns": lambda A, b: (np.hstack([A, np.full((len(A), 2), 3.0)]), b),
    "separable": lambda A, b: (
        A,
        np.where(A[:, 0] > 0, 1.0, -1.0) if set(np.unique(b)) <= {-1.0, 1.0} else b,
    ),
}


@pairwise(
    case=DEGENERATE,
    kind=[Logistic, Squared, SquaredHinge, Huber, Poisson],
    penalty=[Zero(), L1(0.01), Ridge(0.01)],
)
def test_degenerate_data(case, kind, penalty):
    """The answer is finite and not worse than the start, and a certified one is optimal."""
    A, b = DEGENERATE[case](*data(kind, 30, 6, np.random.default_rng(6)))
    loss = kind(A, b, intercept=True)
    result = solve(loss, penalty)
    assert np.isfinite(result.x).all()
    value = loss.value_and_grad(result.x)[0] + penalty.value(result.x[:-1])
    start = loss.value_and_grad(np.zeros(loss.shape))[0]
    assert value <= start * (1 + 1e-14)
    assert result.bound <= value + 1e-12 * abs(value)
    if result.success and value > 1e-10 * abs(start):
        assert distance(loss, A, penalty, result.x) < 1e-8
    assert result.success == (result.finish.reason == "")


def test_a_problem_without_a_minimizer():
    A = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    result = solve(Logistic(A, np.sign(A[:, 0])), Zero())
    assert not result.success
    assert "no minimizer" in result.message


def test_an_overflow_is_not_an_exception():
    result = minimize(
        Poisson(np.array([[1.0], [2.0]]), [1, 2]), [1e4], tol=1e-9, max_iter=3, on_failure="ignore"
    )
    assert np.isfinite(result.x).all()
    loss = Poisson(np.array([[1.0, 1e3], [2.0, -1e3]]), [1, 2], l2=1e-300)
    assert not polish(loss, None, np.array([600.0, 0.0]), tol=1e-14).success


# ------------------------------------------------------------ quadratic functions


@pytest.mark.parametrize("penalty", [Zero(), L1(0.3), Box(-0.2, 0.1), Ridge(0.1)], ids=named)
def test_quadratic(penalty):
    rng = np.random.default_rng(9)
    B = rng.standard_normal((30, 20))
    Q, c = B.T @ B / 30, rng.standard_normal(20)
    x = solve(Quadratic(Q, c), penalty).x
    np.testing.assert_allclose(penalty.prox(x - 0.1 * (Q @ x - c), 0.1), x, atol=1e-11)
    for other in (aslinearoperator(Q), sparse.csr_array(Q)):
        np.testing.assert_allclose(solve(Quadratic(other, c), penalty).x, x, atol=1e-7)


@settings(deadline=None, max_examples=8)
@given(st.integers(5, 60), st.floats(0.01, 100.0), st.integers(0, 10**6), st.booleans())
def test_support_vector_machine_with_a_bias(samples, C, seed, skewed):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((samples, 2))
    b = np.where(np.arange(samples) % 2, 1.0, -1.0)
    K = np.exp(-np.sum((points[:, None] - points) ** 2, axis=2))
    loss = KernelSVMDual(K, b, 1.0 / (C * samples))
    box = loss.box()
    a = np.where(np.arange(samples) % 3, 1.0, 2.0) if skewed else np.ones(samples)
    penalty = BoxHyperplane(box.lower, box.upper, a, 0.0)
    x = solve(loss, penalty).x
    assert penalty.value(x) == 0.0
    step = 1.0 / loss.lipschitz()
    np.testing.assert_allclose(
        penalty.prox(x - step * loss.value_and_grad(x)[1], step), x, atol=1e-10 / samples
    )
