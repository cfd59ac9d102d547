"""Is it a convex loss, and is its gradient right?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from .. import _check
from ..losses import LinearModel, Loss, as_loss
from ..losses.base import FunctionLoss
from ._report import NotTried, Report, show
from ._scalar import check_scalar_loss

RADII = (0.01, 0.1, 0.1, 0.3, 0.3, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 10.0)
PAIRS, DIRECTIONS, AXES = 40, 3, 20


def check_loss(loss: Any, x: Any = None, *, seed: int = 0) -> Report:
    """Try a loss on random points: its value, gradient, convexity, trajectories, and what else it says about itself.

    For those who write their own. It says what is wrong, and cannot prove that nothing is.

    Parameters
    ----------
    loss : Loss or callable
        A loss, or a function x -> (value, gradient).
    x : array, optional
        A point around which to try it, by distances of up to ten times its largest entry. Zero by default, for a loss that
        knows its shape.
    seed : int
        Of the random points.

    Returns
    -------
    Report
        True if nothing is wrong. Printed, it is one sentence per statement; `failures` are those about what is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import check_loss
    >>> bool(check_loss(lambda x: (0.5 * x @ x, x), np.ones(3)))
    True
    >>> report = check_loss(lambda x: (0.5 * x @ x, 2 * x), np.ones(3))
    >>> print(report.failures[0])  # doctest: +ELLIPSIS
    The gradient is not the slope of the value: along coordinate 0 at x = [1., 1., 1.] the value changes by 1 per unit, ...
    """
    name = getattr(loss, "__name__", type(loss).__name__)
    trial = LossTrial(as_loss(loss), x, np.random.default_rng(seed))
    report = Report(name)
    if not report.look(
        "It gives one finite value, and a finite gradient of the shape of x.", trial.answers
    ):
        return report
    if not report.look("It is finite at random points around x.", trial.is_finite):
        return report
    report.look("It does not change its argument x.", trial.leaves_x_alone)
    report.look("The same x gives the same answer twice.", trial.repeats)
    right = report.look("The gradient is the slope of the value.", trial.slopes)
    if report.look("It is convex between random points.", trial.is_convex) and right:
        report.look(
            "Tangents are below it: the gradient is a subgradient, also where there is a kink.",
            trial.tangents,
        )
    report.look("Several x side by side give what each gives alone.", trial.columns)
    if isinstance(trial.loss, LinearModel) and trial.loss.scalar is not None:
        check_scalar_loss(report, trial.loss, np.random.default_rng(seed))
    report.look("The Lipschitz constant bounds the change of the gradient.", trial.lipschitz)
    return report


class LossTrial:
    """A loss and the points at which it is tried. Each method returns what is wrong, or None."""

    def __init__(self, loss: Loss, x: Any, rng: np.random.Generator):
        if x is None and loss.shape is None:
            raise ValueError(
                "'x' is needed: the loss is a function, so the size of x is not known."
            )
        start = np.zeros(loss.shape or ()) if x is None else _check.real_array(x, "x")
        if (
            (loss.shape is not None and start.shape != loss.shape)
            or start.size == 0
            or start.ndim == 0
        ):
            raise ValueError(
                f"'x' must have shape {loss.shape or '(d,)'}. Got shape {start.shape} instead."
            )
        self.loss, self.rng, self.dtype = loss, rng, np.dtype(loss.dtype or start.dtype)
        self.x = _check.finite(start, "x").astype(self.dtype)
        self.unit = float(np.abs(self.x).max()) or 1.0
        self.eps = float(np.finfo(self.dtype).eps)
        self.points: list[np.ndarray] = []

    def at(self, x: np.ndarray) -> tuple[Any, np.ndarray]:
        """Value and gradient; what is not written stays NaN."""
        g = np.full_like(x, np.nan)
        return self.loss.oracle(x)(x, g), g

    def noise(self, *answers: tuple[np.ndarray, Any, np.ndarray]) -> float:
        """How far rounding may change values at x, given (x, value, gradient)."""
        return (
            20 * self.eps * max(float(abs(f)) + float(np.abs(x * g).sum()) for x, f, g in answers)
        )

    def draw(self, radius: float) -> np.ndarray:
        return (self.x + radius * self.unit * self.rng.standard_normal(self.x.shape)).astype(
            self.dtype
        )

    def answers(self) -> str | None:
        value, g = self.at(self.x.copy())
        if np.ndim(value) or not np.isfinite(value):
            return f"The value at x = {show(self.x)} must be one finite number. It is {value!r}."
        if not np.isfinite(g).all():
            return f"The gradient is not finite, or not written into `out`: at x = {show(self.x)} it is {show(g)}."
        return None

    def is_finite(self) -> str | None:
        self.points = [self.x]
        for radius in RADII:
            for nearer in 10.0 ** -np.arange(10):  # a loss may be infinite far away
                x = self.draw(radius * nearer)
                value, g = self.at(x.copy())
                if np.isfinite(value) and np.isfinite(g).all():
                    self.points.append(x)
                    break
        if 2 * len(self.points) < len(RADII):
            return f"The loss is not finite at points around x = {show(self.x)}: give an x inside its domain."
        return None

    def leaves_x_alone(self) -> str | None:
        for x in self.points[:3]:
            given = x.copy()
            if isinstance(self.loss, FunctionLoss):
                self.loss.function(given)
            else:
                self.at(given)
            if not np.array_equal(given, x):
                return f"The loss changes its argument x: {show(x)} is {show(given)} after it."
        return None

    def repeats(self) -> str | None:
        for x in self.points[:3]:
            (f, g), (again, g_again) = self.at(x.copy()), self.at(x.copy())
            noise = self.noise((x, f, g))
            if (
                abs(f - again) > noise
                or np.abs(g - g_again).max() > 100 * self.eps * np.abs(g).max()
            ):
                return f"The same x gives different answers: at x = {show(x)} the value is {f:.9g}, and then {again:.9g}."
        return None

    def slopes(self) -> str | None:
        axes = self.rng.permutation(self.x.size)[:AXES]
        for x in self.points[:6]:
            f, g = self.at(x.copy())
            for i in (*np.sort(axes), *[None] * DIRECTIONS):
                direction = (
                    self.rng.standard_normal(x.size) if i is None else np.eye(1, x.size, i)[0]
                )
                fault = self._slope(
                    x, f, g, direction.reshape(x.shape) / np.linalg.norm(direction), i
                )
                if fault is not None:
                    return fault
        return None

    def _slope(
        self, x: np.ndarray, f: float, g: np.ndarray, direction: np.ndarray, i: Any
    ) -> str | None:
        """The slope in a direction lies between the difference quotients on both sides, also at a kink."""
        h = self.eps ** (1 / 3) * max(self.unit, float(np.abs(x).max()))
        after, before = (
            (x + h * direction).astype(self.dtype),
            (x - h * direction).astype(self.dtype),
        )
        up, down = (self.at(after)[0] - f) / h, (f - self.at(before)[0]) / h
        claim = float(np.sum(g * (after.astype(float) - before))) / (2 * h)
        slack = (
            self.noise((x, f, g)) / h
            + 1e-5 * abs(claim)
            + 100 * self.eps ** (2 / 3) * float(np.abs(g).max())
        )
        if (
            not (np.isfinite(up) and np.isfinite(down))
            or min(up, down) - slack <= claim <= max(up, down) + slack
        ):
            return None
        index = (
            i if x.ndim == 1 or i is None else tuple(int(k) for k in np.unravel_index(i, x.shape))
        )
        where = "in a random direction" if i is None else f"along coordinate {index}"
        return (
            f"The gradient is not the slope of the value: {where} at x = {show(x)} the value changes by "
            f"{(up + down) / 2:.6g} per unit, and the gradient says {claim:.6g}."
        )

    def _pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        pairs = list(combinations(self.points, 2))
        return [pairs[k] for k in self.rng.permutation(len(pairs))[:PAIRS]]

    def is_convex(self) -> str | None:
        for x, y in self._pairs():
            middle = ((x + y) / 2).astype(self.dtype)
            (fx, gx), (fy, gy), (fm, _) = self.at(x.copy()), self.at(y.copy()), self.at(middle)
            if not fm <= (fx + fy) / 2 + self.noise((x, fx, gx), (y, fy, gy)) + self.noise(
                (middle, 0.0, gx)
            ):
                return (
                    f"The loss is not convex: between x = {show(x)} and y = {show(y)}, in the middle, the value is {fm:.6g}, "
                    f"more than {(fx + fy) / 2:.6g}, the mean of those at the ends."
                )
        return None

    def tangents(self) -> str | None:
        for x, y in self._pairs():
            (fx, gx), (fy, gy) = self.at(x.copy()), self.at(y.copy())
            step = y.astype(float) - x
            tangent = fx + float(np.sum(gx * step))
            if fy < tangent - self.noise((x, fx, gx), (y, fy, gy), (step, fx, gx)):
                return (
                    f"The gradient at x = {show(x)} is no subgradient: the value at y = {show(y)} is {fy:.6g}, below the "
                    f"tangent at x, {tangent:.6g}."
                )
        return None

    def columns(self) -> str | None:
        chosen = self.points[-3:]
        x = np.stack(chosen, axis=-1)
        if isinstance(self.loss, FunctionLoss):
            value, g = self._function_columns(x)
        else:
            value, g = self.at(np.ascontiguousarray(x))
        if np.shape(value) != (len(chosen),):
            return f"Of {len(chosen)} x side by side there must be one value each, shape ({len(chosen)},). Got {np.shape(value)}."
        for k, single in enumerate(chosen):
            f, g_single = self.at(single.copy())
            noise = self.noise((single, f, g_single))
            if abs(value[k] - f) > noise or not np.abs(
                g[..., k] - g_single
            ).max() <= 1e3 * self.eps * (1 + np.abs(g).max()):
                return f"Several x side by side and x = {show(single)} alone differ: the values are {value[k]:.9g} and {f:.9g}."
        return None

    def _function_columns(self, x: np.ndarray) -> tuple[Any, np.ndarray]:
        try:
            value, g = self.loss.function(x.copy())  # type: ignore[attr-defined]
            if np.shape(value) == x.shape[-1:] and np.shape(g) == x.shape:
                return np.asarray(value), np.asarray(g)
        except Exception:
            pass  # it was not made for that
        raise NotTried(
            "It takes one x at a time: several eta, side by side, need one value per column of x."
        )

    def lipschitz(self) -> str | None:
        try:
            constant = self.loss.lipschitz()
        except ValueError:
            raise NotTried("It has no Lipschitz constant.") from None
        for x, y in self._pairs():
            gx, gy = (self.at(point.copy())[1].astype(np.float64) for point in (x, y))
            change, distance = float(np.linalg.norm(gx - gy)), float(np.linalg.norm(x - y))
            if change > constant * distance * (1 + 1e-6) + 1e3 * self.eps * float(np.abs(gx).max()):
                return (
                    f"The constant of lipschitz() is too small: it is {constant:.6g}, but between x = {show(x)} and "
                    f"y = {show(y)} the gradient changes by {change / distance:.6g} per unit."
                )
        return None
