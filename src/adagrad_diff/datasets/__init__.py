"""The LIBSVM data sets of the paper and a few more, always checked.

`load(name)` looks for the file in a directory you name (the argument, else the environment variable
ADAGRAD_DIFF_DATA), then inside the package (splice and splice.t), in the cache, and on the LIBSVM
page. `load(name, stand_in=True)` generates data of the same shape and kind if all of them fail, and
the name of what it returns says so. splice and splice.t need NumPy only. Reading the others needs
scikit-learn.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._messages import require, warn
from ._files import cache, fetch, find, unavailable, verified, where
from ._registry import REGISTRY, DataError, DataWarning, Unavailable, entry_of

__all__ = [
    "DataError",
    "DataWarning",
    "Dataset",
    "Unavailable",
    "cache",
    "fetch",
    "load",
    "names",
    "shape",
    "stand_in",
    "where",
]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data matrix and its labels; `A, b = load(name)` takes the two out.

    Attributes
    ----------
    A : ndarray or csr_array, float64
        One row per sample; dense for splice, splice.t and heart_scale.
    b : ndarray, float64
        The labels, as in the file.
    name : str
        For figures and tables: "splice.t", or "stand-in for splice.t".
    source : str
        "directory", "package", "cache", "download" or "stand-in".
    sha256 : str or None
        Of LIBSVM's file; None for a stand-in.
    """

    A: Any
    b: np.ndarray
    name: str
    source: str
    sha256: str | None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.A, self.b))

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {self.A.shape[0]} x {self.A.shape[1]}, source={self.source!r})"
        )


def names() -> list[str]:
    """Return the names of the data sets.

    Examples
    --------
    >>> names()
    ['splice.t', 'splice', 'news20', 'a9a', 'mushrooms', 'heart_scale']
    """
    return list(REGISTRY)


def shape(name: str) -> tuple[int, int]:
    """Return the numbers of rows and features of a data set.

    Examples
    --------
    >>> shape("news20")
    (15935, 62061)
    """
    return entry_of(name, "shape").shape


def load(
    name: str,
    directory: str | os.PathLike[str] | None = None,
    *,
    stand_in: bool = False,
    download: bool = True,
) -> Dataset:
    """Read a data set of the LIBSVM collection, or generate one like it.

    Parameters
    ----------
    name : str
        One of `names()`.
    directory : path, optional
        Where to look first; by default the directory that the environment variable
        ADAGRAD_DIFF_DATA names, if it is set. It must exist, but need not hold the file. Files in
        it are only read.
    stand_in : bool
        If the file is neither there, nor inside the package, nor in the cache, nor can be
        downloaded, return generated data of the same shape and kind, named "stand-in for ...".
    download : bool
        Whether the file may be downloaded from the LIBSVM page (into the cache).

    Returns
    -------
    Dataset
        With `A, b = load(name)` its data matrix and its labels.

    Raises
    ------
    DataError
        If a file is not the one of the LIBSVM page (its SHA-256 is compared), or if there is none.

    Examples
    --------
    >>> data = load("splice.t")
    >>> data
    Dataset('splice.t', 2175 x 60, source='package')
    >>> A, b = data
    >>> A[0, :8].astype(int).tolist(), b[0]
    ([3, 3, 1, 2, 3, 4, 4, 3], np.float64(-1.0))
    """
    entry = entry_of(name, "load")
    path, source = find(entry, directory)
    try:
        if path is None and not download:
            raise unavailable(entry, "download=False forbids it")
        path = path or fetch(name)
    except DataError as error:
        if not stand_in:
            raise
        if not isinstance(error, Unavailable):
            warn(f"{error} A stand-in is used.", DataWarning)
        return _stand_in(name)
    content = verified(path, entry)
    if source == "package":  # every row has all features
        numbers = np.fromstring(content.replace(b":", b" "), sep=" ").reshape(entry.shape[0], -1)
        A, b = np.ascontiguousarray(numbers[:, 2::2]), numbers[:, 0].copy()
    else:
        A, b = read_libsvm(path, entry.shape[1])
        A = A.toarray() if entry.dense else A
    return Dataset(A, b, name, source, entry.sha256)


def read_libsvm(file: Any, features: int | None = None) -> tuple[Any, np.ndarray]:
    """Return the matrix and the labels of a file in LIBSVM's format."""
    reader = require("sklearn.datasets", "sklearn")
    from scipy.sparse import csr_array

    A, b = reader.load_svmlight_file(file, n_features=features)
    # 32-bit indices: less memory to read in every product
    indices, starts = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return csr_array((A.data, indices, starts), shape=A.shape), b


def stand_in(name: str) -> Dataset:
    """Return generated data of the shape and kind of a data set, always the same.

    Examples
    --------
    >>> stand_in("a9a")
    Dataset('stand-in for a9a', 32561 x 123, source='stand-in')
    """
    from .stand_ins import generate

    entry_of(name, "stand_in")
    return Dataset(*generate(name), f"stand-in for {name}", "stand-in", None)


_stand_in = stand_in  # for `load`, which has a parameter of that name
