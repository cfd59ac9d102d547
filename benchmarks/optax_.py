"""The optax optimizers beside optax's own: 20 M float32 parameters, compiled, on two CPU threads.

Steps are mostly limited by memory, and XLA on CPUs writes one array per pass. AdaGrad has two
passes over 7 arrays: the total reads itself and g, x reads itself, g and the total. Ours has a
third pass, for the previous gradient, and 10 arrays: the total reads itself, g and the previous
gradient; that reads g; x reads itself, the total and the gradient. If memory were all, that would
be 10 / 7 = 1.43 times AdaGrad's time, and 7 / 5 = 1.4 with one pass each; roots and divisions, of
which both have as many, bring it nearer to one. (Adam has three passes over 10 arrays.) Tried, and
worse: a plain copy as the third pass, with an optimization barrier or without (3.8 times AdaGrad's
time: XLA copies the previous gradient as well), and a loop over pieces that fit into the cache
(slower by far).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ._timing import Row, optional, race

SIZE = 20_000_000
STREAMS = 10 / 7 + 0.02  # what the arrays that are read and written allow, and a little


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
    """Return the compiled update, with the memory of the state donated, but not the gradient's."""
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
    yield Row(
        "one jitted update, state donated",
        times["ours"],
        "optax.adagrad",
        times["adagrad"],
        must=1.2,
    )
    yield Row("", times["ours"], "optax.adam", times["adam"], must=0.8)
    yield Row("  adamdiff", times["adamdiff"], "optax.adam", times["adam"])


def step() -> Iterator[Row]:
    """Return a whole step, and the number of arrays that the program of XLA reads and writes."""
    if not optional("optax"):
        return
    times = race(**steppers())
    yield Row(
        "one jitted step, parameters and state donated",
        times["ours"],
        "optax.adagrad",
        times["adagrad"],
        must=STREAMS,
        aim=1.2,
    )
    yield Row("", times["ours"], "optax.adam", times["adam"])
    yield Row("  with L1", times["l1"], "without", times["ours"])
    yield Row("  adamdiff", times["adamdiff"], "optax.adam", times["adam"])
    arrays = {name: streams(optimizer) for name, optimizer in contenders().items()}
    yield Row(
        "  arrays that go through memory",
        arrays["ours"],
        "optax.adagrad",
        arrays["adagrad"],
        must=STREAMS,
        unit="",
    )
    yield Row("", arrays["ours"], "optax.adam", arrays["adam"], unit="")
    yield Row("  with L1", arrays["l1"], "without", arrays["ours"], must=1.0, unit="")


def streams(optimizer) -> int:
    """How many arrays the passes of a compiled step read and write together."""
    import jax
    import jax.numpy as jnp
    import optax

    def one(x, state, g):
        updates, state = optimizer.update(g, state, x)
        return optax.apply_updates(x, updates), state

    x = jnp.zeros(1000)
    text = jax.jit(one, donate_argnums=(0, 1)).lower(x, optimizer.init(x), x).compile().as_text()
    computations = dict(
        re.findall(r"^%(\S+) .*?\{\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL)
    )
    total = 0
    for kind, called in re.findall(
        r"= f32\[1000\]\S* (fusion|copy)\(.*?(?:calls=%(\S+?),|$)",
        text[text.index("ENTRY") :],
        re.MULTILINE,
    ):
        inputs = re.findall(r"%(\S+) = f32\[1000\]\S* parameter", computations.get(called, ""))
        used = [
            name
            for name in inputs
            if re.search(rf"(?<!slice)\([^)]*%{re.escape(name)}[,)]", computations[called])
        ]
        total += 1 + (1 if kind == "copy" else len(used))
    return total


CASES = [update, step]
