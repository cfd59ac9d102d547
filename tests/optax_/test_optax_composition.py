"""With the other parts of optax, and under the transformations of JAX."""

import importlib
import sys
from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402
from optax_twin import check_slope  # noqa: E402

import adagrad_diff as package  # noqa: E402
from adagrad_diff.optax import (  # noqa: E402
    L1,
    GroupL2,
    NonNegative,
    Ridge,
    adagraddiff,
    adamdiff,
    adamwdiff,
    proximal,
    scale_by_adamdiff,
    scale_by_gradient_differences,
)

pytestmark = pytest.mark.peer

PARAMS = {"w": jnp.linspace(-1.0, 2.0, 6).reshape(2, 3), "b": jnp.array([0.5, -0.5])}
MAKERS = {  # a chain, and a proximal step
    "chain": adagraddiff,
    "proximal": partial(adamdiff, penalty=GroupL2(0.1), blocks="row"),
}
MADE = {name: make(0.1) for name, make in MAKERS.items()}  # whose steps are compiled once


def loss(params):
    return jnp.sum(params["w"] ** 4) + jnp.sum((params["b"] - 1) ** 2)


GRADIENT = jax.grad(loss)


@partial(jax.jit, static_argnums=(0, 1))
def step(optimizer, gradient, params, state):
    updates, state = optimizer.update(gradient(params), state, params)
    return optax.apply_updates(params, updates), state


def run(optimizer, params=PARAMS, steps=5, gradient=GRADIENT):
    """Return the parameters after some steps, and the state."""
    state = optimizer.init(params)
    for _ in range(steps):
        params, state = step(optimizer, gradient, params, state)
    return params, state


def same(a, b, rtol=1e-5):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-7), a, b)


def test_the_aliases_are_chains():
    """adamwdiff scales, decays, multiplies by the rate. A mask is a tree or a function."""
    rate = optax.scale_by_learning_rate(0.1)
    same(run(MADE["chain"]), run(optax.chain(scale_by_gradient_differences(), rate)), rtol=0)
    penalized = proximal(scale_by_adamdiff(), 0.1, L1(0.1))
    same(run(adamdiff(0.1, penalty=L1(0.1))), run(penalized), rtol=0)
    mask = {"w": True, "b": False}
    options = {"b1": 0.8, "weight_decay": 0.2}
    for given in (None, mask, lambda params: mask):
        decay = optax.add_decayed_weights(0.2, given)
        chain = optax.chain(scale_by_adamdiff(b1=0.8), decay, rate)
        same(run(adamwdiff(0.1, mask=given, **options)), run(chain), rtol=0)
    plain, penalized = (
        run(adamwdiff(0.1, mask=mask, penalty=penalty, **options))[0]
        for penalty in (None, Ridge(0.0))
    )
    same(plain, penalized)


def test_adams_other_options():
    """With gradients that alternate in sign, differences are twice the gradients.

    What is left are Adam's own formulas.
    """
    g = jnp.array([1.0, -3.0, 0.5]) * (-1.0) ** jnp.arange(8)[:, None]
    updates = lambda scaling: jax.lax.scan(
        lambda s, g: scaling.update(g, s)[::-1], scaling.init(g[0]), g
    )[1]
    for options in (
        {"nesterov": True},
        {"eps_root": 0.3},
        {"mu_dtype": "float32"},
        {"nesterov": True, "b1": 0.5},
    ):
        ours, theirs = scale_by_adamdiff(b2=0.0, **options), optax.scale_by_adam(b2=0.0, **options)
        if "eps_root" in options:  # inside the root, beside (2 g)^2
            theirs = optax.scale_by_adam(b2=0.0, eps_root=0.3 / 4)
        np.testing.assert_allclose(2 * updates(ours)[1:], updates(theirs)[1:], rtol=1e-5)
    state = adamdiff(0.1, mu_dtype="bfloat16").init(PARAMS)[0]
    assert state.mu["w"].dtype == jnp.bfloat16
    assert state.prev["w"].dtype == state.nu["w"].dtype == jnp.float32


