"""Proximal steps of JAX arrays against those of the core, and what jit, vmap and grad make of penalties."""

import math
from dataclasses import asdict

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402
from optax_twin import PENALTIES, check_slope  # noqa: E402

import adagrad_diff  # noqa: E402
from adagrad_diff.optax import L1, Box, ElasticNet, GroupL2, NonNegative, Penalty, Ridge  # noqa: E402

pytestmark = pytest.mark.peer

SHAPE = (6, 7)
PROX = jax.jit(lambda penalty, z, step: penalty.prox(z, step))  # compiled once for all strengths of a penalty


def core(penalty):
    if isinstance(penalty, GroupL2):
        groups = np.repeat(np.arange(6), 7) if penalty.over == "row" else np.zeros(42, int)
        return adagrad_diff.GroupL2(penalty.lam, groups)
    return getattr(adagrad_diff, type(penalty).__name__)(**asdict(penalty))


@pytest.mark.parametrize("strength", [1e-6, 0.3, 1e4])
@pytest.mark.parametrize("make", [L1, Ridge, lambda s: ElasticNet(s, 2 * s), lambda s: Box(-s, s / 2), lambda s: Box(upper=s),
                                  lambda s: NonNegative(), GroupL2, lambda s: GroupL2(s, "tensor")])  # fmt: skip
def test_prox_and_value_are_those_of_the_core(make, strength):
    rng = np.random.default_rng(0)
    penalty = make(strength)
    with jax.enable_x64(True):
        for wildness in (0.0, 1.0, 8.0):
            for size in (1e-4, 1.0, 1e5):
                z, step = size * rng.standard_normal(SHAPE), 10 ** rng.uniform(-wildness, wildness, SHAPE)
                z[rng.random(SHAPE) < 0.1] = 0
                x = PROX(penalty, z, step)
                expected = core(penalty).prox(z.ravel(), step.ravel()).reshape(SHAPE)
                np.testing.assert_allclose(x, expected, rtol=1e-10, atol=1e-10 * size)
                np.testing.assert_allclose(penalty.value(x), core(penalty).value(np.ravel(x)), rtol=1e-10)


@pytest.mark.parametrize("over", ["row", "tensor"])
def test_group_prox_in_single_precision(over):
    """Also where squares of z / s are too large for a float32."""
    rng = np.random.default_rng(1)
    for size, lam in ((1.0, 1e-25), (1e10, 1e-20), (1e-10, 1e10), (1.0, 1.0)):
        z, step = size * rng.standard_normal(SHAPE), 10 ** rng.uniform(-1, 1, SHAPE)
        penalty = GroupL2(lam, over)
        expected = core(penalty).prox(z.ravel(), step.ravel()).reshape(SHAPE)
        np.testing.assert_allclose(PROX(penalty, jnp.float32(z), jnp.float32(step)), expected, rtol=1e-4, atol=1e-6 * size)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("shape", [(6, 1), (1, 7), (1, 1), ()])
def test_one_step_for_a_block(penalty, shape):
    rng = np.random.default_rng(1)
    z, step = jnp.asarray(rng.standard_normal(SHAPE)), jnp.asarray(rng.uniform(0.1, 2, shape))
    np.testing.assert_allclose(penalty.prox(z, step), penalty.prox(z, jnp.broadcast_to(step, SHAPE)), rtol=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_a_step_of_zero_is_the_identity(penalty):
    z = jnp.array([[0.0, 0.25], [0.4, 1e-30]])
    np.testing.assert_array_equal(penalty.prox(z, 0.0), z)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_hashable_and_a_tree(penalty):
    z = jnp.asarray(np.random.default_rng(2).standard_normal(SHAPE))
    prox = lambda penalty: penalty.prox(z, 0.5)  # noqa: E731
    expected = prox(penalty)
    assert isinstance(penalty, Penalty)
    assert hash(penalty) == hash(type(penalty)(**asdict(penalty)))
    assert penalty == jax.tree.map(lambda leaf: leaf, penalty)
    np.testing.assert_allclose(jax.jit(prox, static_argnums=0)(penalty), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(prox)(penalty), expected, rtol=1e-6)
    if leaves := len(jax.tree.leaves(penalty)):
        many = jax.tree.map(lambda leaf: jnp.array([leaf, 1.5 * leaf]), penalty)
        both = jax.vmap(prox)(many)
        assert leaves <= 2
        np.testing.assert_allclose(both[0], expected, rtol=1e-6)
        np.testing.assert_allclose(both[1], prox(jax.tree.map(lambda leaf: 1.5 * leaf, penalty)), rtol=1e-5)


@pytest.mark.parametrize("penalty", [p for p in PENALTIES if jax.tree.leaves(p)], ids=repr)
def test_derivatives_are_those_of_differences(penalty):
    """In z, in the step and in the penalty's numbers."""
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        penalty = jax.tree.map(jnp.asarray, penalty)
        z, step = jnp.asarray(rng.standard_normal((3, 4))), jnp.asarray(rng.uniform(0.5, 2, (3, 4)))
        f = lambda z, step, penalty: jnp.sum(jnp.sin(penalty.prox(z, step)))  # noqa: E731
        check_slope(f, z, step, penalty)


@pytest.mark.parametrize("over", ["row", "tensor"])
def test_derivatives_where_groups_are_zero(over):
    z = jnp.array([[0.0, 0.0], [0.01, 0.0], [3.0, 0.0]])
    for f in (lambda z: GroupL2(0.5, over).prox(z, 1.0).sum(), lambda z: GroupL2(0.5, over).value(z)):
        assert jnp.isfinite(jax.jit(jax.grad(f))(z)).all()


def test_values_outside_the_domain():
    x = jnp.array([-1.0, 2.0])
    assert NonNegative().value(x) == Box(0.0, 1.0).value(x) == math.inf
    assert Box(-1.0, 2.0).value(x) == NonNegative().value(abs(x)) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L1(-1.0), "'lam' parameter of L1 must be a number >= 0"),
        (lambda: L1("much"), "'lam' parameter of L1"),
        (lambda: L1(None), "'lam' parameter of L1"),
        (lambda: Ridge(math.nan), "'lam' parameter of Ridge"),
        (lambda: ElasticNet(0.1, -1.0), "'l2' parameter of ElasticNet"),
        (lambda: Box(1.0, 0.0), "Box is empty"),
        (lambda: Box(math.nan, 0.0), "Box is empty"),
        (lambda: GroupL2(1.0, "column"), "'over' parameter of GroupL2 must be one of 'row', 'tensor'"),
    ],
)
def test_bad_penalties(make, message):
    with pytest.raises(ValueError, match=message):
        make()
