"""Check a user-defined loss: value, gradient, convexity and what it declares about itself."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import combinations, product
from typing import Any

import numpy as np

from .. import _check
from ..losses import LinearModel, Loss, as_loss
from ..losses.base import FunctionLoss
from ._report import Checks, Fault, NotApplicable, Report, call_unchanged, run_checks, show

# Distances of the random points from x, relative to the largest entry of x.
RADII = (0.01, 0.1, 0.1, 0.3, 0.3, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 10.0)
CHECKED_PAIRS = 40  # pairs of points between which convexity is checked
CHECKED_COORDINATES = 20  # partial derivatives that are checked at each point
CHECKED_TARGETS = 6  # targets whose scalar loss is checked

Point = tuple[np.ndarray, Any, np.ndarray]  # x, with the value and the gradient of the loss there


def check_loss(loss: Any, x: Any = None, *, seed: int = 0) -> Report:
    """Check a user-defined loss at random points.

    The value, the gradient, convexity, several trajectories side by side, and everything that the
    loss declares about itself are checked. Passing these checks does not prove correctness.

    Parameters
    ----------
    loss : Loss or callable
        A loss, or a function x -> (value, gradient).
    x : array, optional
        The center of the random points, which are up to about ten times its largest entry away.
        Zero by default, if the loss knows its shape.
    seed : int
        Seed of the random points.

    Returns
    -------
    Report
        True if nothing is wrong. It prints as one sentence per check. `failures` lists the
        sentences about what is wrong.

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
    checks = LossChecks(as_loss(loss), x, np.random.default_rng(seed))
    required: Checks = {
        "Value and gradient have the right shapes, and are finite around x.": checks.finite
    }
    others: Checks = {
        "The same x gives the same answer twice, and is not changed.": checks.repeatable,
        "The gradient is the slope of the value.": checks.gradient,
        "The loss is convex: it lies above its tangents.": checks.convex,
        "Several x side by side give the same answers as each x alone.": checks.trajectories,
        "The Lipschitz constant bounds the change of the gradient.": checks.lipschitz,
    }
    if isinstance(checks.loss, LinearModel) and checks.loss.scalar is not None:
        scalar = ScalarChecks(checks.loss, np.random.default_rng(seed))
        others |= {
            "The conjugate is that of the scalar loss.": scalar.conjugate,
            "The derivative of the scalar loss agrees with 'slopes'.": scalar.slopes,
            "The derivative of the scalar loss agrees with 'smoothness'.": scalar.smoothness,
        }
    return run_checks(name, required, others)


