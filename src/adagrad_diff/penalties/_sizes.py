"""Numbers of any size: where squares or quotients might overflow or vanish, a prox is computed at a moderate size.

Powers of two multiply without rounding, and for any f, g > 0 the prox of a norm of strength lam fulfils

    prox(z, s, lam) = prox(f z, f s / g, g lam) / f.

So does the projection upon a set, if the lengths that define the set are multiplied by f; what the steps are multiplied by
does not matter there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..linalg.kernels import plain
from ._points import quiet

Parts = tuple[Any, ...]  # numbers and arrays
Rows = Callable[
    [np.ndarray, np.ndarray, np.ndarray], None
]  # of z, step and the result, one trajectory per row

# The moderate sizes, whose squares neither vanish nor overflow. (Kernels of other files use them: Numba's disk cache would not
# notice an edit here.)
LEAST_MODERATE, MOST_MODERATE = 1e-100, 1e100
MODERATE_EXPONENT = 200  # of two: the size that large or small numbers get; more room is below, as sets may be small beside z
STEP_FLOOR = 2.0**-700  # a step is taken to be no smaller than this part of the largest one
STRENGTH_CEILING = 2.0**960  # a strength as large as this is as good as infinite


def _moderate(values: Any) -> bool:
    size = np.abs(values)
    fine = (size == 0) | ((size >= LEAST_MODERATE) & (size <= MOST_MODERATE)) | ~np.isfinite(size)
    return bool(fine.all())


@plain(small=_moderate)
def moderate(values: Any) -> Any:
    """np.all((v == 0) | (LEAST_MODERATE <= v) & (v <= MOST_MODERATE) | ~np.isfinite(v)) for v = np.abs(values), a vector"""
    others = 0
    for i in range(values.size):
        size = abs(values[i])
        others += ((size > 0.0) & (size < LEAST_MODERATE)) | (
            (size > MOST_MODERATE) & (size < np.inf)
        )
    return others == 0


def all_moderate(*arrays: Any) -> bool:
    """Of numbers and arrays; those of float32 always are."""
    for array in arrays:
        if type(array) is float:
            if not (LEAST_MODERATE <= abs(array) <= MOST_MODERATE or array == 0.0):
                return False
        elif array.dtype.char == "d" and not moderate(array.ravel()):
            return False
    return True


def at_moderate_size(
    kernel: Callable[..., None], lengths: Parts = (), strengths: Parts = (), others: Parts = ()
) -> Rows:
    """kernel(z, step, *lengths, *strengths, *others, x) as a function of z, step and x, for numbers of any size."""

    def solve(z: np.ndarray, step: np.ndarray, x: np.ndarray) -> None:
        if all_moderate(*lengths, *strengths, z, step):
            kernel(z, step, *lengths, *strengths, *others, x)
        else:
            _row_by_row(kernel, z, step, x, lengths, strengths, others)

    return solve


@quiet
def _row_by_row(
    kernel: Any, z: Any, step: Any, x: Any, lengths: Any, strengths: Any, others: Any
) -> None:
    usual = all_moderate(*lengths, *strengths)
    for k in range(len(z)):
        row = slice(k, k + 1)
        if usual and all_moderate(z[row], step[row]):
            kernel(z[row], step[row], *lengths, *strengths, *others, x[row])
        else:
            x[row] = _rescaled(kernel, z[row], step[row], lengths, strengths, others)


def _rescaled(kernel: Any, z: Any, step: Any, lengths: Any, strengths: Any, others: Any) -> Any:
    """One row, multiplied by powers of two before and after."""
    f, g = MODERATE_EXPONENT - _exponent(z, *lengths), _exponent(step)
    scaled = np.ldexp(z.astype(np.float64), f)
    steps = np.maximum(np.ldexp(step.astype(np.float64), -g), STEP_FLOOR)
    lengths = tuple(np.ldexp(v, f) for v in lengths)
    strengths = tuple(np.minimum(np.ldexp(v, f + g), STRENGTH_CEILING) for v in strengths)
    x = np.empty_like(scaled)
    kernel(scaled, steps, *lengths, *strengths, *others, x)
    return np.where(x == scaled, z, np.ldexp(x, -f))  # what stays, stays without rounding


def _exponent(*values: Any) -> int:
    """Of two: that of the largest finite one among some numbers."""
    sizes = np.abs(np.concatenate([np.ravel(v) for v in values]), dtype=np.float64)
    return int(np.frexp(sizes[np.isfinite(sizes)].max(initial=0.0))[1])
