"""Check user-defined losses and penalties: values, gradients, proximal points and conjugates."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np

from .. import _check
from ..losses import LinearModel, as_loss
from ..losses.base import FunctionLoss
from ..penalties import Penalty, as_penalty
from ..penalties.foreign import METRIC_KINDS
from .report import Fault, NotApplicable, Report, call_unchanged, first, show

# Distances of the random points from x, relative to the largest entry of x.
RADII = (0.0, 0.01, 0.1, 0.1, 0.3, 0.3, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 10.0)
MIN_FINITE_SHARE = 0.5  # of these points, at which a loss must be finite
CHECKED_COORDINATES = 20  # partial derivatives that are checked at each point
CHECKED_TARGETS = 6  # targets whose scalar loss is checked
DEFAULT_SIZE, LARGEST_SIZE = 6, 100  # of vectors that are tried if no size is given
POINT_SCALES = (1.0, 10.0, 0.1, 3.0, 0.3)  # standard deviations of the random points
POINT_STEPS = (0.05, 1.0, 20.0)
DISTANCES = (0.3, -0.3, 1e-3, -1e-3)  # to points that the prox is compared with, relative to it
PROX_ERROR = 1e-6  # relative error allowed in the prox of an iterative penalty
SET_WIDTH = 1e-7  # how far outside of a set, relative to its size, points may count as inside


def check_loss(loss: Any, x: Any = None, *, seed: int = 0) -> Report:
    """Check a user-defined loss at random points.

    The value, the gradient, convexity, several trajectories side by side, and what a linear model
    declares about its scalar loss are checked. Passing these checks does not prove correctness.

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
    The gradient is not the slope of the value: along coordinate 0 at x = [1., 1., 1.] ...
    """
    rng, report = (
        np.random.default_rng(seed),
        Report(getattr(loss, "__name__", type(loss).__name__)),
    )
    loss = as_loss(loss)
    if x is None and loss.shape is None:
        raise ValueError("'x' is needed: the loss is a function, so the size of x is not known.")
    center = _check.real_array(np.zeros(loss.shape or ()) if x is None else x, "x")
    if center.size == 0 or center.shape != (loss.shape or center.shape or None):
        wanted = loss.shape or "(d,)"
        raise ValueError(f"'x' must have shape {wanted}. Got shape {center.shape} instead.")
    dtype, unit = loss.dtype or center.dtype, float(np.abs(center).max()) or 1.0
    eps = float(np.finfo(dtype).eps)
    moves = [unit * radius * rng.standard_normal(center.shape) for radius in RADII]
    points = (_check.finite(center, "x") + moves).astype(dtype)

    def evaluate(x: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return value and gradient. Entries of the gradient that are not written are NaN."""
        x = x.astype(dtype)
        oracle, g = loss.oracle(x), np.full_like(x, np.nan)
        return call_unchanged("The loss", lambda x: oracle(x, g), x=x), g.astype(np.float64)

    with report.check("Value and gradient have the right shapes, and are finite around x."):
        answers = [evaluate(x) for x in points]
        good = np.array([np.ndim(f) == 0 and np.isfinite(f + g).all() for f, g in answers])
        if not good[0] or np.mean(good) < MIN_FINITE_SHARE:
            k = int(np.argmin(good))
            raise Fault(
                "The value must be one finite number, and the gradient finite and written into "
                f"`out`, at points around x. At x = {show(points[k])} they are "
                f"{answers[k][0]!r} and {show(answers[k][1])}."
            )
        xs = points[good].astype(np.float64)
        fs, gs = (np.array(part)[good] for part in zip(*answers, strict=True))
        axes = tuple(range(-center.ndim, 0))  # of x
        rounding = 20 * eps * (np.abs(fs) + np.abs(xs * gs).sum(axes))  # of each value
    if not report:
        return report

    def compare(k: int, f: Any, g: np.ndarray, fault: str) -> None:
        """Raise unless value and gradient at the k-th point are the same, up to rounding."""
        slack = 1e3 * eps * (1 + np.abs(g).max())
        if not (abs(f - fs[k]) <= rounding[k] and np.abs(g - gs[k]).max() <= slack):
            raise Fault(
                f"{fault}: at x = {show(xs[k])} the values are {fs[k]:.9g} and {f:.9g}, and the "
                f"gradients {show(gs[k])} and {show(g)}."
            )

    with report.check("The same x gives the same answer twice, and is not changed."):
        for k in range(3):
            compare(k, *evaluate(xs[k]), "The same x gives different answers")

    with report.check("The gradient is the slope of the value."):
        coordinates = np.sort(rng.permutation(center.size)[:CHECKED_COORDINATES])
        for k, i in product(range(6), coordinates):
            x, f, slope = xs[k], fs[k], gs[k].flat[i]
            h = eps ** (1 / 3) * max(unit, np.abs(x).max())
            move = h * np.eye(1, x.size, i).reshape(x.shape)
            # Forward and backward differences are not equal where the loss is nonsmooth.
            ends = (evaluate(x + move)[0] - f) / h, (f - evaluate(x - move)[0]) / h
            slack = rounding[k] / h + 100 * eps ** (2 / 3) * np.abs(gs[k]).max()
            if not min(ends) - slack <= slope <= max(ends) + slack and np.isfinite(ends).all():
                raise Fault(
                    f"The gradient is not the slope of the value: along coordinate {i} at "
                    f"x = {show(x)} the value changes by {np.mean(ends):.6g} per unit, but the "
                    f"gradient says {slope:.6g}."
                )

    with report.check("The loss is convex: it lies above its tangents."):
        changes = gs[:, None] * (xs - xs[:, None])
        tangents = fs[:, None] + changes.sum(axes)
        slack = rounding + rounding[:, None] + 20 * eps * np.abs(changes).sum(axes)
        if at := first(fs < tangents - slack):
            x, y = xs[list(at)]
            raise Fault(
                f"The loss is not convex, or its gradient is not a subgradient: at y = {show(y)} "
                f"the value is {fs[at[1]]:.6g}, below the tangent at x = {show(x)}, which is "
                f"{tangents[at]:.6g} there."
            )

    with report.check("Several x side by side give the same answers as each x alone."):
        if isinstance(loss, FunctionLoss):
            raise NotApplicable("A function may take one x at a time: it is called for each.")
        values, columns = evaluate(np.stack(xs[:3], axis=-1))
        if np.shape(values) != (3,):
            raise Fault(
                "Several x side by side must have one value each, shape (3,). "
                f"Got shape {np.shape(values)}."
            )
        for k in range(3):
            compare(k, values[k], columns[..., k], "Several x side by side and each alone differ")

    if isinstance(loss, LinearModel) and loss.scalar is not None:
        _check_scalar(report, loss, rng)
    return report


