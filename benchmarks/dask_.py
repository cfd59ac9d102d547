"""Dask: iterations on two local workers beside those in memory, what a round of tasks costs, and data larger than memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from adagrad_diff import L1, AdaGradDiff, Logistic, iterate, minimize

from ._spark import spark_solver
from ._timing import Row, optional, race
from .core import sparse_problem

BLOCKS = 4  # two for each worker
STREAMED = (
    int(os.environ.get("STREAMED", "6000")) * 10**6
)  # bytes of the array that is larger than the memory there is
LIMIT = 1_500 * 10**6  # bytes of memory
PEERS = tuple(
    map(int, os.environ.get("PEERS", "100000x30").split("x"))
)  # samples and features, for the peers
TO_REACH = 1e-6  # the relative gap that peers are compared at
TURNS = 3  # of each of them


@contextmanager
def workers() -> Iterator[Any]:
    """Two processes with one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def chunk(folder: str, k: int) -> Any:
    """A block of rows that was saved: each worker reads its own."""
    from scipy import sparse

    return sparse.load_npz(Path(folder) / f"{k}.npz")


def distributed_rows(A: Any, folder: str, blocks: int = BLOCKS) -> Any:
    """The same rows as a Dask array, read by the workers."""
    import dask
    import dask.array as da
    from scipy import sparse

    cuts = np.linspace(0, A.shape[0], blocks + 1).astype(int)
    for k, (lo, hi) in enumerate(pairwise(cuts)):
        sparse.save_npz(Path(folder) / f"{k}.npz", A[lo:hi], compressed=False)
    read, like = dask.delayed(chunk), sparse.csr_array((0, 0))
    shapes = [(hi - lo, A.shape[1]) for lo, hi in pairwise(cuts)]
    return da.concatenate(
        [da.from_delayed(read(folder, k), shape, A.dtype, like) for k, shape in enumerate(shapes)]
    )


def iterating(loss: Any, iterations: int = 5) -> Callable[[], Any]:
    """A few iterations of a run that is under way."""
    states = iterate(loss, None, L1(1e-5), AdaGradDiff(0.1))
    return lambda: list(islice(states, iterations))


def cluster() -> Iterator[Row]:
    """1e8 nonzeros: the iteration on two workers, and in memory with two threads."""
    if not optional("distributed"):
        return
    from adagrad_diff.dask import source

    A, b = sparse_problem(1_000_000, 10_000, 100)
    with tempfile.TemporaryDirectory() as folder, workers() as client:
        far = Logistic(source(distributed_rows(A, folder), client=client), b)
        times = race(phases=3, ours=iterating(far, 3), memory=iterating(Logistic(A, b), 3))
        yield Row(
            "iteration, 1e8 nonzeros, two workers",
            times["ours"] / 3,
            "in memory, two threads",
            times["memory"] / 3,
            1.3,
            1.1,
        )


def nothing(value: Any) -> Any:
    """A task without work."""
    return value


def overhead() -> Iterator[Row]:
    """What an iteration costs when there is nothing to compute."""
    if not optional("distributed"):
        return
    import dask.array as da

    from adagrad_diff.dask import source

    A, b = np.ones((400, 10)), np.ones(400)
    blocks = da.from_array(A, chunks=(100, 10))
    with workers() as client:
        held = [client.submit(nothing, k, pure=False) for k in range(BLOCKS)]
        rounds = iter(range(10**9))

        def tasks() -> Any:
            name = f"nothing-{next(rounds)}"
            return client.get(
                {(name, k): (nothing, future) for k, future in enumerate(held)},
                [(name, k) for k in range(BLOCKS)],
            )

        times = race(
            phases=3,
            ours=iterating(Logistic(source(blocks, client=client), b)),
            tasks=tasks,
            threads=iterating(Logistic(source(blocks), b)),
            memory=iterating(Logistic(A, b)),
        )
    ours, threads, memory = (times[name] / 5 for name in ("ours", "threads", "memory"))
    yield Row(
        "iteration without work, 4 blocks, two workers",
        ours,
        "a round of 4 empty tasks",
        times["tasks"],
        1.5,
        1.1,
    )
    yield Row("the same in threads of this process", threads, "in memory", memory)


