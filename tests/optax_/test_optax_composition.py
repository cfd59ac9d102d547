"""With the other parts of optax, and under the transformations of JAX."""

import pickle
from functools import cache, partial

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
CASES = [
    (adagraddiff, {}),
    (adamdiff, {"penalty": GroupL2(0.1), "blocks": "row"}),
]  # a chain, and a proximal step


def name(value):
    return getattr(value, "__name__", str(value))


def loss(params):
    return jnp.sum(params["w"] ** 4) + jnp.sum((params["b"] - 1) ** 2)


GRADIENT = jax.grad(loss)


@partial(jax.jit, static_argnums=(0, 1))
def step(optimizer, gradient, params, state):
    updates, state = optimizer.update(gradient(params), state, params)
    return optax.apply_updates(params, updates), state


def run(optimizer, params=PARAMS, steps=5, gradient=GRADIENT):
    """The parameters after some steps, and the state."""
    state = optimizer.init(params)
    for _ in range(steps):
        params, state = step(optimizer, gradient, params, state)
    return params, state


def made(make, options):
    """make(0.1, **options), one for all tests: its step is compiled once."""
    return _made(make, *options.items())


@cache
def _made(make, *options):
    return make(0.1, **dict(options))


def same(a, b, rtol=1e-5):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-7), a, b)


def test_the_alias_is_the_chain():
    chain = optax.chain(scale_by_gradient_differences(), optax.scale_by_learning_rate(0.1))
    same(run(made(adagraddiff, {})), run(chain), rtol=0)
    same(
        run(made(adamdiff, {"penalty": L1(0.1)})),
        run(proximal(scale_by_adamdiff(), 0.1, L1(0.1))),
        rtol=0,
    )


def test_adamwdiff_is_a_chain_like_adamw():
    """Scaled, then decayed, then multiplied by the rate; the mask is a tree or a function."""
    mask = {"w": True, "b": False}
    for given in (None, mask, lambda params: mask):
        decay = optax.add_decayed_weights(0.2, given)
        chain = optax.chain(scale_by_adamdiff(b1=0.8), decay, optax.scale_by_learning_rate(0.1))
        same(run(adamwdiff(0.1, b1=0.8, weight_decay=0.2, mask=given)), run(chain), rtol=0)
    penalised = proximal(optax.chain(scale_by_adamdiff(b1=0.8), decay), 0.1, L1(0.1))
    same(
        run(adamwdiff(0.1, b1=0.8, weight_decay=0.2, mask=given, penalty=L1(0.1))),
        run(penalised),
        rtol=0,
    )


def test_adams_other_options():
    """With gradients that alternate in sign, differences are twice the gradients: what is left are Adam's own formulas."""
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
    assert state.mean["w"].dtype == jnp.bfloat16
    assert state.prev["w"].dtype == state.total["w"].dtype == jnp.float32


def test_the_count_is_found():
    """As of optax.adagrad: there is one count, that of the schedule."""
    for penalty in (None, L1(0.1)):
        _, state = run(adagraddiff(optax.constant_schedule(0.1), penalty=penalty), steps=3)
        assert optax.tree.get(state, "count") == 3
    assert optax.tree.get(run(adagraddiff(0.1))[1], "count") is None
    assert optax.tree.get(run(adagraddiff(0.1, decay=0.9), steps=2)[1], "count") == 2
    assert optax.tree.get(run(adamdiff(0.1, penalty=L1(0.1)), steps=2)[1], "count") == 2


def test_the_old_name_is_the_same_object():
    assert package.optax.adagrad_diff is adagraddiff


def test_chain_with_clipping():
    """What comes before sees gradients; differences are those of the clipped ones."""
    clip = optax.clip_by_global_norm(0.5)
    chained, _ = run(optax.chain(clip, adagraddiff(0.1, penalty=L1(0.1))))
    clipped, _ = run(
        made(adagraddiff, {"penalty": L1(0.1)}),
        gradient=lambda p: clip.update(jax.grad(loss)(p), clip.init(p))[0],
    )
    same(chained, clipped)


@pytest.mark.parametrize(("make", "options"), CASES, ids=name)
def test_masked_and_partition(make, options):
    optimizer, alone = made(make, options), made(make, {})
    both, _ = run(optimizer)
    masked, _ = run(
        optax.masked(optimizer, {"w": True, "b": False}),
        gradient=lambda p: jax.grad(loss)(p) | {"b": jnp.zeros(2)},
    )
    same(masked["w"], both["w"])
    same(masked["b"], PARAMS["b"])
    parts = optax.partition({"first": optimizer, "second": alone}, {"w": "first", "b": "second"})
    params, _ = run(parts)
    same(params["w"], both["w"])
    same(params["b"], run(alone)[0]["b"])


