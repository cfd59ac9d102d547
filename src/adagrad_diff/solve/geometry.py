"""The coordinates in which a problem is easiest: columns of A of size one and, with an intercept, of mean zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses import Loss
from ..penalties import Penalty


@dataclass
class Geometry:
    """A loss in other coordinates: `scale` for the rule, and the way there and back for the intercept."""

    loss: Loss  # with centered columns, if there is an intercept
    blocks: Any
    scale: np.ndarray | None  # one over the size of each column
    unit: float  # typical size of a scaled coordinate
    center: np.ndarray | None = None

    def forward(self, x: np.ndarray) -> np.ndarray:
        """x in the coordinates of `loss`: z = A w + c = (A - center) w + (c + center w)."""
        return self._shift(x, 1.0)

    def back(self, x: np.ndarray) -> np.ndarray:
        """The inverse."""
        return self._shift(x, -1.0)

    def _shift(self, x: np.ndarray, sign: float) -> np.ndarray:
        x = x.copy()
        if self.center is not None:
            x[-1] += sign * (self.center @ x[:-1])
        return x

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """The difference of two points, in units of `scale`."""
        if self.scale is None:
            return x
        flat = x.reshape(-1).copy()
        flat[: self.scale.size] /= self.scale
        return flat


def of(loss: Loss, penalty: Penalty, blocks: Any) -> Geometry:
    """The geometry of a problem; a scale only where the penalty can do with one."""
    if loss.shape is not None:  # a foreign penalty may have to know it, to tell which metrics it accepts
        size = int(np.prod(loss.shape))
        penalty.check_size(size - size // loss.shape[0] if loss.intercept else size)
    diagonal = penalty.accepts == "diagonal"
    if blocks is None and penalty.accepts == "scalar":
        blocks = "all"
    easiest = loss.coordinates()
    return Geometry(easiest.loss, blocks, easiest.scale if diagonal else None, easiest.unit, easiest.center)
