"""What users hand over as A, as a graph with one task per block of rows: an array, a data frame, or a file that is mapped."""

from __future__ import annotations

import os
from typing import Any
from uuid import uuid4

import dask
import dask.array
import numpy as np

from .. import _check
from ..linalg import Block
from ..linalg.as_block import compressed, own_block

READ_TOGETHER, MAPPED_TOGETHER = (
    "32MiB",
    "128MiB",
)  # of an array on disk that was not cut by anybody else


class Parts:
    """The blocks of rows of a collection: tasks, or their names in a graph, for lists of arrays to be put side by side."""

    def __init__(
        self,
        graph: dict[Any, Any],
        keys: list[list[Any]],
        dtype: Any,
        token: str,
        columns: Any = None,
        origin: Any = None,
    ):
        self.graph, self.keys, self.token = graph, keys, token
        self.origin = origin  # as long as it lives, so do its futures
        self.dtype = np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)
        self.columns = columns  # names, if there are some


def is_collection(value: Any) -> bool:
    """Whether it is one of Dask's."""
    return bool(dask.is_dask_collection(value))


def is_frame(value: Any) -> bool:
    """Whether it is a Dask data frame."""
    return is_collection(value) and type(value).__name__ == "DataFrame"


def parts(A: Any, name: str) -> Parts:
    """Of a Dask array or data frame, or an array on disk: np.memmap, Zarr, HDF5, or whatever is cut by A[lo:hi]."""
    if isinstance(A, np.memmap):
        return _mapped(A, name)
    if not is_collection(A):
        A = cut(A, name)
    if is_frame(A):
        return _of_frame(A, name)
    if not isinstance(A, dask.array.Array) or A.ndim != 2:
        raise ValueError(
            f"{name} must be a Dask array (samples, features) or a Dask data frame. Got {type(A).__name__}"
            f"{f' of shape {A.shape}' if isinstance(A, dask.array.Array) else ''} instead."
        )
    if A.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers. Got dtype {A.dtype} instead.")
    keys, plain = A.__dask_keys__(), A.__dask_graph__()
    graph = dict(A.__dask_optimize__(plain, keys))
    graph |= {
        key: plain[key] for row in keys for key in row if key not in graph
    }  # futures: they are there already
    return Parts(graph, keys, A.dtype, A.name, origin=A)


def _of_frame(frame: Any, name: str) -> Parts:
    kinds = frame.dtypes
    for column, kind in kinds.items():
        if getattr(kind, "kind", "O") not in "fiub":
            raise ValueError(
                f"Column {column!r} of {name} is of type {kind}: encode it as numbers, or drop it."
            )
    frame = frame.optimize()  # dask.optimize forgets which rows were chosen (2026.8)
    dtype = (
        np.float32
        if all(getattr(kind, "itemsize", 8) == 4 and kind.kind == "f" for kind in kinds)
        else np.float64
    )
    keys, columns = [[key] for key in frame.__dask_keys__()], np.asarray(kinds.index)
    return Parts(
        dict(frame.__dask_graph__()), keys, dtype, str(keys[0][0][0]), columns, origin=frame
    )


def is_stored(value: Any) -> bool:
    """Whether it is an array on disk that is read by A[lo:hi], such as those of Zarr and HDF5, and knows how it is cut."""
    return hasattr(value, "chunks") and hasattr(value, "dtype") and not is_collection(value)


def cut(A: Any, name: str) -> Any:
    """An array on disk as a Dask array, whose chunks are whole ones of its own."""
    shape = getattr(A, "shape", None)
    if (
        shape is None
        or len(shape) != 2
        or not hasattr(A, "dtype")
        or not hasattr(A, "__getitem__")
        or 0 in shape
    ):
        raise ValueError(
            f"{name} must be a Dask array (samples, features), a Dask data frame, or an array on disk. "
            f"Got {type(A).__name__}{'' if shape is None else f' of shape {tuple(shape)}'} instead."
        )
    with dask.config.set({"array.chunk-size": READ_TOGETHER}):
        return dask.array.from_array(A, chunks={0: "auto", 1: -1}, name=_name(A))


