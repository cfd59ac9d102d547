"""Is it a convex penalty, and is its prox the one of its value in the metrics it says?"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from .. import _check
from ..penalties import Penalty, as_penalty
from ._penalty_calls import CallTrial
from ._penalty_dual import check_dual
from ._penalty_points import Points
from ._penalty_prox import check_prox
from ._report import Report

TRIED_SIZES = (
    6,
    *range(2, 101),
    1,
)  # where to look for one that a penalty accepts; a single number fits wherever NumPy broadcasts


def check_penalty(penalty: Any, size: int | None = None, *, seed: int = 0) -> Report:
    """Try a penalty on random points: its prox in the metrics it accepts, its value, trajectories, conjugate and polar.

    For those who write their own. It says what is wrong, and cannot prove that nothing is.

    Parameters
    ----------
    penalty : Penalty
        A penalty, or any object with value(x) and prox(z, step).
    size : int, optional
        Of the vectors; by default six, or the first that the penalty accepts.
    seed : int
        Of the random points.

    Returns
    -------
    Report
        True if nothing is wrong. Printed, it is one sentence per statement; `failures` are those about what is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, check_penalty
    >>> bool(check_penalty(L1(0.1)))
    True
    >>> class Careless:
    ...     def value(self, x):
    ...         return np.abs(x).sum()
    ...     def prox(self, z, step):
    ...         return np.sign(z) * np.maximum(np.abs(z) - 1.0, 0.0)  # the step is forgotten
    >>> print(check_penalty(Careless()).failures[0])  # doctest: +ELLIPSIS
    The prox is not the minimiser of value(x) + sum((x - z)**2 / (2 step)): ...
    """
    inner = as_penalty(penalty)
    points = Points(inner, _size(inner, size), np.random.default_rng(seed))
    report, calls = Report(inner.name), CallTrial(points)
    if not report.look("It accepts 'diagonal', 'block' or 'scalar' metrics.", calls.accepts):
        return report
    if not report.look("The prox is a finite vector of the shape of z.", calls.shapes):
        return report
    if not report.look("The value at a prox is one finite number.", calls.values):
        return report
    report.look("It does not change its arguments z and step.", calls.leaves_arguments_alone)
    check_prox(report, points)
    report.look("It writes into `out`, also in place, and returns it.", calls.out)
    report.look("Several z side by side give what each gives alone.", calls.columns)
    report.look("Single precision stays single precision.", calls.single_precision)
    check_dual(report, points)
    return report


def _size(penalty: Penalty, size: Any) -> int:
    if size is not None:
        wanted = _check.count(size, "size", "check_penalty", least=1)
        _try_size(penalty, wanted)
        return wanted
    accepted: list[int] = []
    for candidate in TRIED_SIZES:
        with suppress(ValueError):
            _try_size(penalty, candidate)
            accepted.append(candidate)
    for candidate in accepted:  # one that says nothing of sizes may still have been written for one
        with suppress(Exception):
            penalty.value(np.zeros(candidate))
            return candidate
    if accepted:  # whatever is wrong with its value will be said
        return accepted[0]
    raise ValueError(
        f"'size' is needed: {penalty.name} accepts no vector of 1 to {max(TRIED_SIZES)} coordinates."
    )


def _try_size(penalty: Penalty, size: int) -> None:
    try:
        penalty.check_size(size)
    except ValueError:
        raise
    except Exception as error:  # whatever a user's code may raise
        raise TypeError(
            f"{penalty.name}.check_size({size}) must do nothing, or raise a ValueError. It raised {error!r}."
        ) from error
