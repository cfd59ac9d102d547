"""Smooth losses: answers fulfil the optimality condition, evaluated by other code in extended precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from adagrad_diff.finishing.smooth import smooth_solver
from adagrad_diff.losses import (
    LAD,
    Huber,
    KernelSVMDual,
    LinearModel,
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
    L1Ball,
    NonNegative,
    Ridge,
    Scaled,
    Separable,
    SparseGroupL2,
    Unpenalised,
    Zero,
)
from own_sources import OneBuffer, SparseWaves, Waves

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
    "scaled groups": lambda n: Scaled(GroupL2(0.01, np.arange(n) // 3, 1.0 + np.arange(-(-n // 3)) % 2), 3.0),
    "scaled parts": lambda n: Separable([(slice(0, 2), Scaled(L1(0.1), 0.2)), ([3], Scaled(Box(-0.2, 0.3), 2.0))]),
    "parts": lambda n: Separable([(slice(0, 2), L1(0.02)), ([3], Ridge(0.1))]),
}
quick = settings(deadline=None, max_examples=40)


def never():
    """There is always time for more."""
    return False


def named(penalty):
    return type(penalty).__name__


def data(kind, samples, features, rng):
    A = rng.standard_normal((samples, features))
    z = A[:, :3].sum(axis=1) + 1.5 * rng.standard_normal(samples)  # far from separable
    targets = {Poisson: lambda: np.floor(np.exp(np.clip(z, -2, 2))), Multinomial: lambda: np.arange(samples) % 3}
    return A, targets.get(kind, lambda: z if kind in (Squared, Huber) else np.where(z > 0, 1.0, -1.0))()


def slopes(kind, z, b):
    """Derivatives of the losses, once more."""
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


def distance(loss, A, penalty, x, u=None):
    """How far x is from the proximal point of a gradient step, relative to the terms of the gradient."""
    A = np.asarray(A, np.longdouble)
    if loss.intercept:
        A = np.hstack([A, np.ones((len(A), 1), np.longdouble)])
    X = x.reshape(A.shape[1], -1)
    weight = loss.weight.astype(np.longdouble)[:, None]
    own = slopes(type(loss), A @ X.astype(np.longdouble), loss.b)
    if u is not None:
        np.testing.assert_allclose(u.reshape(own.shape), own.astype(float), atol=1e-9 * (1 + np.abs(own).max()))
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
    return smooth_solver(loss, penalty).solve(np.zeros(loss.shape) if x is None else x, tol, never)


@quick
@given(
    st.sampled_from(KINDS),
    st.sampled_from(sorted(PENALTIES)),
    st.sampled_from(["array", "columns", "csr", "csc"]),
    st.booleans(),
    st.sampled_from([0.0, 0.1]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_every_pair_is_optimal(kind, name, form, intercept, l2, weighted, seed):
    rng = np.random.default_rng(seed)
    A, b = data(kind, 60, 8, rng)
    matrix = {"array": np.array, "columns": np.asfortranarray, "csr": sparse.csr_array, "csc": sparse.csc_array}[form](A)
    weight = rng.integers(0, 3, 60) + (np.arange(60) < 45) if weighted else None
    loss = kind(matrix, b, intercept=intercept, l2=l2, sample_weight=weight)
    penalty = PENALTIES[name](8 * (3 if kind is Multinomial else 1))
    outcome = solve(loss, penalty)
    assert outcome.x.shape == loss.shape
    assert np.isfinite(outcome.x).all()
    assert outcome.done, outcome
    assert distance(loss, A, penalty, outcome.x, outcome.u) < 1e-9


@pytest.mark.parametrize("kind", [Logistic, Poisson, Squared])
def test_agrees_with_a_plain_newton_method(kind):
    A, b = data(kind, 80, 6, np.random.default_rng(1))
    loss, x = kind(A, b, l2=0.1), np.zeros(6)
    for _ in range(50):
        z = A @ x
        h = kind.curvature(z, b, 0.0)
        x = x - 0.7 * np.linalg.solve(
            (A.T * h) @ A / 80 + 0.1 * np.eye(6), A.T @ slopes(kind, z[:, None], b)[:, 0] / 80 + 0.1 * x
        )
    np.testing.assert_allclose(solve(loss, Zero()).x, x, atol=1e-10)


@pytest.mark.parametrize("kind", [Logistic, Squared, SquaredHinge, Huber, Poisson])
def test_curvature_is_the_derivative_of_the_slope(kind):
    z, b = np.linspace(-3.03, 3.01, 40), np.where(np.arange(40) % 2, 1.0, -1.0) ** (0 if kind is Poisson else 1)
    e = 1e-6
    differences = (slopes(kind, (z + e)[:, None], b) - slopes(kind, (z - e)[:, None], b))[:, 0] / (2 * e)
    np.testing.assert_allclose(kind.curvature(z, b, 1.0), differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("penalty", [Zero(), L1(0.01), GroupL2(0.02, np.arange(5) // 2), Box(-0.1, 0.1)], ids=named)
def test_all_kinds_of_sources_agree(penalty):
    source = SparseWaves()
    A, b = source.to_dense(), np.where(np.arange(60) % 3, 1.0, -1.0)
    x = solve(Logistic(A, b, intercept=True), penalty).x
    for other in (SparseWaves(), sparse.csr_array(A), sparse.csc_array(A), aslinearoperator(A), np.asfortranarray(A)):
        outcome = solve(Logistic(other, b, intercept=True), penalty)
        assert outcome.done
        np.testing.assert_allclose(outcome.x, x, atol=1e-8)
    dense = solve(Logistic(Waves().to_dense(), b), penalty).x
    np.testing.assert_allclose(solve(Logistic(OneBuffer(), b), penalty).x, dense, atol=1e-8)
    single = solve(Logistic(A.astype(np.float32), b.astype(np.float32), intercept=True), penalty)
    assert single.done
    np.testing.assert_allclose(single.x, x, atol=1e-5)


def test_units_of_columns_do_not_matter():
    A, b = data(Logistic, 100, 10, np.random.default_rng(2))
    scale, mean = 10.0 ** np.linspace(-6, 6, 10), np.linspace(-100, 100, 10)
    x = solve(Logistic(A, b, intercept=True), L1(0.02)).x
    outcome = solve(Logistic(A * scale + mean * scale, b, intercept=True), L1(0.02 * scale))
    assert outcome.done
    np.testing.assert_allclose(outcome.x[:-1] * scale, x[:-1], atol=1e-9)


@pytest.mark.parametrize(
    "penalty", [L1(0.02), Ridge(1e-2), ElasticNet(0.01, 0.01), NonNegative(), GroupL2(0.02, np.arange(900) // 3)], ids=named
)
@pytest.mark.parametrize("form", [np.array, sparse.csc_array])
def test_more_columns_than_samples(penalty, form):
    A, b = data(Squared, 40, 900, np.random.default_rng(3))
    A[np.abs(A) < 0.5] = 0.0
    loss = Squared(form(A), b, l2=0.01)
    outcome = solve(loss, penalty)
    assert outcome.done
    assert distance(loss, A, penalty, outcome.x) < 1e-9


@pytest.mark.parametrize("kind", [Logistic, Squared, SquaredHinge])
@pytest.mark.parametrize("penalty", [L1(1e-3), Box(-0.1, 0.2), Ridge(1e-3)], ids=named)
def test_products_only(kind, penalty):
    """Nothing of A is seen, and there are many columns."""
    A, b = data(kind, 60, 250, np.random.default_rng(4))
    loss = kind(aslinearoperator(A), b, l2=0.05)
    outcome = solve(loss, penalty, tol=1e-8)
    assert outcome.done
    assert distance(loss, A, penalty, outcome.x, outcome.u) < 1e-7


def test_many_free_coordinates_of_a_sparse_matrix():
    rng = np.random.default_rng(5)
    A = sparse.random_array((400, 1500), density=0.05, rng=rng, format="csr")
    b = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    for penalty in (ElasticNet(1e-5, 1e-3), Box(-0.1, 0.1)):
        loss = Logistic(A, b, intercept=True, l2=1e-3)
        outcome = solve(loss, penalty)
        assert outcome.done
        assert outcome.coefficients > 1000 or isinstance(penalty, Box)
        assert distance(loss, A.toarray(), penalty, outcome.x, outcome.u) < 1e-9


DEGENERATE = {
    "zero columns": lambda A, b: (A * (np.arange(A.shape[1]) > 3), b),
    "all zero": lambda A, b: (0 * A, b),
    "duplicates": lambda A, b: (np.hstack([A, A, -A]), b),
    "equal targets": lambda A, b: (A, np.ones_like(b)),
    "one sample": lambda A, b: (A[:1], b[:1]),
    "constant columns": lambda A, b: (np.hstack([A, np.full((len(A), 2), 3.0)]), b),
    "separable": lambda A, b: (A, np.where(A[:, 0] > 0, 1.0, -1.0) if set(np.unique(b)) <= {-1.0, 1.0} else b),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("kind", [Logistic, Squared, SquaredHinge, Huber, Poisson])
@pytest.mark.parametrize("penalty", [Zero(), L1(0.01), Ridge(0.01)], ids=named)
def test_degenerate_data_end_honestly(case, kind, penalty):
    A, b = DEGENERATE[case](*data(kind, 30, 6, np.random.default_rng(6)))
    loss = kind(A, b, intercept=True)
    outcome = solve(loss, penalty)
    assert np.isfinite(outcome.x).all()
    assert np.isfinite(outcome.u).all()
    value = loss.value_and_grad(outcome.x)[0] + penalty.value(outcome.x[:-1])
    start = loss.value_and_grad(np.zeros(loss.shape))[0]
    assert value <= start * (1 + 1e-14)
    if outcome.done and value > 1e-10 * abs(start):
        assert distance(loss, A, penalty, outcome.x) < 1e-8
    assert outcome.done == (outcome.reason == "")


def test_no_minimiser_is_no_answer():
    A = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    outcome = solve(Logistic(A, np.sign(A[:, 0])), Zero())
    assert not outcome.done
    assert "no minimiser" in outcome.reason


def test_an_overflow_is_not_an_exception():
    loss = Poisson(np.array([[1.0], [2.0]]), [1, 2])
    outcome = solve(loss, Zero(), np.array([1e4]))
    assert not outcome.done
    assert "overflow" in outcome.reason


def test_never_worse_and_soon_over():
    A, b = data(Logistic, 200, 20, np.random.default_rng(7))
    loss, penalty = Logistic(A, b), L1(0.02)
    for x in (np.zeros(20), np.ones(20), solve(loss, penalty).x):
        outcome = smooth_solver(loss, penalty).solve(x.copy(), 1e-10, lambda: True)
        value = [loss.value_and_grad(point)[0] + penalty.value(point) for point in (x, outcome.x)]
        assert value[1] <= value[0] * (1 + 1e-15)


def test_a_solver_can_be_asked_again():
    A, b = data(Squared, 200, 20, np.random.default_rng(8))
    solver = smooth_solver(Squared(A, b), L1(0.02))
    x = solver.solve(np.zeros(20), 1e-4, never).x
    again = solver.solve(x, 1e-12, never)
    assert again.done
    np.testing.assert_allclose(again.x, solve(Squared(A, b), L1(0.02)).x, atol=1e-10)


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


@settings(deadline=None, max_examples=15)
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
    outcome = solve(loss, penalty)
    assert outcome.done, outcome
    assert penalty.value(outcome.x) == 0.0
    g = loss.value_and_grad(outcome.x)[1]
    step = 1.0 / (loss.factor * samples)
    np.testing.assert_allclose(penalty.prox(outcome.x - step * g, step), outcome.x, atol=1e-10 / samples)


# ------------------------------------------------------------ what it does not suit


def test_says_why_not():
    A, b = np.eye(3), np.ones(3)

    class Own(LinearModel):
        smoothness = 1.0

        @staticmethod
        def scalar(z, b, theta):
            return 0.5 * (z - b) ** 2, z - b

    assert "second derivative" in smooth_solver(Own(A, b), Zero())
    assert "second derivative" in smooth_solver(LAD(A, b), Zero())
    assert "L1Ball" in smooth_solver(Squared(A, b), L1Ball(1.0))
    assert "hyperplane" in smooth_solver(Squared(A, b), BoxHyperplane(0.0, 1.0, np.ones(3), 1.0))
    mixed = Separable([([0, 1], GroupL2(1.0, [0, 0])), ([2], NonNegative())])
    assert "bounds" in smooth_solver(Squared(A, b), mixed)
