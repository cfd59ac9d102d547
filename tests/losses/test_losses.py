"""Losses: values, gradients, convexity, kinks, conjugates and Lipschitz constants."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import naive
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
from loss_zoo import (
    LINEAR,
    PARAMETER,
    SCALAR,
    TERMS,
    make,
    named,
    problem,
    same,
    targets,
    weights,
)
from own_sources import Stored
from pairwise import pairwise

CONSTANT = {Logistic: 0.25, SquaredHinge: 2.0, Squared: 1.0, Huber: 1.0, Multinomial: 0.5}
LAYOUTS = {
    "C order": np.asarray,
    "Fortran order": np.asfortranarray,
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "operator": aslinearoperator,
    "source": Stored,
}


def theta_of(kind):
    """Return the keyword arguments of the naive formula."""
    return {name: value for name, value in PARAMETER.get(kind, {}).items() if name != "classes"}


@pairwise(
    kind=LINEAR,
    layout=LAYOUTS,
    terms=TERMS,
    trajectories=[(), (1,), (2,), (3,), (8,), (12,)],
    dtype=[np.float64, np.float32],
    samples=[13, 150],
)
def test_values_and_gradients_are_the_formulas(kind, layout, terms, trajectories, dtype, samples):
    rng = np.random.default_rng(samples)
    A = (rng.standard_normal((samples, 5)) * (rng.random((samples, 5)) < 0.7)).astype(dtype)
    codes = rng.integers(-3, 4, samples)
    loss = make(kind, LAYOUTS[layout](A), codes, **terms)
    options = {**terms, "sample_weight": weights(samples) if "sample_weight" in terms else None}
    formula = getattr(naive, kind.__name__)(
        A.astype(float), targets(kind, codes), **theta_of(kind), **options
    )
    x = (rng.standard_normal((*loss.shape, *trajectories)) / 2).astype(dtype)
    value, gradient = loss.value_and_grad(x)
    assert (gradient.shape, gradient.dtype) == (x.shape, dtype)
    assert np.shape(value) == trajectories
    columns = np.moveaxis(x.reshape(*loss.shape, -1), -1, 0).astype(float)
    values, gradients = zip(*map(formula, columns), strict=True)
    expected = np.reshape(values, trajectories), np.stack(gradients, axis=-1).reshape(x.shape)
    same((value, gradient), expected, rtol=1e-12 if dtype == np.float64 else 5e-6)


@pytest.mark.parametrize("kind", LINEAR, ids=named)
def test_many_samples(kind):
    """Their loops are compiled."""
    rng, samples = np.random.default_rng(0), 40_000
    A, codes = rng.standard_normal((samples, 2)), rng.integers(-3, 4, samples)
    loss = make(kind, A, codes, sample_weight=True)
    formula = getattr(naive, kind.__name__)(
        A, targets(kind, codes), **theta_of(kind), sample_weight=weights(samples)
    )
    x = rng.standard_normal(loss.shape) / 2
    same(loss.value_and_grad(x), formula(x), rtol=1e-10)


def test_quadratic_values():
    A = np.random.default_rng(0).standard_normal((3, 5))
    Q, (c, b, x) = A @ A.T, np.array([[1.0, -2.0, 3.0], [1.0, -1.0, 1.0], [0.3, -0.2, 0.5]])
    same(Quadratic(Q, c).value_and_grad(x), naive.Quadratic(Q, c)(x))
    same(KernelSVMDual(Q, b, 0.2).value_and_grad(x), naive.KernelSVMDual(Q, b, 0.2)(x))
    box = KernelSVMDual(Q, b, 0.2).box()
    assert (box.lower.tolist(), box.upper.tolist()) == ([0.0, -1 / 3, 0.0], [1 / 3, 0.0, 1 / 3])


@pytest.mark.parametrize(
    ("kind", "theta"),
    [(Hinge, 0.0), (SquaredHinge, 0.0), (LAD, 0.0), (Quantile, 0.25), (Quantile, 0.75)],
)
def test_the_smallest_subgradient_at_kinks(kind, theta):
    h = 2.0**-10
    for b in (-1.0, 1.0):
        for z in np.arange(-2.0, 2.5, 0.5):  # the kinks, 1 / b or b, are among them
            left, middle, right = (kind.scalar(v, b, theta)[0] for v in (z - h, z, z + h))
            smallest = max((middle - left) / h, min(0.0, (right - middle) / h))
            assert kind.scalar(z, b, theta)[1] == pytest.approx(
                smallest, abs=2 * h if kind is SquaredHinge else 0.0
            )
        loss = kind(np.ones((1, 1)), [b], **({"tau": theta} if theta else {}))
        value, gradient = loss.value_and_grad([b])
        assert value == gradient[0] == 0.0


def test_predictions_at_a_kink_do_not_depend_on_units():
    for scale, shift in ((1.0, 0.0), (1e-6, 0.0), (1e8, 0.0), (1e-2, 1e6)):
        b = scale * np.array([-1.0, 0.0, 0.5, 1.0, 2.0]) + shift
        z = b + scale * np.array([1e-8, 0.0, 1e-5, 1.0, 0.0])
        loss = LAD(np.ones((5, 1)), b, sample_weight=[1, 1, 1, 1, 0], intercept=True)
        assert loss.at_nonsmooth_points(z).tolist() == [0, 1]  # the last sample has weight zero
        distances = scale * np.array([0, 1e-5, 1.0, np.inf])
        np.testing.assert_allclose(loss.nonsmooth_distances(z)[1:], distances, rtol=0.01)


@pytest.mark.parametrize("kind", SCALAR, ids=named)
def test_conjugates(kind):
    """They fulfill the inequality of Fenchel and Young, and are the supremum on a grid."""
    theta = next(iter(PARAMETER.get(kind, {}).values()), 0.0)
    u = np.arange(-3.0, 3.01, 0.125)  # the ends of every domain are among them
    z = np.linspace(-80.0, 80.0, 16001)  # the kinks are among them
    for b in map(float, targets(kind, [0, 1, 2])):
        star = np.asarray(kind.conjugate(u, b, theta))
        values, slopes = np.array([kind.scalar(v, b, theta) for v in z[::40].tolist()]).T
        gap = values + star[:, None] - u[:, None] * z[::40]
        assert gap.min() >= -1e-12 * (1.0 + np.abs(values).max() * (kind is not Poisson))
        at_slopes = [float(kind.conjugate(s, b, theta)) for s in slopes]  # equality at slopes
        np.testing.assert_allclose(values + at_slopes, slopes * z[::40], rtol=1e-9, atol=1e-9)
        formula = getattr(naive, kind.__name__).__wrapped__
        lines = u[:, None] * z - formula(z, b, **theta_of(kind))[0]
        sup, sup_near = lines.max(axis=1), lines[:, np.abs(z) <= 40].max(axis=1)
        inside = sup - sup_near < 1.0  # outside the domain the supremum grows with the range of z
        np.testing.assert_array_equal(np.isfinite(star), inside)
        np.testing.assert_allclose(star[inside], sup[inside], atol=1e-4)
        assert np.all(star[~inside] == np.inf)


@pytest.mark.parametrize("kind", SCALAR, ids=named)
def test_conjugates_and_slopes_of_extreme_numbers(kind):
    """No warning leaks, because warnings are errors here."""
    u = np.array([[1e300, -1e300, 1e160, 1e-320, -1e-320, 0.0]])
    b = np.array([[1.0], [-1.0], [1e300], [1e-320]])
    for theta in (0.25, 1e-320):
        with np.errstate(over="ignore"):  # certificates ignore overflows: infinity is correct
            star = kind.conjugate(u, b, theta)
        assert star.shape == (4, 6)
        assert not np.isnan(star).any()
        low, high = kind.slopes(b, theta)
        assert np.all(low <= high)


@pytest.mark.parametrize("kind", [k for k in SCALAR if k.curvature is not None], ids=named)
def test_the_curvature_is_the_derivative_of_the_slope(kind):
    theta = next(iter(PARAMETER.get(kind, {}).values()), 0.0)
    z, e = np.linspace(-3.03, 3.01, 40), 1e-6
    for b in map(float, targets(kind, [0, 1, 2])):
        up, down = ([kind.scalar(v, b, theta)[1] for v in z + sign * e] for sign in (1, -1))
        difference = np.subtract(up, down) / (2 * e)
        np.testing.assert_allclose(kind.curvature(z, b, theta), difference, rtol=1e-6, atol=1e-8)


@pairwise(kind=SCALAR, layout=["C order", "CSR", "operator"], trajectories=[(), (3,), (9,)])
def test_a_prediction_that_is_not_finite_is_not_hidden(kind, layout, trajectories):
    """The value is never a finite number, unless the limit of the loss is zero."""
    loss = make(kind, LAYOUTS[layout](np.ones((1, 1))), [1])
    for x in (np.nan, np.inf, -np.inf):
        with np.errstate(invalid="ignore"):
            value, _ = loss.value_and_grad(np.full((1, *trajectories), x))
        falls = x > 0 and kind in (Logistic, Hinge, SquaredHinge)
        assert not np.isfinite(value).any() or (falls and np.all(value == 0.0))
        assert np.isnan(value).all() or not np.isnan(x)


def test_sums_do_not_depend_on_where_arrays_lie():
    """A run that is resumed gives the same bits although its arrays lie elsewhere."""
    rng, memory = np.random.default_rng(0), np.empty(100)
    for kind, size in ((Logistic, 4), (Squared, 9), (LAD, 15)):
        loss, x0 = problem(kind, samples=37, features=size, l2=0.1)[0], rng.standard_normal(size)
        answers = set()
        for place in range(24):
            x = memory[place : place + size]
            x[:] = x0
            value, gradient = loss.value_and_grad(x)
            answers.add((value, gradient.tobytes()))
        assert len(answers) == 1


# ------------------------------------------------------------ Lipschitz constants


@pairwise(kind=CONSTANT, features=[4, 520], options=TERMS, layout=[*LAYOUTS])
def test_the_lipschitz_constant_is_the_largest_eigenvalue(kind, features, options, layout):
    A = np.random.default_rng(1).standard_normal((12, features))
    columns = np.column_stack([A, np.ones(12)]) if "intercept" in options else A
    weight = weights(12) if "sample_weight" in options else np.ones(12)
    top = np.linalg.eigvalsh(
        columns @ columns.T * np.sqrt(np.outer(weight, weight)) / weight.sum()
    )[-1]
    loss = make(kind, LAYOUTS[layout](A), np.arange(12), **options)
    assert loss.lipschitz() == pytest.approx(
        CONSTANT[kind] * top + options.get("l2", 0.0), rel=1e-9
    )


def test_losses_without_a_lipschitz_constant():
    for kind in (Hinge, LAD, Quantile, Poisson):
        words = f"{kind.__name__} has no known Lipschitz constant: .* not Lipschitz continuous"
        with pytest.raises(ValueError, match=words):
            problem(kind)[0].lipschitz()


@pytest.mark.parametrize("size", [6, 520])
def test_the_lipschitz_constant_of_quadratics(size):
    A = np.random.default_rng(0).standard_normal((size, 4))
    top = np.linalg.eigvalsh(A.T @ A)[-1]
    for Q in (A @ A.T, sparse.csr_array(A @ A.T)):
        assert Quadratic(Q, np.ones(size)).lipschitz() == pytest.approx(top, rel=1e-9)
        assert KernelSVMDual(Q, np.ones(size), lam=0.1).lipschitz() == pytest.approx(
            10 * top, rel=1e-9
        )


@pairwise(features=[3, 520], layout=["C order", "CSR", "CSC"])
def test_lipschitz_constants_of_extreme_data(features, layout):
    """Zeros, and entries whose squares underflow or overflow, without a warning."""
    for scale, l2, expected in ((0.0, 0.5, 0.5), (1e-200, 0.0, 0.0), (1e200, 0.0, np.inf)):
        A = np.full((4, features), scale)
        assert make(Squared, LAYOUTS[layout](A), np.arange(4), l2=l2).lipschitz() == expected
    for entry, expected in ((0.0, 0.0), (1e308, np.inf)):
        Q = np.full((features, features), entry)
        assert Quadratic(Q, np.ones(features)).lipschitz() == expected
