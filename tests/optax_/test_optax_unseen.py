"""Penalties leave alone what has had no gradient yet, and hide nothing that is not a number."""

import math
from itertools import cycle

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp
from optax_twin import PENALTIES

from adagrad_diff.optax import (
    L1,
    Box,
    GroupL2,
    NonNegative,
    adagraddiff,
    adamdiff,
    adamwdiff,
    proximal,
)
from pairwise import pairwise

pytestmark = pytest.mark.peer

MAKERS = {
    "adagraddiff": adagraddiff,
    "decay": lambda rate, **options: adagraddiff(rate, decay=0.9, **options),
    "adamdiff": adamdiff,
    "adamwdiff": lambda rate, **options: adamwdiff(rate, weight_decay=0.0, **options),
    "optax.adam": lambda rate, **options: proximal(optax.scale_by_adam(), rate, **options),
    "optax.rss": lambda rate, **options: proximal(optax.scale_by_rss(0.0), rate, **options),
}


def step(optimizer, x, g, state=None):
    updates, state = optimizer.update(g, optimizer.init(x) if state is None else state, x)
    return optax.apply_updates(x, updates), state


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_rows_that_no_batch_has_shown(make):
    rows = jnp.asarray(np.random.default_rng(0).standard_normal((1000, 8)), jnp.float32)
    gradient = jax.grad(lambda rows: jnp.sum(rows[jnp.array([3, 500])] ** 2))
    x, state = step(optimizer := make(0.1, penalty=L1(1e-5)), rows, gradient(rows))
    x, _ = step(optimizer, x, gradient(x), state)
    changed = np.unique(np.nonzero(np.asarray(x != rows))[0])
    assert changed.tolist() == [3, 500]
    x, _ = step(make(0.1, penalty=L1(1e-5), prox_unseen=True), rows, gradient(rows))
    if make is not MAKERS["optax.rss"]:  # eps is inside its root: steps are not as long
        assert not x[jnp.array([0, 999])].any()  # the formula to the letter


@pytest.mark.parametrize(
    ("penalty", "make"), list(zip(PENALTIES, cycle(MAKERS.values()), strict=False))
)
def test_a_first_gradient_of_zero_changes_nothing(penalty, make):
    x = jnp.array([[3.0, -2.0], [0.5, 1e-20]])
    optimizer = make(0.1, penalty=penalty)
    y, state = step(optimizer, x, jnp.zeros_like(x))
    np.testing.assert_array_equal(y, x)
    y, _ = step(optimizer, y, jnp.ones_like(x), state)
    assert (y != x).all()


@pytest.mark.parametrize("over", ["row", "tensor"])
def test_the_unseen_counts_in_the_norm_of_its_group(over):
    """3 and 4, of which 4 has no gradient: h solves (z / (h + a))^2 + (4 / h)^2 = 1 at h = ||x||."""
    x, g, rate, lam = jnp.array([[3.0, 4.0]]), jnp.array([[2.0, 0.0]]), 0.5, 1.0
    y, _ = step(adagraddiff(rate, penalty=GroupL2(lam, over)), x, g)
    assert y[0, 1] == 4.0
    z, a = 3.0 - rate, rate * lam / 2.0
    h = float(jnp.linalg.norm(y))
    np.testing.assert_allclose(y[0, 0], z * h / (h + a), rtol=1e-6)


def test_everything_is_seen_with_an_initial_accumulator_value():
    x = jnp.array([5.0, -5.0])
    y, _ = step(adagraddiff(0.1, 0.5, penalty=Box(-1.0, 1.0)), x, jnp.zeros(2))
    np.testing.assert_allclose(y, [1.0, -1.0])


def test_bounds_hold_from_the_first_gradient_on():
    y, _ = step(
        adagraddiff(0.1, penalty=NonNegative()), jnp.array([-1.0, -1.0]), jnp.array([0.0, 1e-3])
    )
    assert y.tolist() == [-1.0, 0.0]


@pytest.mark.parametrize("max_move", [10.0, math.inf])
@pytest.mark.parametrize("make", [adamdiff, adagraddiff], ids=["adamdiff", "decay"])
def test_squares_that_have_decayed_to_nothing_were_seen(make, max_move):
    """A gradient that stays the same for so long that the average underflows: the bound must go on to hold."""
    options = {"b2": 0.5} if make is adamdiff else {"decay": 0.5}
    optimizer, x = make(0.1, penalty=NonNegative(), max_move=max_move, **options), jnp.array([1.0])
    update = jax.jit(optimizer.update)
    state = optimizer.init(x)
    for _ in range(200):
        updates, state = update(jnp.array([1.0]), state, x)
        x = optax.apply_updates(x, updates)
    assert state.scaling.total[0] == 0
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
