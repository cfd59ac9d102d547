"""Updates against plain formulas and against the core."""

from functools import partial
from itertools import islice

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402
from optax_twin import OPTIMIZERS, PENALTIES  # noqa: E402

import adagrad_diff as core  # noqa: E402
from adagrad_diff.optax import (  # noqa: E402
    L1,
    Box,
    GroupL2,
    adagraddiff,
    adamdiff,
    adamwdiff,
    scale_by_gradient_differences,
)
from pairwise import pairwise  # noqa: E402
from prox_twin import Twin  # noqa: E402

pytestmark = pytest.mark.peer

SHAPES = {"matrix": (3, 4), "vector": (5,), "number": ()}


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def random(rng, shape, dtype):
    parts = rng.standard_normal((*shape, 2))
    parts[rng.random(parts.shape) < 0.2] = 0
    return (parts.view(complex) if np.dtype(dtype).kind == "c" else parts)[..., 0].astype(dtype)


def real(x):
    x = np.asarray(x)
    if x.dtype.kind == "c":
        x = np.stack([x.real, x.imag], -1)
    return x.astype(np.float64)


@partial(jax.jit, static_argnums=0)
def step(optimizer, params, state, grads):
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, updates


def follow(make, options, *, dtype=np.float64, tolerance=1e-10, lr=0.03, steps=6, sync=False):
    """Compare the steps of an optimizer with those of the formulas."""
    rng = np.random.default_rng(0)
    params = {name: jnp.asarray(random(rng, shape, dtype)) for name, shape in SHAPES.items()}
    known = {name: value for name, value in options.items() if name != "accumulator_dtype"}
    if make is adamwdiff:
        known = {"weight_decay": 1e-4, "decoupled_weight_decay": True} | known
    twins = {
        name: Twin(real(x), make is not adagraddiff, lr, **known) for name, x in params.items()
    }
    optimizer = make(lr, **options)
    state = optimizer.init(params)
    for n in range(steps):
        size = np.asarray(3 ** np.sin(n), dtype)
        grads = {
            name: jnp.asarray(random(rng, shape, dtype) * size) for name, shape in SHAPES.items()
        }
        for name, twin in twins.items():
            twin.x = real(params[name]) if sync else twin.x
            twin.step(real(grads[name]))
        params, state, updates = step(optimizer, params, state, grads)
        for name, twin in twins.items():
            assert params[name].dtype == updates[name].dtype == dtype
            np.testing.assert_allclose(real(params[name]), twin.x, rtol=tolerance, atol=tolerance)
    return state, twins


OTHERS = {
    adagraddiff: [{}, {"initial_accumulator_value": 0.3}, {"decay": 0.5, "max_move": 0.3}],
    adamdiff: [{}, {"max_move": 0.5}, {"b1": 0.5, "b2": 0.9, "max_move": np.inf}],
    adamwdiff: [{}, {"weight_decay": 0.7}, {"weight_decay": 0.7, "b1": 0.5}],
}


@pytest.mark.usefixtures("x64")
@pairwise(
    penalty=[None, L1(0.05), PENALTIES[2], Box(-0.3, 0.4), *PENALTIES[5:]],
    make=OPTIMIZERS,
    blocks=["element", "row", "tensor"],
    other=range(3),
    prox_unseen=[False, True],
    lr=[0.03, lambda n: 0.1 / (1 + n)],
)
def test_every_option_follows_the_formulas(make, penalty, blocks, other, prox_unseen, lr):
    options = {"penalty": penalty, "blocks": blocks, "prox_unseen": prox_unseen}
    options |= OTHERS[make][other] | ({"eps": 0.1} if prox_unseen else {})
    state, twins = follow(make, options, lr=lr)
    is_buffers = lambda s: hasattr(s, "prev")
    (buffers,) = filter(is_buffers, jax.tree.leaves(state, is_leaf=is_buffers))
    for name, twin in twins.items():
        np.testing.assert_allclose(buffers.nu[name], twin.total, rtol=1e-12, strict=True)
        np.testing.assert_array_equal(buffers.prev[name], twin.prev)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("make", "dtype", "options", "tolerance"),
    [
        (adagraddiff, np.complex128, {"blocks": "row", "penalty": GroupL2(0.1)}, 1e-10),
        (adamdiff, np.complex128, {"penalty": L1(0.02)}, 1e-10),
        (adagraddiff, np.float32, {"penalty": PENALTIES[2], "eps": 1e-3}, 1e-5),
        (adamwdiff, np.float32, {}, 1e-5),
        (adagraddiff, jnp.float16, {"penalty": L1(0.01), "eps": 1e-4}, 2e-3),
        (adamdiff, jnp.bfloat16, {"penalty": L1(0.01), "eps": 1e-4}, 1.6e-2),
        (adagraddiff, np.float32, {"accumulator_dtype": "float64", "penalty": L1(0.01)}, 3e-7),
        (adamdiff, np.float32, {"accumulator_dtype": np.float64}, 3e-7),
    ],
)
def test_every_precision_follows_the_formulas(make, dtype, options, tolerance):
    """Half precision has a state in single precision, and complex entries are two real ones."""
    state, _ = follow(make, options, dtype=dtype, tolerance=tolerance, sync=tolerance > 1e-10)
    wide = "accumulator_dtype" in options or tolerance == 1e-10
    found = {leaf.dtype for leaf in jax.tree.leaves(state)} - {np.dtype(np.int32)}
    assert found == {np.dtype(np.float64 if wide else np.float32)}


