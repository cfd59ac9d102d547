"""A small matrix as a Dask array, in chunks of odd sizes."""

from itertools import pairwise

import dask
import dask.array as da
import numpy as np
from scipy import sparse

CUTS = (16, 1, 23, 20)
CODES = np.arange(60) * 7 % 11


def entries(samples=60, features=5):
    A = np.random.default_rng(0).standard_normal((samples, features))
    A[np.abs(A) < 0.4] = 0.0
    return A


def dense(A, chunks=CUTS):
    return da.from_array(A, chunks=(chunks, (2, A.shape[1] - 2)))


def sparse_rows(A, chunks=CUTS):
    """Chunks in three formats of SciPy's, one after the other."""
    kinds = (sparse.csr_array, sparse.csc_array, sparse.coo_array)
    blocks = [
        da.from_delayed(
            dask.delayed(kinds[k % 3])(A[lo:hi]),
            (hi - lo, A.shape[1]),
            A.dtype,
            meta=sparse.csr_array((0, 0)),
        )
        for k, (lo, hi) in enumerate(pairwise(np.cumsum([0, *chunks])))
    ]
    return da.concatenate(blocks)
