"""Data beyond one machine, or beyond its memory: losses and estimators over Dask collections and arrays on disk.

Each partition is a block of rows. In an iteration x goes to the workers, each block gives its share of the value and of the
gradient for all trajectories at once, and the shares are added up in a fixed order: the same chunks give the same bits,
whatever the number of workers and threads. The metric, the prox and everything else stay here. What workers hold never changes,
so that what is lost with one of them is computed again.

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

from ._losses import (  # noqa: E402
    LAD,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
    source,
)

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
    """Estimators are imported on first use: workers, and who has losses only, need no scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module 'adagrad_diff.dask' has no attribute {name!r}")
    from . import _estimators

    return getattr(_estimators, name)
