"""What the solver relies upon when it calls a penalty: shapes, numbers, and arrays that are left alone or written to."""

from __future__ import annotations

from itertools import product

import numpy as np

from ..penalties import Foreign
from ._penalty_points import POINT_STEPS, Points
from ._report import NotTried, show


class CallTrial:
    """Each method returns what is wrong, or None."""

    def __init__(self, points: Points):
        self.at = points

    def accepts(self) -> str | None:
        known = ("diagonal", "block", "scalar")
        if self.at.penalty.accepts not in known:
            return f"'accepts' must be one of {', '.join(map(repr, known))}. It is {self.at.penalty.accepts!r}."
        return None

    def shapes(self) -> str | None:
        for z, step in product(self.at.points, POINT_STEPS):
            x = self.at.penalty.prox(z.copy(), self.at.one(step))
            if np.shape(x) != z.shape:
                return f"The prox of z of shape {z.shape} must have shape {z.shape}. It has shape {np.shape(x)}."
            if not np.isfinite(x).all():
                return f"The prox of z = {show(z)} is not finite: {show(x)}."
        return None

    def values(self) -> str | None:
        for z, step in product(self.at.points, POINT_STEPS):
            x = self.at.penalty.prox(z.copy(), self.at.one(step))
            value = self.at.penalty.value(x)
            if np.ndim(value):
                return f"The value of a vector must be one number. It has shape {np.shape(value)}."
            if np.isnan(value):
                return f"The value at x = {show(x)} is NaN."
            if not np.isfinite(value):
                return f"The value at the prox of z = {show(z)}, x = {show(x)}, is {value}: the prox is outside of the domain."
        return None

    def leaves_arguments_alone(self) -> str | None:
        for z in self.at.points[:3]:
            step = self.at.one(0.5)
            given, given_step = z.copy(), step.copy()
            self.at.penalty.prox(given, given_step)
            for name, before, after in (("z", z, given), ("step", step, given_step)):
                if not np.array_equal(before, after):
                    return f"The prox changes its argument {name}: {show(before)} is {show(after)} after it."
        return None

    def out(self) -> str | None:
        if isinstance(self.at.penalty, Foreign):
            raise NotTried("It has no `out`: its answers are copied.")
        for z in self.at.points[:3]:
            step = self.at.one(0.1)
            expected, memory, place = (
                self.at.penalty.prox(z.copy(), step),
                np.full_like(z, np.nan),
                z.copy(),
            )
            for out, given, words in (
                (memory, z.copy(), "an array"),
                (place, place, "z itself, in place"),
            ):
                answer = self.at.penalty.prox(given, step.copy(), out=out)
                if answer is not out:
                    return f"The prox must return `out`, {words}, when it is given."
                if not np.array_equal(out, expected):
                    return f"With `out`, {words}, the prox of z = {show(z)} is {show(out)}, and {show(expected)} without."
        return None

    def columns(self) -> str | None:
        chosen = self.at.points[:3]
        z, steps = np.stack(chosen, axis=1), np.stack([self.at.steps() for _ in chosen], axis=1)
        step = steps[:1] if self.at.penalty.accepts == "scalar" else steps
        x = np.asarray(self.at.penalty.prox(z.copy(), step.copy()))
        if x.shape != z.shape:
            return f"The prox of z of shape {z.shape}, several z side by side, must have that shape. It has shape {x.shape}."
        values = np.asarray(self.at.penalty.value(x))
        if values.shape != (len(chosen),):
            count = len(chosen)
            return f"There must be one value for each of {count} columns, shape ({count},). Its shape is {values.shape}."
        for k, single in enumerate(chosen):
            alone = self.at.prox(single, steps[:, k])
            if not np.allclose(x[:, k], alone, rtol=1e-6, atol=1e-9):
                return f"Several z side by side and z = {show(single)} alone differ: {show(x[:, k])} and {show(alone)}."
            if not np.isclose(
                values[k],
                self.at.penalty.value(np.ascontiguousarray(x[:, k])),
                rtol=1e-6,
                atol=1e-9,
            ):
                return f"The value of x = {show(x[:, k])} among others, {values[k]:.9g}, is not that of x alone."
        return None

    def single_precision(self) -> str | None:
        if isinstance(self.at.penalty, Foreign):
            raise NotTried("It may answer in any precision: its answers are copied.")
        z = self.at.points[0].astype(np.float32)
        x = self.at.penalty.prox(z, self.at.one(0.5).astype(np.float32))
        return (
            None
            if x.dtype == np.float32
            else f"The prox of z of dtype float32 must be of dtype float32. It is of dtype {x.dtype}."
        )
