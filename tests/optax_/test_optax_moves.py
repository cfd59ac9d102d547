"""Averages forget, and their steps grow: no coordinate moves by more than max_move learning rates."""

import math

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402

from adagrad_diff.optax import adagraddiff, adamdiff, adamwdiff  # noqa: E402
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer
MAX_MOVE = 30.0  # the default

RATE = 0.01
AVERAGES = {
    "adamdiff": lambda rate, **options: adamdiff(rate, b2=0.99, **options),
    "adamwdiff": lambda rate, **options: adamwdiff(rate, b2=0.99, weight_decay=0.0, **options),
    "decay": lambda rate, **options: adagraddiff(rate, decay=0.99, **options),
}


def largest_moves(make, gradient, steps, **options):
    """Of every step, the largest move of a coordinate and the Euclidean length, in learning rates."""
    optimizer = make(RATE, **options)

    def step(state, _):
        updates, state = optimizer.update(gradient, state, gradient)
        return state, (jnp.max(jnp.abs(updates)) / RATE, jnp.linalg.norm(updates) / RATE)

    return jax.jit(lambda: jax.lax.scan(step, optimizer.init(gradient), length=steps)[1])()


@pairwise(make=AVERAGES.values(), options=[{}, {"max_move": 2.5}, {"blocks": "tensor"}])
def test_a_constant_gradient_moves_at_most_by_the_bound(make, options):
    gradient = jnp.array([[1.0, -1e-3], [1e3, 1e-6]])
    bound = options.get("max_move", MAX_MOVE)
    largest, length = largest_moves(make, gradient, 2000, **options)
    assert largest.max() <= bound * (1 + 1e-5)
    assert largest[-1] >= 0.99 * bound  # it is attained
    np.testing.assert_allclose(largest[0], 1.0, rtol=1e-3)  # and the first step is the rate
    if options.get("blocks") == "tensor":
        assert length.max() <= bound * (1 + 1e-5)


@pytest.mark.parametrize("make", AVERAGES.values(), ids=AVERAGES)
def test_without_the_bound_they_grow(make):
    largest, _ = largest_moves(make, jnp.ones(2), 1200, max_move=math.inf)
    assert largest[-1] > 10 * MAX_MOVE


def test_sums_have_nothing_to_bound():
    """max_move does not touch the paper's rule, whose weights never shrink."""
    for max_move in (1e-3, math.inf):
        largest, _ = largest_moves(adagraddiff, jnp.array([2.0, -3.0]), 50, max_move=max_move)
        np.testing.assert_allclose(largest, 1.0, rtol=1e-5)