def _check_scalar(report: Report, loss: LinearModel, rng: np.random.Generator) -> None:
    """Check what a linear model declares about its scalar loss. Arrays: (targets, points)."""
    targets = rng.permutation(np.unique(loss.b))[:CHECKED_TARGETS].astype(float)
    offsets = [*3 * rng.standard_normal(20), -2.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 2.0]
    b, offsets = np.meshgrid(targets, np.sort(offsets), indexing="ij")
    scalar: Any = getattr(loss.scalar, "py_func", loss.scalar)  # not compiled
    z, theta = b + offsets, loss.theta

    with report.check("The conjugate is that of the scalar loss."):
        value, slope = np.vectorize(scalar, otypes="dd")(z, b, theta)
        if loss.conjugate is None:
            raise NotApplicable("It has no 'conjugate', so duality gaps are not known.")
        # The points are slightly inside the domain, because rounding may miss its ends.
        u = slope + 1e-9 * (slope.mean(axis=1, keepdims=True) - slope)
        found = np.broadcast_to(loss.conjugate(u, b, theta), u.shape)
        largest = u * z - value  # because u is the slope at z
        slack = 1e-7 * (1.0 + np.abs(value) + np.abs(u * z))
        if at := first(~(np.abs(found - largest) <= slack)):
            raise Fault(
                f"The conjugate is too {'small' if found[at] < largest[at] else 'large'}: at "
                f"u = {u[at]:.6g}, b = {b[at]:.6g} it is {found[at]:.6g}, but the largest "
                f"u z - value(z) is {largest[at]:.6g}."
            )

    with report.check("The derivative of the scalar loss agrees with 'slopes' and 'smoothness'."):
        low, high = loss.slopes(b, theta)
        if loss.piecewise_linear:
            low, high = np.where(z > b, high, low), np.where(z < b, low, high)
        slack = 1e-9 * (1 + np.abs(slope))
        if at := first((slope < low - slack) | (slope > high + slack)):
            raise Fault(
                "The derivative of the scalar loss is outside its 'slopes': at "
                f"z = {z[at]:.6g}, b = {b[at]:.6g} it is {slope[at]:.6g}."
            )
        change = np.abs(np.diff(slope)) / np.diff(z)
        most = np.inf if loss.smoothness is None else loss.smoothness * (1 + 1e-6) + 1e-3
        if at := first(change > most):
            raise Fault(
                f"'smoothness' {loss.smoothness} is too small: near z = {z[at]:.9g}, "
                f"b = {b[at]:.6g} the derivative changes by {change[at]:.6g} per unit."
            )


