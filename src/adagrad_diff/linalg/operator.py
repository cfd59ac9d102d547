"""A matrix that only shows its products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .block import Block
from .dense import DenseBlock


class OperatorBlock(Block):
    """SciPy's LinearOperator: whatever it computes. It is one block."""

    divisible = False
    opaque = True

    def __init__(self, operator: Any, name: str = "A"):
        self.operator, self.name, self.shape = operator, name, operator.shape
        self.size = operator.shape[0] * operator.shape[1]
        self.dtype = np.dtype(np.float32 if operator.dtype == np.float32 else np.float64)

    def dot(self, x: np.ndarray, z: np.ndarray, lo: int = 0, hi: int | None = None) -> None:
        z[...] = self._product("matvec" if x.ndim == 1 else "matmat", x, z.shape)

    def tdot(
        self, r: np.ndarray, g: np.ndarray, lo: int = 0, hi: int | None = None, add: bool = False
    ) -> None:
        product = self._product("rmatvec" if r.ndim == 1 else "rmatmat", r, g.shape)
        g[...] = g + product if add else product

    def _product(self, method: str, vector: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        what = f"{self.name}{'.T @ r' if method[0] == 'r' else ' @ x'} of the LinearOperator {self.name} must"
        try:
            product = np.asarray(getattr(self.operator, method)(vector))
        except NotImplementedError:
            raise ValueError(
                f"the LinearOperator {self.name} has no {method}, which the gradient needs."
            ) from None
        except ValueError as error:  # SciPy's, for example, about a shape
            raise ValueError(f"{what} have shape {shape}. Its {method} failed: {error}") from error
        if product.shape != shape:
            raise ValueError(f"{what} have shape {shape}. Got {product.shape} instead.")
        if product.dtype.kind not in "fiub":
            raise ValueError(f"{what} be real numbers. Got dtype {product.dtype} instead.")
        return product

    def cut(self, lo: int, hi: int) -> OperatorBlock:
        return self

    def applied(self, function: Callable[[np.ndarray], np.ndarray]) -> Block:
        raise NotImplementedError  # nobody sees the entries

    def column_sizes(self, weight: np.ndarray) -> np.ndarray:
        """Guessed from one product with signs."""
        samples, features = self.shape
        self.tdot(
            weight * np.random.default_rng(0).choice([-1.0, 1.0], samples),
            sizes := np.empty(features),
        )
        return np.full(features, np.sqrt(samples) * np.abs(sizes).max())

    def rows(self, index: np.ndarray) -> DenseBlock:
        """By one product for each."""
        unit, columns = np.zeros((self.shape[0], index.size)), np.empty((self.shape[1], index.size))
        unit[index, np.arange(index.size)] = 1.0
        self.tdot(unit, columns)
        return DenseBlock(np.ascontiguousarray(columns.T))

    def to_dense(self) -> np.ndarray:
        self.dot(np.eye(self.shape[1]), dense := np.empty(self.shape))
        return dense
