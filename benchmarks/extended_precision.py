"""Share of certified default fits on small tables, with and without extended precision.

    python -m benchmarks.extended_precision

The tables are those bundled with scikit-learn, in their own units and standardized.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import datasets

from adagrad_diff import L1, Box, GroupL2, Ridge, losses, minimize
from adagrad_diff.duality import _linear, critical_lam
from adagrad_diff.duality._products import ExtendedMatrix
from adagrad_diff.penalties import Zero
from adagrad_diff.penalties.arrays import sum_rounding

REGRESSION = ("LAD", "Quantile", "Squared", "Huber", "Poisson")
CLASSES = ("Hinge", "SquaredHinge", "Logistic", "Multinomial")
TOLERANCES = (1e-4, 1e-8)
MAX_ITER = 1000
FRACTION = 0.01  # of the critical strength


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield name, data, a numeric target and classes."""
    for name in ("iris", "wine", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name, X[:, 1:], X[:, 0], y
    X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    yield "diabetes", X, y, (y > np.median(y)).astype(int)
    X, Y = datasets.load_linnerud(return_X_y=True)
    yield "linnerud", X, Y[:, 0], (Y[:, 0] > np.median(Y[:, 0])).astype(int)


def problems() -> Iterator[tuple[str, Any, Any]]:
    """Yield a description, a loss and a penalty."""
    for table, X, target, classes in tables():
        for units in ("raw", "standardized"):
            A = X if units == "raw" else (X - X.mean(axis=0)) / X.std(axis=0)
            for kind in REGRESSION + CLASSES:
                if kind in REGRESSION:
                    b = target
                else:
                    b = classes if kind == "Multinomial" else np.where(classes == 1, 1.0, -1.0)
                loss = getattr(losses, kind)(A, b, intercept=True)
                size = (int(np.prod(loss.shape)) // loss.shape[0]) * A.shape[1]
                lam = FRACTION * critical_lam(loss, L1(1.0))
                groups = np.arange(size) // 3
                for penalty in (L1(lam), Ridge(lam), Zero(), GroupL2(lam, groups), Box(-1.0, 1.0)):
                    yield f"{table} {units} {kind} {penalty.name}", loss, penalty


class DoublePrecision(ExtendedMatrix):
    """Products in double precision, with a bound on their rounding errors."""

    def dot(self, x: np.ndarray) -> Any:
        A = self.A.to_dense()
        return A @ x, np.zeros((len(A), x.shape[1])), sum_rounding(len(x)) * (abs(A) @ abs(x))

    def tdot(self, r: np.ndarray, rest: np.ndarray) -> Any:
        A = self.A.to_dense().T
        error = sum_rounding(len(r)) * (abs(A) @ (abs(r) + abs(rest)))
        return A @ (r + rest), np.zeros((len(A), r.shape[1])), error


def main() -> int:
    fits, certified, seconds = Counter[Any](), Counter[Any](), Counter[Any]()
    for name, loss, penalty in problems():
        for tol in TOLERANCES:
            fits[tol] += 1
            for matrix in (ExtendedMatrix, DoublePrecision):
                _linear.ExtendedMatrix = matrix  # type: ignore[misc]
                options = {"tol": tol, "max_iter": MAX_ITER, "on_failure": "ignore"}
                begin = perf_counter()
                with warnings.catch_warnings(action="ignore"):
                    result = minimize(loss, penalty=penalty, **options)
                seconds[tol, matrix] += perf_counter() - begin
                certified[tol, matrix] += bool(result.certified)
                if not result.certified:
                    print(
                        f"{matrix.__name__}, tol={tol:g}, {name}: gap {result.gap:.1e}", flush=True
                    )
    for tol, matrix in certified:
        print(
            f"tol={tol:g}, {matrix.__name__}: {certified[tol, matrix]} of {fits[tol]} certified, "
            f"{seconds[tol, matrix]:.1f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