@pytest.fixture(scope="module")
def multinomial():
    """Data, and the gradient of the loss, compiled once."""
    rng = np.random.default_rng(1)
    A, classes = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    loss = lambda x: optax.losses.softmax_cross_entropy_with_integer_labels(
        jnp.asarray(A) @ x, classes
    ).mean()
    return A, classes, jax.jit(jax.grad(loss))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("blocks", "core_blocks", "penalty"),
    [
        ("element", None, "L1"),
        ("row", "row", "GroupL2"),
        ("tensor", "all", "Box"),
    ],
)
def test_trajectory_is_that_of_the_core(multinomial, blocks, core_blocks, penalty):
    A, classes, gradient = multinomial
    ours, theirs = {
        "L1": (L1(0.05), core.L1(0.05)),
        "Box": (Box(-0.2, 0.1), core.Box(-0.2, 0.1)),
        "GroupL2": (GroupL2(0.1), core.GroupL2(0.1, np.repeat(np.arange(5), 3))),
    }[penalty]
    optimizer, x = adagraddiff(0.4, blocks=blocks, penalty=ours), jnp.zeros((5, 3))
    state = optimizer.init(x)
    rule = core.AdaGradDiff(0.4, blocks=core_blocks)
    for expected in islice(
        core.iterate(core.Multinomial(A, classes), np.zeros((5, 3)), theirs, rule), 20
    ):
        x, state, _ = step(optimizer, x, state, gradient(x))
        np.testing.assert_allclose(x, expected.x, rtol=0, atol=1e-10)
    if penalty in ("L1", "GroupL2"):
        assert (x == 0).any()  # exactly, although updates are differences


@pairwise(penalty=[None, *PENALTIES], dtype=[jnp.float32, jnp.bfloat16])
def test_a_zero_learning_rate_changes_no_feasible_parameter(penalty, dtype):
    x = jnp.array([[0.0, 0.25], [0.375, 1e-30]], dtype)
    make = adamwdiff if penalty is None else adamdiff if dtype == jnp.float32 else adagraddiff
    optimizer = make(0.0, penalty=penalty)
    for g in (jnp.zeros_like(x), jnp.ones_like(x)):
        updates, _ = optimizer.update(g, optimizer.init(x), x)
        np.testing.assert_array_equal(optax.apply_updates(x, updates), x, strict=True)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_zeros_and_bounds_after_adding_updates(dtype):
    """Zeros are exact, and a bound is exceeded by rounding at most."""
    rng = np.random.default_rng(4)
    sizes = rng.standard_normal((2, 1000)) * 10 ** rng.uniform(-3, 3, (2, 1000))
    x, g = jnp.asarray(sizes, dtype)
    make = lambda penalty: adagraddiff(1.0, penalty=penalty)
    y, bounded = (step(o := make(p), x, o.init(x), g)[0] for p in (L1(2.0), Box(-0.1, 0.3)))
    assert (y == 0).any()
    excess = jnp.maximum(bounded - 0.3, -0.1 - bounded).astype(np.float32)
    assert (excess <= jnp.finfo(dtype).eps * jnp.maximum(abs(x), 1.0)).all()


def test_nan_stays_nan():
    """A broken sum must not look like an empty one: steps by g / eps would follow."""
    scaling = scale_by_gradient_differences()
    state = scaling.init(jnp.zeros(2))
    for g in ([np.nan, 1.0], [1.0, 1.0], [1.0, 1.0]):
        updates, state = scaling.update(jnp.array(g), state)
    assert jnp.isnan(updates).tolist() == [True, False]
