"""`proximal` with scalings of optax: steps against formulas, what is refused and how, and dtypes of states."""

from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402

from adagrad_diff.optax import (  # noqa: E402
    L1,
    Box,
    DiagonalTransformation,
    adagraddiff,
    adamdiff,
    proximal,
    scale_by_gradient_differences,
)

pytestmark = pytest.mark.peer

RATE, LAM = 0.05, 0.3


def plain(gs):
    return gs[-1]


def mean(b1, gs):
    """Adam's, without bias."""
    coefficients = b1 ** np.arange(len(gs))[::-1]
    return np.tensordot(coefficients / coefficients.sum(), np.array(gs), 1)


def nadam(b1, gs):
    n, m = len(gs), mean(b1, gs) * (1 - b1 ** len(gs))
    return b1 * m / (1 - b1 ** (n + 1)) + (1 - b1) * gs[-1] / (1 - b1**n)


SCALINGS = {  # and what they divide, as functions of all gradients so far
    "rss from zero": (optax.scale_by_rss(0.0, 0.01), plain),
    "rms, outside, unbiased": (
        optax.scale_by_rms(0.7, 1e-3, eps_in_sqrt=False, bias_correction=True),
        plain,
    ),
    "stddev, unbiased": (optax.scale_by_stddev(0.8, 1e-2, bias_correction=True), plain),
    "adam, other numbers": (optax.scale_by_adam(0.5, 0.7, 0.1, 0.2), partial(mean, 0.5)),
    "nadam": (optax.scale_by_adam(nesterov=True), partial(nadam, 0.9)),
    "amsgrad": (optax.scale_by_amsgrad(), partial(mean, 0.9)),
    "in a chain": (
        optax.chain(optax.clip(5.0), optax.scale_by_adam(), optax.identity()),
        partial(mean, 0.9),
    ),
    "in chains": (
        optax.chain(
            optax.identity(),
            optax.named_chain(("clip", optax.clip(5.0)), ("rms", optax.scale_by_rms())),
        ),
        plain,
    ),
    "ours in a chain": (optax.chain(optax.zero_nans(), scale_by_gradient_differences()), plain),
}


def soft(z, by):
    return np.sign(z) * np.maximum(abs(z) - by, 0)


