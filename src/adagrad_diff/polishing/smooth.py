"""Smooth losses with penalties of pieces: an exact answer by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Multinomial, Quadratic
from ..losses.linear import LinearModel
from ..penalties import Penalty
from .hyperplane import Plane
from .loss_model import (
    MAX_DENSE_QUADRATIC,
    LinearLossModel,
    LossModel,
    MultinomialModel,
    QuadraticModel,
)
from .newton import Newton
from .quadratic_terms import pieces
from .remote_model import RemoteModel
from .solver import Outcome, Solver, Stop

STEP_AT_LEAST, STEP_PER_NUMBER = (
    1e7,
    100.0,
)  # multiplications of a step: at least, and per prediction and coordinate


class Smooth(Solver):
    """A solver (see `outcome.Solver`) for what `smooth_solver` says yes to."""

    def __init__(self, loss: Any, penalty: Penalty):
        self.loss, self.penalty = loss, penalty
        self._newton: Newton | None = None

    def solve(self, x: np.ndarray, tol: float, stop: Stop, whole: bool = False) -> Outcome:
        newton = self._newton = self._newton or Newton(
            _model(self.loss), _pieces(self.loss, self.penalty)
        )
        model = newton.model
        start = model.enter(x)
        end = newton.run(start, tol, stop)
        self.work = end.steps * (
            STEP_AT_LEAST + STEP_PER_NUMBER * self.loss.predictions * self.loss.shape[0]
        )
        answer = model.leave(end.x).reshape(self.loss.shape)
        return Outcome(
            answer,
            model.slopes(),
            end.done,
            end.steps,
            model.samples,
            end.coefficients,
            end.reason,
        )


def smooth_solver(loss: Any, penalty: Penalty) -> Smooth | Plane | str:
    """A solver, or a phrase that says why there is none."""
    if (plane := penalty.box_hyperplane()) is not None:
        if (
            not isinstance(loss, Quadratic)
            or loss.Q.opaque
            or loss.shape[0] > MAX_DENSE_QUADRATIC
            or not plane[2].all()
        ):
            return "with a hyperplane, the loss must be a quadratic function whose matrix fits into memory"
        return Plane(loss, penalty, *plane[:3])
    if isinstance(loss, LinearModel) and not isinstance(loss, Multinomial):
        if type(loss).curvature is None:
            return "the second derivative of the loss is not known"
    elif not isinstance(loss, Multinomial | Quadratic):
        return "the loss is not one that a second-order step knows"
    found = _pieces(loss, penalty)
    return found if isinstance(found, str) else Smooth(loss, penalty)


def _model(loss: Any) -> LossModel:
    if isinstance(loss, Multinomial | Quadratic):
        return MultinomialModel(loss) if isinstance(loss, Multinomial) else QuadraticModel(loss)
    return RemoteModel(loss) if loss.A.far else LinearLossModel(loss)


def _pieces(loss: Any, penalty: Penalty) -> Any:
    size, tail = int(np.prod(loss.shape)), 0
    if getattr(loss, "intercept", False):
        tail = size // loss.shape[0]
    return pieces(penalty, size - tail, tail, getattr(loss, "l2", 0.0))
