"""Validation of the data that users pass to `fit` and `predict`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular
from sklearn.utils._missing import is_pandas_na
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    validate_data,
)

from .. import _check
from ..linalg import Source, as_source
from ..linalg.as_block import compressed

EXAMINED_SAMPLES = 2000  # in a search for dependent columns, which takes up to a second
DEPENDENT = 1e-6  # relative distance of a column from the span of others at which solvers stall
SMALL_COEFFICIENT = 0.01  # relative size of coefficients that do not belong to a dependence
FLOATS = (np.float64, np.float32)
# Largest square, as a share of the largest number, such that sums and products of squares are finite.
OVERFLOW_MARGIN = 1e-6
#: Beginnings of the names of types for dates, times and durations in NumPy, pandas, Arrow and polars.
TIME_TYPES = ("date", "time", "duration", "period")


def validated(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    numeric: bool = False,
    reset: bool = True,
    accept_sparse: Any = ("csr", "csc"),
) -> Any:
    """Return X, or (X, y) unless y is "no_validation", as scikit-learn wants them.

    With `numeric`, y holds numbers. With `reset`, the data are those of a fit: their size is stored,
    and numbers whose squares overflow are an error.
    """
    with_y = not (isinstance(y, str) and y == "no_validation")
    if numeric:
        y = _numbers(y, type(estimator).__name__)
    if isinstance(X, Source):
        data = _validated_source(estimator, X, y if with_y else None, numeric, reset)
    elif reset and _is_clean(X, y):  # skip checks that take longer than many fits
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        data = X, np.ascontiguousarray(y)
    else:
        _refuse_types(X)
        for values, name in ((X, "X"), (y, "y")):
            _check.refuse_masked(values, name)
        if accept_sparse and sparse.issparse(X):
            X = compressed(X, "X")  # invalid indices crash SciPy and scikit-learn
        options = {"y": y, "y_numeric": numeric} if with_y else {}
        try:
            data = validate_data(
                estimator, X, accept_sparse=accept_sparse, dtype=FLOATS, reset=reset, **options
            )
        except (TypeError, ValueError) as error:
            if (reason := _wrong_column(X)) is None:
                raise
            raise ValueError(reason) from error
    if not with_y:
        return data
    X, y = data
    if reset:
        _refuse_huge(X, "X", X.dtype)
        if numeric:
            _refuse_huge(y, "y", X.dtype)
    return X, y


def weights_of(sample_weight: Any, X: Any) -> np.ndarray:
    """Return sample weights in double precision; ones by default."""
    _check.refuse_masked(sample_weight, "sample_weight")
    return np.asarray(
        _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    )


def refuse_source(X: Any, owner: str) -> None:
    """Raise if X is a Source."""
    if isinstance(X, Source):
        raise ValueError(
            f"{owner} needs all samples in memory: give X as an array or a sparse matrix, not as a "
            "Source."
        )


def products(X: Any, coefficients: np.ndarray) -> np.ndarray:
    """Return X times columns as an array."""
    if not isinstance(X, Source):
        return np.asarray(safe_sparse_dot(X, coefficients, dense_output=True))
    dtype = np.result_type(X.dtype, coefficients.dtype)
    z = np.empty((X.shape[0], *coefficients.shape[1:]), dtype)
    X.dot(np.ascontiguousarray(coefficients, dtype), z)
    return z


def dependent_columns(A: Source, centered: bool, names: Any) -> str:
    """Return a sentence that names columns which are nearly linear combinations of others.

    Return "" if there are none. Only some of the samples are examined.
    """
    samples, features = A.shape
    index = np.unique(np.linspace(0, samples - 1, EXAMINED_SAMPLES, dtype=int))
    if A.opaque or not 1 < features <= EXAMINED_SAMPLES // 2 or len(index) <= features + 1:
        return ""
    rows = A.rows(index).to_dense().astype(np.float64)
    rows = rows - rows.mean(axis=0) if centered else rows
    norms = np.linalg.norm(rows, axis=0)
    R, order = qr(rows / np.where(norms > 0, norms, 1.0), mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > DEPENDENT).sum())
    if rank == features or norms[order[rank]] == 0:
        return ""
    combination = np.abs(solve_triangular(R[:rank, :rank], R[:rank, rank]))
    others = order[:rank][combination > combination.max() * SMALL_COEFFICIENT]
    group = ", ".join(repr(names[k]) for k in sorted([*others.tolist(), int(order[rank])]))
    return (
        f" Columns {group} of X are nearly linearly dependent, so coefficients are hardly "
        "determined: drop one of these columns, or add a penalty."
    )


# ------------------------------------------------------------------------------ checks


def _is_clean(X: Any, y: Any) -> bool:
    """Return whether X and y are exactly what scikit-learn's checks would return."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray:
        return False
    if X.ndim != 2 or y.shape != X.shape[:1] or not X.size:
        return False
    if X.dtype not in FLOATS or y.dtype.kind not in "fiub":
        return False
    return bool(np.isfinite([X.min(), X.max(), y.min(), y.max()]).all())


