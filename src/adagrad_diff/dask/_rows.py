"""What users pass as A, as a graph with one task per block of rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import dask
import dask.array
import numpy as np
from scipy import sparse

from .. import _check
from ..linalg import Block
from ..linalg.as_block import compressed, own_block

STORED_CHUNK = "32MiB"  # of an array on disk that one task reads


@dataclass
class Parts:
    """The blocks of rows of a collection. Each is a list of tasks, or of names of tasks in a graph,
    whose arrays stand side by side."""

    graph: dict[Any, Any]
    keys: list[list[Any]]
    dtype: np.dtype[Any]
    token: str
    columns: Any = None  # names, if there are some
    origin: Any = None  # its futures exist as long as it does


def is_collection(value: Any) -> bool:
    """Return whether this is a Dask collection."""
    return bool(dask.is_dask_collection(value))


def is_frame(value: Any) -> bool:
    """Return whether this is a Dask data frame."""
    return is_collection(value) and type(value).__name__ == "DataFrame"


def is_stored(value: Any) -> bool:
    """Return whether this is an array on disk that knows its chunks, such as those of Zarr or HDF5."""
    return hasattr(value, "chunks") and hasattr(value, "dtype") and not is_collection(value)


def parts(A: Any, name: str) -> Parts:
    """Return the blocks of a Dask array or data frame, or of an array on disk."""
    A = A if is_collection(A) else stored_array(A, name)
    if is_frame(A):
        return _frame_parts(A, name)
    if not isinstance(A, dask.array.Array) or A.ndim != 2:
        shape = f" of shape {A.shape}" if isinstance(A, dask.array.Array) else ""
        raise ValueError(
            f"{name} must be a Dask array (samples, features) or a Dask data frame. Got "
            f"{type(A).__name__}{shape} instead."
        )
    if A.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers. Got dtype {A.dtype} instead.")
    keys, plain = A.__dask_keys__(), A.__dask_graph__()
    graph = dict(A.__dask_optimize__(plain, keys))
    graph |= {key: plain[key] for row in keys for key in row if key not in graph}  # futures
    return Parts(graph, keys, _float(A.dtype), A.name, origin=A)


def _frame_parts(frame: Any, name: str) -> Parts:
    kinds = frame.dtypes
    for column, kind in kinds.items():
        if getattr(kind, "kind", "O") not in "fiub":
            raise ValueError(
                f"Column {column!r} of {name} is of type {kind}: encode it as numbers, or drop it."
            )
    frame = frame.optimize()  # dask.optimize forgets which rows were chosen (2026.8)
    single = all(getattr(kind, "itemsize", 8) == 4 and kind.kind == "f" for kind in kinds)
    keys, columns = [[key] for key in frame.__dask_keys__()], np.asarray(kinds.index)
    dtype, token = np.dtype(np.float32 if single else np.float64), str(keys[0][0][0])
    return Parts(dict(frame.__dask_graph__()), keys, dtype, token, columns, origin=frame)


def _float(dtype: Any) -> np.dtype[Any]:
    return np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)


# ------------------------------------------------------------------------------ arrays on disk


def stored_array(A: Any, name: str) -> Any:
    """Return an array on disk as a Dask array whose chunks consist of whole chunks of the file."""
    shape = getattr(A, "shape", None)
    array_like = hasattr(A, "dtype") and hasattr(A, "__getitem__")
    if shape is None or len(shape) != 2 or not array_like or 0 in shape:
        raise ValueError(
            f"{name} must be a Dask array (samples, features), a Dask data frame, or an array on "
            f"disk that is not empty. Got {type(A).__name__}"
            f"{'' if shape is None else f' of shape {tuple(shape)}'} instead."
        )
    token = _token(A)
    if isinstance(A, np.memmap):
        mapped = MappedRows.of(A)
        A, token = (mapped, f"mapped-{dask.base.tokenize(mapped)}") if mapped else (A, False)
    with dask.config.set({"array.chunk-size": STORED_CHUNK}):
        return dask.array.from_array(A, chunks={0: "auto", 1: -1}, name=token)


def _token(A: Any) -> Any:
    """Return a name that depends on the file. None lets Dask find one, False means a random one."""
    if hasattr(A, "store"):  # Zarr
        return None
    file = getattr(getattr(A, "file", None), "filename", None)
    if file is None or not os.path.isfile(file):
        return False
    known = (os.path.abspath(file), os.path.getmtime(file), A.name, A.shape, str(A.dtype))
    return f"stored-{dask.base.tokenize(known)}"


@dataclass(frozen=True)
class MappedRows:
    """A view of a mapped file, which every process maps for itself: tasks contain no data."""

    file: str
    modified: float  # time of the last change of the file
    dtype: np.dtype[Any]
    first: int  # byte at which the first entry begins
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @classmethod
    def of(cls, A: np.memmap) -> MappedRows | None:
        """Return the view; None if there is no file that contains the entries."""
        base: Any = A
        while isinstance(base.base, np.memmap):
            base = base.base
        file = str(getattr(A, "filename", None) or "")
        if not file or base.mode == "c":  # changes of a copy on write are not in the file
            return None
        inside = A.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        modified = os.path.getmtime(file)
        return cls(file, modified, A.dtype, base.offset + inside, A.shape, A.strides)

    def __getitem__(self, index: Any) -> np.ndarray:
        last = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        begin = self.first + sum(min(step, 0) for step in last)  # strides may be negative
        size = sum(map(abs, last)) + self.dtype.itemsize
        content = np.memmap(self.file, np.uint8, "r", begin, (size,))
        view = np.ndarray(
            self.shape, self.dtype, np.asarray(content).data, self.first - begin, self.strides
        )
        return np.asarray(view[index])


# ------------------------------------------------------------------------------ of one block


def load(chunks: list[Any], name: str, width: int | None, dtype: str, finite: bool) -> Block:
    """Return the rows of some arrays side by side, checked."""
    for chunk in chunks:
        _check.refuse_masked(chunk, name)
    pieces: list[Any] = [
        chunk.to_scipy_sparse() if hasattr(chunk, "to_scipy_sparse") else chunk for chunk in chunks
    ]
    rows: Any = pieces[0]
    if len(pieces) > 1:
        pieces = [compressed(piece, name) if sparse.issparse(piece) else piece for piece in pieces]
        if any(map(sparse.issparse, pieces)):
            rows = sparse.hstack(pieces, format="csr")
        else:
            rows = np.concatenate([np.asarray(piece) for piece in pieces], axis=1)
    if not sparse.issparse(rows):
        _check.refuse_text_columns(rows, name)
        rows = rows if hasattr(rows, "columns") else np.asarray(rows)
    shape = (rows.shape[0], rows.shape[-1] if width is None else width)
    return own_block(rows, name, shape, np.dtype(dtype), 0, finite)
