"""The problem that solvers see: minimize F(x) = f(x) + phi(x)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _check
from ..losses import Loss
from ..losses.base import Columns, Coordinates, FunctionLoss
from ..penalties import Penalty

DOUBLE = np.dtype(np.float64)


def double(x: np.ndarray) -> np.ndarray:
    """Return x in double precision, in which rules compute."""
    return x if x.dtype is DOUBLE else x.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Layout:
    """How the caller's x, in any shape, becomes that of a solver, with one axis of coordinates.

    Both may end in an axis of trajectories. With a `center`, solvers work in centered columns of A:
    A w + c = (A - center) w + (c + center w), so they see another intercept c.
    """

    shape: tuple[int, ...]  # of the caller's x, without trajectories
    center: np.ndarray | None = None  # what is subtracted from each column of A

    def flat(self, x: np.ndarray) -> np.ndarray:
        """Return a view of x with one axis of coordinates."""
        return x.reshape(-1, *x.shape[len(self.shape) :])

    def shaped(self, x: np.ndarray) -> np.ndarray:
        """Return a view of x in the shape of the caller."""
        return x.reshape(*self.shape, *x.shape[1:])

    def forward(self, x: np.ndarray, sign: float = 1.0) -> np.ndarray:
        """Return the solver's x."""
        if self.center is not None:
            x = x.copy()
            x[-1] += sign * np.tensordot(self.center, x[:-1], 1)
        return self.flat(x)

    def back(self, x: np.ndarray) -> np.ndarray:
        """Return the caller's x."""
        x = self.shaped(x)
        return x if self.center is None else self.shaped(self.forward(x, sign=-1.0))

    def gradient(self, g: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to the caller's x."""
        g = self.shaped(g)
        if self.center is not None:
            g = g.copy()
            g[:-1] += np.multiply.outer(self.center, g[-1]).astype(g.dtype)
        return g


class Problem:
    """A loss f and a penalty phi.

    Solvers see x of shape (d,) or, if there are several trajectories, (d, B). Values are then
    numbers, or arrays of shape (B,). Only this class knows the shape of x that the caller uses, and
    the intercept: the last coordinate of x (or its last row), which the loss adds to every
    prediction and the penalty never sees.
    """

    scale: Any = 1.0  # of coordinates, in which norms of gradients are measured
    coordinates: Coordinates  # of a standardized problem
    _original: Problem | None = None

    def __init__(
        self, loss: Loss, penalty: Penalty, layout: Layout, dtype: Any, trajectories: int | None
    ):
        self.loss, self.penalty, self.layout, self.dtype = loss, penalty, layout, np.dtype(dtype)
        self.shape, self.size = layout.shape, int(np.prod(layout.shape))
        self.penalized_size = self.size - loss.intercept * (self.size // self.shape[0])
        penalty.check_size(self.penalized_size)
        self._is_function = isinstance(loss, FunctionLoss | Columns)
        self._errors = np.geterr()  # how a user's own loss is to warn of overflows
        self._set_trajectories(trajectories)

    def _set_trajectories(self, trajectories: int | None) -> None:
        self.trajectories = trajectories
        self._width = () if trajectories is None else (trajectories,)
        rows = 1 if self.penalty.accepts == "scalar" else self.size
        self._step_shape = (rows, *self._width)
        self._oracle: Any = None
        self._evaluated: tuple[Any, ...] = None, None, None  # see `oracle_at`
        self._known: tuple[Any, ...] = None, None, None  # an x with its value and gradient
        self._value_checked = trajectories is None

    def narrowed(self, trajectories: int) -> Problem:
        """Return the same problem for another number of trajectories."""
        other = copy.copy(self)
        other._set_trajectories(trajectories)
        return other

    def standardized(self) -> Problem:
        """Return the problem for scaled columns of A, centered if there is an intercept.

        Both happen inside the products with A, so the data are neither copied nor, if sparse,
        filled. Only norms and the metric of the rule know the scale: x itself is not scaled.
        """
        known = self.loss.coordinates()
        layout = Layout(self.shape, known.center)
        other = Problem(known.loss, self.penalty, layout, self.dtype, self.trajectories)
        other._original, other.coordinates = self, known
        if known.scale is not None and self.penalty.accepts == "diagonal":
            other.scale = np.append(known.scale, np.ones(self.size - known.scale.size))
        return other

    @property
    def original(self) -> Problem:
        """The problem in the coordinates of the caller."""
        return self._original or self

    @property
    def no_iterations(self) -> Any:
        """The count n = 0, for each trajectory if there are several."""
        return 0 if self.trajectories is None else np.zeros(self.trajectories, np.int64)

    # ------------------------------------------------------------------ values

    def evaluate(self, x: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return f(x) and its (sub)gradient."""
        if self._known[0] is x:
            return self._known[1:]
        g = np.empty_like(x)
        arguments = x, g
        if len(self.shape) > 1:
            arguments = self.layout.shaped(x), self.layout.shaped(g)
        if self._oracle is None:
            self._oracle = self.loss.oracle(arguments[0])
        if self._is_function:
            with np.errstate(**self._errors):
                f = self._oracle(*arguments)
        else:
            f = self._oracle(*arguments)
        self._evaluated = x, self._oracle, None
        return f, g

    def phi(self, x: np.ndarray) -> Any:
        """Return the penalty at x."""
        part = x[: self.penalized_size] if self.loss.intercept else x
        value = self.penalty.value(part)
        if self.trajectories is None:
            return float(value)
        if not self._value_checked and np.shape(value) != self._width:
            raise ValueError(
                f"{type(self.penalty).__name__}.value must return one number per trajectory, shape "
                f"{self._width}, for x of shape {part.shape}. Got shape {np.shape(value)} instead."
            )
        self._value_checked = True
        return np.asarray(value, np.float64)

    def norm(self, g: np.ndarray) -> Any:
        """Return the norm of gradients."""
        scale = self.scale[:, None] if np.ndim(self.scale) and g.ndim > 1 else self.scale
        return np.linalg.norm(g * scale, axis=0)

    def prox(self, point: np.ndarray, step: Any) -> np.ndarray:
        """Return the proximal point of phi in the metric 1 / step."""
        if np.shape(step) != self._step_shape or step.dtype != self.dtype:
            if self._step_shape[0] == 1 and np.ndim(step):
                step = step[:1]  # the penalized coordinates share it
            step = np.array(np.broadcast_to(step, self._step_shape), self.dtype)
        x, size = np.empty_like(point), self.penalized_size
        if size < len(point):
            x[size:] = point[size:]
            self.penalty.apply(point[:size], step[:size], x[:size])
        else:
            self.penalty.apply(point, step, x)
        return x

    # ------------------------------------------------------------------ residuals

    def oracle_at(self, x: np.ndarray) -> tuple[Any, int | None]:
        """Return the oracle of the loss with the residuals of x, and which of its columns they are.

        The column is None if x has one trajectory, or all those of the oracle.
        """
        if self._evaluated[0] is not x:
            self.evaluate(x)
        return self._evaluated[1:]

    def set_evaluated(self, x: np.ndarray, oracle: Any, column: int | None = None) -> None:
        """Declare that the last evaluation of an oracle, or a column of it, was at x."""
        self._evaluated = x, oracle, column

    # ------------------------------------------------------------------ the start

    @classmethod
    def at(
        cls, loss: Loss, penalty: Penalty, x0: Any, trajectories: int | None
    ) -> tuple[Problem, np.ndarray]:
        """Return the problem and the first iterate; `trajectories` is the number of step sizes.

        Whether the last axis of x0 is one of trajectories is known only from what the loss returns:
        a function may take a matrix and return one number.
        """
        x = _first_iterate(loss, x0, trajectories)
        f = g = None
        several = loss.shape is not None and x.ndim > len(loss.shape)
        if loss.shape is None and x.ndim > 1:
            f = loss.oracle(x)(x, out=(g := np.empty_like(x)))
            several = np.ndim(f) == 1
        if trajectories and not several:
            raise ValueError(
                "With several eta the loss must return one value per trajectory (column of x), "
                f"shape {x.shape[-1:]} for x of shape {x.shape}. Got one number instead."
            )
        layout = Layout(x.shape[:-1] if several else x.shape)
        problem = cls(loss, penalty, layout, x.dtype, x.shape[-1] if several else None)
        x = layout.flat(x)
        if g is not None:
            problem._known = x, f, layout.flat(g)
        return problem, x


def _first_iterate(loss: Loss, x0: Any, trajectories: int | None) -> np.ndarray:
    """Return a copy of x0 in the precision of the loss, or zeros; one column per step size."""
    if x0 is None and loss.shape is None:
        raise ValueError("'x0' is needed: the loss is a function, so the size of x is not known.")
    x = _check.real_array(np.zeros(loss.shape, loss.dtype) if x0 is None else x0, "x0")
    x = _check.cast(x, loss.dtype or x.dtype, "x0")
    if loss.shape is None:
        dims, fits, wanted = 1, x.ndim > 0, "at least one dimension"
    else:
        dims = len(loss.shape)
        fits = x.shape[:dims] == loss.shape and x.ndim <= dims + 1
        wanted = f"shape {loss.shape}, or that and a trajectory axis"
    if not fits:
        raise ValueError(f"'x0' must have {wanted}. Got shape {x.shape} instead.")
    if x.size == 0:
        raise ValueError(f"'x0' is empty: it has shape {x.shape}.")
    _check.finite(x, "x0")
    if trajectories and x.ndim == dims:
        x = np.repeat(x[..., None], trajectories, axis=-1)  # the same start for every eta
    return x
