"""Penalties that users write: subclasses that accept only some metrics, and objects that know nothing of this package."""

import warnings

import numpy as np
import pytest

from adagrad_diff import L1, SLOPE, Squared, minimize
from adagrad_diff.penalties import Penalty, Scaled, Zero, as_penalty
from looping import looped
from pairwise import pairwise

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((30, 4)), RNG.standard_normal(30)
TARGET = np.array([3.0, -4.0, 0.0, 12.0])  # of norm 13


class Norm(Penalty):
    """lam times the Euclidean norm: its prox is simple only if all coordinates share one step."""

    accepts = "scalar"

    def __init__(self, lam):
        self.lam, self.shapes = lam, set()

    def value(self, x):
        return self.lam * np.sqrt(np.sum(x**2, axis=0))

    def prox(self, z, step, out=None):
        self.shapes.add(np.shape(step))
        assert np.all(step > 0)
        norm = np.sqrt(np.sum(z**2, axis=0))
        return np.multiply(
            z, np.maximum(1.0 - step * self.lam / np.maximum(norm, 1e-300), 0.0), out=out
        )


class Lasso:
    """Nothing but the two methods."""

    def __init__(self, lam):
        self.lam = lam

    def value(self, x):
        return self.lam * np.sum(np.abs(x), axis=0)

    def prox(self, z, step):
        return np.sign(z) * np.maximum(np.abs(z) - step * self.lam, 0.0)


class ForeignNorm:
    """A foreign object may say which metrics it accepts, too."""

    accepts = "scalar"

    def __init__(self, lam):
        self.norm = Norm(lam)

    def value(self, x):
        return self.norm.value(x)

    def prox(self, z, step):
        return self.norm.prox(z, step)


@looped("kind", [Norm, ForeignNorm])
@looped("blocks", ["element", [0, 0, 1, 1]])
def test_one_step_only_is_said_before_the_start(kind, blocks):
    with pytest.raises(
        ValueError, match=rf"\b{kind.__name__} has no exact proximal operator .*Use blocks='all'"
    ):
        minimize(Squared(A, B), penalty=kind(1.0), eta=1.0, blocks=blocks)


@pytest.mark.parametrize("kind", [Norm, ForeignNorm])
def test_one_block_is_one_step(kind):
    penalty = kind(2.0)
    result = minimize(
        Squared(2 * np.eye(4), 2 * TARGET),
        penalty=penalty,
        eta=3.0,
        blocks="all",
        max_iter=2000,
        tol=1e-10,
    )
    # f = ||x - target||^2 / 2, so that the solution is the prox of the target
    assert result.success
    np.testing.assert_allclose(result.x, TARGET * 11 / 13, rtol=1e-8)
    assert getattr(penalty, "norm", penalty).shapes == {(1,)}


def test_one_step_per_trajectory():
    penalty, loss = Norm(2.0), Squared(2 * np.eye(4), 2 * TARGET)
    result = minimize(
        loss, penalty=penalty, eta=[1.0, 3.0, 10.0], blocks="all", max_iter=3000, tol=1e-9
    )
    assert result.x.shape == (4, 3)
    assert result.success.all()
    np.testing.assert_allclose(result.x, np.repeat(TARGET[:, None] * 11 / 13, 3, axis=1), rtol=1e-6)
    assert penalty.shapes <= {(1, 3), (1, 2), (1, 1)}  # trajectories that have ended leave
    assert (1, 3) in penalty.shapes


@looped(("options", "eta"), [({}, [0.5, 2.0]), ({"intercept": True}, 0.5)])
def test_an_object_with_two_methods(options, eta):
    """It is used as a penalty of this package would be."""
    runs = [
        minimize(Squared(A, B, **options), penalty=p, eta=eta, max_iter=50)
        for p in (L1(0.05), Lasso(0.05))
    ]
    np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(runs[0].fun, runs[1].fun, rtol=1e-12)
    assert np.any(runs[0].x == 0.0)  # it did something


def test_no_penalty():
    assert isinstance(as_penalty(None), Zero)
    own = L1(1.0)
    assert as_penalty(own) is own


