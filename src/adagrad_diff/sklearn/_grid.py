"""Strengths to try, if the user names none: from one at which the penalty has taken over, down."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..duality import at_fraction
from ..losses import LinearModel
from ..penalties import L1, ElasticNet, Penalty, Scaled
from ._null import null_point


def given(alphas: Any, owner: str) -> np.ndarray:
    """Strengths of the user's, in descending order."""
    values = np.array([_check.nonnegative(a, "alphas", owner) for a in np.ravel(alphas)])
    if not values.size:
        raise ValueError(f"The 'alphas' parameter of {owner} is empty: give at least one strength.")
    return np.sort(values)[::-1]


def grid(
    losses: list[LinearModel], penalty: Penalty, n_alphas: Any, eps: Any, owner: str
) -> np.ndarray:
    """Multiples of the penalty in descending order, evenly spaced on a logarithmic scale.

    Norms and elastic nets: from the smallest at which all coefficients of all problems are zero, down to eps times that. Ridge:
    from 1 / eps to eps times the one at which a step of one over it, along the gradient at zero, moves predictions as far as
    the targets are spread (margins: by one): from hardly any fit to hardly any penalty.
    """
    number, share = (
        _check.count(n_alphas, "n_alphas", owner, least=1),
        _check.positive(eps, "eps", owner),
    )
    if share >= 1:
        raise ValueError(
            f"The 'eps' parameter of {owner} must lie strictly between 0 and 1. Got {eps!r} instead."
        )
    inner = penalty.penalty if isinstance(penalty, Scaled) else penalty
    if isinstance(inner, ElasticNet) and inner.l2.any() and not inner.l1.any():
        middle = max(_where_ridge_matters(loss, inner) for loss in losses) or 1.0
        return np.geomspace(middle / share, middle * share, number)
    norm = (
        L1(inner.l1) if isinstance(inner, ElasticNet) else inner
    )  # a ridge part has no slope at zero
    try:
        top = max(at_fraction(loss, norm, 1.0).factor for loss in losses)  # type: ignore[attr-defined]
    except ValueError as error:
        raise ValueError(
            f"{owner} does not know which strengths to try: give 'alphas'. {error}"
        ) from None
    top = top if 0 < top < np.inf else 1.0  # there is nothing to explain: any strength will do
    return np.geomspace(top, share * top, number)


def _where_ridge_matters(loss: LinearModel, ridge: ElasticNet) -> float:
    x = null_point(loss)
    step = loss.value_and_grad(x)[1].astype(np.float64)
    part = step[:-1] if loss.intercept else step  # a view
    strength = np.broadcast_to(ridge.l2, part.size).reshape(part.shape)
    np.divide(part, strength, out=part, where=strength > 0)
    part[strength == 0] = 0.0
    step[len(part) :] = 0.0  # the intercept follows
    z = loss.predict(step).astype(np.float64)
    if loss.intercept:
        z -= loss.weight @ z
    moved = float(np.sqrt((loss.weight @ z**2).mean()) / loss.coordinates().unit)
    return moved if np.isfinite(moved) else 0.0
