"""What an iteration costs, from 1e4 to 1e8 nonzeros, against the model of scaling.md.

`python docs/cost.py` prints its table.

In memory with the threads of this process, and on two local workers of Dask, in one run. What the
model is made of is measured first: how fast this machine reads memory, and how long a round of Dask
takes that has nothing to do.
"""

from time import perf_counter

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from adagrad_diff import L1, AdaGradDiff, Logistic, iterate
from adagrad_diff.dask import Logistic as DaskLogistic

FEATURES, BLOCKS, WORKERS = 100, 2, 2
NONZEROS = (1e4, 1e5, 1e6, 1e7, 1e8)


def seconds(loss, least=0.5):
    """Of an iteration: the fastest of several rounds, after some that compile and fill caches."""
    states = iterate(loss, np.zeros(FEATURES), L1(1e-3), AdaGradDiff(0.1))
    for _ in range(3):
        next(states)
    rounds, begin = [], perf_counter()
    while len(rounds) < 5 or perf_counter() - begin < least:
        before = perf_counter()
        next(states)
        rounds.append(perf_counter() - before)
    return float(np.min(rounds))


def bandwidth():
    """Bytes per second that a sum reads, from memory that is larger than any cache."""
    array = np.ones(1 << 26)
    times = []
    for _ in range(5):
        before = perf_counter()
        array.sum()
        times.append(perf_counter() - before)
    return array.nbytes / min(times)


def main():
    read = bandwidth()
    print(f"One core reads {read / 1e9:.1f} GB/s.")
    rng = np.random.default_rng(0)
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        rows, overhead = [], None
        for nonzeros in NONZEROS:
            samples = int(nonzeros) // FEATURES
            A = rng.standard_normal((samples, FEATURES))
            b = np.sign(A[:, 0] + rng.standard_normal(samples))
            here = seconds(Logistic(A, b))
            there = seconds(
                DaskLogistic(da.from_array(A, chunks=(-(-samples // BLOCKS), FEATURES)), b)
            )
            overhead = (
                there if overhead is None else overhead
            )  # of the smallest problem: it is nothing but that
            bytes_read = 8 * nonzeros + 24 * samples  # A, and b, weight and residual of each sample
            model = bytes_read / (WORKERS * read)
            rows.append((nonzeros, bytes_read, here, model, there, model + overhead))
            del A
    print(
        "| nonzeros | bytes | in memory | model | Dask | model |\n| ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for nonzeros, size, *times in rows:
        print(
            f"| {nonzeros:.0e} | {size:.1e} | "
            + " | ".join(f"{1e3 * time:.3g} ms" for time in times)
            + " |"
        )
    print(f"A round of Dask: {1e3 * overhead:.1f} ms, of {BLOCKS} blocks.")


if __name__ == "__main__":
    main()
