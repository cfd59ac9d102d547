"""What a penalty says about itself beside value and prox: its conjugate, its polar, and its properties."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np

from ._penalty_points import Points
from ._report import NotTried, Report, show


def check_dual(report: Report, points: Points) -> None:
    """Look at the conjugate and the polar at the subgradients that proxes are made of."""
    if not isinstance(said := points.penalty.properties, Set):
        report.look(
            "It has the properties it says.",
            lambda: f"'properties' must be a set, such as {{'norm'}}. It is {said!r}.",
        )
        return
    trial = DualTrial(points)
    report.look("The conjugate is that of the value.", trial.conjugate)
    if {"norm", "seminorm"} & points.penalty.properties:
        report.look("The polar is that of the value.", trial.polar)
    if points.penalty.properties:
        report.look("It has the properties it says.", trial.properties)


class DualTrial:
    """Points x, and u = (z - x) / step, a subgradient there. Each method returns what is wrong, or None."""

    def __init__(self, points: Points):
        self.penalty = points.penalty
        self.pairs = []
        for z in points.points:
            for step in (0.05, 1.0):
                x = points.penalty.prox(z.copy(), points.one(step))
                moved = np.where(
                    np.abs(z - x) <= 1e-12 * np.abs(z), 0.0, z - x
                )  # and not just rounded
                self.pairs.append((x, moved / step))

    def conjugate(self) -> str | None:
        try:
            self.penalty.conjugate(np.zeros(len(self.pairs[0][0])))
        except ValueError:
            raise NotTried("It has no conjugate, so that no duality gap is known.") from None
        for x, u in self.pairs:
            u = (1 - 1e-9) * u  # noqa: PLW2901 (a little inside the domain, whose ends may be missed by rounding)
            star = _number(self.penalty.conjugate(u))
            for y, _ in self.pairs:
                line, value = float(y @ u), float(self.penalty.value(y))
                slack = 1e-6 * (np.abs(y * u).sum() + abs(value) + 1e-9)
                if star < line - value - slack:
                    found = f"<u, y> - value(y) is {line - value:.6g} at y = {show(y)}"
                    return f"The conjugate is too small: at u = {show(u)} it is {star:.6g}, but {found}."
                if y is x and not star <= line - value + slack:
                    return f"The conjugate is too large: at u = {show(u)} it is {star:.6g}, not {line - value:.6g}."
        return None

    def polar(self) -> str | None:
        for x, u in self.pairs:
            polar, value = _number(self.penalty.polar(u)), float(self.penalty.value(x))
            where = f"u = {show(u)} is a subgradient at x = {show(x)}, so that polar(u)"
            if not polar <= 1 + 1e-6:
                return f"The polar is too large: {where} is at most 1, not {polar:.6g}."
            if value > 0 and polar < 1 - 1e-6:
                return f"The polar is too small: {where} is 1, not {polar:.6g}."
        return None

    def properties(self) -> str | None:
        said = self.penalty.properties
        for x, _ in self.pairs:
            value = float(self.penalty.value(x))
            if "set" in said and value != 0:
                return f"Its properties name 'set', but its value at x = {show(x)} is {value:.6g}, neither 0 nor infinite."
            if {"norm", "seminorm"} & said:
                for factor in (-1.0, 2.0, 0.5):
                    other = float(self.penalty.value(factor * x))
                    if abs(other - abs(factor) * value) > 1e-9 * (abs(value) + abs(other)):
                        word = "norm" if "norm" in said else "seminorm"
                        return f"Its properties name {word!r}, but value({factor} x) is {other:.6g} where value(x) is {value:.6g}."
            if "cone" in said and float(self.penalty.value(2.0 * x)) != 0:
                return (
                    f"Its properties name 'cone', but 2 x is outside where x = {show(x)} is inside."
                )
        return None


def _number(value: Any) -> float:
    if np.ndim(value):
        raise ValueError(f"it must be one number for a vector, and has shape {np.shape(value)}")
    return float(value)
