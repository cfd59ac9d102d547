"""What the duality gap costs: runs that look at it beside the same runs that do not. The iterates are the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from adagrad_diff import L1, LAD, Hinge, Logistic, minimize

from ._timing import Row, race
from .core import sparse_problem


def overhead() -> Iterator[Row]:
    """The same number of iterations with stop="gap", which never stops, and with no tolerance at all."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20000, 500))
    b = A[:, :20].sum(axis=1) + rng.standard_normal(20000)
    sparse, labels = sparse_problem(15935, 62061, 80)
    cases = {
        "LAD 500 x 100, 10000 iterations": (LAD(A[:500, :100], b[:500]), 10000),
        "logistic 500 x 100, 10000 iterations": (Logistic(A[:500, :100], np.sign(b[:500])), 10000),
        "LAD 5000 x 200, 1000 iterations": (LAD(A[:5000, :200].copy(), b[:5000]), 1000),
        "hinge 20000 x 500, 200 iterations": (Hinge(A, np.sign(b)), 200),
        "logistic CSR 15935 x 62061, 100 iterations": (Logistic(sparse, labels), 100),
    }
    for name, (loss, iterations) in cases.items():

        def run(loss=loss, iterations=iterations, **options) -> None:
            minimize(
                loss,
                penalty=L1(0.01),
                eta=0.05,
                max_iter=iterations,
                history=0,
                on_failure="ignore",
                **options,
            )

        times = race(phases=3, gap=lambda: run(stop="gap", tol=0.0), plain=run)
        yield Row(name, times["gap"], "without the gap", times["plain"], must=1.1)


CASES = [overhead]
