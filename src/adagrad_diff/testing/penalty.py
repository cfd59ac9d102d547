"""Check a user-defined penalty: value, prox in the metrics that it accepts, conjugate."""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np

from .. import _check
from ..penalties import Penalty, as_penalty
from ..penalties.foreign import METRIC_KINDS
from ._report import Fault, NotApplicable, Report, call_unchanged, first, show

DEFAULT_SIZE, LARGEST_SIZE = 6, 100  # of vectors that are tried if no size is given
POINT_SCALES = (1.0, 10.0, 0.1, 3.0, 0.3)  # standard deviations of the random points
POINT_STEPS = (0.05, 1.0, 20.0)
DISTANCES = (0.3, -0.3, 1e-3, -1e-3)  # to points that the prox is compared with, relative to it
PROX_ERROR = 1e-6  # relative error allowed in the prox of an iterative penalty
SET_WIDTH = 1e-7  # how far outside of a set, relative to its size, points may count as inside


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
    report, scalar = Report(inner.name), inner.accepts == "scalar"
    points = [scale * rng.standard_normal(d) for scale in POINT_SCALES]
    points += [np.round(points[0]), np.zeros(d)]  # rounded, some entries are equal

    def value(x: np.ndarray) -> float:
        return _number(inner.value(x), "value")

    def as_passed(step: Any) -> np.ndarray:
        """Return a step, a number or a vector, as solvers pass it to this penalty."""
        return np.broadcast_to(step, d)[: 1 if scalar else d].copy()

    def prox(z: np.ndarray, step: Any) -> np.ndarray:
        return inner.prox(z.copy(), as_passed(step))

    with report.check("The attributes 'accepts' and 'properties' are valid."):
        if inner.accepts not in METRIC_KINDS:
            raise Fault(f"'accepts' must be one of {METRIC_KINDS}. It is {inner.accepts!r}.")
        if not isinstance(inner.properties, Set):
            raise Fault(
                f"'properties' must be a set, such as {{'norm'}}. It is {inner.properties!r}."
            )
    if not report:
        return report

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
        values = inner.value(columns)
        if np.shape(values) != (3,):
            raise Fault(
                "There must be one value for each of 3 columns, shape (3,). The shape is "
                f"{np.shape(values)}."
            )
        alone = list(map(prox, points[:3], random_steps))
        values_alone = list(map(value, alone))
        if not (np.allclose(columns.T, alone) and np.allclose(values, values_alone)):
            raise Fault(
                f"Several z side by side and each alone differ: the prox is {show(columns.T)} and "
                f"{show(alone)}, its values {show(values)} and {show(values_alone)}."
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

    with report.check("The polar is that of the value."):
        if not {"norm", "seminorm"} & inner.properties:
            raise NotApplicable("It is not a norm or seminorm, so it has no polar.")
        for x, u in zip(xs, us, strict=True):
            polar, least = _number(inner.polar(u), "polar"), float(value(x) > 0)
            if not least - PROX_ERROR <= polar <= 1 + PROX_ERROR:
                raise Fault(
                    f"The polar is too {'small' if polar < 1 else 'large'}: u = {show(u)} is a "
                    f"subgradient at x = {show(x)}, so polar(u) must be between {least:g} and 1, "
                    f"not {polar:.6g}."
                )

    with report.check("The value agrees with 'properties'."):
        for x in xs:
            once, double, opposite = (value(factor * x) for factor in (1.0, 2.0, -2.0))
            even = np.allclose([double, opposite], 2 * once)
            holds = {"set": once == 0, "cone": double == 0, "norm": even, "seminorm": even}
            if wrong := [name for name in inner.properties if not holds.get(name, True)]:
                raise Fault(
                    f"'properties' contains {wrong[0]!r}, but at x = {show(x)} the values of x, "
                    f"2 x and -2 x are {once:.6g}, {double:.6g} and {opposite:.6g}."
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
