"""The iteration beside the products it cannot do without, first calls, and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from adagrad_diff import L1, AdaGradDiff, Hinge, Logistic, Squared, iterate, minimize

from ._timing import Row, fresh, optional, peak_memory, race

ETA, LAM = 0.063, 1e-2

PAPER = f"""
import numpy as np

rng = np.random.default_rng(0)
A, w = rng.standard_normal((500, 100)), np.zeros(100)
w[rng.choice(100, 20, replace=False)] = rng.standard_normal(20)
b = np.sign(A @ w + 0.1 * rng.standard_normal(500))
x0, eta, lam = rng.standard_normal(100), {ETA}, {LAM}
"""


def hinge_problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The paper's hinge problem: A, b and x0, as a fresh interpreter makes them."""
    names: dict = {}
    exec(PAPER, names)
    return names["A"], names["b"], names["x0"]


def hinge_gradient(A: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    return A.T @ (np.where(b * (A @ x) < 1, -b, 0.0) / len(b))


def sparse_problem(samples: int, features: int, per_row: int):
    """CSR rows of distinct columns, with the frequencies of words (Zipf's law), in no particular order; labels."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    u = (
        np.arange(per_row) + rng.random((samples, per_row))
    ) / per_row  # one draw per stratum: few columns coincide
    rank = (10 * (features / 10 + 1) ** u - 10).astype(np.int64)
    shift = np.arange(per_row)
    rank = (
        np.maximum.accumulate(np.minimum(rank - shift, features - per_row), axis=1) + shift
    )  # and now none
    indices = np.sort(rng.permutation(features)[rank], axis=1).astype(np.int32)
    indptr = np.arange(0, samples * per_row + 1, per_row, dtype=np.int32)
    A = csr_array(
        (rng.random(samples * per_row), indices.ravel(), indptr), shape=(samples, features)
    )
    return A, np.sign(A @ rng.standard_normal(features))


def runner(loss: Any, iterations: int, **options: Any) -> Callable[[], None]:
    """A call of minimize that is known to have made all its iterations."""

    def run():
        result = minimize(loss, max_iter=iterations, **options)
        assert result.nit == iterations, result.message

    return run


def dense() -> Iterator[Row]:
    """A matrix much larger than the cache: reading it is all the time there is."""
    yield from dense_rows(np.float64, must=1.9, aim=1.5)
    yield from dense_rows(np.float32)


def dense_rows(dtype: type, **limits: float) -> Iterator[Row]:
    rng, iterations = np.random.default_rng(0), 20
    A, x = rng.standard_normal((20000, 500), dtype), rng.standard_normal(500, dtype)
    b = np.sign(A @ x)
    times = race(
        hinge=runner(Hinge(A, b), iterations, penalty=L1(1e-4), eta=0.1),
        squared=runner(Squared(A, b), iterations, penalty=L1(1e-4), eta=0.1),
        gradient=lambda: hinge_gradient(A, b, x),
        product=lambda: A @ x,
    )
    name, product = f"dense 20000 x 500 {np.dtype(dtype)}", times["product"]
    yield Row(
        f"one iteration, {name}, hinge + L1",
        times["hinge"] / iterations,
        "A @ x",
        product,
        **limits,
    )
    # The hinge skips samples that are right by a margin; the squared loss cannot skip any.
    yield Row("  (squared loss + L1)", times["squared"] / iterations, "A @ x", product)
    yield Row("  (NumPy, gradient in two passes)", times["gradient"], "A @ x", product)


def sparse() -> Iterator[Row]:
    """The size of news20."""
    from scipy.special import expit

    A, b = sparse_problem(15935, 62061, 80)
    x, transposed, iterations = np.random.default_rng(1).standard_normal(A.shape[1]), A.T, 20

    def gradient():
        margin = b * (A @ x)
        return np.logaddexp(0.0, -margin).mean(), transposed @ (expit(-margin) * b / -len(b))

    times = race(ours=runner(Logistic(A, b, l2=1e-4), iterations, eta=0.1), gradient=gradient)
    name = "one iteration, CSR 15935 x 62061, 80 per row, logistic + l2"
    yield Row(
        name,
        times["ours"] / iterations,
        "gradient by SciPy and NumPy",
        times["gradient"],
        must=1.10,
    )


def small() -> Iterator[Row]:
    """Where every Python call counts."""
    A, b, x0 = hinge_problem()
    loss, penalty, rule, iterations = Hinge(A, b), L1(LAM), AdaGradDiff(ETA), 1000

    def run():
        for _ in islice(iterate(loss, x0, penalty, rule), iterations):
            pass

    times = race(
        iterate=run,
        watched=runner(loss, iterations, x0=x0, penalty=penalty, rule=rule, history=0),
        recorded=runner(loss, iterations, x0=x0, penalty=penalty, rule=rule),
        gradient=lambda: hinge_gradient(A, b, x0),
    )
    rows = {
        "iterate": "one iteration, dense 500 x 100, hinge + L1",
        "watched": "  (in minimize, history=0)",
        "recorded": "  (in minimize, with a record of every iteration)",
    }
    for contender, name in rows.items():
        must = 1.3 if contender == "iterate" else None
        yield Row(
            name, times[contender] / iterations, "gradient by NumPy", times["gradient"], must=must
        )


def autograd() -> Iterator[Row]:
    """What one writes in PyTorch without a proximal step."""
    A, b, x0 = hinge_problem()
    iterations, name, peer = (
        1000,
        "1000 iterations, dense 500 x 100, hinge + L1",
        "torch autograd, Adagrad",
    )
    torch, ours = (
        optional("torch"),
        runner(Hinge(A, b), iterations, x0=x0, penalty=L1(LAM), eta=ETA),
    )

    if torch is None:
        yield Row(name, race(ours=ours)["ours"], peer, None)
        return
    data, labels = torch.from_numpy(A), torch.from_numpy(b)

    def theirs():
        x = torch.tensor(x0, requires_grad=True)
        optimizer = torch.optim.Adagrad([x], lr=ETA)
        for _ in range(iterations):
            optimizer.zero_grad()
            objective = torch.clamp(1 - labels * (data @ x), min=0).mean() + LAM * x.abs().sum()
            objective.backward()
            optimizer.step()

    times = race(ours=ours, theirs=theirs)
    yield Row(name, times["ours"], peer, times["theirs"], must=1 / 8)


def first_call() -> Iterator[Row]:
    """What a user waits for who has just started Python."""
    yield Row("import adagrad_diff", fresh("", "import adagrad_diff", 5), "budget", 0.4, must=1.0)
    setup = PAPER + "from adagrad_diff import Hinge, L1, minimize"
    call = "minimize(Hinge(A, b), x0, L1(lam), eta=eta)"
    with tempfile.TemporaryDirectory() as empty:
        cold = fresh(setup, call, 1, NUMBA_CACHE_DIR=empty)
        warm = fresh(setup, call, 3, NUMBA_CACHE_DIR=empty)
    yield Row("first minimize after the imports, compiled before", warm, "budget", 1.0, must=1.0)
    yield Row("first minimize after the imports, nothing compiled", cold, "budget", 10.0, must=1.0)


def memory() -> Iterator[Row]:
    """What a run needs beside A: the budget is 10 vectors of size d and 5 of size N."""
    rng = np.random.default_rng(0)
    wide, tall = rng.standard_normal((200, 200_000)), rng.standard_normal((200_000, 50))
    columns, labels = sparse_problem(200, 200_000, 100)
    for name, A, b in (
        ("dense 200 x 200000", wide, labels),
        ("CSR 200 x 200000", columns, labels),
        ("dense 200000 x 50", tall, np.sign(tall[:, 0])),
    ):
        yield from memory_rows(name, A, b)


def memory_rows(name: str, A: Any, b: np.ndarray) -> Iterator[Row]:
    budget = 8 * (10 * A.shape[1] + 5 * A.shape[0])
    shared = {"peer": "10 d + 5 N", "theirs": budget, "unit": "B"}
    for history in (0, 1):
        used = peak_memory(runner(Hinge(A, b), 20, penalty=L1(1e-4), eta=0.1, history=history))
        yield Row(f"memory of minimize, {name}, history={history}", used, must=1.0, **shared)
    yield Row("  (of making the loss)", peak_memory(lambda: Hinge(A, b)), **shared)


CASES = [dense, sparse, small, first_call, memory, autograd]
