"""The estimators of `adagrad_diff.sklearn`, for Dask collections."""

from __future__ import annotations

from typing import Any, Self

import dask
import dask.array
import numpy as np
from sklearn.utils.metaestimators import available_if

from .. import sklearn
from ._losses import local, source
from ._rows import cut, is_collection, is_frame, is_stored
from ._source import Partitions


class Answers:
    """Predictions that are there already, in the place of the samples that they are for."""

    def __init__(self, values: np.ndarray):
        self.values = values


class OnCollections:
    """fit reads Dask arrays and data frames where they are; what is predicted for them is a Dask array, not computed yet."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or data frame, array on disk or Source (n_samples, n_features)
            As for `adagrad_diff.dask.source`, by the current client if there is one. Ordinary arrays are taken, too.
        y, sample_weight : array or Dask array (n_samples,)
            They are brought here.

        Returns
        -------
        self
        """
        rows = source(X, name="X") if is_lazy(X) or isinstance(X, np.memmap) else X
        super().fit(rows, local(y), local(sample_weight))  # type: ignore[misc]
        names = rows.columns if isinstance(rows, Partitions) else None
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=np.object_)
        return self

    def predict(self, X: Any) -> Any:
        """As that of `adagrad_diff.sklearn`; for a Dask collection a Dask array with its chunks."""
        if isinstance(X, Answers):
            return X.values
        return lazily(self, "predict", X) if is_lazy(X) else super().predict(X)  # type: ignore[misc]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """As that of `adagrad_diff.sklearn`: a number, computed at once. Predictions and y are brought here."""
        X = Answers(local(self.predict(X))) if is_lazy(X) else X
        return float(super().score(X, local(y), local(sample_weight)))  # type: ignore[misc]


def _has_probabilities(model: Any) -> bool:
    return hasattr(super(ClassesOnCollections, model), "predict_proba")


class ClassesOnCollections(OnCollections):
    """The same for classifiers."""

    def decision_function(self, X: Any) -> Any:
        """As that of `adagrad_diff.sklearn`; for a Dask collection a Dask array."""
        return lazily(self, "decision_function", X) if is_lazy(X) else super().decision_function(X)  # type: ignore[misc]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """As that of `adagrad_diff.sklearn`; for a Dask collection a Dask array."""
        return lazily(self, "predict_proba", X) if is_lazy(X) else super().predict_proba(X)  # type: ignore[misc]

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`."""
        return lazily(self, "predict_log_proba", X) if is_lazy(X) else super().predict_log_proba(X)  # type: ignore[misc]


def is_lazy(X: Any) -> bool:
    """Whether what is said of it is a Dask array."""
    return is_collection(X) or is_stored(X)


def lazily(model: Any, method: str, X: Any) -> Any:
    """What a method says of each block, as a Dask array that is not computed yet."""
    X = cut(X, "X") if is_stored(X) else X
    frame = is_frame(X)
    if not frame and X.ndim != 2:
        raise ValueError(
            f"X must be a Dask array (samples, features). Got shape {X.shape} instead."
        )
    first = X._meta_nonempty.iloc[:1] if frame else np.zeros((1, X.shape[1]), X.dtype)
    like = getattr(model, method)(first)
    call = model, method, like[:0]
    if frame:
        blocks = [
            dask.array.from_delayed(
                dask.delayed(_of_block)(part, *call), (np.nan, *like.shape[1:]), like.dtype
            )
            for part in X.to_delayed()
        ]
        return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)
    X = X.rechunk({1: -1})
    chunks = (X.chunks[0], *((size,) for size in like.shape[1:]))
    dropped = 1 if like.ndim == 1 else None
    return X.map_blocks(
        _of_block, *call, dtype=like.dtype, drop_axis=dropped, chunks=chunks, meta=like[:0]
    )


def _of_block(rows: Any, model: Any, method: str, none: np.ndarray) -> np.ndarray:
    """Of a partition without rows, which scikit-learn would refuse, there is nothing to say."""
    return np.asarray(getattr(model, method)(rows)) if rows.shape[0] else none


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


class LinearClassifier(ClassesOnCollections, sklearn.LinearClassifier):
    __doc__ = sklearn.LinearClassifier.__doc__


class LogisticRegression(ClassesOnCollections, sklearn.LogisticRegression):
    __doc__ = sklearn.LogisticRegression.__doc__


class SparseSVC(ClassesOnCollections, sklearn.SparseSVC):
    __doc__ = sklearn.SparseSVC.__doc__


class LinearSVC(ClassesOnCollections, sklearn.LinearSVC):
    __doc__ = sklearn.LinearSVC.__doc__
