"""What users pass as A: an array, a data frame, a sparse matrix, an operator, or a source of their own."""

from __future__ import annotations

from typing import Any

from .as_block import as_block
from .source import Source
from .stored import KIND_OF_BLOCK


def as_source(A: Any, name: str = "A") -> Source:
    """A `Source` over the caller's own memory, checked for shape, dtype and non-finite entries."""
    if isinstance(A, Source):
        A.check(name)
        return A
    if isinstance(A, type) and issubclass(A, Source):
        raise TypeError(f"{name} is the class {A.__name__}. Did you mean {A.__name__}()?")
    if type(A).__module__.partition(".")[0] == "dask":
        raise TypeError(
            f"{name} is a Dask {type(A).__name__}: take adagrad_diff.dask.source({name}), or the loss of the same name there."
        )
    block = as_block(A, name)
    source: Source = KIND_OF_BLOCK[type(block)](block)
    return source