@pytest.mark.parametrize(("make", "options"), CASES, ids=name)
def test_inject_hyperparams(make, options):
    plain, _ = run(made(make, options))
    injected = optax.inject_hyperparams(make)(learning_rate=0.1, **options)
    params, state = run(injected)
    same(params, plain, rtol=1e-4)
    assert "learning_rate" in state.hyperparams
    scheduled, _ = run(
        optax.inject_hyperparams(make)(learning_rate=optax.constant_schedule(0.1), **options)
    )
    same(scheduled, plain, rtol=1e-4)
    state.hyperparams["learning_rate"] = jnp.float32(0.0)  # from now on, nothing moves
    updates, _ = jax.jit(injected.update)(jax.grad(loss)(params), state, params)
    assert not any(jnp.any(leaf) for leaf in jax.tree.leaves(updates))


@pytest.mark.parametrize(("make", "options"), CASES, ids=name)
def test_multi_steps(make, options):
    """Three gradients, then one step by their mean."""
    single, _ = run(made(make, options), steps=2)
    many, _ = run(optax.MultiSteps(made(make, options), every_k_schedule=3), steps=6)
    same(many, single)


@pytest.mark.parametrize(("make", "options"), CASES, ids=name)
def test_apply_if_finite_touches_nothing(make, options):
    optimizer = optax.apply_if_finite(made(make, options), max_consecutive_errors=3)
    params, state = run(optimizer, steps=2)
    bad = jax.tree.map(lambda x: x.at[0].set(jnp.nan), params)
    updates, after = jax.jit(optimizer.update)(bad, state, params)
    same(optax.apply_updates(params, updates), params, rtol=0)
    same(after.inner_state, state.inner_state, rtol=0)
    assert after.total_notfinite == 1


@pytest.mark.parametrize(
    ("make", "options"), [*CASES, (adagraddiff, {"blocks": "tensor"})], ids=name
)
def test_state_of_shapes_alone(make, options):
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype),
        {**PARAMS, "z": jnp.ones(2, jnp.complex64)},
    )
    real = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    optimizer = make(0.1, **options)
    types = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
    state = optimizer.init(real)
    assert (
        types(optimizer.init(shapes))
        == types(jax.eval_shape(optimizer.init, shapes))
        == types(state)
    )
    updates, after = jax.eval_shape(optimizer.update, shapes, state, shapes)
    assert types(updates) == types(shapes)
    assert types(after) == types(state)


@pytest.mark.parametrize(("make", "options"), CASES, ids=name)
def test_one_compilation(make, options):
    traces = []
    optimizer = make(0.1, **options)

    @jax.jit
    def step(params, state):
        traces.append(1)
        return optimizer.update(params, state, params)

    state = optimizer.init(PARAMS)
    for _ in range(3):
        _, state = step(PARAMS, state)
    assert len(traces) == 1


@pytest.mark.parametrize(("make", "options"), CASES, ids=name)
def test_scan_vmapped_over_learning_rates(make, options):
    rates = jnp.array([0.01, 0.1, 0.5])

    def solve(rate):
        optimizer = make(rate, **options)

        def step(carry, _):
            params, state = carry
            updates, state = optimizer.update(jax.grad(loss)(params), state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (PARAMS, optimizer.init(PARAMS)), length=5)[0][0]

    many, one = jax.jit(jax.vmap(solve))(rates), jax.jit(solve)
    for k, rate in enumerate(rates):
        same(jax.tree.map(lambda leaf, k=k: leaf[k], many), one(rate), rtol=1e-4)
    same(one(0.1), run(made(make, options))[0], rtol=1e-4)


def test_vmapped_over_lam():
    lams = jnp.array([0.0, 0.1, 1e4])
    many = jax.vmap(lambda penalty: run(adagraddiff(0.1, penalty=penalty))[0])(L1(lams))
    same(
        jax.tree.map(lambda leaf: leaf[1], many),
        run(made(adagraddiff, {"penalty": L1(0.1)}))[0],
        rtol=1e-4,
    )
    same(jax.tree.map(lambda leaf: leaf[0], many), run(made(adagraddiff, {}))[0], rtol=1e-4)
    assert not any(leaf[2].any() for leaf in jax.tree.leaves(many))


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (adagraddiff, {}),
        (adamdiff, {"penalty": Ridge(0.3)}),
        (adagraddiff, {"penalty": GroupL2(0.1), "blocks": "tensor"}),
    ],
    ids=name,
)
def test_gradients_through_steps(make, options):
    """Of the loss after two steps, with respect to where they began and to the learning rate."""

    def final(x, rate):
        optimizer = make(rate, eps=1e-2, **options)
        state = optimizer.init(x)
        for _ in range(2):
            updates, state = optimizer.update(jnp.sin(x), state, x)
            x = optax.apply_updates(x, updates)
        return jnp.sum(x**2)

    with jax.enable_x64(True):
        gradient = check_slope(final, jnp.array([[0.5, -1.0], [2.0, 0.7]]), jnp.array(0.1))
        where_gradients_vanish = gradient(jnp.array([[0.0, -1.0], [0.0, 0.0]]), jnp.array(0.1))
    assert all(jnp.isfinite(leaf).all() for leaf in where_gradients_vanish)


