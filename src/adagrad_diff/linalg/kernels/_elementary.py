"""Exponential and logarithm in a form that compiled loops compute for several numbers at once.

They are polynomials in Estrin's arrangement, which is four times as
fast because compilers do not know how to do four calls of a library function at a time. Their relative error is below 1e-15.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from .elementary import INLINE, decay, log1p_unit

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = (
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
)  # their sum is log 2; n * LN2_HIGH is exact
SMALLEST = -708.0  # where exp becomes subnormal


@intrinsic
def _from_bits(context: Any, bits: Any) -> Any:
    """The double whose 64 bits these are."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), code


@intrinsic
def _less_multiple(context: Any, t: Any, n: Any, ln2: Any) -> Any:
    """t - n * ln2 by itself.

    Instructions that have flags of their own keep them, so this is no part of the sums that kernels may reorder: to
    t - n * (LN2_HIGH + LN2_LOW), for example, which would lose the digits that the two parts are for.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own = ["contract"]
        return builder.fsub(args[0], builder.fmul(args[1], args[2], flags=own), flags=own)

    return types.float64(types.float64, types.float64, types.float64), code


@overload(decay, jit_options=INLINE)
def _decay(t: Any) -> Any:
    def compiled(t: Any) -> Any:
        t = np.float64(t)
        below = t < SMALLEST
        t = SMALLEST if below else t  # written so that NaN stays NaN
        n = np.floor(t * LOG2_E + 0.5)
        # exp(t) = 2^n exp(r), |r| <= log(2) / 2: the Taylor polynomial of degree 13
        r: Any = _less_multiple(_less_multiple(t, n, LN2_HIGH), n, LN2_LOW)  # type: ignore[call-arg]
        r2 = r * r
        r4 = r2 * r2
        first = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
        second = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
        third = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
        p = (first + r4 * second) + (r4 * r4) * (
            third + r4 * (1 / 479001600 + r * (1 / 6227020800))
        )
        return (0.0 if below else p) * _from_bits((np.int64(np.int32(n)) + 1023) << 52)

    return compiled


@overload(log1p_unit, jit_options=INLINE)
def _log1p_unit(u: Any) -> Any:
    def compiled(u: Any) -> Any:
        u = np.float64(u)
        s = u / (2.0 + u)  # log(1 + u) = 2 atanh(s), s <= 1/3
        q = s * s
        q2 = q * q
        q4 = q2 * q2
        q8 = q4 * q4
        first = (1.0 + q * (1 / 3)) + q2 * (1 / 5 + q * (1 / 7))
        second = (1 / 9 + q * (1 / 11)) + q2 * (1 / 13 + q * (1 / 15))
        third = (1 / 17 + q * (1 / 19)) + q2 * (1 / 21 + q * (1 / 23))
        fourth = (1 / 25 + q * (1 / 27)) + q2 * (1 / 29 + q * (1 / 31))
        return (
            2.0
            * s
            * ((first + q4 * second) + q8 * ((third + q4 * fourth) + q8 * (1 / 33 + q * (1 / 35))))
        )

    return compiled