def check_penalty(penalty: Any, size: int | None = None, *, seed: int = 0) -> Report:
    """Check a user-defined penalty at random points.

    The value, the prox in the metrics that the penalty accepts, several trajectories side by side,
    the conjugate and the polar are checked. Passing these checks does not prove correctness.

    Parameters
    ----------
    penalty : Penalty
        A penalty, or any object with value(x) and prox(z, step).
    size : int, optional
        Size of the vectors. The default is six, or the smallest size that the penalty accepts.
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
    >>> from adagrad_diff import L1, check_penalty
    >>> bool(check_penalty(L1(0.1)))
    True
    >>> class Careless:
    ...     def value(self, x):
    ...         return np.abs(x).sum()
    ...     def prox(self, z, step):
    ...         return np.sign(z) * np.maximum(np.abs(z) - 1.0, 0.0)  # the step is forgotten
    >>> print(check_penalty(Careless()).failures[0])  # doctest: +ELLIPSIS
    The prox is not the minimizer of value(x) + sum((x - z)**2 / (2 step)), or ...
    """
    inner, rng = as_penalty(penalty), np.random.default_rng(seed)
    d = _find_size(inner) if size is None else _check.count(size, "size", "check_penalty", least=1)
    inner.check_size(d)
    report, width = Report(inner.name), 1 if inner.accepts == "scalar" else d  # of a step
    points = [scale * rng.standard_normal(d) for scale in POINT_SCALES]
    points += [np.round(points[0]), np.zeros(d)]  # rounded, some entries are equal

    def value(x: np.ndarray) -> float:
        return _number(inner.value(x), "value")

    def as_passed(step: Any) -> np.ndarray:
        """Return a step, a number or a vector, as solvers pass it to this penalty."""
        return np.broadcast_to(step, d)[:width].copy()

    def prox(z: np.ndarray, step: Any) -> np.ndarray:
        return inner.prox(z.copy(), as_passed(step))

    with report.check("The attribute 'accepts' is valid."):
        _check.one_of(inner.accepts, METRIC_KINDS, "accepts", inner.name)
    with report.check("The prox has the shape of z, a finite value, and unchanged arguments."):
        for z, step in product(points, POINT_STEPS):
            x = call_unchanged("The prox", inner.prox, z=z.copy(), step=as_passed(step))
            if np.shape(x) != z.shape or not np.isfinite([*x, value(x)]).all():
                raise Fault(
                    f"The prox must be finite, of shape {z.shape} like z, and have a finite value. "
                    f"At z = {show(z)} it is {show(x)}, with value {show(inner.value(x))}."
                )
    if not report:
        return report

    # Points x of the domain, each with a subgradient (z - x) / step of the penalty at x.
    z, steps = np.repeat(points, 2, axis=0), np.tile(POINT_STEPS[:2], len(points))
    xs = np.array(list(map(prox, z, steps)))
    us = np.where(np.isclose(xs, z, rtol=1e-12, atol=0.0), 0.0, z - xs) / steps[:, None]

    def check_minimizer(z: np.ndarray, step: np.ndarray, hint: str = "") -> None:
        """Check that u = (z - x) / step is a subgradient at the prox x.

        This means that value(y) >= value(x) + <u, y - x> for all y. If it holds at all x, the value
        is convex, and the prox does not move points farther apart.
        """
        x = prox(z, step)
        u, at_x, size = (z - x) / step, value(x), np.abs(x).max() or 1.0
        moves = [*np.eye(d)[rng.permutation(d)[:6]], *rng.standard_normal((3, d))]
        near = [x + size * distance * move for distance, move in product(DISTANCES, moves)]
        inside = [prox(y, 1e-3 * step) for y in near]  # points of the domain
        for y in [*near, *inside, *points, *xs]:
            at_y, tangent = value(y), at_x + float(u @ (y - x))
            slack = PROX_ERROR * float((np.abs(z) + np.abs(x)) @ (np.abs(y - x) / step))
            slack += 1e-9 * (abs(at_x) + abs(at_y))
            slack += SET_WIDTH * float(np.abs(u).sum() * np.abs([x, y]).max())
            if at_y < tangent - slack:  # never for y outside of the domain
                raise Fault(
                    "The prox is not the minimizer of value(x) + sum((x - z)**2 / (2 step)), or "
                    f"the value is not convex: for z = {show(z)} and step = {show(step)} the prox is "
                    f"x = {show(x)}, but the value at y = {show(y)} is {at_y:.6g}, below "
                    f"value(x) + sum((z - x) (y - x) / step) = {tangent:.6g}.{hint}"
                )

    with report.check("With one step for all coordinates, the prox is the minimizer."):
        for z, step in product(points, POINT_STEPS):
            check_minimizer(z, np.full(d, step))

    labels = _finest_blocks(inner, d)
    random_steps = [10.0 ** rng.uniform(-2, 1, d)[labels] for _ in points]
    with report.check("With different steps, the prox is the minimizer."):
        if not labels.any():
            raise NotApplicable(
                "The prox takes one step for all coordinates: use the penalty with blocks='all', "
                "or in NumericalProx."
            )
        for z, step in zip(points, random_steps, strict=True):
            hint = "If the formula is for a single step, set accepts = 'scalar'."
            check_minimizer(z, step, f" This is with steps that differ. {hint}")

    with report.check("Several z side by side give the same answers as each z alone."):
        several = np.stack([as_passed(step) for step in random_steps[:3]], axis=1)
        columns = inner.prox(np.stack(points[:3], axis=1), several)
        alone = list(map(prox, points[:3], random_steps))
        pairs: dict[str, Any] = {
            "prox": (columns.T, alone),
            "value": (inner.value(columns), list(map(value, alone))),
        }
        for name, (found, expected) in pairs.items():
            if np.shape(found) != np.shape(expected) or not np.allclose(found, expected):
                raise Fault(
                    f"Several z side by side and each alone differ: the {name} of 3 columns is "
                    f"{show(found)} of shape {np.shape(found)}, but should be {show(expected)}."
                )

    with report.check("The conjugate is that of the value."):
        try:
            inner.conjugate(np.zeros(d))
        except ValueError:
            raise NotApplicable("It has no conjugate, so duality gaps are not known.") from None
        us_inside = (1 - 1e-9) * us  # slightly inside the domain, whose ends rounding may miss
        conjugates = np.array([_number(inner.conjugate(u), "conjugate") for u in us_inside])
        at_xs = np.array(list(map(value, xs)))
        differences = us_inside @ xs.T - at_xs  # at most the conjugate, and equal on the diagonal
        slack = 1e-6 * (np.abs(us) @ np.abs(xs.T) + np.abs(at_xs) + 1e-9)
        small = conjugates[:, None] < differences - slack
        large = np.diag(~(conjugates <= np.diag(differences + slack)))
        if at := first(small | large):
            raise Fault(
                f"The conjugate is too {'small' if small[at] else 'large'}: at "
                f"u = {show(us[at[0]])} it is {conjugates[at[0]]:.6g}, but <u, y> - value(y) is "
                f"{differences[at]:.6g} at y = {show(xs[at[1]])}."
            )

    with report.check("The value, and the polar of a norm, agree with 'properties'."):
        for x in xs:
            once, double, opposite = (value(factor * x) for factor in (1.0, 2.0, -2.0))
            even = np.allclose([double, opposite], 2 * once)
            holds = {"set": once == 0, "cone": double == 0, "norm": even, "seminorm": even}
            if wrong := [name for name in inner.properties if not holds.get(name, True)]:
                raise Fault(
                    f"'properties' contains {wrong[0]!r}, but at x = {show(x)} the values of x, "
                    f"2 x and -2 x are {once:.6g}, {double:.6g} and {opposite:.6g}."
                )
        for x, u in zip(xs, us, strict=True) if {"norm", "seminorm"} & inner.properties else ():
            polar, least = _number(inner.polar(u), "polar"), float(value(x) > 0)
            if not least - PROX_ERROR <= polar <= 1 + PROX_ERROR:
                raise Fault(
                    f"The polar is too {'small' if polar < 1 else 'large'}: u = {show(u)} is a "
                    f"subgradient at x = {show(x)}, so polar(u) must be between {least:g} and 1, "
                    f"not {polar:.6g}."
                )
    return report


def _find_size(penalty: Penalty) -> int:
    """Return a size that the penalty accepts."""
    # One coordinate comes last: NumPy would broadcast it to the parameters of the penalty.
    size: int
    for size in (DEFAULT_SIZE, *range(2, LARGEST_SIZE + 1), 1):
        with suppress(Exception):
            penalty.check_size(size)
            penalty.value(np.zeros(size))  # it may work for one size only, without saying so
            return size
    return DEFAULT_SIZE


def _finest_blocks(penalty: Penalty, size: int) -> np.ndarray:
    """Return the finest of some divisions into blocks whose steps may differ, or one block."""
    for count in range(size, 1, -1):
        labels = np.sort(np.arange(size) % count)
        with suppress(ValueError):
            penalty.check_metric(labels, False)
            return labels
    return np.zeros(size, int)


def _number(result: Any, name: str) -> float:
    if np.ndim(result):
        raise Fault(f"The {name} of a vector must be one number. It has shape {np.shape(result)}.")
    return float(result)
