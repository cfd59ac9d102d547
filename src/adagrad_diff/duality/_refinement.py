r"""Closing the gap of a loss with kinks.

At a kink any slope between two values is a subgradient, and the right one is what the dual needs: the sign of a residual that
should be zero says nothing. So the multipliers of the samples at their kinks are taken as unknowns in a proximal step of the
dual around x,

.. math:: \max_{u}\; -\sum_j w_j l^*(u_j) - \Big(\psi + \tfrac{1}{2\rho}\|\cdot - x\|_S^2\Big)^{*}(-A^\top (w u)),

which is concave and smooth, with simple bounds: a job for spectral projected gradients. Only the rows of those samples are
touched. The norm is that of coordinates in which columns have size one and, with an intercept, mean zero, as those of
eta="auto": the units of a column do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ._linear import LinearDual

RADIUS = 100.0  # rho, in units of ||x|| / ||A'(w u)||: beyond that the duals are nearly exact, and harder to solve
ROUNDS, EVALUATIONS = (
    2,
    300,
)  # proximal steps, each around the result of the one before, and evaluations in each
UNKNOWNS_PER_COEFFICIENT = 1.75  # unknowns per coefficient that is not zero
MIN_REFINED_SAMPLES = 10  # unknowns in any case
SEARCH_MEMORY = 8  # values that the line search compares with
DECREASE = 1e-4  # share of the predicted decrease that the line search asks for


def samples_nearest_kinks(dual: LinearDual, x: np.ndarray, most: int) -> np.ndarray:
    """Return the samples whose multipliers are unknowns, at most `most`.

    They are those nearest to their nonsmooth points at x, somewhat more than x has degrees of freedom: a vertex of a polyhedron
    has as many.
    """
    distance = dual.loss.nonsmooth_distances(dual.loss.predict(x))
    wanted = int(UNKNOWNS_PER_COEFFICIENT * np.count_nonzero(x)) + MIN_REFINED_SAMPLES
    number = min(wanted, int(np.count_nonzero(dual.weight)), most)
    return (
        np.sort(np.argpartition(distance, number - 1)[:number]) if number > 0 else np.empty(0, int)
    )


class Refined(NamedTuple):
    """A result of the refinement."""

    u: np.ndarray  # the multipliers of all samples
    v: np.ndarray  # A'(w u), penalised coordinates only
    x: np.ndarray  # the point they go with: where the proximal step ends


def refined(
    dual: LinearDual,
    x: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    samples: np.ndarray,
    start: np.ndarray | None = None,
    rounds: int = ROUNDS,
    evaluations: int = EVALUATIONS,
) -> Iterator[Refined]:
    """Better and better multipliers, others than u for these samples only; they are written into u.

    v is A'(w u), and `start` are multipliers of these samples to begin with, if they are better than those in u.
    """
    loss, penalty = dual.loss, dual.penalty
    if loss.A.opaque or samples.size == 0:  # an operator has no rows but by a product for each
        return
    x, l2, intercept = x.astype(np.float64), loss.l2, loss.intercept
    scale, center = dual.metric
    block = loss.A.rows(samples)
    A = block.to_sparse() if hasattr(block, "parts") else block.to_dense()
    if intercept:
        x[-1] += center @ x[:-1] - dual.center

    def scores(x: np.ndarray) -> np.ndarray:
        """Return predictions in centered coordinates."""
        return np.asarray(A @ x[:-1] + (x[-1] - center @ x[:-1]) if intercept else A @ x)

    def transposed(r: np.ndarray) -> np.ndarray:
        """Return the product of the same matrix, transposed, with r."""
        product, total = A.T @ r, float(r.sum())
        return np.append(product - total * center, total) if intercept else np.asarray(product)

    weight, b = dual.weight[samples].astype(np.float64), dual.b[samples] - dual.center
    low, high = weight * dual.low[samples], weight * dual.high[samples]
    r = weight * u[samples]
    total = dual.mean(u)
    fixed = np.append(v - total * center, total) if intercept else v.copy()
    norm = float(np.linalg.norm(scale * fixed))
    fixed -= transposed(r)
    size = float(np.linalg.norm(x / scale))
    if size == 0:  # then what it takes to fit b
        steepest = float(np.linalg.norm(scale * transposed(b)))
        size = float(b @ b) / steepest if steepest else 0.0
    radius = RADIUS * size / norm if norm else 0.0
    if not 0 < radius < np.inf:
        return
    rho, coordinates = radius * scale**2, x.size - intercept
    shrink = 1.0 / (1.0 + rho[:coordinates] * l2)
    step = (rho[:coordinates] * shrink)[: 1 if penalty.accepts == "scalar" else None]

    def point(r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return v = A'(w u) and y = prox of rho psi at x - rho v, where the conjugate's supremum is attained."""
        v = fixed + transposed(r)
        y = x - rho * v
        y[:coordinates] = penalty.prox(shrink * y[:coordinates], step)
        return v, y

    def negative(r: np.ndarray) -> tuple[float, np.ndarray]:
        v, y = point(r)
        part = y[:coordinates]
        psi = float(penalty.value(part)) + 0.5 * l2 * float(part @ part)
        return float(b @ r - (psi + y @ v + (y - x) @ ((y - x) / (2 * rho)))), b - scores(y)

    if start is not None and negative(other := weight * start)[0] < negative(r)[0]:
        r = other
    for _ in range(rounds):
        r = projected_gradient(negative, r, low, high, evaluations)
        v, x = point(r)
        u[samples] = np.clip(r / weight, dual.low[samples], dual.high[samples])
        yield Refined(u, v[:coordinates] + v[-1] * center if intercept else v, x)


def projected_gradient(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    r: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    evaluations: int,
) -> np.ndarray:
    """Return the best point found for a smooth convex function over low <= r <= high.

    Steps of Barzilai and Borwein with a nonmonotone line search.
    """
    value, gradient = function(r)
    recent, best = [value], (value, r)
    length = float(np.max(high - low)) / max(float(np.abs(gradient).max()), np.finfo(float).tiny)
    while evaluations > 1:
        direction = np.clip(r - length * gradient, low, high) - r
        slope = float(gradient @ direction)
        if not slope < 0:
            break
        part = 1.0
        while True:
            trial = r + part * direction
            new, gradient_new = function(trial)
            evaluations -= 1
            if new <= max(recent) + DECREASE * part * slope or evaluations <= 1:
                break
            excess = (
                new - value - part * slope
            )  # of the value over the tangent: a parabola suggests where to go
            part = (
                min(0.5 * part, max(0.1 * part, -0.5 * part * part * slope / excess))
                if excess > 0
                else 0.5 * part
            )
        moved, change = trial - r, gradient_new - gradient
        curvature, squares = float(moved @ change), float(change @ change)
        if curvature > 0 and squares > 0:  # small squares are none
            length = float(moved @ moved) / curvature if evaluations % 2 else curvature / squares
        r, value, gradient = trial, new, gradient_new
        recent = [*recent[1 - SEARCH_MEMORY :], value]
        best = min(best, (value, r), key=lambda pair: pair[0])
    return best[1]
