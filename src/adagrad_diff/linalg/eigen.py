"""Extreme eigenvalues of a symmetric matrix that is known by its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LANCZOS_STEPS = 30  # where a rough answer will do
DIRECT_SIZE = 500  # up to which eigenvalues are computed directly


@np.errstate(all="ignore")
def extreme_eigenvalues(
    product: Callable[[np.ndarray], np.ndarray], size: int
) -> tuple[float, float]:
    """(smallest, largest) eigenvalue of a symmetric matrix, as far as a few steps of Lanczos' method see them.

    Never below the smallest nor above the largest, but for rounding. NaN if something overflows.
    """
    basis = np.zeros((min(size, LANCZOS_STEPS), size))
    image = np.zeros_like(basis)
    v = np.random.default_rng(0).standard_normal(size)
    for k in range(len(basis)):
        for _ in range(2):  # once is not enough
            v -= basis[:k].T @ (basis[:k] @ v)
        norm = float(np.linalg.norm(v))
        if k and not norm > 1e-10 * float(np.linalg.norm(image[k - 1])):  # the space is complete
            basis, image = basis[:k], image[:k]
            break
        basis[k] = v / norm
        image[k] = product(basis[k])
        v = image[k].copy()
    small = basis @ image.T
    if not np.isfinite(small).all():
        return np.nan, np.nan
    values = np.linalg.eigvalsh((small + small.T) / 2)
    return float(values[0]), float(values[-1])


@np.errstate(all="ignore")
def largest_eigenvalue(product: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    """The largest eigenvalue of a symmetric positive semidefinite matrix, given its product with columns (size, k).

    Infinite if it overflows.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    if size <= DIRECT_SIZE:
        matrix = product(np.eye(size)).astype(np.float64)
        return float(np.linalg.eigvalsh(matrix)[-1]) if np.isfinite(matrix).all() else np.inf
    operator = LinearOperator(
        (size, size), matvec=lambda v: product(v.reshape(size, 1))[:, 0], dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal(size)
    first = operator @ start
    if not (np.any(first) and np.isfinite(first).all()):
        return 0.0 if not np.any(first) else np.inf
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