def _name(A: Any) -> Any:
    """The same for the same array on disk, without reading it; None if Dask finds one, False for one that nobody has."""
    if hasattr(A, "store"):
        return None
    file = getattr(getattr(A, "file", None), "filename", None)
    if file is None or not os.path.isfile(file):
        return False
    known = (os.path.abspath(file), os.path.getmtime(file), A.name, A.shape, str(A.dtype))
    return f"stored-{dask.base.tokenize(known)}"


# ------------------------------------------------------------ a file that is mapped


def _mapped(A: np.memmap, name: str) -> Parts:
    """Each task maps its own rows: what is sent to another process is where they are, not what they are."""
    if A.ndim != 2 or A.size == 0:
        raise ValueError(
            f"{name} must be a matrix (samples, features) that is not empty. Got shape {A.shape} instead."
        )
    base, file = _base(A), str(getattr(A, "filename", None) or "")
    start = A.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    rows = max(1, dask.utils.parse_bytes(MAPPED_TOGETHER) // (A.shape[1] * A.dtype.itemsize))
    on_disk = (
        bool(file) and base.mode != "c"
    )  # what is changed in a copy on write is not in the file
    known = (
        (file, os.path.getmtime(file), start, A.shape, A.strides, A.dtype.str)
        if on_disk
        else uuid4().hex
    )
    token = f"mapped-{dask.base.tokenize(known)}"  # of A itself it would be made of all its entries
    tasks: list[list[Any]] = []
    for lo in range(0, A.shape[0], rows):
        shape = (min(rows, A.shape[0] - lo), A.shape[1])
        if on_disk:
            tasks.append(
                [
                    (
                        _map,
                        file,
                        A.dtype.str,
                        base.offset + start + lo * A.strides[0],
                        shape,
                        A.strides,
                    )
                ]
            )
        else:
            tasks.append([(np.array, A[lo : lo + rows])])
    return Parts({}, tasks, A.dtype, token)


def _base(A: Any) -> Any:
    """The array that the file was mapped as."""
    while isinstance(A.base, np.memmap):
        A = A.base
    return A


def _map(
    file: str, dtype: str, first: int, shape: tuple[int, int], strides: tuple[int, int]
) -> np.ndarray:
    """Rows whose first entry is at byte `first`, as they lie in the file: by rows, by columns, or backwards."""
    ends = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    begin = first + sum(min(end, 0) for end in ends)
    size = sum(map(abs, ends)) + np.dtype(dtype).itemsize
    content = np.memmap(file, np.uint8, "r", begin, (size,))
    return np.ndarray(shape, np.dtype(dtype), np.asarray(content).data, first - begin, strides)


# ------------------------------------------------------------ of one block


def load(chunks: list[Any], name: str, width: int | None, dtype: str, finite: bool) -> Block:
    """The rows of some arrays side by side, checked."""
    from scipy import sparse

    for chunk in chunks:
        _check.refuse_masked(chunk, name)
    pieces: list[Any] = [
        chunk.to_scipy_sparse() if hasattr(chunk, "to_scipy_sparse") else chunk for chunk in chunks
    ]
    rows: Any = pieces[0]
    if len(pieces) > 1:
        pieces = [compressed(piece, name) if sparse.issparse(piece) else piece for piece in pieces]
        some = any(map(sparse.issparse, pieces))
        rows = (
            sparse.hstack(pieces, format="csr")
            if some
            else np.concatenate([np.asarray(piece) for piece in pieces], axis=1)
        )
    if not sparse.issparse(rows):
        _check.refuse_text_columns(rows, name)
        rows = rows if hasattr(rows, "columns") else np.asarray(rows)
    found: Any = rows.shape
    return own_block(
        rows, name, (found[0], found[-1] if width is None else width), np.dtype(dtype), 0, finite
    )
