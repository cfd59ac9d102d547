"""Penalties skip what has had no gradient yet, NaN is not hidden, and moves are bounded."""

import math
from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp
from optax_twin import PENALTIES, scaling_of_adam

from adagrad_diff.optax import L1, Box, NonNegative, adagraddiff, adamdiff, adamwdiff, proximal
from adagrad_diff.rules.base import MAX_MOVE
from pairwise import pairwise

pytestmark = pytest.mark.peer

MAKERS = {
    "adagraddiff": adagraddiff,
    "decay": partial(adagraddiff, decay=0.9),
    "adamdiff": adamdiff,
    "adamwdiff": partial(adamwdiff, weight_decay=0.0),
    "optax.adam": lambda rate, **options: proximal(scaling_of_adam(), rate, **options),
}


def step(optimizer, x, g, state=None):
    updates, state = optimizer.update(g, optimizer.init(x) if state is None else state, x)
    return optax.apply_updates(x, updates), state


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_rows_that_no_batch_contained(make):
    """With prox_unseen, the long step lr / eps wipes them."""
    rows = jnp.asarray(np.random.default_rng(0).standard_normal((1000, 8)), jnp.float32)
    gradient = jax.grad(lambda rows: jnp.sum(rows[jnp.array([3, 500])] ** 2))
    x, state = step(optimizer := make(0.1, penalty=L1(1e-5)), rows, gradient(rows))
    x, _ = step(optimizer, x, gradient(x), state)
    changed = np.unique(np.nonzero(np.asarray(x != rows))[0])
    assert changed.tolist() == [3, 500]
    x, _ = step(make(0.1, penalty=L1(1e-5), prox_unseen=True), rows, gradient(rows))
    assert not x[jnp.array([0, 999])].any()


@pytest.mark.parametrize("max_move", [10.0, math.inf])
@pytest.mark.parametrize("make", [partial(adamdiff, b2=0.5), partial(adagraddiff, decay=0.5)])
def test_bounds_hold_after_the_squares_have_decayed_to_zero(make, max_move):
    optimizer, x = make(0.1, penalty=NonNegative(), max_move=max_move), jnp.array([1.0])
    update = jax.jit(optimizer.update)
    state = optimizer.init(x)
    for _ in range(200):
        updates, state = update(jnp.array([1.0]), state, x)
        x = optax.apply_updates(x, updates)
    assert state.scaling.nu[0] == 0
    assert x[0] == 0


@pairwise(
    make=[MAKERS[name] for name in ("decay", "adamdiff", "optax.adam")],
    penalty=[L1(0.05), Box(-0.3, 0.4), *PENALTIES[5:]],
    prox_unseen=[False, True],
    later=[False, True],
)
def test_a_nan_gradient_gives_a_nan_parameter(make, penalty, prox_unseen, later):
    """A group becomes NaN as a whole."""
    x, g = jnp.ones((2, 3)), jnp.array([[1.0, np.nan, 1.0], [1.0, 1.0, 1.0]])
    optimizer = make(0.1, penalty=penalty, prox_unseen=prox_unseen)
    y, state = step(optimizer, x, jnp.ones_like(x)) if later else (x, None)
    for gradient in (g, jnp.ones_like(x)):
        y, state = step(optimizer, y, gradient, state)
    over = getattr(penalty, "over", "")
    assert jnp.isnan(y[0]).tolist() == [bool(over), True, bool(over)]
    assert jnp.isnan(y[1]).all() == (over == "tensor")


# ---------------------------------------------------------------- moves

RATE = 0.01
AVERAGES = [
    partial(adamdiff, b2=0.99),
    partial(adamwdiff, b2=0.99, weight_decay=0.0),
    partial(adagraddiff, decay=0.99),
]


def largest_moves(make, gradient, steps, **options):
    """Return the largest move of an entry and the length of every step, in learning rates."""
    optimizer = make(RATE, **options)

    def step(state, _):
        updates, state = optimizer.update(gradient, state, gradient)
        return state, (jnp.max(jnp.abs(updates)) / RATE, jnp.linalg.norm(updates) / RATE)

    return jax.jit(lambda: jax.lax.scan(step, optimizer.init(gradient), length=steps)[1])()


@pairwise(make=AVERAGES, options=[{}, {"max_move": 2.5}, {"blocks": "tensor"}])
def test_a_constant_gradient_moves_at_most_by_the_bound(make, options):
    gradient = jnp.array([[1.0, -1e-3], [1e3, 1e-6]])
    bound = options.get("max_move", MAX_MOVE)
    largest, length = largest_moves(make, gradient, 2000, **options)
    assert largest.max() <= bound * (1 + 1e-5)
    assert largest[-1] >= 0.99 * bound  # it is attained
    np.testing.assert_allclose(largest[0], 1.0, rtol=1e-3)  # and the first step is the rate
    if options.get("blocks") == "tensor":
        assert length.max() <= bound * (1 + 1e-5)


def test_sums_have_nothing_to_bound():
    """max_move does not touch the paper's rule, whose weights never shrink."""
    for max_move in (1e-3, math.inf):
        largest, _ = largest_moves(adagraddiff, jnp.array([2.0, -3.0]), 50, max_move=max_move)
        np.testing.assert_allclose(largest, 1.0, rtol=1e-5)
