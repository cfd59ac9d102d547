"""Check a user-defined loss: value, gradient, convexity and what it declares about itself."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from .. import _check
from ..losses import LinearModel, as_loss
from ..losses.base import FunctionLoss
from ._report import Fault, NotApplicable, Report, call_unchanged, first, show

# Distances of the random points from x, relative to the largest entry of x.
RADII = (0.0, 0.01, 0.1, 0.1, 0.3, 0.3, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 10.0)
MIN_FINITE_SHARE = 0.5  # of these points, at which a loss must be finite
CHECKED_COORDINATES = 20  # partial derivatives that are checked at each point
CHECKED_TARGETS = 6  # targets whose scalar loss is checked


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
    The gradient is not the slope of the value: along coordinate 0 at x = [1., 1., 1.] ...
    """
    report, rng = (
        Report(getattr(loss, "__name__", type(loss).__name__)),
        np.random.default_rng(seed),
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

    def sums(array: np.ndarray) -> Any:
        """Return sums over the axes of x."""
        return array.sum(axis=tuple(range(-center.ndim, 0)))

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
        rounding = 20 * eps * (np.abs(fs) + sums(np.abs(xs * gs)))  # of each value
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
        tangents = fs[:, None] + sums(changes)
        slack = rounding + rounding[:, None] + 20 * eps * sums(np.abs(changes))
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

    with report.check("The Lipschitz constant bounds the change of the gradient."):
        try:
            constant = loss.lipschitz()
        except ValueError:
            raise NotApplicable("It has no Lipschitz constant.") from None
        distance = np.sqrt(sums((xs - xs[:, None]) ** 2))
        change = np.sqrt(sums((gs - gs[:, None]) ** 2))
        if at := first(change > constant * distance * (1 + 1e-6) + 1e3 * eps * np.abs(gs).max()):
            x, y = xs[list(at)]
            raise Fault(
                f"The constant of lipschitz() is too small: it is {constant:.6g}, but between "
                f"x = {show(x)} and y = {show(y)} the gradient changes by "
                f"{change[at] / distance[at]:.6g} per unit."
            )

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

    with report.check("The derivative of the scalar loss agrees with 'slopes'."):
        low, high = loss.slopes(b, theta)
        if loss.piecewise_linear:
            low, high = np.where(z > b, high, low), np.where(z < b, low, high)
        slack = 1e-9 * (1 + np.abs(slope))
        if at := first((slope < low - slack) | (slope > high + slack)):
            raise Fault(
                "The derivative of the scalar loss is outside its 'slopes': at "
                f"z = {z[at]:.6g}, b = {b[at]:.6g} it is {slope[at]:.6g}."
            )

    with report.check("The derivative of the scalar loss agrees with 'smoothness'."):
        if loss.smoothness is None:
            raise NotApplicable("It has no 'smoothness', so its gradient may jump.")
        change = np.abs(np.diff(slope)) / np.diff(z)
        if at := first(change > loss.smoothness * (1 + 1e-6) + 1e-3):
            raise Fault(
                f"'smoothness' {loss.smoothness} is too small: near z = {z[at]:.9g}, "
                f"b = {b[at]:.6g} the derivative changes by {change[at]:.6g} per unit."
            )
