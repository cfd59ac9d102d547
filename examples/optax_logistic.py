"""
Sparse logistic regression in JAX at 100 learning rates
=======================================================

One compiled call solves it with 100 learning rates at once, beside ``optax.adagrad``.
``python examples/optax_logistic.py figure.png`` writes the picture into a file, too.
"""

import sys

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

from adagrad_diff.experiments.style import METHODS, style
from adagrad_diff.optax import L1, DiagonalTransformation, adagraddiff, proximal

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


def picture(gaps):
    """All methods: how far from the best objective that was seen, for every learning rate."""
    looks = (METHODS["AdaGrad-Diff"], METHODS["AdaGrad"], {"color": "#3A9E8A", "linestyle": ":"})
    with style():
        _, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
        for (name, gap), look in zip(gaps.items(), looks, strict=True):
            axes.loglog(RATES, gap, label=name, color=look["color"], linestyle=look["linestyle"])
        axes.set(
            xlabel="learning rate",
            ylabel=f"gap of the objective after {STEPS} steps",
            ylim=(1e-7, 10),
        )
        axes.legend()
        if len(sys.argv) > 1:
            plt.savefig(sys.argv[1])
        plt.show()


def main():
    A, y = problem()
    penalty = L1(LAM)

    def loss(x):
        return jnp.mean(jnp.logaddexp(0, -y * (A @ x)))

    def objective(x):
        return loss(x) + penalty.value(x)

    adagrad = DiagonalTransformation(
        *optax.scale_by_rss(eps=0.0), weights=lambda state: jnp.sqrt(state.sum_of_squares)
    )
    solutions = {
        "adagraddiff": solve(lambda rate: adagraddiff(rate, penalty=penalty), jax.grad(loss))(
            RATES
        ),
        "optax.adagrad": solve(optax.adagrad, jax.grad(objective))(
            RATES
        ),  # a subgradient: it knows no proximal steps
        # so the differences, not the proximal steps, are compared:
        "optax.adagrad, made proximal": solve(
            lambda rate: proximal(adagrad, rate, penalty), jax.grad(loss)
        )(RATES),
    }
    objectives = {name: np.asarray(jax.vmap(objective)(x)) for name, x in solutions.items()}
    best = min(values.min() for values in objectives.values())
    gaps = {
        name: np.maximum(values - best, 1e-7) for name, values in objectives.items()
    }  # as far as float32 can tell
    for name, gap in gaps.items():
        zeros = int(jnp.sum(solutions[name][np.argmin(gap)] == 0))
        good = np.mean(gap < 1e-3) * np.log10(RATES[-1] / RATES[0])
        print(
            f"{name}: smallest gap {gap.min():.0e}, below 1e-3 over {good:.1f} decades; {zeros} of 50 coefficients exactly zero"
        )
    good = {name: np.sum(gap < 1e-3) for name, gap in gaps.items()}
    assert good["adagraddiff"] == max(good.values())
    picture(gaps)


if __name__ == "__main__":
    main()
