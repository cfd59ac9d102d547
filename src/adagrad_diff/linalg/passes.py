"""The pass of a linear model over A: once for each x, with a value and a gradient for each trajectory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .block import Block
from .samples import Samples


class LinearPass(Protocol):
    """What goes through A once for each x."""

    def __call__(
        self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool
    ) -> np.ndarray:
        """Returns rows that add up to the sum of the residuals, or the residuals themselves.

        z = A x + offset;  r = weight * l'(z, b);  value += sum_j weight_j l(z_j, b_j);  g = A' r, or with `add` g += that.
        """

    def residuals(self, columns: Any = slice(None)) -> np.ndarray:
        """r at the last x, (samples,) or some columns of (samples, width)."""

    def fold(self, function: Callable[..., Any], *args: Any) -> Any:
        """The sum over the blocks of function(block, its samples, *args)."""


class Pass:
    """That over the blocks of a source, one by one: `source.fold` is what it needs of it."""

    def __init__(self, source: Any, samples: Samples):
        self.source, self.samples = source, samples

    def __call__(
        self, x: np.ndarray, offset: Any, g: np.ndarray, value: np.ndarray, add: bool
    ) -> np.ndarray:
        losses, gradient = self.source.fold(_share, x, offset, self.samples)
        value += losses
        np.add(g, gradient, out=g) if add else np.copyto(g, gradient)
        return self.samples.r

    def residuals(self, columns: Any = slice(None)) -> np.ndarray:
        r = self.samples.r
        return r if r.ndim == 1 else r[:, columns]

    def fold(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.source.fold(_of_samples, self.samples, function, args)


def _of_samples(
    block: Block, samples: Samples, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    return function(block, samples.part(block.first, block.first + block.shape[0]), *args)


def _share(
    block: Block, x: np.ndarray, offset: Any, samples: Samples
) -> tuple[np.ndarray, np.ndarray]:
    """Of the value and the gradients of a linear model."""
    rows = block.shape[0]
    value, g = np.zeros(samples.width), np.empty(x.shape, block.dtype)
    block.linear_pass(samples.part(block.first, block.first + rows))(
        x, offset, 0, rows, g, value, False
    )
    return value, g