def test_an_intercept_may_have_a_block_of_its_own():
    """The penalized coordinates share one step, and that is all a scalar metric asks for."""
    A = np.random.default_rng(0).standard_normal((30, 4))
    b = A @ [2.0, -1.0, 0.0, 0.0] + 3.0
    penalty = SLOPE([0.4, 0.3, 0.2, 0.1])
    result = minimize(
        Squared(A, b, intercept=True),
        penalty=penalty,
        eta=1.0,
        blocks=[0, 0, 0, 0, 1],
        max_iter=3000,
    )
    g = Squared(A, b, intercept=True).value_and_grad(result.x)[1]
    assert abs(g[-1]) < 1e-6
    assert penalty.polar(-g[:-1]) <= 1 + 1e-6
    with pytest.raises(ValueError, match=r"SLOPE has no exact .* blocks='all'"):
        minimize(Squared(A, b, intercept=True), penalty=penalty, eta=1.0, blocks=[0, 0, 0, 1, 1])


def test_a_value_that_is_not_one_per_trajectory():
    class Careless(Norm):
        def value(self, x):
            return np.sum(x**2)

    with pytest.raises(
        ValueError,
        match=r"Careless.value must return one number per trajectory, shape \(2,\), .* Got shape \(\)",
    ):
        minimize(Squared(A, B), penalty=Careless(1.0), eta=[1.0, 2.0], blocks="all")


# ---------------------------------------------------------------- what a subclass writes


class Formula(Penalty):
    """The contract: a value, and the formula of the prox."""

    def value(self, x):
        return np.abs(x).sum(axis=0)

    def apply(self, z, step, out):
        out[:] = np.sign(z) * np.maximum(np.abs(z) - step, 0.0)


class Forgetful(Penalty):
    """The prox with its `out`, as earlier versions asked for it, which is not used."""

    def value(self, x):
        return np.abs(x).sum(axis=0)

    def prox(self, z, step, out=None):
        return np.sign(z) * np.maximum(np.abs(z) - step, 0.0)


@pairwise(kind=[Formula, Forgetful], eta=[0.5, [0.5, 2.0]])
def test_subclasses(kind, eta):
    runs = [
        minimize(Squared(A, B), penalty=Scaled(p, 0.05), eta=eta, max_iter=50)
        for p in (L1(1.0), kind())
    ]
    np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=1e-9, atol=1e-12)
    assert np.any(runs[0].x == 0.0)


def test_a_subclass_with_a_formula_is_checked_like_ours():
    z = np.array([3.0, -0.5])
    np.testing.assert_array_equal(Formula().prox([3, -0.5], 1), [2.0, 0.0])
    assert Formula().prox(z, [1.0, 1.0], out=z) is z
    with pytest.raises(ValueError, match=r"'step' must be positive"):
        Formula().prox(z, -1.0)
    with pytest.raises(ValueError, match=r"'out' must have the shape"):
        Formula().prox(z, 1.0, out=np.empty(1))


def test_a_subclass_without_a_prox():
    class Half(Penalty):
        def value(self, x):
            return 0.0

    for call in (
        lambda: Half().prox([1.0], 1.0),
        lambda: minimize(Squared(A, B), penalty=Half(), eta=1.0),
    ):
        with pytest.raises(
            TypeError,
            match=r"^Half has no proximal operator: write its method apply\(z, step, out\)\.$",
        ):
            call()


# ---------------------------------------------------------------- formulas for one step


class Vectors:
    """max(0, 1 - lam step / norm) z: right for one step; with one per coordinate NumPy computes something, silently."""

    def __init__(self, lam=2.0):
        self.lam = lam

    def value(self, x):
        return self.lam * np.linalg.norm(x)

    def prox(self, z, step):
        return np.maximum(0.0, 1.0 - self.lam * step / max(np.linalg.norm(z), 1e-300)) * z


class Shaped(Vectors):
    """The same, for vectors of one size."""

    def __init__(self, lam=2.0, size=4):
        super().__init__(lam)
        self.weights = np.ones(size)

    def prox(self, z, step):
        return super().prox(self.weights * z, step)


class Sphere(Vectors):
    """A projection, which does not look at the step: right only if there is one."""

    def value(self, x):
        return 0.0 if np.linalg.norm(x) <= 5.0 * (1 + 1e-9) else np.inf

    def prox(self, z, step):
        return z / max(1.0, np.linalg.norm(z) / 5.0)


