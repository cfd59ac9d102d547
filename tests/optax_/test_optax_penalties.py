"""Proximal operators of JAX arrays compared with the shared formulas, under jit, vmap and grad."""

from dataclasses import asdict

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402
from optax_twin import PENALTIES, check_slope  # noqa: E402

import adagrad_diff.optax as package  # noqa: E402
from adagrad_diff.optax import L1, GroupL2  # noqa: E402
from adagrad_diff.penalties import six_penalties as six  # noqa: E402
from prox_six import ARGUMENTS, SHAPE, STRENGTHS, make, points, prox, value  # noqa: E402

pytestmark = pytest.mark.peer

PROX = jax.jit(
    lambda penalty, z, step: penalty.prox(z, step)
)  # compiled once for all strengths of a penalty
VALUE = jax.jit(lambda penalty, x: penalty.value(x))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_prox_and_value_are_those_of_the_statement(name):
    for strength in STRENGTHS:
        penalty, stated = make(package, name, strength), make(six, name, strength)
        with jax.enable_x64(True):
            for size, z, step in points():
                x = PROX(penalty, z, step)
                np.testing.assert_allclose(x, prox(stated, z, step), rtol=1e-13, atol=1e-14 * size)
                np.testing.assert_allclose(
                    VALUE(penalty, x), value(stated, np.asarray(x)), rtol=1e-13
                )


@pytest.mark.parametrize("penalty", [PENALTIES[2], PENALTIES[4], PENALTIES[5]], ids=repr)
def test_hashable_and_a_tree(penalty):
    z = jnp.asarray(np.random.default_rng(2).standard_normal(SHAPE))
    prox = lambda penalty: penalty.prox(z, 0.5)
    assert hash(penalty) == hash(type(penalty)(**asdict(penalty)))
    assert penalty == jax.tree.map(lambda leaf: leaf, penalty)
    for compiled in (jax.jit(prox, static_argnums=0), jax.jit(prox)):
        np.testing.assert_allclose(compiled(penalty), prox(penalty), rtol=1e-6)
    if jax.tree.leaves(penalty):
        larger = jax.tree.map(lambda leaf: 1.5 * leaf, penalty)
        both = jax.vmap(prox)(jax.tree.map(lambda *leaves: jnp.array(leaves), penalty, larger))
        np.testing.assert_allclose(both, [prox(penalty), prox(larger)], rtol=1e-5)


@pytest.mark.parametrize("penalty", [*PENALTIES[2:4], *PENALTIES[5:]], ids=repr)
def test_derivatives_are_those_of_differences(penalty):
    """In z, in the step and in the penalty's numbers."""
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        penalty = jax.tree.map(jnp.asarray, penalty)
        z, step = jnp.asarray(rng.standard_normal((3, 4))), jnp.asarray(rng.uniform(0.5, 2, (3, 4)))
        f = lambda z, step, penalty: jnp.sum(jnp.sin(penalty.prox(z, step)))
        check_slope(f, z, step, penalty)


@pytest.mark.parametrize("over", ["row", "tensor"])
def test_derivatives_where_groups_are_zero(over):
    z = jnp.array([[0.0, 0.0], [0.01, 0.0], [3.0, 0.0]])
    for f in (
        lambda z: GroupL2(0.5, over).prox(z, 1.0).sum(),
        lambda z: GroupL2(0.5, over).value(z),
    ):
        assert jnp.isfinite(jax.jit(jax.grad(f))(z)).all()


def test_a_bad_penalty():
    with pytest.raises(ValueError, match="'lam' parameter of L1 must be a number >= 0"):
        L1(-1.0)


def test_nan_in_a_group_is_not_hidden():
    x = PROX(GroupL2(1.0), jnp.array([[1.0, np.nan], [3.0, 4.0]]), 1.0)
    assert jnp.isnan(x).all(1).tolist() == [True, False]
