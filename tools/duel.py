"""Is one checkout slower than another, to a few percent, on a machine that is noisy?

    python tools/duel.py OLD NEW [rounds] [names]

Three processes take turns: the old code, the new code, and the old code once more as a control. Printed are ratios of the
best times, new / old, beside old / old: what the control shows is what this machine cannot tell apart.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

LASTS = 0.05  # seconds that one measurement takes, about


def made(samples: int, features: int, dtype: str = "f8") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((samples, features)).astype(dtype)
    return A, np.sign(
        A @ rng.standard_normal(features).astype(dtype) + rng.standard_normal(samples)
    ).astype(dtype)


def sparse() -> tuple[Any, np.ndarray]:
    """Of the size of news20, with 80 words per text."""
    from scipy.sparse import csr_array

    samples, features, words = 15_935, 62_061, 80
    rng = np.random.default_rng(0)
    index = np.sort(rng.integers(0, features, (samples, words)), axis=1).astype(np.int32)
    A = csr_array(
        (rng.random(index.size), index.ravel(), np.arange(0, index.size + 1, words)),
        shape=(samples, features),
    )
    A.sum_duplicates()
    return A, np.where(np.arange(samples) % 2, 1.0, -1.0)


def cases() -> dict[str, Callable[[], Callable[[], Any]]]:
    """Name -> what to prepare; it returns what to measure."""
    from adagrad_diff import L1, AdaGradDiff, Hinge, Logistic, Squared, iterate, minimize, sweep

    def steps(loss: Any, penalty: Any) -> Callable[[], Any]:
        states = iterate(loss, penalty=penalty, rule=AdaGradDiff(0.1))
        return lambda: next(islice(states, 10, None))

    def run(**options: Any) -> Callable[[], Any]:
        loss = Hinge(*made(500, 100))
        return lambda: minimize(
            loss, penalty=L1(0.01), max_iter=1000, on_failure="ignore", **options
        )

    def many(loss: Any, etas: int, starts: int, iterations: int) -> Callable[[], Any]:
        x0 = 0.1 * np.random.default_rng(1).standard_normal((*loss.shape, starts))
        return lambda: sweep(
            loss,
            L1(0.01),
            AdaGradDiff,
            np.geomspace(1e-3, 10, etas),
            x0,
            iterations,
            record=iterations,
        )

    return {
        "dense hinge": lambda: steps(Hinge(*made(20_000, 500)), L1(0.01)),
        "dense squared": lambda: steps(Squared(*made(20_000, 500)), L1(0.01)),
        "dense float32": lambda: steps(Hinge(*made(20_000, 500, "f4")), L1(0.01)),
        "CSR": lambda: steps(Logistic(*sparse(), l2=0.01), None),
        "500 x 100": lambda: steps(Hinge(*made(500, 100)), L1(0.01)),
        "minimize": lambda: run(eta=0.1, history=0),
        "with history": lambda: run(eta=0.1, history=1),
        "stop=gap": lambda: run(eta=0.1, history=0, stop="gap", tol=1e-12),
        "eta=auto": lambda: run(history=0),
        "sweep": lambda: many(Hinge(*made(500, 100)), 60, 10, 300),
        "sweep CSR": lambda: many(Logistic(*sparse(), l2=0.01), 20, 1, 3),
    }


def work(name: str) -> None:
    """Measure once per line that comes in."""
    call = cases()[name]()
    call()
    begin = perf_counter()
    call()
    repeats = max(1, int(LASTS / (perf_counter() - begin)))
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = perf_counter()
        for _ in range(repeats):
            call()
        print((perf_counter() - begin) / repeats, flush=True)


def duel(old: str, new: str, rounds: int, names: list[str]) -> None:
    for name in names or cases():
        players = []
        for checkout in (old, new, old):
            environment = {**os.environ, "PYTHONPATH": str(Path(checkout) / "src")}
            command = [sys.executable, __file__, "--work", name]
            players.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=environment,
                )
            )
            assert players[-1].stdout is not None
            players[-1].stdout.readline()  # one after another: they compile
        times: list[list[float]] = [[], [], []]
        for k in range(rounds):
            for player in (k % 3, (k + 1) % 3, (k + 2) % 3):
                process: Any = players[player]
                process.stdin.write("\n")
                process.stdin.flush()
                times[player].append(float(process.stdout.readline()))
        for process in players:
            process.communicate()
        best, lower = np.min(times, axis=1), np.quantile(times, 0.25, axis=1)
        print(
            f"{name:14} best: new/old {best[1] / best[0]:.3f}, old/old {best[2] / best[0]:.3f};  "
            f"quartile: {lower[1] / lower[0]:.3f}, {lower[2] / lower[0]:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(sys.argv[2])
    else:
        duel(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 40, sys.argv[4:])
