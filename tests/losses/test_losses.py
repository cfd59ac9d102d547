"""Losses: gradients, convexity, kinks, conjugates, smoothness, and the same numbers from every kind of matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.optimize import check_grad
from scipy.sparse.linalg import aslinearoperator
from scipy.special import logsumexp

from adagrad_diff.losses import (
    LAD,
    Hinge,
    Huber,
    KernelSVMDual,
    Logistic,
    Multinomial,
    Poisson,
    Quadratic,
    Quantile,
    Squared,
    SquaredHinge,
)
from looping import looped
from loss_zoo import EVERY, LINEAR, PARAMETER, SCALAR, TERMS, make, named, problem, same, targets, weights

NONSMOOTH = [Hinge, LAD, Quantile, Poisson]
CONSTANT = {Logistic: 0.25, SquaredHinge: 2.0, Squared: 1.0, Huber: 1.0, Multinomial: 0.5}
quick = settings(deadline=None, max_examples=30)


def naive(kind, z, b):
    """The scalar losses once more, in NumPy, from their textbook formulas."""
    formulas = {
        Logistic: lambda: np.logaddexp(0.0, -b * z),
        Hinge: lambda: np.maximum(0.0, 1.0 - b * z),
        SquaredHinge: lambda: np.maximum(0.0, 1.0 - b * z) ** 2,
        LAD: lambda: np.abs(z - b),
        Quantile: lambda: np.where(b >= z, 0.25 * (b - z), 0.75 * (z - b)),
        Squared: lambda: (z - b) ** 2 / 2,
        Huber: lambda: np.where(np.abs(z - b) <= 0.5, (z - b) ** 2 / 2, 0.5 * np.abs(z - b) - 0.125),
        Poisson: lambda: np.exp(z) - b * z,
        Multinomial: lambda: logsumexp(z, axis=1) - z[np.arange(len(b)), b.astype(int)],
    }
    assert kind in formulas, f"write the formula of {kind.__name__} into `naive` of tests/losses/test_losses.py"
    return formulas[kind]()


@looped("options", TERMS)
@pytest.mark.parametrize("kind", LINEAR, ids=named)
def test_value_is_the_formula(kind, options):
    loss, rng = problem(kind, **options)
    A, x = loss.A.array, rng.standard_normal(loss.shape)
    weight = weights(12) if "sample_weight" in options else np.ones(12)
    coefficients, offset = (x[:-1], x[-1]) if loss.intercept else (x, 0.0)
    expected = np.average(naive(kind, A @ coefficients + offset, loss.b), weights=weight)
    expected += options.get("l2", 0.0) / 2 * np.sum(coefficients**2)
    assert loss.value_and_grad(x)[0] == pytest.approx(expected, rel=1e-12)


@looped("options", TERMS)
@pytest.mark.parametrize("kind", EVERY, ids=named)
def test_gradient_is_the_derivative(kind, options):
    for seed in range(3):
        loss, rng = problem(kind, seed=seed, **options)
        x = rng.standard_normal(loss.shape)
        pair = lambda v: loss.value_and_grad(v.reshape(loss.shape))  # noqa: B023, E731
        error = check_grad(lambda v: pair(v)[0], lambda v: pair(v)[1].ravel(), x.ravel())  # noqa: B023
        assert error <= 2e-6 * (1.0 + np.abs(pair(x)[1]).max())


def test_quadratic_values():
    A = np.random.default_rng(0).standard_normal((3, 5))
    Q, c, b, x = A @ A.T, np.array([1.0, -2.0, 3.0]), np.array([1.0, -1.0, 1.0]), np.array([0.3, -0.2, 0.5])
    same(Quadratic(Q, c).value_and_grad(x), (x @ Q @ x / 2 - c @ x, Q @ x - c))
    same(KernelSVMDual(Q, b, 0.2).value_and_grad(x), (x @ Q @ x / 0.4 - b @ x, Q @ x / 0.2 - b))
    box = KernelSVMDual(Q, b, 0.2).box()
    assert (box.lower.tolist(), box.upper.tolist()) == ([0.0, -1 / 3, 0.0], [1 / 3, 0.0, 1 / 3])


@pytest.mark.parametrize("kind", EVERY, ids=named)
@quick
@given(data=st.data())
def test_convexity_and_subgradients_also_at_kinks(kind, data):
    """Integer data, so that x and y often lie on kinks."""
    samples, features = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    small = lambda *shape: data.draw(arrays(np.int8, shape, elements=st.integers(-2, 2))).astype(float)  # noqa: E731
    loss = make(kind, small(samples, features), small(samples).astype(int))
    x, y, t = small(*loss.shape), small(*loss.shape), data.draw(st.floats(0.0, 1.0))
    (fx, gx), (fy, _), (ft, _) = (loss.value_and_grad(v) for v in (x, y, t * x + (1 - t) * y))
    rounding = 1e-12 * (1.0 + abs(fx) + abs(fy) + np.sum(np.abs(gx) * np.abs(y - x)))
    assert ft <= t * fx + (1 - t) * fy + rounding
    assert fy >= fx + np.sum(gx * (y - x)) - rounding


@pytest.mark.parametrize(("kind", "theta"), [(Hinge, 0.0), (SquaredHinge, 0.0), (LAD, 0.0), (Quantile, 0.25), (Quantile, 0.75)])
@looped("b", [-1.0, 1.0])
def test_smallest_subgradient_at_kinks(kind, theta, b):
    h = 2.0**-10
    for z in np.arange(-2.0, 2.5, 0.5):  # the kinks, 1 / b or b, are among them
        left, middle, right = (kind.scalar(v, b, theta)[0] for v in (z - h, z, z + h))
        smallest = max((middle - left) / h, min(0.0, (right - middle) / h))
        assert kind.scalar(z, b, theta)[1] == pytest.approx(smallest, abs=2 * h if kind is SquaredHinge else 0.0)
    assert kind.scalar(b, b, theta) == (0.0, 0.0)  # 1 / b = b
    tau = {"tau": theta} if theta else {}
    for A in (np.ones((1, 1)), sparse.csr_array(np.ones((1, 1)))):  # and so it stays when compiled
        value, gradient = kind(A, [b], **tau).value_and_grad([b])
        assert value == gradient[0] == 0.0


def test_one_notion_of_a_kink():
    for scale, shift in ((1.0, 0.0), (1e-6, 0.0), (1e8, 0.0), (1e-2, 1e6)):  # whatever the units, and where zero is
        b = scale * np.array([-1.0, 0.0, 0.5, 1.0, 2.0]) + shift
        z = b + scale * np.array([1e-8, 0.0, 1e-5, 1.0, 0.0])
        loss = LAD(np.ones((5, 1)), b, sample_weight=[1, 1, 1, 1, 0], intercept=True)
        assert loss.at_kinks(z).tolist() == [0, 1]  # without a weight there is no kink
        np.testing.assert_allclose(loss.kink_distances(z)[1:], scale * np.array([0, 1e-5, 1.0, np.inf]), rtol=0.01)


@pytest.mark.parametrize("kind", SCALAR, ids=named)
@looped("code", [0, 1, 2])
def test_conjugate(kind, code):
    theta = next(iter(PARAMETER.get(kind, {}).values()), 0.0)
    b = float(targets(kind, code))
    u = np.arange(-3.0, 3.01, 0.125)  # the ends of every domain are among them
    z = np.linspace(-80.0, 80.0, 40001)
    star = np.asarray(kind.conjugate(u, b, theta))
    values, slopes = np.array([kind.scalar(v, b, theta) for v in z[::50].tolist()]).T
    gap = values + star[:, None] - u[:, None] * z[::50]
    assert gap.min() >= -1e-12 * (1.0 + np.abs(values).max() * (kind is not Poisson))  # Fenchel-Young
    at_slopes = np.array([float(kind.conjugate(s, b, theta)) for s in slopes])  # numbers as well as arrays
    np.testing.assert_allclose(values + at_slopes, slopes * z[::50], rtol=1e-9, atol=1e-9)
    lines = u[:, None] * z - naive(kind, z, b)
    sup, sup_near = lines.max(axis=1), lines[:, np.abs(z) <= 40].max(axis=1)
    inside = sup - sup_near < 1.0  # outside the domain the supremum grows with the range of z
    np.testing.assert_array_equal(np.isfinite(star), inside)
    np.testing.assert_allclose(star[inside], sup[inside], atol=1e-4)
    assert np.all(star[~inside] == np.inf)


@pytest.mark.parametrize("kind", SCALAR, ids=named)
def test_conjugates_and_slopes_of_extreme_numbers(kind):
    """No warning leaks: they are errors here."""
    u, b = np.array([[1e300, -1e300, 1e160, 1e-320, -1e-320, 0.0]]), np.array([[1.0], [-1.0], [1e300], [1e-320]])
    for theta in (0.25, 1e-320):
        star = kind.conjugate(u, b, theta)
        assert star.shape == (4, 6)
        assert not np.isnan(star).any()
        low, high = kind.slopes(b, theta)
        assert np.all(low <= high)


@looped("options", TERMS)
@pytest.mark.parametrize("features", [4, 520])
@pytest.mark.parametrize("kind", CONSTANT, ids=named)
def test_lipschitz_is_the_largest_eigenvalue(kind, features, options):
    A = np.random.default_rng(1).standard_normal((12, features))
    columns = np.column_stack([A, np.ones(12)]) if "intercept" in options else A
    weight = weights(12) if "sample_weight" in options else np.ones(12)
    top = np.linalg.eigvalsh(columns @ columns.T * np.sqrt(np.outer(weight, weight)) / weight.sum())[-1]
    for layout in (np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array, aslinearoperator):
        loss = make(kind, layout(A), np.arange(12), **options)
        assert loss.lipschitz() == pytest.approx(CONSTANT[kind] * top + options.get("l2", 0.0), rel=1e-9)


@pytest.mark.parametrize("size", [6, 520])
def test_lipschitz_of_quadratics(size):
    A = np.random.default_rng(0).standard_normal((size, 4))
    top = np.linalg.eigvalsh(A.T @ A)[-1]
    for Q in (A @ A.T, sparse.csr_array(A @ A.T)):
        assert Quadratic(Q, np.ones(size)).lipschitz() == pytest.approx(top, rel=1e-9)
        assert KernelSVMDual(Q, np.ones(size), lam=0.1).lipschitz() == pytest.approx(10 * top, rel=1e-9)


@pytest.mark.parametrize("kind", [k for k in EVERY if k not in NONSMOOTH], ids=named)
@quick
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1e-3, 1.0, 10.0]), distance=st.sampled_from([1e-4, 1.0, 10.0]))
def test_lipschitz_bounds_the_gradient(kind, seed, size, distance):
    loss, rng = problem(kind, seed=seed % 7, l2=0.1, intercept=True)
    x = size * rng.standard_normal(loss.shape)
    y = x + distance * np.random.default_rng(seed).standard_normal(loss.shape)
    change = np.linalg.norm(loss.value_and_grad(x)[1] - loss.value_and_grad(y)[1])
    assert change <= loss.lipschitz() * np.linalg.norm(x - y) * (1 + 1e-9)


@pytest.mark.parametrize("kind", NONSMOOTH, ids=named)
def test_no_lipschitz_constant(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} has no known Lipschitz constant: .* not Lipschitz continuous"):
        problem(kind)[0].lipschitz()


@pytest.mark.parametrize("features", [4, 520])
def test_lipschitz_of_single_precision_and_of_zeros(features):
    A = np.random.default_rng(0).standard_normal((12, features))
    top = np.linalg.norm(A, 2) ** 2 / 12
    for layout in (np.asarray, sparse.csr_array, sparse.csc_array):
        assert make(Squared, layout(A.astype(np.float32)), np.arange(12)).lipschitz() == pytest.approx(top, rel=1e-5)
        assert make(Squared, layout(0 * A), np.arange(12), l2=0.5).lipschitz() == 0.5
    assert Quadratic(np.zeros((features, features)), np.ones(features)).lipschitz() == 0.0


@pytest.mark.parametrize("features", [3, 520])
@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_lipschitz_of_extreme_data(features, size):
    """The squares of A under- or overflow: the constant is what is left of it, without a warning."""
    A = np.full((4, features), size)
    for layout in (np.asarray, np.asfortranarray, sparse.csr_array):
        expected = 0.0 if size < 1 else np.inf
        assert make(Squared, layout(A), np.arange(4)).lipschitz() == expected
    assert Quadratic(np.full((features, features), 1e308), np.ones(features)).lipschitz() == np.inf
