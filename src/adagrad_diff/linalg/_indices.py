"""The indices of sparse matrices, looked at once where the data enter: the kernels believe them.

SciPy's own `check_format(full_check=True)` does the same, but changes the matrix it looks at.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def check_indices(A: Any, name: str) -> None:
    """Raise if the arrays of a SciPy matrix in CSR, CSC, BSR, COO or DIA do not describe one of its shape."""
    try:
        if A.format == "dia":
            if A.data.ndim != 2 or A.offsets.shape != A.data.shape[:1]:
                raise ValueError(
                    f"offsets has shape {A.offsets.shape}, but data has shape {A.data.shape}"
                )
        elif A.format == "coo":
            for axis, index in enumerate(A.coords):
                if np.shape(index) != A.data.shape:
                    raise ValueError(
                        f"coords[{axis}] has shape {np.shape(index)}, but data has shape {A.data.shape}"
                    )
                _check_range(np.asarray(index), A.shape[axis], f"coords[{axis}]")
        elif A.format in ("csr", "csc", "bsr"):
            _check_compressed(A)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid {A.format.upper()} matrix: {error}.") from None


def _check_compressed(A: Any) -> None:
    lines, width = A.shape[::-1] if A.format == "csc" else A.shape
    if A.format == "bsr":
        lines, width = lines // A.blocksize[0], width // A.blocksize[1]
    indptr, indices, data = A.indptr, A.indices, A.data
    if indptr.shape != (lines + 1,):
        raise ValueError(f"indptr has shape {indptr.shape}, not ({lines + 1},)")
    _check_integers(indptr, "indptr")
    if indices.ndim != 1 or data.ndim != (3 if A.format == "bsr" else 1):
        word, array = ("indices", indices) if indices.ndim != 1 else ("data", data)
        raise ValueError(f"{word} has shape {array.shape}")
    if indptr[0] != 0:
        raise ValueError(f"indptr begins with {indptr[0]}, not with 0")
    back = indptr[1:] < indptr[:-1]
    if back.any():
        j = int(np.argmax(back))
        raise ValueError(f"indptr[{j + 1}] is {indptr[j + 1]}, less than the number before it")
    if indptr[-1] > (stored := min(len(indices), len(data))):
        raise ValueError(f"indptr ends with {indptr[-1]}, but there are {stored} entries")
    if len(indices) != len(data):
        raise ValueError(f"there are {len(indices)} indices, but {len(data)} entries of data")
    _check_range(indices[: indptr[-1]], width, "indices")


def _check_integers(array: np.ndarray, word: str) -> None:
    if array.dtype.kind not in "iu":
        raise ValueError(f"{word} must be integers. Got dtype {array.dtype} instead")


def _check_range(index: np.ndarray, size: int, word: str) -> None:
    _check_integers(index, word)
    if index.size and (index.min() < 0 or index.max() >= size):
        j = int(np.argmax((index < 0) | (index >= size)))
        raise ValueError(f"{word}[{j}] is {index[j]}, which is not between 0 and {size - 1}")


def as_index(array: np.ndarray) -> np.ndarray:
    """Indices in a form the kernels are compiled for."""
    return (
        array
        if array.dtype in (np.int32, np.int64) and array.dtype.isnative
        else array.astype(np.int64)
    )