def test_states_are_plain_trees():
    _, state = run(made(adamdiff, {"penalty": L1(0.1)}))
    same(pickle.loads(pickle.dumps(jax.device_get(state))), jax.device_get(state), rtol=0)


def test_complex_gradients_of_jax_are_conjugated_by_the_caller():
    z, optimizer = jnp.array([1 + 2j, -3j]), adagraddiff(1.0, penalty=None)
    gradient = jax.grad(lambda z: jnp.sum(jnp.abs(z - 1j) ** 2))
    z, _ = run(optimizer, z, steps=100, gradient=lambda z: gradient(z).conj())
    np.testing.assert_allclose(z, [1j, 1j], atol=1e-3)


def test_params_are_needed_for_a_penalty():
    optimizer = adagraddiff(0.1, penalty=NonNegative())
    with pytest.raises(ValueError, match="requires the current value of parameters"):
        optimizer.update(jnp.ones(2), optimizer.init(jnp.ones(2)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: adagraddiff(0.1, eps=0.0),
            ValueError,
            "'eps' parameter of scale_by_gradient_differences must be a positive",
        ),
        (
            lambda: adagraddiff(0.1, blocks="column"),
            ValueError,
            "'blocks' parameter .* must be one of 'element', 'row', 'tensor'",
        ),
        (
            lambda: adagraddiff(0.1, accumulator_dtype="int32"),
            ValueError,
            "'accumulator_dtype' parameter .* floating-point dtype",
        ),
        (
            lambda: adagraddiff(0.1, accumulator_dtype="wide"),
            ValueError,
            "'accumulator_dtype' parameter .* Got 'wide'",
        ),
        (
            lambda: adagraddiff(0.1, decay=1.0),
            ValueError,
            "'decay' parameter .* must be a number >= 0 and < 1",
        ),
        (lambda: adamdiff(0.1, b1=-0.1), ValueError, "'b1' parameter of scale_by_adamdiff"),
        (lambda: adamdiff(0.1, b2=None), ValueError, "'b2' parameter of scale_by_adamdiff"),
        (lambda: adamdiff(0.1, eps="small"), ValueError, "'eps' parameter of scale_by_adamdiff"),
        (
            lambda: adagraddiff(0.1, penalty=package.L1(0.1)),
            TypeError,
            "'penalty' parameter of proximal must be a penalty of",
        ),
        (
            lambda: adagraddiff(0.1, prox_unseen=1, penalty=L1(0.1)),
            ValueError,
            "'prox_unseen' parameter .* True or False",
        ),
        (
            lambda: adamdiff(0.1, max_move=0.0),
            ValueError,
            "'max_move' parameter .* positive number, or math.inf for no bound",
        ),
        (
            lambda: adagraddiff(0.1, decay=0.9, max_move=float("nan")),
            ValueError,
            "'max_move' parameter of scale_by_gradient",
        ),
        (
            lambda: adagraddiff(0.1, -1.0),
            ValueError,
            "'initial_accumulator_value' parameter .* must be a number >= 0",
        ),
        (
            lambda: adagraddiff(0.1, 0.1, decay=0.9),
            ValueError,
            "'initial_accumulator_value' .* cannot be used with 'decay'",
        ),
        (
            lambda: adamdiff(0.1, eps_root=-1.0),
            ValueError,
            "'eps_root' parameter of scale_by_adamdiff",
        ),
        (
            lambda: adamdiff(0.1, mu_dtype="complex64"),
            ValueError,
            "'mu_dtype' parameter .* floating-point dtype",
        ),
        (
            lambda: adamwdiff(0.1, nesterov="yes"),
            ValueError,
            "'nesterov' parameter .* True or False",
        ),
    ],
)
def test_bad_options(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_extra_is_named(monkeypatch):
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "optax", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "adagrad_diff.optax")
    with pytest.raises(ImportError, match=r"pip install 'adagrad-diff\[optax\]'"):
        importlib.import_module("adagrad_diff.optax")
