"""Losses and estimators for data that exceed one machine, or its memory: Dask and arrays on disk.

Each partition is a block of rows. In an iteration x goes to the workers, each block gives its share
of the value and of the gradient for all trajectories, and the shares are added in a fixed order:
the same chunks give the same bits, whatever the number of workers and threads. The metric, the prox
and everything else stay in this process. What workers hold never changes, so whatever is lost with
one of them is computed again.

>>> import dask.array as da
>>> from adagrad_diff import L1, minimize
>>> from adagrad_diff.dask import LAD
>>> A = da.random.default_rng(0).standard_normal((900, 4), chunks=(300, 4))
>>> b = A[:, 0] - 2 * A[:, 2] + 0.1 * da.random.default_rng(1).standard_cauchy(900, chunks=300)
>>> result = minimize(LAD(A, b), penalty=L1(0.01), tol=1e-6)
>>> abs(result.x).round(1).tolist(), bool(result.gap <= 1e-6 * result.fun)
([1.0, 0.0, 2.0, 0.0], True)
"""

from typing import TYPE_CHECKING, Any

from .._messages import require

require("dask.array", "dask")

from .. import losses  # noqa: E402
from ._source import for_collections, source  # noqa: E402

if TYPE_CHECKING:
    from ._estimators import (
        ElasticNet,
        GroupLasso,
        HuberRegressor,
        LADRegressor,
        Lasso,
        LinearClassifier,
        LinearRegressor,
        LinearSVC,
        LogisticRegression,
        PoissonRegressor,
        QuantileRegressor,
        SparseSVC,
    )

LAD, Quantile, Huber = map(for_collections, (losses.LAD, losses.Quantile, losses.Huber))
Hinge, SquaredHinge = map(for_collections, (losses.Hinge, losses.SquaredHinge))
Logistic, Multinomial = map(for_collections, (losses.Logistic, losses.Multinomial))
Squared, Poisson = map(for_collections, (losses.Squared, losses.Poisson))

__all__ = [
    "LAD",
    "ElasticNet",
    "GroupLasso",
    "Hinge",
    "Huber",
    "HuberRegressor",
    "LADRegressor",
    "Lasso",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "Logistic",
    "LogisticRegression",
    "Multinomial",
    "Poisson",
    "PoissonRegressor",
    "Quantile",
    "QuantileRegressor",
    "SparseSVC",
    "Squared",
    "SquaredHinge",
    "source",
]


def __getattr__(name: str) -> Any:
    """Import estimators on first use: workers, and users of losses, need no scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module 'adagrad_diff.dask' has no attribute {name!r}")
    from . import _estimators

    return getattr(_estimators, name)