ONE_STEP = [Vectors, Shaped, Sphere]


class Interval:
    """Clipping: the step does not matter, nor does the metric."""

    def __init__(self, size=1e-3):
        self.size = size

    def value(self, x):
        return 0.0 if np.abs(x).max() <= self.size else np.inf

    def prox(self, z, step):
        return np.clip(z, -self.size, self.size)


class Weighted(Lasso):
    """One strength per coordinate: other sizes do not work."""

    def __init__(self):
        super().__init__(np.array([0.1, 0.2, 0.0, 0.3]))

    def value(self, x):
        return np.sum(self.lam * np.abs(x))


@looped("lam", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_of_any_strength(lam):
    assert as_penalty(Vectors(lam)).accepts == "scalar"
    assert as_penalty(Lasso(lam)).accepts == "diagonal"
    assert as_penalty(Interval(lam)).accepts == "diagonal"


@looped("kind", [lambda: Lasso(0.3), Interval, Weighted])
def test_a_formula_for_any_step_is_known_as_such(kind):
    penalty = as_penalty(kind())
    penalty.check_size(4)
    assert penalty.accepts == "diagonal"
    penalty.check_metric(None, False)


def test_what_it_says_counts():
    """An object that says which metrics it accepts is not tried."""

    class Says(Vectors):
        accepts = "diagonal"

        def prox(self, z, step):
            raise AssertionError

    assert as_penalty(Says()).accepts == "diagonal"
    Says.accepts = "any"
    with pytest.raises(
        ValueError,
        match=r"The 'accepts' parameter of Says must be one of 'diagonal', 'block', 'scalar'. Got 'any'",
    ):
        as_penalty(Says())


@looped("kind", ONE_STEP)
@looped(("eta", "blocks"), [(1.0, "element"), ("auto", [0, 0, 1, 1])])
def test_a_formula_for_one_step_is_found_out(kind, eta, blocks):
    assert as_penalty(kind()).accepts in ("scalar", "diagonal")  # unknown until the size is known
    with pytest.raises(
        ValueError, match=rf"^{kind.__name__} has no exact proximal operator .*blocks='all'"
    ):
        minimize(Squared(A, B), penalty=kind(), eta=eta, blocks=blocks)


def test_the_trial_is_quiet_and_short():
    """Whatever it does at the points of the trial: no warning, no error, and few calls."""

    class Noisy(Vectors):
        calls = 0

        def prox(self, z, step):
            Noisy.calls += 1
            warnings.warn("odd", RuntimeWarning, stacklevel=2)
            z /= 0.0
            step[:] = np.log(-1.0 * step)
            return z

    assert as_penalty(Noisy()).accepts in ("diagonal", "scalar")
    assert 0 < Noisy.calls < 50


@pairwise(kind=ONE_STEP, eta=["auto", 3.0])
def test_one_step_is_the_default(kind, eta):
    """The minimizer of ||x - target||^2 / 2 + phi is the prox of the target with step 1."""
    result = minimize(Squared(2 * np.eye(4), 2 * TARGET), penalty=kind(), eta=eta, max_iter=1000)
    np.testing.assert_allclose(
        result.x, np.ravel(kind().prox(TARGET, np.ones(1))), rtol=1e-6, atol=1e-6
    )


@looped(
    ("value", "prox", "sentence"),
    [
        (np.abs, None, r"^Odd\.value must return shape \(\). Got \(4,\)"),
        (lambda x: "3", None, r"^What Odd\.value returns must be real numbers"),
        (None, lambda z, step: z + 1j, r"^What Odd\.prox returns must be real numbers"),
        (None, lambda z, step: z[:-1], r"^Odd\.prox must return shape \(4,\). Got \(3,\)"),
    ],
)
def test_results_of_the_wrong_kind(value, prox, sentence):
    class Odd(Lasso):
        accepts = "diagonal"

    penalty = Odd(1.0)
    penalty.value, penalty.prox = value or penalty.value, prox or penalty.prox
    with pytest.raises(ValueError, match=sentence):
        minimize(Squared(A, B), penalty=penalty, eta=1.0)
