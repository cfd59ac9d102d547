"""What the tests of the optax door have in common."""

import jax
import numpy as np

from adagrad_diff import optax as door
from adagrad_diff.optax import adagraddiff, adamdiff, adamwdiff
from prox_twin import penalties

OPTIMIZERS = (adagraddiff, adamdiff, adamwdiff)
PENALTIES = penalties(door)


def check_slope(f, *args):
    """The derivative of f, by reverse mode, along a random direction is what finite differences say. In double precision.

    Returns the gradient, compiled.
    """
    rng, h = np.random.default_rng(0), 1e-6
    direction = jax.tree.map(lambda leaf: rng.standard_normal(np.shape(leaf)), args)
    moved = lambda h: jax.tree.map(lambda leaf, d: leaf + h * d, args, direction)
    value, gradient = jax.jit(f), jax.jit(jax.grad(f, argnums=tuple(range(len(args)))))
    pairs = zip(jax.tree.leaves(gradient(*args)), jax.tree.leaves(direction), strict=True)
    expected = (value(*moved(h)) - value(*moved(-h))) / (2 * h)
    np.testing.assert_allclose(sum(np.sum(g * d) for g, d in pairs), expected, rtol=1e-6, atol=1e-7)
    return gradient
