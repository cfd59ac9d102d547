"""Where A'(w u) may be for the conjugate of a penalty to be finite, which is what a correction aims at.

These numbers prove nothing. In the end, the penalty decides whether a point is feasible.
"""

from __future__ import annotations

import numpy as np

from ..penalties import QuadraticTerms


def limits(terms: QuadraticTerms | None, l2: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest value of each coordinate of A'(w u), infinite where there is none."""
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    if l2 == 0 and terms is not None:
        flat = terms.l2 == 0
        if terms.labels is not None and terms.strength is not None:
            flat &= terms.strength[terms.labels] == 0
        high = np.where(flat & (terms.lower == -np.inf), terms.l1, np.inf)
        low = np.where(flat & (terms.upper == np.inf), -terms.l1, -np.inf)
    return low, high


def shrunk_groups(terms: QuadraticTerms | None, v: np.ndarray, inside: float) -> np.ndarray:
    """Return v with groups that are too large moved into the domain of the conjugate, a little further than needed."""
    if terms is None or terms.labels is None or terms.strength is None:
        return v
    excess = np.copysign(np.maximum(np.abs(v) - terms.l1, 0.0), v)
    norms = np.sqrt(np.bincount(terms.labels, excess**2, terms.strength.size))
    large = (norms > terms.strength * (1.0 - inside)) & (terms.strength > 0)
    part = np.ones_like(norms)
    part[large] = (1.0 - 2.0 * inside) * terms.strength[large] / norms[large]
    return np.asarray(v - excess * (1.0 - part[terms.labels]))
