"""What a small subgradient means: how far the objective can be above its smallest value, judged by the curvature at x.

With a subgradient u of F and the Hessian H of the loss, F(x) - F_star is about u' H^-1 u / 2 at most. If columns depend on each
other nearly, H has tiny eigenvalues and a small subgradient means nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import softmax

from ..losses import LinearModel, Logistic, Multinomial, Poisson, Quadratic
from ..penalties import Penalty

SVD_ENTRIES, SVD_OPERATIONS = (
    20_000_000,
    1e10,
)  # of the matrix whose singular values are computed, and to do so
NULL = 10.0  # multiples of rounding below which a singular value counts as zero: columns that depend on each other
DOUBLINGS, MOST_LEFT = (
    2,
    0.5,
)  # how often x is doubled, and the share of the objective that may be left each time
UNATTAINED = (Logistic, Multinomial, Poisson)  # losses that are above their infimum everywhere


@np.errstate(all="ignore")
def least_curvature(loss: Any, x: np.ndarray, scale: np.ndarray | None = None) -> float:
    """Return the smallest positive eigenvalue of the loss's Hessian at x, in coordinates in which x is divided by `scale`.

    It is infinite for a loss whose entries or curvature cannot be seen, and zero for a loss that is straight between its
    kinks, or if the data are too large to tell.
    """
    if isinstance(loss, Quadratic):
        matrix, square = loss.Q, False
    elif isinstance(loss, LinearModel):
        matrix, square = loss.A, True
    else:
        return np.inf
    if square and loss.piecewise_linear:
        return 0.0
    if matrix.opaque or (square and loss.smoothness is None and loss.curvature is None):
        return np.inf
    samples, features = matrix.shape
    if (
        samples * features > SVD_ENTRIES
        or samples * float(features) * min(samples, features) > SVD_OPERATIONS
    ):
        return 0.0
    A = np.asarray(matrix.to_dense(), np.float64)
    if not square:
        values = np.linalg.eigvalsh(
            loss.factor * A if scale is None else loss.factor * A * scale * scale[:, None]
        )[::-1]
        return _least(values, samples)
    rows = A - loss.center if loss.center.size else A
    z = rows @ x[:features] + (x[features] if loss.intercept else 0.0)
    if isinstance(
        loss, Multinomial
    ):  # that of a sample is at least its smallest probability, but for a shift of all scores
        second = softmax(z, axis=1).min(axis=1)
    elif loss.curvature is not None:
        second = loss.curvature(z, loss.b.astype(np.float64), loss.theta)
    else:
        second = np.full(samples, loss.smoothness)
    rows = np.column_stack([rows, np.ones(samples)]) if loss.intercept else rows
    columns = rows.shape[1]
    scale = (
        np.ones(columns) if scale is None else scale.reshape(columns, -1)[:, 0]
    )  # one for all classes
    rows = rows * scale * np.sqrt(np.maximum(loss.weight * second, 0.0))[:, None]
    sizes, ridge = (
        np.linalg.norm(rows, axis=0),
        loss.l2 * float(np.square(scale[:features]).min(initial=np.inf)),
    )
    used = sizes > 0
    if not np.isfinite(rows).all() or not used.any() or np.count_nonzero(used) > samples:
        return float(ridge) if np.isfinite(ridge) else 0.0
    singular = np.linalg.svd(rows[:, used] / sizes[used], compute_uv=False)
    return float((_least(singular, samples) * sizes[used].min()) ** 2 + ridge)  # at least


def _least(values: np.ndarray, size: int) -> float:
    """The smallest of the descending values that can be told from the rounding of the entries."""
    seen = values[values > NULL * size * float(np.finfo(np.float64).eps) * values[0]]
    return float(seen[-1]) if seen.size else 0.0


@np.errstate(all="ignore")
def has_no_minimizer(loss: Any, penalty: Penalty, x: np.ndarray) -> bool:
    """Return whether the objective keeps decreasing along x toward the infimum of the loss, which it never attains.

    Separable classes without a penalty are the usual case.
    """
    if not isinstance(loss, UNATTAINED) or not x.any():
        return False
    values = []
    for k in range(DOUBLINGS + 1):
        point = np.ascontiguousarray(x * 2.0**k, loss.dtype)
        phi = float(penalty.value((point[:-1] if loss.intercept else point).reshape(-1)))
        values.append(float(loss.oracle(point)(point, np.empty_like(point))) + phi)
    return all(0.0 <= new <= MOST_LEFT * old for old, new in pairwise(values)) and values[0] > 0.0