class LossChecks:
    """The checks of a loss, and the points at which they are made."""

    def __init__(self, loss: Loss, x: Any, rng: np.random.Generator):
        if x is None:
            if loss.shape is None:
                raise ValueError(
                    "'x' is needed: the loss is a function, so the size of x is not known."
                )
            x = np.zeros(loss.shape)
        x = _check.real_array(x, "x")
        if x.size == 0 or x.ndim == 0 or x.shape != (loss.shape or x.shape):
            shape = loss.shape or "(d,)"
            raise ValueError(f"'x' must have shape {shape}. Got shape {x.shape} instead.")
        self.loss, self.rng, self.dtype = loss, rng, loss.dtype or x.dtype
        self.x = _check.finite(x, "x").astype(self.dtype)
        self.unit = float(np.abs(self.x).max()) or 1.0
        self.eps = float(np.finfo(self.dtype).eps)
        self.points: list[Point] = []

    def evaluate(self, x: np.ndarray) -> Point:
        """Return x, value and gradient. Entries of the gradient that are not written are NaN."""
        x = x.astype(self.dtype)
        g = np.full_like(x, np.nan)
        return x, self.loss.oracle(x)(x.copy(), g), g

    def rounding(self, *points: Point) -> float:
        """Return how much rounding may change the values at these points."""
        return 20 * self.eps * max(float(abs(f) + np.abs(x * g).sum()) for x, f, g in points)

    def agrees(self, point: Point, value: Any, g: np.ndarray) -> bool:
        """Return whether another value and gradient at a point are the same, up to rounding."""
        change, slack = np.abs(g - point[2]).max(), 1e3 * self.eps * (1 + np.abs(g).max())
        return bool(abs(value - point[1]) <= self.rounding(point) and change <= slack)

    def pairs(self) -> list[tuple[Point, Point]]:
        """Return some pairs of points in random order."""
        pairs = list(combinations(self.points, 2))
        return [pairs[k] for k in self.rng.permutation(len(pairs))[:CHECKED_PAIRS]]

    def finite(self) -> None:
        x, value, g = self.evaluate(self.x)
        if np.ndim(value) or not np.isfinite([value, *g.ravel()]).all():
            raise Fault(
                "The value must be one finite number, and the gradient finite and written into "
                f"`out`. At x = {show(x)} they are {value!r} and {show(g)}."
            )
        self.points = [(x, value, g)]
        # A loss may be infinite at some distance, so smaller distances are tried if needed.
        for distance in self.unit * np.outer(10.0 ** -np.arange(10), RADII).ravel():
            point = self.evaluate(x + distance * self.rng.standard_normal(x.shape))
            if np.isfinite(point[1]) and np.isfinite(point[2]).all():
                self.points.append(point)
            if len(self.points) > len(RADII):
                return
        if 2 * len(self.points) < len(RADII):
            raise Fault(
                f"The loss is not finite at points around x = {show(x)}: give an x inside its "
                "domain."
            )

    def repeatable(self) -> None:
        for point in self.points[:3]:
            x = point[0]
            _, value, g = self.evaluate(x)
            if not self.agrees(point, value, g):
                raise Fault(
                    f"The same x gives different answers: at x = {show(x)} the value is "
                    f"{point[1]:.9g}, and then {value:.9g}."
                )
            given = x.copy()
            call = partial(self.loss.oracle(x), given, g)
            if isinstance(self.loss, FunctionLoss):  # whose oracle would copy x
                call = partial(self.loss.function, given)
            call_unchanged("The loss", call, {"x": given})

    def gradient(self) -> None:
        coordinates = np.sort(self.rng.permutation(self.x.size)[:CHECKED_COORDINATES])
        for point, i in product(self.points[:6], coordinates):
            x, f, g = point
            h = self.eps ** (1 / 3) * max(self.unit, np.abs(x).max())
            move = h * np.eye(1, x.size, i).reshape(x.shape)
            forward, backward = self.evaluate(x + move)[1] - f, f - self.evaluate(x - move)[1]
            low, high = sorted((forward / h, backward / h))  # they differ at a kink
            slope = g.flat[i]
            slack = self.rounding(point) / h + 1e-5 * abs(slope)
            slack += 100 * self.eps ** (2 / 3) * np.abs(g).max()
            if np.isfinite(high - low) and not low - slack <= slope <= high + slack:
                raise Fault(
                    f"The gradient is not the slope of the value: along coordinate {i} at "
                    f"x = {show(x)} the value changes by {(low + high) / 2:.6g} per unit, but the "
                    f"gradient says {slope:.6g}."
                )

    def convex(self) -> None:
        for first, second in self.pairs():
            middle = self.evaluate((first[0] + second[0]) / 2)
            for point, other in ((first, second), (middle, first), (middle, second)):
                (x, f_x, g), (y, f_y, _) = point, other
                move = y.astype(float) - x
                tangent = f_x + np.sum(g * move)
                if not f_y >= tangent - self.rounding(point, other, (move, f_x, g)):
                    raise Fault(
                        "The loss is not convex, or its gradient is not a subgradient: at "
                        f"y = {show(y)} the value is {f_y:.6g}, below the tangent at "
                        f"x = {show(x)}, which is {tangent:.6g} there."
                    )

    def trajectories(self) -> None:
        points, is_function = self.points[-3:], isinstance(self.loss, FunctionLoss)
        values: Any = None
        try:
            _, values, g = self.evaluate(np.stack([x for x, _, _ in points], axis=-1))
        except Exception:  # a function of one x may raise anything
            if not is_function:
                raise
        if np.shape(values) != (len(points),):
            if is_function:
                raise NotApplicable("It takes one x at a time, and is called once per trajectory.")
            raise Fault(
                "Several x side by side must have one value each, shape "
                f"({len(points)},). Got shape {np.shape(values)}."
            )
        for k, point in enumerate(points):
            if not self.agrees(point, values[k], g[..., k]):
                raise Fault(
                    f"Several x side by side and x = {show(point[0])} alone differ: the values are "
                    f"{values[k]:.9g} and {point[1]:.9g}."
                )

    def lipschitz(self) -> None:
        try:
            constant = self.loss.lipschitz()
        except ValueError:
            raise NotApplicable("It has no Lipschitz constant.") from None
        for (x, _, g_x), (y, _, g_y) in self.pairs():
            change, distance = np.linalg.norm(g_x.astype(float) - g_y), np.linalg.norm(x - y)
            slack = 1e3 * self.eps * np.abs(g_x).max()
            if change > constant * distance * (1 + 1e-6) + slack:
                raise Fault(
                    f"The constant of lipschitz() is too small: it is {constant:.6g}, but between "
                    f"x = {show(x)} and y = {show(y)} the gradient changes by "
                    f"{change / distance:.6g} per unit."
                )


