"""The contract of a loss, and the adapter that makes one of any function x -> (value, gradient)."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _check
from .._messages import counted

STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Oracle(ABC):
    """A loss with the memory one run needs: calling it at x writes the gradient into `out` and returns the value."""

    @abstractmethod
    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        """f(x), a number or one per trajectory; the gradient goes into `out`."""


@dataclass(frozen=True)
class Coordinates:
    """Those in which a loss is easiest, for step sizes that suit all of them."""

    loss: Loss  # for several trajectories side by side; with an intercept, its columns may be centered
    scale: np.ndarray | None = None  # one over the size of each column, if known
    center: np.ndarray | None = None  # what was subtracted from each column
    unit: float = 1.0  # typical size of a scaled coordinate
    flat: np.ndarray | None = (
        None  # which columns are zero, or with an intercept constant: they add nothing to the others
    )

    def forward(self, x: np.ndarray) -> np.ndarray:
        """x in these coordinates: z = A w + c = (A - center) w + (c + center w)."""
        return self._shift(x, 1.0)

    def back(self, x: np.ndarray) -> np.ndarray:
        """The inverse."""
        return self._shift(x, -1.0)

    def _shift(self, x: np.ndarray, sign: float) -> np.ndarray:
        x = x.copy()
        if self.center is not None:
            x[-1] += sign * (self.center @ x[:-1])
        return x


class Loss(ABC):
    """A convex function f of an x of shape `shape`, or of that shape and a trailing axis of trajectories."""

    shape: tuple[int, ...] | None = (
        None  # of x without the trajectory axis; None if any shape will do
    )
    dtype: np.dtype | None = None  # of the iterates; None if x decides
    intercept: bool = (
        False  # whether the last coordinate (or row) of x is an intercept no penalty touches
    )
    predictions: int = 0  # numbers that an oracle keeps per trajectory beside x and its gradient

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._words())})"

    def _words(self) -> list[str]:
        """What there is to say about it, in a few words each."""
        return [] if self.shape is None else [counted(int(np.prod(self.shape)), "unknown")]

    @abstractmethod
    def oracle(self, x: np.ndarray) -> Oracle:
        """A fresh oracle for iterates like x. Two oracles share no memory, so they may run in two threads."""

    def value_and_grad(self, x: Any) -> tuple[Any, np.ndarray]:
        """(f(x), a subgradient of f at x)."""
        x = _check.real_array(x, "x")
        if x.size == 0:
            raise ValueError(f"x is empty: it has shape {x.shape}.")
        x = _check.cast(x, self.dtype or x.dtype, "x")
        g = np.empty_like(x)
        return self.oracle(x)(x, g), g

    def lipschitz(self) -> float:
        """L such that the gradient is L-Lipschitz."""
        raise ValueError(
            f"{type(self).__name__} has no known Lipschitz constant: its gradient is not Lipschitz continuous."
        )

    def coordinates(self) -> Coordinates:
        """By default those that it has."""
        return Coordinates(self)

    @property
    def whole(self) -> Loss:
        """The loss of all samples, which certificates and the finish are about: itself, unless it has minibatches."""
        return self

    def remember(self, batch: tuple[int, ...]) -> dict[str, np.ndarray]:
        """What a state keeps for this loss, by name, before the first iteration; `batch` is the shape of a value."""
        return {}

    def passes(self, n: Any, memory: dict[str, np.ndarray]) -> Any:
        """Passes over the data that n iterations have taken."""
        return n + 1


class FunctionLoss(Loss):
    """Any function x -> (value, gradient), or object with value_and_grad(x)."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def _words(self) -> list[str]:
        return [getattr(self.function, "__qualname__", None) or repr(self.function)]

    def oracle(self, x: np.ndarray) -> FunctionOracle:
        return FunctionOracle(self.function)

    def coordinates(self) -> Coordinates:
        return Coordinates(Columns(self))


class FunctionOracle(Oracle):
    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        answer = self.function(x.copy())  # a copy: what the function keeps or changes is its own
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise TypeError(
                f"The loss must return a pair (value, gradient). Got {type(answer).__name__} instead."
            )
        try:
            value = _check.real_array(answer[0], "the value").astype(np.float64)
            g = _check.real_array(answer[1], "the gradient")
        except ValueError as error:
            raise ValueError(
                f"The loss must return a real value and a real gradient: {error}"
            ) from None
        if x.ndim == 1 and value.size == 1:
            value = value.reshape(())
        if g.shape != x.shape:
            raise ValueError(
                f"The loss must return a gradient of the shape of x, {x.shape}. Got {g.shape} instead."
            )
        if value.shape not in ((), *([x.shape[-1:]] if x.ndim > 1 else [])):
            raise ValueError(
                "The loss must return one value, or one per trajectory (column of x). "
                f"Got shape {value.shape} for x of shape {x.shape}."
            )
        np.copyto(out, g)
        return value if value.ndim else float(value)


class Columns(Loss):
    """A function of one x, applied to every trajectory by itself."""

    def __init__(self, loss: FunctionLoss):
        self.loss = loss

    def oracle(self, x: np.ndarray) -> ColumnsOracle:
        return ColumnsOracle(self.loss.oracle(x[..., 0]))


class ColumnsOracle(Oracle):
    def __init__(self, oracle: Oracle):
        self.oracle = oracle

    def __call__(self, x: np.ndarray, out: np.ndarray) -> Any:
        values, g = np.empty(x.shape[-1]), np.empty(x.shape[:-1], out.dtype)
        for k in range(x.shape[-1]):
            values[k] = self.oracle(np.ascontiguousarray(x[..., k]), g)
            out[..., k] = g
        return values


def as_loss(loss: Any) -> Loss:
    """A `Loss`: anything callable as x -> (value, gradient), or with a method value_and_grad(x), is one."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, type):
        function = getattr(loss, "value_and_grad", loss)
        if callable(function):
            return FunctionLoss(function)
    elif hasattr(loss, "value_and_grad"):
        needed = [
            p.name
            for p in inspect.signature(loss).parameters.values()
            if p.default is p.empty and p.kind not in STARRED
        ]
        raise TypeError(
            f"'loss' is the class {loss.__name__}. Did you mean {loss.__name__}({', '.join(needed)})?"
        )
    raise TypeError(
        f"'loss' must be a loss, or a function x -> (value, gradient). Got {loss!r} instead."
    )
