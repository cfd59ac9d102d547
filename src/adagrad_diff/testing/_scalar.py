"""What a linear model says about its scalar loss: the conjugate, the range of slopes, the jump and the smoothness."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import LinearModel
from ._report import NotTried, Report


def check_scalar_loss(report: Report, loss: LinearModel, rng: np.random.Generator) -> None:
    """Look at the scalar loss of some of the targets, in Python."""
    trial = ScalarTrial(loss, rng)
    report.look("The conjugate is that of the scalar loss.", trial.conjugate)
    report.look("The derivative of the scalar loss stays within 'slopes'.", trial.within_slopes)
    if loss.jump is not None:
        report.look(
            "The scalar loss is two lines that meet at z = b, with the slopes of 'jump'.",
            trial.jump,
        )
    if loss.smoothness is not None:
        report.look(
            "The derivative of the scalar loss changes by at most 'smoothness' per unit.",
            trial.smoothness,
        )


class ScalarTrial:
    """Values and derivatives of a scalar loss, (targets, points). Each method returns what is wrong, or None."""

    def __init__(self, loss: LinearModel, rng: np.random.Generator):
        self.loss = loss
        self.b = rng.permutation(np.unique(loss.b))[:6].astype(np.float64)[:, None]
        offsets = np.concatenate(
            [3 * rng.standard_normal(20), [-2.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 2.0]]
        )
        self.z = self.b + np.sort(offsets)
        scalar: Any = getattr(loss.scalar, "py_func", loss.scalar)
        pairs = [
            [scalar(z, b, loss.theta) for z in row]
            for row, b in zip(self.z.tolist(), self.b[:, 0].tolist(), strict=True)
        ]
        self.value, self.slope = np.moveaxis(np.array(pairs, dtype=np.float64), 2, 0)

    def conjugate(self) -> str | None:
        if self.loss.conjugate is None:
            raise NotTried("It has no 'conjugate', so that no duality gap is known.")
        # A little inside the domain, whose ends may be missed by rounding.
        u = self.slope + 1e-9 * (self.slope.mean(axis=1, keepdims=True) - self.slope)
        star = np.asarray(self.loss.conjugate(u, np.broadcast_to(self.b, u.shape), self.loss.theta))
        if star.shape != u.shape:
            return f"The conjugate must be elementwise. For u of shape {u.shape} it has shape {star.shape}."
        lines = (
            u[:, :, None] * self.z[:, None, :] - self.value[:, None, :]
        )  # u z - value(z), (targets, slopes, points)
        size = 1e-7 * (1.0 + np.abs(self.value) + np.abs(u * self.z))
        low, high = star < lines.max(axis=2) - size, ~(star <= u * self.z - self.value + size)
        for bad, word in ((low, "small"), (high, "large")):
            if bad.any():
                i, k = np.argwhere(bad)[0]
                best = lines[i, k].max()
                return (
                    f"The conjugate is too {word}: at u = {u[i, k]:.6g}, b = {self.b[i, 0]:.6g} it is {star[i, k]:.6g}, and "
                    f"the largest u z - value(z) that was found is {best:.6g}."
                )
        return None

    def within_slopes(self) -> str | None:
        low, high = (
            np.broadcast_to(end, self.slope.shape)
            for end in self.loss.slopes(self.b, self.loss.theta)
        )
        slack = 1e-9 * (1 + np.abs(self.slope))
        bad = (self.slope < low - slack) | (self.slope > high + slack)
        if bad.any():
            i, k = np.argwhere(bad)[0]
            return (
                f"The derivative of the scalar loss is outside its 'slopes': at z = {self.z[i, k]:.6g}, b = "
                f"{self.b[i, 0]:.6g} it is {self.slope[i, k]:.6g}, not between {low[i, k]:.6g} and {high[i, k]:.6g}."
            )
        return None

    def jump(self) -> str | None:
        left, right = (
            np.broadcast_to(end, self.slope.shape)
            for end in self.loss.jump(self.b, self.loss.theta)
        )
        expected = np.where(self.z < self.b, left, right)
        bad = (self.z != self.b) & (np.abs(self.slope - expected) > 1e-9)
        if bad.any():
            i, k = np.argwhere(bad)[0]
            return (
                f"The scalar loss is not what its 'jump' says: at z = {self.z[i, k]:.6g}, b = {self.b[i, 0]:.6g} its "
                f"derivative is {self.slope[i, k]:.6g}, not {expected[i, k]:.6g}."
            )
        return None

    def smoothness(self) -> str | None:
        constant = self.loss.smoothness
        assert constant is not None
        change, distance = np.abs(np.diff(self.slope)), np.diff(self.z)
        bad = change > constant * distance * (1 + 1e-6) + 1e-9
        if bad.any():
            i, k = np.argwhere(bad)[0]
            return (
                f"'smoothness' {constant} is too small: between z = {self.z[i, k]:.9g} and {self.z[i, k + 1]:.9g}, b = "
                f"{self.b[i, 0]:.6g}, the derivative changes by {change[i, k] / distance[i, k]:.6g} per unit."
            )
        return None