def peers() -> Iterator[Row]:
    """Ridge logistic regression to a gap of 1e-6: dask-glm, which dask-ml calls, on the same workers and chunks, and Spark.

    Rows are in the memory of the workers, and everybody has been called before. Peers get the loosest tolerance that is enough,
    and are also shown as they come. Ours includes the sending of targets and weights, and ends with a proof.
    """
    if not optional("distributed"):
        return
    import dask
    import dask.array as da

    from adagrad_diff import Ridge
    from adagrad_diff.dask import source

    rng, alpha = np.random.default_rng(0), 1e-4
    A = rng.standard_normal(PEERS)
    y = (rng.random(len(A)) < 1 / (1 + np.exp(-A @ rng.standard_normal(PEERS[1])))).astype(float)
    loss, penalty = Logistic(A, 2 * y - 1), Ridge(alpha)
    best = minimize(loss, penalty=penalty, tol=1e-12).fun

    def gap(x: np.ndarray) -> float:
        return max((loss.value_and_grad(x)[0] + 0.5 * alpha * float(x @ x)) / best - 1.0, 0.0)

    def enough(solve: Callable[[float], np.ndarray], first: float) -> Callable[[], np.ndarray]:
        """With the loosest tolerance that will do."""
        tol = next(tol for tol in first * 10.0 ** -np.arange(20) if gap(solve(tol)) <= TO_REACH)
        return lambda: solve(tol)

    contenders: dict[str, Callable[[], Any]] = {}
    with ExitStack() as open_, warnings.catch_warnings(action="ignore", category=FutureWarning):
        client = open_.enter_context(workers())
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            X, Y = (
                client.persist(da.from_array(v, chunks=(len(A) // BLOCKS, *v.shape[1:])))
                for v in (A, y)
            )
        rows = source(X, client=client)

        def ours(**options: Any) -> np.ndarray:
            result = minimize(Logistic(rows, 2 * y - 1), penalty=penalty, tol=TO_REACH, **options)
            assert result.gap <= TO_REACH * result.fun
            return np.asarray(result.x)

        contenders |= {"exact finish": ours, "iterations only": lambda: ours(finish=False)}
        open_.enter_context(client.as_current())
        if glm := optional("dask_glm.algorithms"):
            # It adds losses up, and so its strength is that of the sum.
            strength = {"regularizer": "l2", "lamduh": alpha * len(A)}

            def lbfgs(tol: float) -> np.ndarray:
                return np.asarray(glm.lbfgs(X, Y, max_iter=200, tol=tol, **strength))

            contenders["dask-glm lbfgs, enough"] = enough(lbfgs, 1e3)
            contenders["dask-glm lbfgs, its tol"] = lambda: glm.lbfgs(
                X, Y, max_iter=200, **strength
            )
            contenders["dask-glm admm"] = lambda: glm.admm(X, Y, max_iter=30, **strength)
        if optional("pyspark") and shutil.which("java"):
            spark = open_.enter_context(spark_solver(A, y, alpha))
            for _ in range(5):  # Java compiles what is called often
                spark(1e-6)
            contenders["Spark, enough"], contenders["Spark, its tol"] = (
                enough(spark, 1e-1),
                lambda: spark(1e-6),
            )
        found = by_turns(contenders)
    for peer in (
        "dask-glm lbfgs, enough",
        "dask-glm lbfgs, its tol",
        "dask-glm admm",
        "Spark, enough",
        "Spark, its tol",
    ):
        seconds, x = found["exact finish"]
        theirs, other = found.get(peer, (None, None))
        name = peer + ("" if other is None else f" {gap(other):.0e}")
        yield Row(f"ridge logistic, gap {gap(x):.0e}", seconds, name, theirs, 1.0, 0.5)
    seconds, x = found["iterations only"]
    theirs = found.get("dask-glm lbfgs, enough", (None, None))[0]
    yield Row(
        f"ridge logistic, iterations only, gap {gap(x):.0e}",
        seconds,
        "dask-glm lbfgs, enough",
        theirs,
    )


def by_turns(contenders: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, np.ndarray]]:
    """Of each the best time of a few calls, made alternately after a first one, and its answer."""
    answers = {name: np.asarray(run()) for name, run in contenders.items()}
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(TURNS):
        for name, run in contenders.items():
            begin = perf_counter()
            run()
            best[name] = min(best[name], perf_counter() - begin)
    return {name: (best[name], answers[name]) for name in contenders}


STREAM = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
import numpy as np
from adagrad_diff import LAD
from adagrad_diff.dask import source

path, samples, features, limit = sys.argv[1], *map(int, sys.argv[2:])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
A = np.memmap(path, mode="r", dtype=np.float64, shape=(samples, features))
oracle, x, g = LAD(source(A), np.zeros(samples)).oracle(np.ones(features)), np.ones(features), np.empty(features)
times = {"ours": [], "add": [], "read": []}

def iteration():
    oracle(x, g)

def half_added(k):
    rows = np.memmap(path, mode="r", dtype=np.float64, shape=(samples, features))
    return sum(float(rows[lo : lo + 4096].sum()) for lo in range(k * samples // 2, (k + 1) * samples // 2, 4096))

def half_read(k):
    with open(path, "rb", buffering=0) as file:
        left, memory = 8 * features * samples // 2, bytearray(1 << 20)
        file.seek(k * left)
        while left > 0:
            left -= file.readinto(memory)

def timed(name, function):
    begin = perf_counter()
    function()
    times[name].append(perf_counter() - begin)

for _ in range(5):
    x += 1.0  # what was asked before is known
    timed("ours", iteration)
# Not ru_maxrss, which begins with that of the process that started this one.
peak = 1024 * int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
with ThreadPoolExecutor(2) as pool:
    for _ in range(5):
        x += 1.0
        timed("ours", iteration)
        timed("add", lambda: list(pool.map(half_added, range(2))))
        timed("read", lambda: list(pool.map(half_read, range(2))))
print(*map(min, times.values()), peak)
"""


def stream() -> Iterator[Row]:
    """An array on disk that is four times as large as the memory: an iteration beside two threads that add it up, or read it.

    The limit is one of the process (RLIMIT_DATA): memory that it asks for beyond that is an error. What is mapped is not part
    of it, being the page cache's, which the system takes back as it likes. So the second row is the peak of all that was
    resident, mapped pages included, and that stays below the limit, too: blocks are mapped one by one, and let go.
    """
    if not optional("dask"):
        return
    features = 250
    samples, rng = STREAMED // (8 * features), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path, rows = Path(folder) / "A", rng.standard_normal((min(samples, 20_000), features))
        with path.open("wb") as file:
            for lo in range(0, samples, len(rows)):
                file.write(rows[: samples - lo].tobytes())
        command = [sys.executable, "-c", STREAM, str(path), str(samples), str(features), str(LIMIT)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    ours, added, read, peak = map(float, done.stdout.split())
    size = f"{STREAMED / 1e9:.3g} GB"
    yield Row(
        f"iteration over {size} on disk", ours, "adding up what is mapped", added, 1 / 0.7, 1.1
    )
    yield Row("  the same", ours, "reading it, and no more", read, 1 / 0.7, 1.1)
    yield Row(f"memory that {size} on disk need", peak, "limit", float(LIMIT), 1.0, unit="B")


CASES = [cluster, overhead, peers, stream]