@pytest.mark.parametrize(("scaling", "direction"), SCALINGS.values(), ids=SCALINGS)
def test_steps_are_those_of_the_updates(scaling, direction):
    """update = direction / weight tells the weights where nothing is zero: nothing else is needed to write the step down."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2, 3))
    with jax.enable_x64(True):
        optimizer = proximal(scaling, RATE, L1(LAM))
        state, state_of_updates, gs = (
            optimizer.init(jnp.asarray(x)),
            scaling.init(jnp.asarray(x)),
            [],
        )
        for _ in range(4):
            gs.append(rng.standard_normal((2, 3)))
            changes, state = optimizer.update(jnp.asarray(gs[-1]), state, jnp.asarray(x))
            update, state_of_updates = scaling.update(jnp.asarray(gs[-1]), state_of_updates)
            expected = soft(x - RATE * update, RATE * LAM * update / direction(gs))
            x = np.asarray(x + changes)
            np.testing.assert_allclose(x, expected, rtol=1e-8, atol=1e-14)


def test_plain_steps_with_momentum_or_clipping():
    x, g = jnp.array([1.0, -0.01]), jnp.array([0.5, 3.0])
    for scaling in (
        optax.identity(),
        optax.trace(0.9),
        optax.clip(1.0),
        optax.chain(optax.clip(1.0), optax.trace(0.9)),
    ):
        optimizer = proximal(scaling, RATE, L1(LAM))
        state, inner = optimizer.init(x), scaling.init(x)
        for _ in range(2):
            changes, state = optimizer.update(g, state, x)
            update, inner = scaling.update(g, inner)
            np.testing.assert_allclose(
                x + changes, soft(x - RATE * update, RATE * LAM), rtol=1e-5, atol=1e-7
            )


def test_weight_decay_behind_and_before():
    x, g = (
        {"a": jnp.array([1.0, -2.0]), "b": jnp.array([3.0])},
        {"a": jnp.array([0.5, 3.0]), "b": jnp.array([1.0])},
    )
    decay = optax.add_decayed_weights(0.1, {"a": True, "b": False})
    for scaling in (
        optax.chain(optax.scale_by_rms(), decay),
        optax.chain(decay, optax.scale_by_rms()),
    ):
        optimizer = proximal(scaling, RATE, Box(-100.0, 100.0))  # which changes nothing
        changes, _ = optimizer.update(g, optimizer.init(x), x)
        update, _ = scaling.update(g, scaling.init(x), x)
        for name in x:
            np.testing.assert_allclose(changes[name], -RATE * update[name], rtol=1e-4)


def test_complex_parameters():
    """One weight for both parts, which are shrunk each by itself."""
    z, g = jnp.array([1 + 2j, -0.01 - 3j]), jnp.array([3 - 4j, 0.1 + 0.2j])
    for scaling in (optax.scale_by_adam(), optax.scale_by_rss(0.0), optax.identity()):
        optimizer = proximal(scaling, RATE, L1(LAM))
        changes, _ = optimizer.update(g, optimizer.init(z), z)
        update, _ = scaling.update(g, scaling.init(z))
        point, by = z - RATE * update, RATE * LAM * np.asarray(update / g).real
        expected = soft(point.real, by) + 1j * soft(point.imag, by)
        np.testing.assert_allclose(z + changes, expected, rtol=1e-4, atol=1e-6)


def test_hyperparameters_that_are_not_known_yet():
    """Under vmap, and from inject_hyperparams."""
    x, g = jnp.array([1.0, -2.0]), jnp.array([0.5, 3.0])

    def change(b2, rate):
        optimizer = proximal(optax.scale_by_adam(b2=b2, eps=0.1), rate, L1(LAM))
        return optimizer.update(g, optimizer.init(x), x)[0]

    many = jax.jit(jax.vmap(lambda b2: change(b2, RATE)))(jnp.array([0.5, 0.9]))
    np.testing.assert_allclose(many, [change(0.5, RATE), change(0.9, RATE)], rtol=1e-4)
    injected = optax.inject_hyperparams(
        lambda rate, b2: proximal(optax.scale_by_adam(b2=b2, eps=0.1), rate, L1(LAM))
    )
    optimizer = injected(rate=RATE, b2=0.9)
    changes, _ = jax.jit(optimizer.update)(g, optimizer.init(x), x)
    np.testing.assert_allclose(changes, many[1], rtol=1e-4)


def own():
    return optax.GradientTransformation(
        lambda params: (), lambda updates, state, params=None: (updates, state)
    )


REFUSED = {
    "optax.adam": (
        optax.adam(0.1),
        "of scale cannot: it has a learning rate already, so pass the scaling alone",
    ),
    "masked": (
        optax.masked(optax.scale_by_adam(), True),
        "of masked cannot: put masked around proximal",
    ),
    "lion": (
        optax.scale_by_lion(),
        r"of scale_by_lion cannot: pass a scaling of .* DiagonalTransformation\(init, update, w",
    ),
    "two": (
        optax.chain(optax.scale_by_rms(), optax.scale_by_adam()),
        "of a chain of several scalings cannot",
    ),
    "behind": (
        optax.chain(optax.scale_by_rms(), optax.trace(0.9)),
        "of a chain with trace behind the scaling cannot",
    ),
    "own": (optax.chain(own(), optax.scale_by_adam()), "test_optax_scalings.own cannot"),
    "a number": (0.1, "of 0.1 cannot: pass a scaling of this package or of optax"),
}


@pytest.mark.parametrize(("scaling", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_known_is_refused_with_a_remedy(scaling, message):
    with pytest.raises(TypeError, match=message) as caught:
        proximal(scaling, RATE, L1(LAM))
    assert str(caught.value).startswith(
        "The 'scaling' parameter of proximal must be a transformation"
    )


def cubes():
    weights = lambda state: jax.tree.map(lambda v: jnp.cbrt(v) + 1e-4, state)

    def update(updates, state, params=None):
        state = jax.tree.map(lambda g, v: 0.9 * v + 0.1 * abs(g) ** 3, updates, state)
        return jax.tree.map(jnp.divide, updates, weights(state)), state

    return DiagonalTransformation(
        lambda params: jax.tree.map(jnp.zeros_like, params), update, weights
    )


HALVES = {
    "adagraddiff": adagraddiff(0.1, 0.1, penalty=L1(0.01)),
    "decay": adagraddiff(0.1, decay=0.9),
    "adamdiff": adamdiff(0.1, mu_dtype="bfloat16"),
    "own": proximal(cubes(), 0.1, L1(0.01)),
    "chain": proximal(
        optax.chain(optax.trace(0.9), optax.scale_by_rms(), optax.add_decayed_weights(0.1)),
        0.1,
        L1(0.01),
    ),
}


@pytest.mark.parametrize("optimizer", HALVES.values(), ids=HALVES)
def test_half_precision_in_a_scan(optimizer):
    """States keep their dtypes, and steps are those of single precision, rounded."""

    def solve(x):
        def step(carry, _):
            x, state = carry
            updates, state = optimizer.update(x - 1, state, x)
            return (optax.apply_updates(x, updates), state), None

        return jax.lax.scan(step, (x, optimizer.init(x)), length=3)[0][0]

    x = jnp.array([0.25, -0.5, 2.0], jnp.bfloat16)
    half, single = jax.jit(solve)(x), jax.jit(solve)(x.astype(jnp.float32))
    assert half.dtype == jnp.bfloat16
    np.testing.assert_allclose(half.astype(jnp.float32), single, atol=0.03)
