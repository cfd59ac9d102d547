"""Sparse logistic regression in JAX: one compiled call solves it with 100 learning rates at once, beside optax.adagrad.

`python examples/optax_logistic.py figure.png` draws the objectives against the learning rate.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

from adagrad_diff.optax import L1, adagraddiff, proximal

STEPS, LAM = 300, 0.01
RATES = np.logspace(-3, 3, 100)


def problem():
    """200 rows of 50 features, of which 5 matter."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 50))
    y = np.sign(A[:, :5].sum(1) + 0.5 * rng.standard_normal(200))
    return jnp.asarray(A), jnp.asarray(y)


def solve(make, gradient):
    """A function of the learning rate: the coefficients after all steps."""

    def final(rate):
        optimizer = make(rate)

        def step(carry, _):
            x, state = carry
            updates, state = optimizer.update(gradient(x), state, x)
            return (optax.apply_updates(x, updates), state), None

        start = jnp.zeros(50)
        return jax.lax.scan(step, (start, optimizer.init(start)), length=STEPS)[0][0]

    return jax.jit(jax.vmap(final))


def draw(path, gaps):
    """All methods: how far from the best objective that was seen, for every learning rate."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, gap in gaps.items():
        axes.loglog(RATES, gap, label=name)
    axes.set(xlabel="learning rate", ylabel=f"gap of the objective after {STEPS} steps", ylim=(1e-7, 10))
    axes.legend()
    figure.savefig(path)


def main(path=None):
    A, y = problem()
    penalty = L1(LAM)

    def loss(x):
        return jnp.mean(jnp.logaddexp(0, -y * (A @ x)))

    def objective(x):
        return loss(x) + penalty.value(x)

    solutions = {
        "adagraddiff": solve(lambda rate: adagraddiff(rate, penalty=penalty), jax.grad(loss))(RATES),
        "optax.adagrad": solve(optax.adagrad, jax.grad(objective))(RATES),  # a subgradient: it knows no proximal steps
        # so the differences, not the proximal steps, are compared:
        "optax.adagrad, made proximal": solve(lambda rate: proximal(optax.scale_by_rss(), rate, penalty), jax.grad(loss))(
            RATES
        ),
    }
    objectives = {name: np.asarray(jax.vmap(objective)(x)) for name, x in solutions.items()}
    best = min(values.min() for values in objectives.values())
    gaps = {name: np.maximum(values - best, 1e-7) for name, values in objectives.items()}  # as far as float32 can tell
    for name, gap in gaps.items():
        zeros = int(jnp.sum(solutions[name][np.argmin(gap)] == 0))
        good = np.mean(gap < 1e-3) * np.log10(RATES[-1] / RATES[0])
        print(
            f"{name}: smallest gap {gap.min():.0e}, below 1e-3 over {good:.1f} decades; {zeros} of 50 coefficients exactly zero"
        )
    if path:
        draw(path, gaps)
    good = {name: np.sum(gap < 1e-3) for name, gap in gaps.items()}
    assert good["adagraddiff"] == max(good.values())


if __name__ == "__main__":
    main(*(sys.argv[1:2] if sys.argv[0].endswith("optax_logistic.py") else ()))
