"""User-defined scalar losses: those that can be compiled, and messages for those that cannot."""

import math

import numpy as np
import pytest
from numba import njit
from scipy import sparse, special

from adagrad_diff import LinearModel, Multinomial, minimize
from loss_zoo import same

A, B = np.arange(12.0).reshape(4, 3) - 5.5, np.array([1.0, -1.0, 0.5, 2.0])


def model(scalar, **more):
    return type("Mine", (LinearModel,), {"scalar": staticmethod(scalar), **more})


def one_value(z, b, theta):
    return abs(z - b)


def an_array(z, b, theta):
    return np.where(z > 0, z, 0.0), 1.0


def complex_numbers(z, b, theta):
    return z + 1j, 1.0


def unknown_name(z, b, theta):
    return undefined(z - b), 1.0  # noqa: F821


def foreign_function(z, b, theta):
    return special.expit(z), 1.0


def two_arguments(z, b):
    return z, 1.0


NAME = r"The scalar function \w+"
RETURNS = f"{NAME} must return two numbers, the value and the derivative. Got"
COMPILED = f"{NAME} cannot be compiled: .*"
FAULTS = [
    (one_value, rf"{RETURNS} float64 instead"),
    (an_array, rf"{RETURNS} .*array.* instead"),
    (complex_numbers, rf"{RETURNS} .*complex128.* instead"),
    (unknown_name, rf"{COMPILED}'undefined' is not defined"),
    (
        foreign_function,
        rf"{COMPILED}Unknown attribute 'expit'.*\(line \d+ of .*test_user_scalars.py\)",
    ),
    (
        two_arguments,
        r"The scalar function two_arguments must be a function of three numbers, scalar\(z, b, theta\)",
    ),
    (3.0, r"The scalar function 3\.0 must be a function of three numbers, scalar\(z, b, theta\)"),
]


SHAPES = [(3,), (3, 2), (3, 9)]


@pytest.mark.parametrize(
    ("scalar", "sentence", "shapes"),
    [(*fault, SHAPES if k == 0 else SHAPES[k % 3 :][:1]) for k, fault in enumerate(FAULTS)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_a_scalar_function_must_be(scalar, sentence, shapes):
    loss = model(scalar)(A, B)
    for x in map(np.ones, shapes):
        with pytest.raises(TypeError, match=f"^{sentence}") as caught:
            loss.value_and_grad(x)
        assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match=sentence):
        minimize(loss, eta=0.1)
    if "compiled" in sentence:
        assert caught.value.__cause__ is not None  # Numba's own words


def test_a_method_that_is_not_static():
    class Mine(LinearModel):
        def scalar(self, z, b, theta):
            return z, 1.0

    with pytest.raises(
        TypeError, match=r"The scalar function Mine.scalar must be .* three numbers.*@staticmethod"
    ):
        Mine(A, B).value_and_grad(np.ones(3))


def test_no_scalar_at_all():
    with pytest.raises(TypeError, match=r"scalar function None must be .*scalar\(z, b, theta\)"):
        LinearModel(A, B).value_and_grad(np.ones(3))
    assert np.isfinite(
        Multinomial(A, [0, 1, 0, 2]).value_and_grad(np.ones((3, 3)))[0]
    )  # needs none


def test_a_parameter_that_is_no_number():
    with pytest.raises(
        ValueError, match=r"'theta' parameter of Mine must be a finite number. Got 'wide' instead"
    ):
        model(lambda z, b, theta: (theta * z, theta), theta="wide")(A, B).value_and_grad(np.ones(3))


def log_cosh(z, b, theta):
    t = abs(z - b)
    return t + math.log1p(math.exp(-2.0 * t)) - math.log(2.0), math.tanh(z - b)


COMPILED_BEFORE = njit(log_cosh)


@pytest.mark.parametrize(
    ("dtype", "layout", "scalar"),
    [
        (np.float32, np.asarray, log_cosh),
        (np.float64, np.asarray, COMPILED_BEFORE),
        (np.float64, np.asfortranarray, log_cosh),
        (np.float32, sparse.csr_array, COMPILED_BEFORE),
    ],
)
def test_what_is_right_runs(dtype, layout, scalar):
    t = A @ np.full(3, 0.1) - B
    expected = np.log(np.cosh(t)).mean(), A.T @ np.tanh(t) / 4
    same(
        model(scalar)(layout(A.astype(dtype)), B).value_and_grad([0.1] * 3),
        expected,
        rtol=1e-12 if dtype == np.float64 else 1e-6,
    )


def test_whole_numbers_and_branches_are_numbers():
    def scalar(z, b, theta):
        if z > b:
            return z - b, 1
        return 0, 0

    t = A @ np.ones(3) - B
    same(
        model(scalar)(A, B).value_and_grad(np.ones(3)), (np.maximum(t, 0).mean(), A.T @ (t > 0) / 4)
    )
