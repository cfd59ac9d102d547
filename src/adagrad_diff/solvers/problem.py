"""The problem that solvers see: minimize F(x) = f(x) + phi(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..losses import Loss
from ..losses.base import Columns, FunctionLoss
from ..penalties import Penalty


class Problem:
    """A loss f and a penalty phi.

    Solvers see x with one axis of coordinates, and a second one if there are several trajectories:
    shape (d,) or (d, B). Values are then numbers, or arrays of shape (B,). Only this class knows the
    shape of x that the caller uses, and the intercept: the last coordinate of x (or its last row),
    which the loss adds to every prediction and the penalty never sees.
    """

    def __init__(self, loss: Loss, penalty: Penalty, x: np.ndarray, trajectories: int | None):
        """`x` is an iterate in the shape of the caller; its last axis may be that of trajectories."""
        self.loss, self.penalty, self.dtype = loss, penalty, x.dtype
        self.shape = x.shape if trajectories is None else x.shape[:-1]
        size = int(np.prod(self.shape))
        self._errors = np.geterr()  # how a user's own loss wants to be warned of overflows
        self._own = isinstance(loss, FunctionLoss | Columns)
        self.penalized_size = size - size // self.shape[0] if loss.intercept else size
        penalty.check_size(self.penalized_size)
        self._set_width(trajectories)

    def _set_width(self, trajectories: int | None) -> None:
        self.trajectories, width = trajectories, () if trajectories is None else (trajectories,)
        self._caller, self._flat = (*self.shape, *width), (int(np.prod(self.shape)), *width)
        rows = 1 if self.penalty.accepts == "scalar" else self._flat[0]
        self._step = (rows, *width)  # the shape of a step of the prox
        self._oracle: Any = None
        self._evaluated: Any = None  # the x of the last evaluation
        self._known: Any = (
            None  # an x with its value and gradient, which the next evaluation can use
        )
        self._checked = False  # whether the penalty returns one value per trajectory

    def narrowed(self, trajectories: int) -> Problem:
        """Return the same problem for another number of trajectories."""
        other = Problem.__new__(Problem)
        vars(other).update(vars(self))
        other._set_width(trajectories)
        return other

    def flat(self, x: np.ndarray) -> np.ndarray:
        """Return an array in the shape of the caller with one axis of coordinates."""
        return x.reshape(self._flat)

    def for_caller(self, x: np.ndarray) -> np.ndarray:
        """Return an array in the shape of the caller."""
        return x.reshape(self._caller)

    def evaluate(self, x: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return f(x) and its (sub)gradient."""
        if self._known is not None and self._known[0] is x:
            (_, f, g), self._known = self._known, None
            return f, g
        g = np.empty_like(x)
        if len(self.shape) == 1:  # nothing to reshape
            caller_x, caller_g = x, g
        else:
            caller_x, caller_g = x.reshape(self._caller), g.reshape(self._caller)
        if self._oracle is None:
            self._oracle = self.loss.oracle(caller_x)
        if self._own:
            with np.errstate(**self._errors):
                f = self._oracle(caller_x, caller_g)
        else:
            f = self._oracle(caller_x, caller_g)
        self._evaluated = x
        return f, g

    def phi(self, x: np.ndarray) -> Any:
        """Return the penalty at x."""
        part = x[: self.penalized_size] if self.loss.intercept else x
        value = self.penalty.value(part)
        if self.trajectories is None:
            return float(value)
        if not self._checked and np.shape(value) != self._flat[1:]:
            raise ValueError(
                f"{type(self.penalty).__name__}.value must return one number per trajectory, shape "
                f"{self._flat[1:]}, for x of shape {part.shape}. Got shape {np.shape(value)} instead."
            )
        self._checked = True
        return np.asarray(value, np.float64)

    def prox(self, point: np.ndarray, step: Any) -> np.ndarray:
        """Return the proximal point of phi in the metric 1 / step."""
        if np.shape(step) != self._step or step.dtype != self.dtype:
            if self._step[0] == 1 and np.ndim(step):
                step = step[:1]  # the penalized coordinates share it
            step = np.array(np.broadcast_to(step, self._step), self.dtype)
        x, size = np.empty_like(point), self.penalized_size
        if size < len(point):
            x[size:] = point[size:]
            self.penalty.apply(point[:size], step[:size], x[:size])
        else:
            self.penalty.apply(point, step, x)
        return x

    def put_back(self, x: np.ndarray) -> None:
        """Say that x is the last point evaluated, but for trajectories that have failed there."""
        self._evaluated = x

    def oracle_at(self, x: np.ndarray) -> Any:
        """Return the oracle of the loss, whose last evaluation was at x (for its residuals)."""
        if self._evaluated is not x:
            self.evaluate(x)
        return self._oracle


def first_iterate(loss: Loss, x0: Any, trajectories: int | None) -> np.ndarray:
    """Return a copy of x0 in the precision of the loss, or zeros; one column per step size."""
    if x0 is None and loss.shape is None:
        raise ValueError("'x0' is needed: the loss is a function, so the size of x is not known.")
    x = _check.real_array(np.zeros(loss.shape, loss.dtype) if x0 is None else x0, "x0")
    x = _check.cast(x, loss.dtype or x.dtype, "x0")
    dims = x.ndim if loss.shape is None else len(loss.shape)
    if x.ndim == 0 or (
        loss.shape is not None and (x.shape[:dims] != loss.shape or x.ndim > dims + 1)
    ):
        wanted = "at least one dimension"
        if loss.shape is not None:
            wanted = f"shape {loss.shape}, or that and a trajectory axis"
        raise ValueError(f"'x0' must have {wanted}. Got shape {x.shape} instead.")
    if x.size == 0:
        raise ValueError(f"'x0' is empty: it has shape {x.shape}.")
    _check.finite(x, "x0")
    if trajectories and x.ndim == (dims if loss.shape is not None else 1):
        x = np.repeat(x[..., None], trajectories, axis=-1)  # the same start for every eta
    return x


def problem_at(
    loss: Loss, x0: Any, penalty: Penalty, trajectories: int | None
) -> tuple[Problem, np.ndarray]:
    """Return the problem and the first iterate, with one axis of coordinates.

    Whether the last axis of x0 is one of trajectories is known only from what the loss returns: a
    function may take a matrix and return one number.
    """
    x = first_iterate(loss, x0, trajectories)
    known = None
    several = loss.shape is not None and x.ndim > len(loss.shape)
    if loss.shape is None and x.ndim > 1:
        g = np.empty_like(x)
        known = loss.oracle(x)(x, out=g), g
        several = np.ndim(known[0]) == 1
    if trajectories and not several:
        raise ValueError(
            "With several eta the loss must return one value per trajectory (column of x), shape "
            f"{x.shape[-1:]} for x of shape {x.shape}. Got one number instead."
        )
    problem = Problem(loss, penalty, x, x.shape[-1] if several else None)
    x = problem.flat(x)
    if known is not None:
        problem._known = x, known[0], problem.flat(known[1])
    return problem, x