def test_counts_and_moments_are_found():
    """As of optax.adagrad, there is one count, that of the schedule."""
    for penalty in (None, L1(0.1)):
        _, state = run(adagraddiff(optax.constant_schedule(0.1), penalty=penalty), steps=3)
        assert optax.tree.get(state, "count") == 3
    assert optax.tree.get(run(MADE["chain"])[1], "count") is None
    assert package.optax.adagrad_diff is adagraddiff  # the old name
    assert optax.tree.get(run(adagraddiff(0.1, decay=0.9), steps=2)[1], "count") == 2
    state = run(adamdiff(0.1, penalty=L1(0.1)), steps=2)[1]
    assert optax.tree.get(state, "count") == 2
    for name in ("mu", "nu", "prev"):
        assert optax.tree.get(state, name)["w"].shape == (2, 3)


@pytest.mark.parametrize("name", MAKERS)
def test_chain_masked_and_partition(name):
    """What comes before sees gradients: differences are those of the clipped ones."""
    optimizer, alone = MADE[name], MADE["chain"]
    clip = optax.clip_by_global_norm(0.5)
    clipped = lambda p: clip.update(GRADIENT(p), clip.init(p))[0]
    same(run(optax.chain(clip, optimizer))[0], run(optimizer, gradient=clipped)[0])
    both, _ = run(optimizer)
    masked, _ = run(
        optax.masked(optimizer, {"w": True, "b": False}),
        gradient=lambda p: GRADIENT(p) | {"b": jnp.zeros(2)},
    )
    same(masked, {"w": both["w"], "b": PARAMS["b"]})
    parts = optax.partition({"first": optimizer, "second": alone}, {"w": "first", "b": "second"})
    same(run(parts)[0], {"w": both["w"], "b": run(alone)[0]["b"]})


@pytest.mark.parametrize("name", MAKERS)
def test_inject_hyperparams(name):
    plain, _ = run(MADE[name])
    make = optax.inject_hyperparams(adagraddiff if name == "chain" else adamdiff)
    options = MAKERS[name].keywords if name == "proximal" else {}
    injected = make(learning_rate=0.1, **options)
    params, state = run(injected)
    same(params, plain, rtol=1e-4)
    assert "learning_rate" in state.hyperparams
    same(run(make(learning_rate=optax.constant_schedule(0.1), **options))[0], plain, rtol=1e-4)
    state.hyperparams["learning_rate"] = jnp.float32(0.0)  # from now on, nothing moves
    updates, _ = jax.jit(injected.update)(GRADIENT(params), state, params)
    assert not any(jnp.any(leaf) for leaf in jax.tree.leaves(updates))


@pytest.mark.parametrize("name", MAKERS)
def test_multi_steps_and_apply_if_finite(name):
    """Three gradients, then one step by their mean. A step that is skipped touches nothing."""
    single, _ = run(MADE[name], steps=2)
    same(run(optax.MultiSteps(MADE[name], every_k_schedule=3), steps=6)[0], single)
    optimizer = optax.apply_if_finite(MADE[name], max_consecutive_errors=3)
    params, state = run(optimizer, steps=2)
    bad = jax.tree.map(lambda x: x.at[0].set(jnp.nan), params)
    updates, after = jax.jit(optimizer.update)(bad, state, params)
    same(optax.apply_updates(params, updates), params, rtol=0)
    same(after.inner_state, state.inner_state, rtol=0)
    assert after.total_notfinite == 1


@pytest.mark.parametrize("make", [*MAKERS.values(), partial(adagraddiff, blocks="tensor")])
def test_state_of_shapes_alone(make):
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype),
        {**PARAMS, "z": jnp.ones(2, jnp.complex64)},
    )
    real = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    optimizer = make(0.1)
    types = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
    state = optimizer.init(real)
    assert types(optimizer.init(shapes)) == types(state)
    assert types(jax.eval_shape(optimizer.init, shapes)) == types(state)
    updates, after = jax.eval_shape(optimizer.update, shapes, state, shapes)
    assert types(updates) == types(shapes)
    assert types(after) == types(state)


