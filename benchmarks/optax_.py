"""The optax optimizers beside optax's own: 20 M float32 parameters, compiled, on two CPU threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ._timing import Row, optional, race

SIZE = 20_000_000


def contenders() -> dict:
    """Optimizers by name."""
    import optax

    from adagrad_diff.optax import L1, adagraddiff, adamdiff

    return {
        "ours": adagraddiff(0.1),
        "l1": adagraddiff(0.1, penalty=L1(1e-4)),
        "adamdiff": adamdiff(0.1),
        "adagrad": optax.adagrad(0.1),
        "adam": optax.adam(0.1),
    }


def updaters() -> dict[str, Callable]:
    """`optimizer.update`, compiled, with the state's memory donated and the gradient's kept, as where gradients are inputs."""
    import jax

    g = jax.random.normal(jax.random.key(0), (SIZE,))

    def updater(optimizer):
        update = jax.jit(optimizer.update, donate_argnums=1)
        state = optimizer.init(g)

        def call():
            nonlocal state
            _, state = jax.block_until_ready(update(g, state))

        return call

    return {name: updater(optimizer) for name, optimizer in contenders().items() if name != "l1"}


def steppers() -> dict[str, Callable]:
    """A whole step, with the memory of parameters and state donated: nothing is allocated."""
    import jax
    import jax.numpy as jnp
    import optax

    g = jax.random.normal(jax.random.key(0), (SIZE,))

    def stepper(optimizer):
        def one(x, state, g):
            updates, state = optimizer.update(g, state, x)
            return optax.apply_updates(x, updates), state

        step = jax.jit(one, donate_argnums=(0, 1))
        x = jnp.zeros(SIZE)
        state = optimizer.init(x)

        def call():
            nonlocal x, state
            x, state = jax.block_until_ready(step(x, state, g))

        return call

    return {name: stepper(optimizer) for name, optimizer in contenders().items()}


def update() -> Iterator[Row]:
    """What an optimizer does by itself."""
    if not optional("optax"):
        return
    times = race(**updaters())
    yield Row("one jitted update, state donated", times["ours"], "optax.adagrad", times["adagrad"], must=1.2)
    yield Row("", times["ours"], "optax.adam", times["adam"], must=0.8)
    yield Row("  adamdiff", times["adamdiff"], "optax.adam", times["adam"])


def step() -> Iterator[Row]:
    """XLA on CPUs writes one array per pass, so each buffer is a pass: three for ours as for Adam's, two for AdaGrad's."""
    if not optional("optax"):
        return
    times = race(**steppers())
    yield Row("one jitted step, parameters and state donated", times["ours"], "optax.adagrad", times["adagrad"])
    yield Row("", times["ours"], "optax.adam", times["adam"])
    yield Row("  with L1", times["l1"], "without", times["ours"])
    yield Row("  adamdiff", times["adamdiff"], "optax.adam", times["adam"])


CASES = [update, step]
