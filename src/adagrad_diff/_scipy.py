"""The bridge to scipy.optimize.minimize(method=adagrad_diff.scipy_method)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ._minimize import minimize
from .penalties import Box

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

UNUSED = ("hess", "hessp", "disp")


def scipy_method(
    fun: Callable,
    x0: Any,
    args: tuple = (),
    jac: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable | None = None,
    **options: Any,
) -> OptimizeResult:
    """AdaGrad-Diff as a method of `scipy.optimize.minimize`.

    Parameters are those SciPy passes; `options` are the arguments of `adagrad_diff.minimize` (and maxiter for max_iter).


    Examples
    --------
    >>> import scipy.optimize
    >>> from adagrad_diff import scipy_method
    >>> f = lambda x: (((x - 3.0) ** 2).sum(), 2.0 * (x - 3.0))
    >>> result = scipy.optimize.minimize(f, [0.0, 0.0], jac=True, bounds=[(0, 1), (0, None)],
    ...                                  method=scipy_method, options={"eta": 1.0})
    >>> result.x.round(6).tolist()
    [1.0, 3.0]
    """
    if not callable(jac):
        raise ValueError("'jac' is needed: pass jac=True with fun returning (value, gradient), or a function for the gradient.")
    if constraints is not None and len(np.atleast_1d(constraints)):
        raise ValueError("scipy_method handles bounds but no other constraints; use adagrad_diff.minimize with a penalty.")
    for name in UNUSED:
        options.pop(name, None)
    if "maxiter" in options:
        options["max_iter"] = options.pop("maxiter")
    return minimize(lambda x: (fun(x, *args), jac(x, *args)), x0, _box(bounds, len(x0)), callback=callback, **options)


def _box(bounds: Any, size: int) -> Box | None:
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        lower, upper = bounds.lb, bounds.ub
    else:
        pairs = [(low, high) for low, high in bounds]
        lower = [-np.inf if low is None else low for low, _ in pairs]
        upper = [np.inf if high is None else high for _, high in pairs]
    return Box(np.broadcast_to(lower, size), np.broadcast_to(upper, size))