@pytest.mark.parametrize("name", MAKERS)
def test_scan_vmapped_over_learning_rates(name):
    """Later steps compile nothing anew."""
    rates, traces = jnp.array([0.01, 0.1, 0.5]), []

    def solve(rate):
        optimizer = MAKERS[name](rate)

        def step(carry, _):
            traces.append(1)
            params, state = carry
            updates, state = optimizer.update(GRADIENT(params), state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (PARAMS, optimizer.init(PARAMS)), length=5)[0][0]

    many, one = jax.jit(jax.vmap(solve))(rates), jax.jit(solve)
    for k, rate in enumerate(rates):
        same(jax.tree.map(lambda leaf, k=k: leaf[k], many), one(rate), rtol=1e-4)
    same(one(0.1), run(MADE[name])[0], rtol=1e-4)
    assert len(traces) <= 3


@pytest.mark.parametrize(
    "make",
    [
        adagraddiff,
        partial(adamdiff, penalty=Ridge(0.3)),
        partial(adagraddiff, penalty=GroupL2(0.1), blocks="tensor"),
    ],
)
def test_gradients_through_steps(make):
    """Of the loss after two steps, with respect to where they began and to the learning rate."""

    def final(x, rate):
        optimizer = make(rate, eps=1e-2)
        state = optimizer.init(x)
        for _ in range(2):
            updates, state = optimizer.update(jnp.sin(x), state, x)
            x = optax.apply_updates(x, updates)
        return jnp.sum(x**2)

    with jax.enable_x64(True):
        gradient = check_slope(final, jnp.array([[0.5, -1.0], [2.0, 0.7]]), jnp.array(0.1))
        where_gradients_vanish = gradient(jnp.array([[0.0, -1.0], [0.0, 0.0]]), jnp.array(0.1))
    assert all(jnp.isfinite(leaf).all() for leaf in where_gradients_vanish)


def test_params_are_needed_for_a_penalty():
    optimizer = adagraddiff(0.1, penalty=NonNegative())
    with pytest.raises(ValueError, match="requires the current value of parameters"):
        optimizer.update(jnp.ones(2), optimizer.init(jnp.ones(2)))


DIFFERENCES, ADAM = "scale_by_gradient_differences", "scale_by_adamdiff"
BAD = [
    (adagraddiff, {"eps": 0.0}, f"'eps' parameter of {DIFFERENCES} must be a positive"),
    (adagraddiff, {"accumulator_dtype": "int32"}, "'accumulator_dtype' .* floating-point dtype"),
    (adagraddiff, {"decay": 1.0}, r"'decay' parameter .* must be a number in \[0, 1\)"),
    (adamdiff, {"b1": -0.1}, f"'b1' parameter of {ADAM}"),
    (adagraddiff, {"prox_unseen": 1, "penalty": L1(0.1)}, "'prox_unseen' .* True or False"),
    (adamdiff, {"max_move": 0.0}, "'max_move' parameter .* positive number"),
    (adagraddiff, {"initial_accumulator_value": -1.0}, "'initial_acc.* must be a number >= 0"),
    (adagraddiff, {"initial_accumulator_value": 0.1, "decay": 0.9}, "cannot be used with 'decay'"),
    (adamdiff, {"eps_root": -1.0}, f"'eps_root' parameter of {ADAM}"),
    (adamwdiff, {"nesterov": "yes"}, "'nesterov' parameter .* True or False"),
]


@pytest.mark.parametrize(("make", "options", "message"), BAD)
def test_bad_options(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(0.1, **options)


def test_a_penalty_of_the_core_is_an_error():
    with pytest.raises(TypeError, match="'penalty' parameter of proximal must be a penalty of"):
        adagraddiff(0.1, penalty=package.L1(0.1))


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "adagrad_diff.optax")
    with pytest.raises(ImportError, match=r"pip install 'adagrad-diff\[optax\]'"):
        importlib.import_module("adagrad_diff.optax")
