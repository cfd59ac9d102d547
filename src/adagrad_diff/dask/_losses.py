"""The losses of linear models by their names, for Dask collections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import losses
from ..linalg import Source
from ._rows import is_collection, parts
from ._source import Partitions
from ._ways import way


def source(A: Any, client: Any = None, persist: bool | None = None, name: str = "A") -> Source:
    """A Dask collection, or an array on disk, as a `Source` that every loss takes.

    Parameters
    ----------
    A : Dask array (N, d), Dask data frame, np.memmap, Zarr or HDF5 array
        Chunks may be arrays or SciPy matrices, of any number of rows, known or not. Columns of a data frame are numbers.
        float32 stays float32, everything else becomes float64.
    client : distributed.Client, optional
        Whose workers do the work. By default the current one; if there is none, threads of this process.
    persist : bool, optional
        Whether blocks are kept in the memory of the workers. By default those of Dask collections are, and arrays on disk are
        read again in each iteration, so that only the few blocks that are being worked on are in memory.
    name : str
        What errors call it.

    Returns
    -------
    Source
        All blocks have been looked at once: an entry that is not finite is an error that names its block.

    Examples
    --------
    >>> import dask.array as da
    >>> from adagrad_diff import L1, Squared, minimize
    >>> from adagrad_diff.dask import source
    >>> A = da.random.default_rng(0).standard_normal((600, 5), chunks=(200, 5))
    >>> loss = Squared(source(A), (A @ [1.0, 0.0, 0.0, 2.0, 0.0]).compute())
    >>> abs(minimize(loss, penalty=L1(0.1), tol=1e-6).x).round(1).tolist()
    [0.9, 0.0, 0.0, 1.9, 0.0]
    """
    if isinstance(A, Source):
        return A
    here = way(client)
    return Partitions(
        parts(A, name), here, is_collection(A) if persist is None else bool(persist), name
    )


def local(values: Any, client: Any = None) -> Any:
    """What belongs to samples, as an array of this process; other than Dask collections are left alone."""
    if not is_collection(values):
        return values
    return np.asanyarray(
        way(client).compute(values)
    )  # with its mask, if it has one: that is refused as it is in memory


def _over(kind: Any) -> Callable[..., Any]:
    """What makes such a loss of collections."""

    def make(
        A: Any,
        b: Any,
        *args: Any,
        sample_weight: Any = None,
        client: Any = None,
        persist: Any = None,
        **options: Any,
    ) -> Any:
        A = source(A, client, persist)
        return kind(
            A, local(b, client), *args, sample_weight=local(sample_weight, client), **options
        )

    make.__name__ = make.__qualname__ = kind.__name__
    make.__doc__ = f"""`adagrad_diff.{kind.__name__}` of Dask collections.

    Parameters
    ----------
    A, client, persist
        As for `adagrad_diff.dask.source`.
    b, sample_weight : array (N,), Dask array or series
        They are brought here, N numbers each, and those of a block are left beside it.
    *args, **options
        The other parameters of `adagrad_diff.{kind.__name__}`.

    Returns
    -------
    {kind.__name__}
        An ordinary loss, for `minimize`, `sweep` and all others.
    """
    return make


LAD, Quantile, Squared, Huber = map(
    _over, (losses.LAD, losses.Quantile, losses.Squared, losses.Huber)
)
Logistic, Hinge, SquaredHinge = map(_over, (losses.Logistic, losses.Hinge, losses.SquaredHinge))
Multinomial, Poisson = map(_over, (losses.Multinomial, losses.Poisson))
