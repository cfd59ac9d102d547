"""Sweeps beside the products they consist of, JAX, and single runs one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from adagrad_diff import L1, AdaGradDiff, Hinge, Logistic, minimize, sweep
from adagrad_diff.datasets import stand_in

from ._timing import Row, optional, peak_memory, race
from .core import hinge_problem, sparse_problem

LAM, EPS = 1e-2, 1e-8


def runs(loss, penalty, etas, x0s, n_iter: int) -> Callable[[], None]:
    """Single runs of the core, one after another."""

    def run():
        for eta, x0 in zip(etas, x0s.T, strict=True):
            minimize(loss, x0, penalty, AdaGradDiff(eta), max_iter=n_iter)

    return run


def dense() -> Iterator[Row]:
    """The paper's hinge problem: 60 etas, 10 starts, 1000 iterations, every one of them recorded."""
    A, b, _ = hinge_problem()
    x0s, etas, n_iter, some = (
        np.random.default_rng(1).standard_normal((100, 10)),
        np.geomspace(1e-3, 1e0, 60),
        1000,
        12,
    )
    loss, B = Hinge(A, b), etas.size * x0s.shape[1]
    X, R, Z, G = (
        np.random.default_rng(2).standard_normal((rows, B)) for rows in (100, 500, 500, 100)
    )

    def products():
        for _ in range(n_iter):
            np.matmul(A, X, out=Z)
            np.matmul(A.T, R, out=G)

    contenders: dict[str, Callable] = {
        "ours": lambda: sweep(loss, L1(LAM), AdaGradDiff, etas, x0s, n_iter),
        "products": products,
        "single": runs(
            loss, L1(LAM), etas[:: etas.size // some], np.repeat(x0s, 2, axis=1)[:, :some], n_iter
        ),
    }
    if optional("jax"):
        contenders["jax"] = with_jax(A, b, etas, x0s, n_iter)
    times = race(phases=3, **contenders)  # they take seconds
    name = "hinge 500 x 100, 60 etas x 10 starts x 1000 iterations"
    yield Row(
        name, times["ours"], "the bare matrix products", times["products"], must=1.3, aim=1.15
    )
    yield Row("", times["ours"], "jax.vmap + lax.scan", times.get("jax"), must=1.0)
    yield Row("", times["ours"], "600 single runs", times["single"] * B / some, must=1 / 6)


def with_jax(
    A: np.ndarray, b: np.ndarray, etas: np.ndarray, x0s: np.ndarray, n_iter: int
) -> Callable:
    """The same sweep, as one writes it in JAX: objective and mean step of every iteration are recorded, too."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    A_, b_ = jnp.asarray(A), jnp.asarray(b)

    def evaluate(x):
        margin = b_ * (A_ @ x)
        g = A_.T @ (jnp.where(margin < 1, -b_, 0.0) / len(b))
        return jnp.maximum(0.0, 1.0 - margin).mean(), g

    def trajectory(eta, x0):
        def body(state, _):
            x, g, g_prev, total = state
            total = total + (g - g_prev) ** 2
            step = eta / (EPS + jnp.sqrt(total))
            z = x - step * g
            x = jnp.sign(z) * jnp.maximum(jnp.abs(z) - step * LAM, 0.0)
            f, g_next = evaluate(x)
            return (x, g_next, g, total), (f + LAM * jnp.abs(x).sum(), step.mean())

        zero = jnp.zeros_like(x0)
        return jax.lax.scan(body, (x0, evaluate(x0)[1], zero, zero), length=n_iter)

    run = jax.jit(jax.vmap(trajectory))
    columns = jnp.asarray(np.repeat(etas, x0s.shape[1])), jnp.asarray(np.tile(x0s, etas.size).T)
    return lambda: jax.block_until_ready(run(*columns))


def splice() -> Iterator[Row]:
    """Logistic loss: mostly exponentials and logarithms."""
    data = stand_in("splice.t")
    yield from per_trajectory(
        "logistic 2175 x 60", Logistic(data.A, data.b), L1(LAM), 120, 200, must=1 / 2.5
    )


def sparse() -> Iterator[Row]:
    """The size of news20."""
    A, b = sparse_problem(15935, 62061, 80)
    yield from per_trajectory(
        "logistic CSR 15935 x 62061, 80 per row",
        Logistic(A, b, l2=1e-4),
        None,
        64,
        40,
        must=1 / 1.7,
    )


def per_trajectory(
    name: str, loss, penalty, columns: int, n_iter: int, must: float
) -> Iterator[Row]:
    """One trajectory in a sweep beside a run of its own."""
    x0s, etas, some = (
        np.random.default_rng(0).standard_normal((loss.shape[0], 2)),
        np.geomspace(0.01, 1.0, columns // 2),
        4,
    )
    times = race(
        phases=4,
        ours=lambda: sweep(loss, penalty, AdaGradDiff, etas, x0s, n_iter),
        single=runs(
            loss,
            penalty,
            etas[:: etas.size // some][:some],
            np.repeat(x0s, some // 2, axis=1),
            n_iter,
        ),
    )
    yield Row(
        f"{name}: one trajectory",
        times["ours"] / columns,
        "a single run",
        times["single"] / some,
        must=must,
    )


def memory() -> Iterator[Row]:
    """What a sweep needs beside its result, as a share of its budget."""
    A, b, _ = hinge_problem()
    etas, options = np.geomspace(1e-3, 1.0, 100), {"keep_x": False, "n_jobs": 2}

    def peak(loss: Any, penalty: Any, x0s: np.ndarray, n_iter: int, budget: float) -> int:
        return peak_memory(
            lambda: sweep(
                loss,
                penalty,
                AdaGradDiff,
                etas,
                x0s,
                n_iter,
                record=n_iter,
                memory=budget,
                **options,
            )
        )

    loss, x0s = Hinge(A, b), np.random.default_rng(0).standard_normal((100, 10))
    for budget in (4e6, 2e7):
        need = peak(loss, L1(LAM), x0s, 50, budget)
        yield Row(
            "memory: hinge 500 x 100, 100 etas x 10 starts",
            need,
            "the budget",
            budget,
            must=1.0,
            unit="B",
        )
    A, b = sparse_problem(15935, 62061, 80)
    for budget in (1e8, 5e8):
        need = peak(Logistic(A, b, l2=1e-4), None, np.zeros((62061, 1)), 2, budget)
        yield Row(
            "memory: logistic CSR 15935 x 62061, 100 etas",
            need,
            "the budget",
            budget,
            must=1.0,
            unit="B",
        )


def protocol() -> Iterator[Row]:
    """Appendix B with 200 etas and 10 starts, for the four small problems, in all."""
    from adagrad_diff.experiments.paper import problems, study

    begin = perf_counter()
    for name in ("hinge", "lad", "splice", "2moons"):
        options = {"stand_in": True} if name == "splice" else {}
        study(problems.PROBLEMS[name](**options), progress=False)
    yield Row(
        "the full protocol of the four small problems",
        perf_counter() - begin,
        "five minutes",
        300.0,
        must=1.0,
    )


CASES = (dense, splice, sparse, memory, protocol)