def _validated_source(estimator: Any, X: Source, y: Any, numeric: bool, reset: bool) -> Any:
    """Return a Source, and y, checked."""
    X = as_source(X, "X")
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    if y is None:
        return X
    _check.refuse_masked(y, "y")
    y = _check_y(y, y_numeric=numeric, estimator=estimator)
    check_consistent_length(X, y)
    return X, y


def _numbers(y: Any, owner: str) -> Any:
    """Return targets, as numbers if they are objects or text."""
    if y is None:
        return y
    _check.refuse_masked(y, "y")
    array = np.asarray(y)
    try:
        return array.astype(np.float64) if array.dtype.kind in "OUS" else y
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold numbers, because {owner} predicts numbers: {error}. If y holds classes, use "
            "a classifier such as LogisticRegression."
        ) from error


def _refuse_huge(values: Any, name: str, dtype: Any) -> None:
    """Raise if squares of some values overflow. Such data can neither be scaled nor fitted."""
    if isinstance(values, Source):
        largest = values.largest()
    else:
        numbers = values.data if sparse.issparse(values) else values
        largest = max(float(numbers.max()), -float(numbers.min())) if numbers.size else 0.0
    if largest > np.sqrt(OVERFLOW_MARGIN * np.finfo(dtype).max):
        raise ValueError(
            f"{name} holds numbers as large as {largest:.1e}, whose squares overflow in "
            f"{np.dtype(dtype).name}: scale it to sensible units first."
        )


def _refuse_types(X: Any) -> None:
    """Raise for dates, which NumPy would convert to nanoseconds, and for data that are not loaded."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a polars LazyFrame, which holds no data: pass X.collect() instead.")
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        columns = zip(X.columns, X.dtypes, strict=True)
    else:
        columns = zip(["all"], [getattr(X, "dtype", "")], strict=True)
    for name, kind in columns:
        if str(kind).lower().startswith(TIME_TYPES):
            raise ValueError(
                f"Column {name!r} of X holds dates or times ({kind}): convert it to numbers, such "
                "as days since a date, or drop it."
            )


def _wrong_column(X: Any) -> str | None:
    """Return a sentence about the first column that does not hold finite numbers, if there is one."""
    if sparse.issparse(X) or np.ndim(X) != 2:
        return None
    frame = X if hasattr(X, "columns") else np.asarray(X)
    for k, name in enumerate(getattr(frame, "columns", range(frame.shape[1]))):
        values = np.asarray(frame.iloc[:, k] if hasattr(frame, "iloc") else frame[:, k])
        numeric = values.dtype.kind not in "OSU"
        if numeric and (values.dtype.kind != "f" or np.isfinite(values).all()):
            continue
        for row, value in enumerate(values.tolist()):
            try:
                number = float(np.nan if value is None or is_pandas_na(value) else value)
            except (TypeError, ValueError):
                if not isinstance(value, str | bytes):
                    return None
                return (
                    f"Column {name!r} of X holds text ({value!r}): encode it, for example with "
                    "OneHotEncoder, or drop it."
                )
            if not np.isfinite(number):
                what = "NaN" if np.isnan(number) else "infinity"
                return (
                    f"Input X contains {what}: column {name!r} of X, first in row {row}. Please "
                    "remove or impute missing values, for example with SimpleImputer."
                )
    return None
