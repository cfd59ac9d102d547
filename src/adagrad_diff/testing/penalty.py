"""Check a user-defined penalty: its value, its prox in the metrics it accepts, and its conjugate."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import suppress
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from .. import _check
from ..penalties import Foreign, Penalty, as_penalty
from ..penalties.foreign import METRIC_KINDS
from ._report import Checks, Fault, NotApplicable, Report, call_unchanged, run_checks, show

LARGEST_SIZE = 100  # the largest size that is tried if none is given
POINT_SCALES = (1.0, 10.0, 0.1, 3.0, 0.3)  # standard deviations of the random points
POINT_STEPS = (0.05, 1.0, 20.0)
DISTANCES = (0.3, 1e-3)  # from the prox to points it is compared with, relative to its size
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
    inner = as_penalty(penalty)
    checks = PenaltyChecks(inner, _find_size(inner, size), np.random.default_rng(seed))
    required: Checks = {
        "The attributes 'accepts' and 'properties' are valid.": checks.attributes,
        "The prox has the shape of z, a finite value, and unchanged arguments.": checks.calls,
    }
    others: Checks = {
        "With one step for all coordinates, the prox is the minimizer.": checks.equal_steps,
        "With different steps, the prox is the minimizer.": checks.different_steps,
        "The prox keeps single precision, writes into `out`, also in place, and returns it.": (
            checks.output
        ),
        "Several z side by side give the same answers as each z alone.": checks.trajectories,
        "The conjugate is that of the value.": checks.conjugate,
        "The polar is that of the value.": checks.polar,
        "The value agrees with 'properties'.": checks.properties,
    }
    return run_checks(inner.name, required, others)


def _find_size(penalty: Penalty, size: int | None) -> int:
    """Return the given size if the penalty accepts it, or find one."""
    if size is not None:
        _check_size(penalty, _check.count(size, "size", "check_penalty", least=1))
        return size
    accepted: list[int] = []
    # One coordinate comes last: NumPy would broadcast it to the parameters of the penalty.
    for candidate in [6, *range(2, LARGEST_SIZE + 1), 1]:
        with suppress(ValueError):
            _check_size(penalty, candidate)
            accepted.append(candidate)
            with suppress(Exception):  # the value may work for one size only, without saying so
                penalty.value(np.zeros(candidate))
                return accepted[-1]
    if not accepted:
        raise ValueError(
            f"'size' is needed: {penalty.name} accepts no vector of 1 to {LARGEST_SIZE} coordinates."
        )
    return accepted[0]


def _check_size(penalty: Penalty, size: int) -> None:
    try:
        penalty.check_size(size)
    except ValueError:
        raise
    except Exception as error:
        raise TypeError(
            f"{penalty.name}.check_size({size}) must do nothing, or raise a ValueError. "
            f"It raised {error!r}."
        ) from error


class PenaltyChecks:
    """The checks of a penalty, and the points and steps with which they are made."""

    def __init__(self, penalty: Penalty, size: int, rng: np.random.Generator):
        self.penalty, self.size, self.rng = penalty, size, rng
        points = [scale * rng.standard_normal(size) for scale in POINT_SCALES]
        self.points = [*points, np.round(points[0]), np.zeros(size)]  # rounded, some are equal

    def value(self, x: np.ndarray) -> float:
        return _number(self.penalty.value(x), "value")

    def prox(self, z: np.ndarray, step: Any) -> np.ndarray:
        return self.penalty.prox(z.copy(), self.as_passed(step))

    def as_passed(self, step: Any) -> np.ndarray:
        """Return a step, a number or a vector, as solvers pass it to this penalty."""
        count = 1 if self.penalty.accepts == "scalar" else self.size
        return np.broadcast_to(step, self.size)[:count].copy()

    @cached_property
    def labels(self) -> np.ndarray:
        """The finest of some divisions into blocks whose steps may differ; else a single block."""
        for count in range(self.size, 1, -1):
            labels = np.sort(np.arange(self.size) % count)
            with suppress(ValueError):
                self.penalty.check_metric(labels, False)
                return labels
        return np.zeros(self.size, int)

    def random_steps(self) -> np.ndarray:
        steps: np.ndarray = 10.0 ** self.rng.uniform(-2, 2, self.size)[self.labels]
        return steps

    @cached_property
    def subgradients(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Points x of the domain, each with a subgradient (z - x) / step of the penalty at x."""
        pairs = []
        for z, step in product(self.points, POINT_STEPS[:2]):
            x = self.prox(z, step)
            moved = np.where(np.isclose(x, z, rtol=1e-12, atol=0.0), 0.0, z - x)
            pairs.append((x, moved / step))
        return pairs

    def attributes(self) -> None:
        accepts, properties = self.penalty.accepts, self.penalty.properties
        if accepts not in METRIC_KINDS:
            raise Fault(f"'accepts' must be one of {METRIC_KINDS}. It is {accepts!r}.")
        if not isinstance(properties, Set):
            raise Fault(f"'properties' must be a set, such as {{'norm'}}. It is {properties!r}.")

    def calls(self) -> None:
        for point, number in product(self.points, POINT_STEPS):
            z, step = point.copy(), self.as_passed(number)
            call = partial(self.penalty.prox, z, step)
            x = call_unchanged("The prox", call, {"z": z, "step": step})
            if np.shape(x) != z.shape or not np.isfinite(x).all():
                raise Fault(
                    f"The prox of z = {show(z)} must be finite and have shape {z.shape}. It is "
                    f"{show(x)}."
                )
            value = self.value(x)
            if not np.isfinite(value):
                raise Fault(
                    f"The value at the prox of z = {show(z)}, x = {show(x)}, is {value}. It must "
                    "not be NaN or infinite, because the prox is a point of the domain."
                )

    def equal_steps(self) -> None:
        for z, step in product(self.points, POINT_STEPS):
            self.check_minimizer(z, np.full(self.size, step))

    def different_steps(self) -> None:
        if not self.labels.any():
            raise NotApplicable(
                "The prox takes one step for all coordinates: use the penalty with blocks='all', "
                "or in NumericalProx."
            )
        hint = " This is with steps that differ. If the formula is for a single step, set accepts = 'scalar'."
        for z in self.points:
            self.check_minimizer(z, self.random_steps(), hint)

    def check_minimizer(self, z: np.ndarray, step: np.ndarray, hint: str = "") -> None:
        """Check that u = (z - x) / step is a subgradient at the prox x.

        This means that value(y) >= value(x) + <u, y - x> for all y. If it holds at all x, the value
        is convex, and the prox does not move points farther apart.
        """
        x = self.prox(z, step)
        u, value = (z - x) / step, self.value(x)
        for y in self.competitors(x, step):
            other, tangent = self.value(y), value + float(u @ (y - x))
            slack = PROX_ERROR * float(np.sum((np.abs(z) + np.abs(x)) * np.abs(y - x) / step))
            slack += 1e-9 * (abs(value) + abs(other))
            slack += SET_WIDTH * float(np.abs(u).sum() * np.abs([x, y]).max())
            if other < tangent - slack:  # never for y outside of the domain
                raise Fault(
                    "The prox is not the minimizer of value(x) + sum((x - z)**2 / (2 step)), or the "
                    f"value is not convex: for z = {show(z)} and step = {show(step)} the prox is "
                    f"x = {show(x)}, but the value at y = {show(y)} is {other:.6g}, below "
                    f"value(x) + sum((z - x) (y - x) / step) = {tangent:.6g}.{hint}"
                )

    def competitors(self, x: np.ndarray, step: np.ndarray) -> Iterator[np.ndarray]:
        """Yield points near x, points of the domain near these, and points far from x."""
        size = float(np.abs(x).max()) or 1.0
        axes = np.eye(self.size)[self.rng.permutation(self.size)[:6]]
        moves = np.concatenate([axes, self.rng.standard_normal((3, self.size))])
        for distance, sign, move in product(DISTANCES, (1.0, -1.0), moves):
            y = x + sign * distance * size * move
            yield y
            yield self.prox(y, 1e-3 * step)
        yield from self.points
        for inside, _ in self.subgradients:
            yield inside

    def output(self) -> None:
        if isinstance(self.penalty, Foreign):
            raise NotApplicable("The prox has no `out`: its results are copied, in any precision.")
        for z in self.points[:3]:
            expected, step = self.prox(z, 0.1), self.as_passed(0.1)
            in_place = z.copy()
            for given, out in ((z.copy(), np.full_like(z, np.nan)), (in_place, in_place)):
                result = self.penalty.prox(given, step, out=out)
                if result is not out or not np.array_equal(out, expected):
                    where = "z itself (in place)" if out is given else "another array"
                    raise Fault(
                        f"With `out`, {where}, the prox must write {show(expected)} into `out` and "
                        f"return it. It wrote {show(out)} and returned {show(result)}."
                    )
        single = self.points[0].astype(np.float32)
        dtype = self.penalty.prox(single, self.as_passed(0.5).astype(np.float32)).dtype
        if dtype != np.float32:
            raise Fault(f"The prox of z of dtype float32 must be of dtype float32, not {dtype}.")

    def trajectories(self) -> None:
        chosen = self.points[:3]
        z = np.stack(chosen, axis=1)
        step = np.stack([self.as_passed(self.random_steps()) for _ in chosen], axis=1)
        x = self.penalty.prox(z.copy(), step.copy())
        values = self.penalty.value(x)
        if np.shape(values) != z.shape[1:]:
            raise Fault(
                f"There must be one value for each of {len(chosen)} columns, shape {z.shape[1:]}. "
                f"The shape is {np.shape(values)}."
            )
        for k, single in enumerate(chosen):
            alone = self.prox(single, step[:, k])
            value = self.value(alone)
            if not (np.allclose(x[:, k], alone) and np.isclose(values[k], value)):
                raise Fault(
                    f"Several z side by side and z = {show(single)} alone differ: the prox is "
                    f"{show(x[:, k])} and {show(alone)}, its value {values[k]:.9g} and {value:.9g}."
                )

    def conjugate(self) -> None:
        try:
            self.penalty.conjugate(np.zeros(self.size))
        except ValueError:
            raise NotApplicable("It has no conjugate, so duality gaps are not known.") from None
        for x, subgradient in self.subgradients:
            u = (1 - 1e-9) * subgradient  # slightly inside the domain, whose ends rounding may miss
            conjugate = _number(self.penalty.conjugate(u), "conjugate")
            for y, _ in self.subgradients:
                value = self.value(y)
                gap = conjugate + value - y @ u  # at least 0, and equal to 0 at y = x
                slack = 1e-6 * (np.abs(y * u).sum() + abs(value) + 1e-9)
                if gap < -slack or (y is x and not gap <= slack):
                    raise Fault(
                        f"The conjugate is too {'small' if gap < 0 else 'large'}: at "
                        f"u = {show(u)} it is {conjugate:.6g}, but <u, y> - value(y) is "
                        f"{conjugate - gap:.6g} at the {'point' if gap < 0 else 'maximizer'} "
                        f"y = {show(y)}."
                    )

    def polar(self) -> None:
        if not {"norm", "seminorm"} & self.penalty.properties:
            raise NotApplicable("It is not a norm or seminorm, so it has no polar.")
        for x, u in self.subgradients:
            polar = _number(self.penalty.polar(u), "polar")
            least = float(self.value(x) > 0)
            if not least - PROX_ERROR <= polar <= 1 + PROX_ERROR:
                raise Fault(
                    f"The polar is too {'small' if polar < 1 else 'large'}: u = {show(u)} is a "
                    f"subgradient at x = {show(x)}, so polar(u) must be between {least:g} and 1, "
                    f"not {polar:.6g}."
                )

    def properties(self) -> None:
        for x, _ in self.subgradients:
            value, double, opposite = (self.value(factor * x) for factor in (1.0, 2.0, -2.0))
            homogeneous = np.allclose([double, opposite], 2 * value)
            holds = {
                "set": value == 0,
                "cone": double == 0,
                "norm": homogeneous,
                "seminorm": homogeneous,
            }
            for name, agrees in holds.items():
                if name in self.penalty.properties and not agrees:
                    raise Fault(
                        f"'properties' contains {name!r}, but at x = {show(x)} the values of x, "
                        f"2 x and -2 x are {value:.6g}, {double:.6g} and {opposite:.6g}."
                    )


def _number(result: Any, name: str) -> float:
    if np.ndim(result):
        raise Fault(f"The {name} of a vector must be one number. It has shape {np.shape(result)}.")
    return float(result)
