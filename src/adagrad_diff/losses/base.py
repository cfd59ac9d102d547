"""The interface of a loss, and the adapter for functions x -> (value, gradient)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .. import _check
from .._messages import counted


class Oracle(Protocol):
    """Evaluations of a loss in one run. An oracle may keep arrays from one call to the next."""

    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        """Return f(x), a number or one per trajectory, and write the gradient into `out`."""


@dataclass(frozen=True)
class Coordinates:
    """Scaled and centered coordinates of a loss, in which one step size suits all of them."""

    loss: Loss  # accepts several trajectories; with an intercept, its columns may be centered
    scale: np.ndarray | None = None  # one over the size of each column, if known
    center: np.ndarray | None = None  # what was subtracted from each column
    unit: float = 1.0  # typical size of a scaled coordinate
    flat: np.ndarray | None = None  # columns that are zero, or constant with an intercept

    def forward(self, x: np.ndarray, sign: float = 1.0) -> np.ndarray:
        """Return x in these coordinates: z = A w + c = (A - center) w + (c + center w)."""
        x = x.copy()
        if self.center is not None:
            x[-1] += sign * (self.center @ x[:-1])
        return x

    def back(self, x: np.ndarray) -> np.ndarray:
        """Return the inverse of `forward`."""
        return self.forward(x, sign=-1.0)


class Loss(ABC):
    """A convex function f of x of shape `shape`, or of that shape and an axis of trajectories."""

    shape: tuple[int, ...] | None = None  # of x without trajectories; None accepts every shape
    dtype: np.dtype | None = None  # of the iterates; None if x decides
    intercept = False  # whether the last coordinate (or row) of x is an unpenalized intercept
    matrix: Any = None  # the data matrix, if the loss has one
    predictions = 0  # numbers that an oracle stores per trajectory besides x and its gradient

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._words())})"

    def _words(self) -> list[str]:
        """Return what `repr` shows."""
        return [] if self.shape is None else [counted(int(np.prod(self.shape)), "unknown")]

    @abstractmethod
    def oracle(self, x: np.ndarray) -> Oracle:
        """Return a new oracle for iterates like x. Oracles share no memory, so threads are safe."""

    def value_and_grad(self, x: Any) -> tuple[Any, np.ndarray]:
        """Return f(x) and a subgradient of f at x."""
        x = _check.real_array(x, "x")
        if x.size == 0:
            raise ValueError(f"x is empty: it has shape {x.shape}.")
        x = _check.cast(x, self.dtype or x.dtype, "x")
        g = np.empty_like(x)
        return self.oracle(x)(x, g), g

    def _check_shape(self, x: np.ndarray, wanted: str) -> None:
        """Raise an error that says what is wanted unless x has the shape of an iterate."""
        shape = self.shape or ()
        if x.shape[: len(shape)] != shape or x.ndim > len(shape) + 1:
            raise ValueError(f"x must have {wanted}. Got shape {x.shape} instead.")

    def lipschitz(self) -> float:
        """Return L such that the gradient is L-Lipschitz."""
        raise ValueError(
            f"{type(self).__name__} has no known Lipschitz constant: "
            "its gradient is not Lipschitz continuous."
        )

    def coordinates(self) -> Coordinates:
        """Return scaled and centered coordinates if they are known, else x itself."""
        return Coordinates(self)

    @property
    def whole(self) -> Loss:
        """The loss of all samples, which certificates and polishing use instead of minibatches."""
        return self


class FunctionLoss(Loss):
    """Any function x -> (value, gradient), or object with value_and_grad(x)."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def _words(self) -> list[str]:
        return [getattr(self.function, "__qualname__", None) or repr(self.function)]

    def oracle(self, x: np.ndarray) -> Oracle:
        return self.evaluate

    def evaluate(self, x: np.ndarray, out: np.ndarray) -> Any:
        """Call the function, and check what it returns."""
        answer = self.function(x.copy())  # a copy, because the function may keep or change it
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise TypeError(
                "The loss must return a pair (value, gradient). "
                f"Got {type(answer).__name__} instead."
            )
        value = _check.real_array(answer[0], "The value that the loss returns").astype(np.float64)
        g = _check.real_array(answer[1], "The gradient that the loss returns")
        if g.shape != x.shape:
            raise ValueError(
                f"The loss must return a gradient of the shape of x, {x.shape}. "
                f"Got {g.shape} instead."
            )
        np.copyto(out, g)
        if value.size == 1 and (x.ndim == 1 or value.ndim == 0):
            return value.item()
        if value.shape != x.shape[1:][-1:]:
            raise ValueError(
                "The loss must return one value, or one per trajectory (column of x). "
                f"Got shape {value.shape} for x of shape {x.shape}."
            )
        return value

    def coordinates(self) -> Coordinates:
        return Coordinates(Columns(self.function))


class Columns(FunctionLoss):
    """A function of one x, applied to each trajectory separately."""

    def evaluate(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        values, g = np.empty(x.shape[-1]), np.empty(x.shape[:-1], out.dtype)
        for k in range(x.shape[-1]):
            values[k] = super().evaluate(np.ascontiguousarray(x[..., k]), g)
            out[..., k] = g
        return values


def as_loss(loss: Any) -> Loss:
    """Return a `Loss`, made of a function x -> (value, gradient) or an object that has one."""
    if isinstance(loss, Loss):
        return loss
    function = getattr(loss, "value_and_grad", loss)
    if isinstance(loss, type) and function is not loss:
        name = loss.__name__
        raise TypeError(f"'loss' is the class {name}. Did you mean {name}(...)?")
    if isinstance(loss, type) or not callable(function):
        raise TypeError(
            f"'loss' must be a loss, or a function x -> (value, gradient). Got {loss!r} instead."
        )
    return FunctionLoss(function)
