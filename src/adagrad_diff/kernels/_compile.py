"""How the kernels are compiled. Numba is imported here and nowhere else in the core."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.extending import register_jitable

from .. import _elementary

FASTMATH = {"reassoc", "contract", "nsz"}

OPTIONS: Any = {"nogil": True, "error_model": "numpy"}  # division by zero gives inf, as in NumPy, and no branch

INLINE: Any = {"forceinline": True}  # also a long function, or the loop around it is not vectorised

compiled = njit(cache=True, fastmath=FASTMATH, **OPTIONS)
plain = njit(cache=True, **OPTIONS)  # gathers: reordering these sums makes them slower


def _over_samples(scalar: Callable) -> Callable:
    def residuals(z, b, weight, theta):
        """z <- weight * derivative(z, b); returns np.sum(weight * value(z, b)), without samples of weight zero."""
        total = 0.0
        for j in range(z.size):
            value, derivative = scalar(z[j], b[j], theta)
            total += weight[j] * (value if weight[j] != 0.0 else 0.0)  # also where the value is infinite
            z[j] = weight[j] * (derivative if weight[j] != 0.0 else 0.0)
        return total

    return residuals


def scalar_kernel(template: Callable) -> Callable:
    """One compiled copy of `template(scalar, residuals, fingerprint)` per scalar loss, cached in memory and, for this package's
    losses, on disk.

    Numba's disk cache does not notice when a function that a kernel calls is edited. The losses of this package therefore
    enter the key with a fingerprint of their code, of this file and of the elementary functions they may call, and a user's
    own loss is never cached on disk.
    """

    @cache
    def specialise(scalar: Callable) -> Callable:
        code = scalar.__code__
        content = repr((code.co_code, code.co_consts, code.co_names)).encode()
        for file in (__file__, _elementary.__file__):
            content += Path(file).read_bytes()
        inlined = register_jitable(**INLINE)(scalar)
        kernel = template(inlined, register_jitable(_over_samples(inlined)), hashlib.sha256(content).hexdigest())
        ours = scalar.__module__.startswith("adagrad_diff.losses")
        return njit(cache=ours, fastmath=FASTMATH, **OPTIONS)(kernel)

    return specialise
