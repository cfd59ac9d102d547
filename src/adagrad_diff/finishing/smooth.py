"""Smooth losses with penalties of pieces: an exact answer by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Multinomial, Quadratic
from ..losses.linear import LinearModel
from ..penalties import BoxHyperplane, Penalty
from .curvature import Curvature, LinearCurvature
from .curvature_classes import ClassesCurvature
from .curvature_quadratic import DENSE_QUADRATIC, QuadraticCurvature
from .manifold import pieces
from .newton import Newton
from .outcome import Outcome, Stop
from .smooth_plane import Plane


class Smooth:
    """A solver (see `outcome.Solver`) for what `smooth_solver` says yes to."""

    def __init__(self, loss: Any, penalty: Penalty):
        self.loss, self.penalty = loss, penalty
        self._newton: Newton | None = None

    near = 0.0  # there is nothing to remember

    def cost(self, whole: bool) -> float:
        """Newton's method is always worth a try, from anywhere."""
        return 0.0

    def guess(self, x: np.ndarray) -> float:
        return 0.0

    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        newton = self._newton = self._newton or Newton(_model(self.loss), _pieces(self.loss, self.penalty))
        model = newton.model
        start = model.enter(x)
        end = newton.run(start, tol, stop)
        answer = model.leave(end.x).reshape(self.loss.shape)
        return Outcome(answer, model.slopes(), end.done, end.steps, model.samples, end.coefficients, end.reason)


def smooth_solver(loss: Any, penalty: Penalty) -> Smooth | Plane | str:
    """A solver, or a phrase that says why there is none."""
    if isinstance(penalty, BoxHyperplane):
        if not isinstance(loss, Quadratic) or loss.Q.opaque or loss.shape[0] > DENSE_QUADRATIC or not penalty.a.all():
            return "with a hyperplane, the loss must be a quadratic function whose matrix fits into memory"
        return Plane(loss, penalty)
    if isinstance(loss, LinearModel) and not isinstance(loss, Multinomial):
        if type(loss).curvature is None:
            return "the second derivative of the loss is not known"
    elif not isinstance(loss, Multinomial | Quadratic):
        return "the loss is not one that a second-order step knows"
    found = _pieces(loss, penalty)
    return found if isinstance(found, str) else Smooth(loss, penalty)


def _model(loss: Any) -> Curvature:
    kind = ClassesCurvature if isinstance(loss, Multinomial) else QuadraticCurvature if isinstance(loss, Quadratic) else None
    return kind(loss) if kind else LinearCurvature(loss)


def _pieces(loss: Any, penalty: Penalty) -> Any:
    size, tail = int(np.prod(loss.shape)), 0
    if getattr(loss, "intercept", False):
        tail = size // loss.shape[0]
    return pieces(penalty, size - tail, tail, getattr(loss, "l2", 0.0))
