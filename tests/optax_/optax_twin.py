"""Definitions that the tests of the optax transformations share."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from adagrad_diff import optax as package
from adagrad_diff.optax import DiagonalTransformation, adagraddiff, adamdiff, adamwdiff
from prox_twin import penalties

OPTIMIZERS = (adagraddiff, adamdiff, adamwdiff)
PENALTIES = penalties(package)


def scaling_of_adam(b2=0.999, eps=1e-8):
    """Return optax's Adam with its weights."""

    def weights(state):
        correction = 1 - b2**state.count
        return jax.tree.map(lambda nu: jnp.sqrt(nu / correction) + eps, state.nu)

    seen = lambda state: jax.tree.map(lambda nu: nu != 0, state.nu)
    return DiagonalTransformation(*optax.scale_by_adam(b2=b2, eps=eps), weights, seen)


def scaling_of_rss(start=0.1):
    """Return optax's AdaGrad with its weights."""
    weights = lambda state: jax.tree.map(jnp.sqrt, state.sum_of_squares)
    seen = lambda state: jax.tree.map(lambda t: t != 0, state.sum_of_squares)
    return DiagonalTransformation(*optax.scale_by_rss(start, 0.0), weights, seen)


def check_slope(f, *args):
    """Check reverse-mode derivatives along a random direction against finite differences.

    In double precision. Return the gradient, compiled.
    """
    rng, h = np.random.default_rng(0), 1e-6
    direction = jax.tree.map(lambda leaf: rng.standard_normal(np.shape(leaf)), args)
    moved = lambda h: jax.tree.map(lambda leaf, d: leaf + h * d, args, direction)
    value, gradient = jax.jit(f), jax.jit(jax.grad(f, argnums=tuple(range(len(args)))))
    pairs = zip(jax.tree.leaves(gradient(*args)), jax.tree.leaves(direction), strict=True)
    expected = (value(*moved(h)) - value(*moved(-h))) / (2 * h)
    np.testing.assert_allclose(sum(np.sum(g * d) for g, d in pairs), expected, rtol=1e-6, atol=1e-7)
    return gradient
