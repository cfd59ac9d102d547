"""The estimators of `adagrad_diff.sklearn`, for Dask collections."""

from __future__ import annotations

from typing import Any, Self

import dask
import dask.array
import numpy as np
from sklearn.utils.metaestimators import available_if

from .. import sklearn
from ._rows import is_collection, is_frame, is_stored, stored_array
from ._source import Partitions, local, source


class Predictions:
    """Predictions, in the place of the samples that they belong to."""

    def __init__(self, values: np.ndarray):
        self.values = values


def _lazy_method(name: str) -> Any:
    """Return a method that gives Dask arrays for Dask collections."""

    def call(self: Any, X: Any) -> Any:
        if isinstance(X, Predictions):
            return X.values
        return (
            _lazily(self, name, X) if _is_lazy(X) else getattr(super(OnCollections, self), name)(X)
        )

    call.__name__ = name
    call.__doc__ = f"Return `{name}`, for a Dask collection as a Dask array with its chunks."
    return available_if(lambda self: hasattr(super(OnCollections, self), name))(call)


class OnCollections:
    """Estimators whose `fit` reads Dask collections where they are.

    Predictions for a Dask collection are a Dask array that is not computed yet.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or data frame, array on disk or Source (n_samples, n_features)
            As for `adagrad_diff.dask.source`, by the current client if there is one. Ordinary
            arrays are accepted as well.
        y, sample_weight : array or Dask array (n_samples,)
            They are brought to this process.

        Returns
        -------
        self
        """
        rows = source(X, name="X") if _is_lazy(X) or isinstance(X, np.memmap) else X
        super().fit(rows, local(y), local(sample_weight))  # type: ignore[misc]
        names = rows.columns if isinstance(rows, Partitions) else None
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=np.object_)
        return self

    predict = _lazy_method("predict")
    decision_function = _lazy_method("decision_function")
    predict_proba = _lazy_method("predict_proba")
    predict_log_proba = _lazy_method("predict_log_proba")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score as a number. Predictions and y are brought to this process."""
        X = Predictions(local(self.predict(X))) if _is_lazy(X) else X
        return float(super().score(X, local(y), local(sample_weight)))  # type: ignore[misc]


def _is_lazy(X: Any) -> bool:
    """Return whether predictions for X are a Dask array."""
    return is_collection(X) or is_stored(X)


def _lazily(model: Any, method: str, X: Any) -> Any:
    """Return what a method returns for each block, as a Dask array that is not computed yet."""
    X = stored_array(X, "X") if is_stored(X) else X
    if not is_frame(X) and X.ndim != 2:
        raise ValueError(
            f"X must be a Dask array (samples, features). Got shape {X.shape} instead."
        )
    first = X._meta_nonempty.iloc[:1] if is_frame(X) else np.zeros((1, X.shape[1]), X.dtype)
    like = getattr(model, method)(first)
    call = model, method, like[:0]
    if is_frame(X):
        shape, dtype = (np.nan, *like.shape[1:]), like.dtype
        delayed = (dask.delayed(_of_block)(part, *call) for part in X.to_delayed())
        blocks = [dask.array.from_delayed(block, shape, dtype) for block in delayed]
        return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)
    X = X.rechunk({1: -1})
    chunks = (X.chunks[0], *((size,) for size in like.shape[1:]))
    dropped = 1 if like.ndim == 1 else None
    return X.map_blocks(
        _of_block, *call, dtype=like.dtype, drop_axis=dropped, chunks=chunks, meta=like[:0]
    )


def _of_block(rows: Any, model: Any, method: str, empty: np.ndarray) -> np.ndarray:
    """Return predictions for a block. scikit-learn does not accept blocks without rows."""
    return np.asarray(getattr(model, method)(rows)) if rows.shape[0] else empty


class LinearRegressor(OnCollections, sklearn.LinearRegressor):
    __doc__ = sklearn.LinearRegressor.__doc__


class LADRegressor(OnCollections, sklearn.LADRegressor):
    __doc__ = sklearn.LADRegressor.__doc__


class HuberRegressor(OnCollections, sklearn.HuberRegressor):
    __doc__ = sklearn.HuberRegressor.__doc__


class QuantileRegressor(OnCollections, sklearn.QuantileRegressor):
    __doc__ = sklearn.QuantileRegressor.__doc__


class PoissonRegressor(OnCollections, sklearn.PoissonRegressor):
    __doc__ = sklearn.PoissonRegressor.__doc__


class Lasso(OnCollections, sklearn.Lasso):
    __doc__ = sklearn.Lasso.__doc__


class ElasticNet(OnCollections, sklearn.ElasticNet):
    __doc__ = sklearn.ElasticNet.__doc__


class GroupLasso(OnCollections, sklearn.GroupLasso):
    __doc__ = sklearn.GroupLasso.__doc__


class LinearClassifier(OnCollections, sklearn.LinearClassifier):
    __doc__ = sklearn.LinearClassifier.__doc__


class LogisticRegression(OnCollections, sklearn.LogisticRegression):
    __doc__ = sklearn.LogisticRegression.__doc__


class SparseSVC(OnCollections, sklearn.SparseSVC):
    __doc__ = sklearn.SparseSVC.__doc__


class LinearSVC(OnCollections, sklearn.LinearSVC):
    __doc__ = sklearn.LinearSVC.__doc__
