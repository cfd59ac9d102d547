"""Strengths to try, if the user names none: from one at which the penalty has taken over, down."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..duality import at_fraction
from ..losses import LinearModel
from ..penalties import Penalty
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
    middles = [_where_ridge_matters(loss, penalty) for loss in losses]
    if None not in middles:
        middle = max(middles) or 1.0  # type: ignore[type-var]
        return np.geomspace(middle / share, middle * share, number)
    norm = penalty.norm_part() or penalty
    try:
        top = max(at_fraction(loss, norm, 1.0).factor for loss in losses)  # type: ignore[attr-defined]
    except ValueError as error:
        raise ValueError(
            f"{owner} does not know which strengths to try: give 'alphas'. {error}"
        ) from None
    top = top if 0 < top < np.inf else 1.0  # there is nothing to explain: any strength will do
    return np.geomspace(top, share * top, number)


def _where_ridge_matters(loss: LinearModel, penalty: Penalty) -> float | None:
    """Return the multiple of a ridge penalty that moves predictions by their unit, None if it is not a ridge."""
    x = null_point(loss)
    size = x[:-1].size if loss.intercept else x.size
    penalty.check_size(size)
    terms = penalty.quadratic_terms(size)
    if terms is None or terms.l1.any() or terms.strength is not None or terms.bounded:
        return None
    if not terms.l2.any():
        return None
    step = loss.value_and_grad(x)[1].astype(np.float64)
    part = step[:-1] if loss.intercept else step  # a view
    strength = terms.l2.reshape(part.shape)
    np.divide(part, strength, out=part, where=strength > 0)
    part[strength == 0] = 0.0
    step[len(part) :] = 0.0  # the intercept follows
    z = loss.predict(step).astype(np.float64)
    if loss.intercept:
        z -= loss.weight @ z
    moved = float(np.sqrt((loss.weight @ z**2).mean()) / loss.coordinates().unit)
    return moved if np.isfinite(moved) else 0.0
