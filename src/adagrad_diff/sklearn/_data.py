"""Data as they enter a fit: scikit-learn's checks, and sentences that name what those leave unnamed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    validate_data,
)

from .._check import refuse_masked
from ..linalg import Source, as_source
from ..linalg.as_block import compressed

FLOATS = (np.float64, np.float32)
ROOM = 1e-6  # how much smaller than the largest number a square must be, so that sums and products of some do not overflow
IMPUTE = "remove or impute missing values, for example with SimpleImputer"
ENCODE = "encode it, for example with OneHotEncoder, or drop it"


def validated(
    estimator: Any, X: Any, *, accept_sparse: Any = ("csr", "csc"), **options: Any
) -> Any:
    """X, or (X, y) if y is among the options, as scikit-learn wants them. A column that is wrong is named."""
    if isinstance(X, Source):
        return _validated_source(estimator, X, **options)
    if options.get("reset", True) and _is_plain(X, options.get("y")):
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        return X, np.ascontiguousarray(options["y"])
    refuse_masked(X, "X")
    refuse_masked(options.get("y"), "y")
    if accept_sparse and sparse.issparse(X):
        X = compressed(X, "X")  # invalid indices crash SciPy and scikit-learn
    try:
        return validate_data(estimator, X, accept_sparse=accept_sparse, dtype=FLOATS, **options)
    except (TypeError, ValueError):
        sentence = wrong_column(X) or _wrong_target(options.get("y"))
        if sentence is None:
            raise
    raise ValueError(sentence)


def _is_plain(X: Any, y: Any) -> bool:
    """Whether X and y are just as scikit-learn would leave them, which it takes long to find out: then it need not look."""
    if (
        type(X) is not np.ndarray
        or type(y) is not np.ndarray
        or X.ndim != 2
        or y.shape != X.shape[:1]
        or X.size == 0
    ):
        return False
    if X.dtype not in FLOATS or y.dtype.kind not in "fiub":
        return False
    return all(np.isfinite(end(values)) for values in (X, y) for end in (np.min, np.max))


def _validated_source(
    estimator: Any, X: Source, y: Any = None, y_numeric: bool = False, reset: bool = True
) -> Any:
    """The same for a source of the user's own, whose blocks are looked at one by one."""
    X = as_source(X, "X")
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    if y is None:
        return X
    refuse_masked(y, "y")
    y = _check_y(y, y_numeric=y_numeric, estimator=estimator)
    check_consistent_length(X, y)
    return X, y


def refuse_source(X: Any, owner: str) -> None:
    """Kernels are functions of pairs of samples."""
    if isinstance(X, Source):
        raise ValueError(
            f"{owner} needs all samples at once: give X as an array or a sparse matrix, not as a Source."
        )


def weights_of(sample_weight: Any, X: Any) -> np.ndarray:
    """Sample weights in double precision; ones by default."""
    refuse_masked(sample_weight, "sample_weight")
    if (text := first_text(sample_weight)) is not None:
        raise ValueError(f"sample_weight holds text ({text!r}): give one number >= 0 per sample.")
    return summable(_check_sample_weight(sample_weight, X, dtype=np.float64))


def summable(weight: np.ndarray) -> np.ndarray:
    """Weights whose sum is finite."""
    with np.errstate(over="ignore"):
        total = weight.sum()
    if total == np.inf:
        raise ValueError(
            "The sum of the weights of the samples overflows: divide sample_weight and class_weight by a large number."
        )
    return weight


def refuse_huge(values: Any, name: str, dtype: Any) -> None:
    """Numbers whose squares are infinite can neither be scaled nor fitted."""
    if isinstance(values, Source):
        largest = values.largest()
    else:
        numbers = values.data if sparse.issparse(values) else values
        largest = max(float(numbers.max()), -float(numbers.min())) if numbers.size else 0.0
    if largest > np.sqrt(ROOM * np.finfo(dtype).max):
        raise ValueError(
            f"{name} holds numbers as large as {largest:.1e}, whose squares overflow in {np.dtype(dtype).name}: scale it to "
            "sensible units first."
        )


def products(X: Any, coefficients: np.ndarray) -> np.ndarray:
    """X times columns, as an array."""
    if not isinstance(X, Source):
        return np.asarray(safe_sparse_dot(X, coefficients, dense_output=True))
    dtype = np.result_type(X.dtype, coefficients.dtype)
    X.dot(
        np.ascontiguousarray(coefficients, dtype),
        z := np.empty((X.shape[0], *coefficients.shape[1:]), dtype),
    )
    return z


def _as_array(values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:  # of no shape: somebody else will say so
        return np.empty(0)


def first_text(values: Any) -> Any:
    """The first text among the values, if there is one."""
    array = _as_array(values)
    if array.dtype.kind in "US":
        return array.flat[0].item() if array.size else None
    return (
        next((v for v in array.flat if isinstance(v, str | bytes)), None)
        if array.dtype == object
        else None
    )


def wrong_column(X: Any) -> str | None:
    """A sentence about the first column that is no column of finite numbers."""
    if hasattr(X, "columns"):
        for k, name in enumerate(X.columns):
            column = X.iloc[:, k] if hasattr(X, "iloc") else X[:, k]
            if (sentence := _wrong(name, np.asarray(column))) is not None:
                return sentence
        return None
    if sparse.issparse(X):
        entries = X.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        places = sorted((int(entries.col[k]), int(entries.row[k]), entries.data[k]) for k in bad)
        return _not_finite(*places[0]) if places else None
    array = _as_array(X)
    if array.ndim != 2 or (array.dtype.kind != "f" and first_text(array) is None):
        return None
    sentences = (_wrong(k, column) for k, column in enumerate(array.T))
    return next((sentence for sentence in sentences if sentence is not None), None)


def _wrong(name: Any, values: np.ndarray) -> str | None:
    if values.dtype.kind in "mM":
        return f"Column {name!r} of X holds dates or times: turn it into numbers, or drop it."
    if values.dtype.kind == "f":
        row = _first_not_finite(values)
        return None if row is None else _not_finite(name, row, values[row])
    for row, value in enumerate(values.tolist() if values.dtype.kind in "OUS" else ()):
        try:
            number = float(value)
        except (TypeError, ValueError):
            if type(value).__name__ not in ("NoneType", "NAType", "NaTType"):
                what = "text" if isinstance(value, str | bytes) else type(value).__name__
                return f"Column {name!r} of X holds {what} ({value!r}): {ENCODE}."
            number = np.nan
        if not np.isfinite(number):
            return _not_finite(name, row, number)
    return None


def _first_not_finite(values: np.ndarray) -> int | None:
    finite = np.isfinite(values)
    return None if finite.all() else int(finite.argmin())


def _not_finite(name: Any, row: int, number: float) -> str:
    what = "NaN" if np.isnan(number) else "infinity"
    return f"Input X contains {what}: column {name!r} of X, first in row {row}. Please {IMPUTE}."


def _wrong_target(y: Any) -> str | None:
    """A sentence about the first sample that has no finite target."""
    values = _as_array(y)
    row = _first_not_finite(values) if values.ndim == 1 and values.dtype.kind == "f" else None
    if row is None:
        return None
    what = "NaN" if np.isnan(values[row]) else "infinity"
    return f"Input y contains {what}, first in row {row}: leave out the samples without a target."