class ScalarChecks:
    """Checks of what a linear model declares about its scalar loss. Arrays: (targets, points)."""

    def __init__(self, loss: LinearModel, rng: np.random.Generator):
        self.loss = loss
        targets = rng.permutation(np.unique(loss.b))[:CHECKED_TARGETS].astype(float)
        offsets = [*3 * rng.standard_normal(20), -2.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 2.0]
        self.b, offsets = np.meshgrid(targets, np.sort(offsets), indexing="ij")
        self.z = self.b + offsets

    @cached_property
    def values_and_slopes(self) -> Any:
        scalar: Any = getattr(self.loss.scalar, "py_func", self.loss.scalar)  # not compiled
        return np.vectorize(scalar, otypes="dd")(self.z, self.b, self.loss.theta)

    def conjugate(self) -> None:
        if self.loss.conjugate is None:
            raise NotApplicable("It has no 'conjugate', so duality gaps are not known.")
        value, slope = self.values_and_slopes
        # The points are slightly inside the domain, because rounding may miss its ends.
        u = slope + 1e-9 * (slope.mean(axis=1, keepdims=True) - slope)
        conjugate = np.empty_like(u)
        conjugate[:] = self.loss.conjugate(u, self.b, self.loss.theta)
        largest = (u[:, :, None] * self.z[:, None, :] - value[:, None, :]).max(axis=2)
        slack = 1e-7 * (1.0 + np.abs(value) + np.abs(u * self.z))
        for at in map(tuple, np.argwhere(~(np.abs(conjugate - largest) <= slack))):
            word = "small" if conjugate[at] < largest[at] else "large"
            raise Fault(
                f"The conjugate is too {word}: at u = {u[at]:.6g}, b = {self.b[at]:.6g} it is "
                f"{conjugate[at]:.6g}, but the largest u z - value(z) that was found is "
                f"{largest[at]:.6g}."
            )

    def slopes(self) -> None:
        _, slope = self.values_and_slopes
        z, b, slack = self.z, self.b, 1e-9 * (1 + np.abs(slope))
        low, high = self.loss.slopes(b, self.loss.theta)
        if self.loss.piecewise_linear:
            low, high = np.where(z > b, high, low), np.where(z < b, low, high)
        for at in map(tuple, np.argwhere((slope < low - slack) | (slope > high + slack))):
            raise Fault(
                f"The derivative of the scalar loss is outside its 'slopes': at "
                f"z = {z[at]:.6g}, b = {b[at]:.6g} it is {slope[at]:.6g}."
            )

    def smoothness(self) -> None:
        constant = self.loss.smoothness
        if constant is None:
            raise NotApplicable("It has no 'smoothness', so its gradient may jump.")
        _, slope = self.values_and_slopes
        change, distance = np.abs(np.diff(slope)), np.diff(self.z)
        for i, k in np.argwhere(change > constant * distance * (1 + 1e-6) + 1e-9):
            raise Fault(
                f"'smoothness' {constant} is too small: between z = {self.z[i, k]:.9g} and "
                f"{self.z[i, k + 1]:.9g}, b = {self.b[i, k]:.6g}, the derivative changes by "
                f"{change[i, k] / distance[i, k]:.6g} per unit."
            )
