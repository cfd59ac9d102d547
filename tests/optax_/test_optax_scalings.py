"""`proximal` with scalings of optax and their weights."""

from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402
from optax_twin import scaling_of_adam, scaling_of_rss  # noqa: E402

import adagrad_diff as core  # noqa: E402
from adagrad_diff.optax import (  # noqa: E402
    L1,
    DiagonalTransformation,
    proximal,
)

pytestmark = pytest.mark.peer

RATE, LAM = 0.05, 0.3


def soft(z, by):
    return np.sign(z) * np.maximum(abs(z) - by, 0)


def mean(b1, gs):
    """Adam's, without bias."""
    coefficients = b1 ** np.arange(len(gs))[::-1]
    return np.tensordot(coefficients / coefficients.sum(), np.array(gs), 1)


SCALINGS = {  # and what they divide, as functions of all gradients so far
    "adam": (scaling_of_adam(0.7), partial(mean, 0.9)),
    "rss": (scaling_of_rss(0.01), lambda gs: gs[-1]),
    "momentum": (DiagonalTransformation(*optax.trace(0.9), weights=lambda state: 1.0), None),
}


@pytest.mark.parametrize(("scaling", "direction"), SCALINGS.values(), ids=SCALINGS)
def test_steps_are_those_of_the_updates(scaling, direction):
    """update = direction / weight tells the weights where nothing is zero."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2, 3))
    with jax.enable_x64(True):
        optimizer = proximal(scaling, RATE, L1(LAM))
        state, inner, gs = optimizer.init(jnp.asarray(x)), scaling.init(jnp.asarray(x)), []
        for _ in range(4):
            gs.append(rng.standard_normal((2, 3)))
            changes, state = optimizer.update(jnp.asarray(gs[-1]), state, jnp.asarray(x))
            update, inner = scaling.update(jnp.asarray(gs[-1]), inner)
            inverse = 1.0 if direction is None else update / direction(gs)
            expected = soft(x - RATE * update, RATE * LAM * inverse)
            x = np.asarray(x + changes)
            np.testing.assert_allclose(x, expected, rtol=1e-8, atol=1e-14)


def test_the_steps_of_a_scaling_of_optax_are_those_of_the_core():
    """`optax.scale_by_rss` is AdaGrad: it makes the core's proximal AdaGrad."""
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((30, 6)), rng.standard_normal(30)
    with jax.enable_x64(True):
        optimizer, x = proximal(scaling_of_rss(0.0), 0.1, L1(0.1)), jnp.zeros(6)
        state, gradient = optimizer.init(x), jax.grad(lambda x: 0.5 * jnp.mean((A @ x - b) ** 2))
        states = core.iterate(core.Squared(A, b), np.zeros(6), core.L1(0.1), core.AdaGrad(0.1))
        for _, expected in zip(range(20), states, strict=False):
            changes, state = optimizer.update(gradient(x), state, x)
            x = x + changes
            np.testing.assert_allclose(x, expected.x, atol=1e-6)


@pytest.mark.parametrize("scaling", [optax.scale_by_adam(), optax.adam(0.1), 0.1])
def test_a_scaling_without_weights_is_an_error(scaling):
    message = (
        "^The 'scaling' parameter of proximal must be a DiagonalTransformation.* Write "
        r"DiagonalTransformation\(\*scaling, weights\)"
    )
    with pytest.raises(TypeError, match=message):
        proximal(scaling, RATE, L1(LAM))
