"""Kernel matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from .. import _check


def choose_gamma(gamma: Any, X: Any, weight: np.ndarray) -> float:
    """The number behind "scale" and "auto"; the variance is that of the weighted samples."""
    if not (isinstance(gamma, str) and gamma in ("scale", "auto")):
        try:
            return _check.nonnegative(gamma, "gamma", "KernelSVC")
        except ValueError:
            raise ValueError(
                f"The 'gamma' parameter of KernelSVC must be 'scale', 'auto' or a number >= 0. Got {gamma!r} instead."
            ) from None
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    mean = float(np.average(np.ravel(X.mean(axis=1, dtype=np.float64)), weights=weight))
    if sparse.issparse(X):
        square = float(
            np.average(np.ravel(X.multiply(X).mean(axis=1, dtype=np.float64)), weights=weight)
        )
        variance = square - mean**2
    else:  # far from zero, the difference of two squares would be rounding
        variance = float(
            np.average(np.square(X - mean, dtype=np.float64).mean(axis=1), weights=weight)
        )
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def kernel_matrix(kernel: Any, X: Any, Y: Any, **options: Any) -> np.ndarray:
    """The kernel of all pairs of rows, in the precision of X."""
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    if isinstance(kernel, str) and kernel == "rbf" and not sparse.issparse(X):
        center = Y.mean(
            axis=0, dtype=np.float64
        )  # distances are differences of squares, which are rounding far from zero
        X, Y = ((A - center).astype(dtype, copy=False) for A in (X, Y))
    K = (
        kernel(X, Y)
        if callable(kernel)
        else pairwise_kernels(X, Y, metric=kernel, filter_params=True, **options)
    )
    K = K.toarray() if sparse.issparse(K) else np.asarray(K)
    if K.shape != (X.shape[0], Y.shape[0]):
        raise ValueError(
            f"The kernel must return a matrix of shape {(X.shape[0], Y.shape[0])}. Got shape {K.shape} instead."
        )
    return np.ascontiguousarray(K, dtype=dtype)
