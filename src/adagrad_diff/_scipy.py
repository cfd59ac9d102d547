"""The bridge to scipy.optimize.minimize(method=adagrad_diff.scipy_method)."""

from __future__ import annotations

import inspect
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
    x0 = np.atleast_1d(x0)
    if "maxiter" in options:
        options["max_iter"] = options.pop("maxiter")
    loss = lambda x: (fun(x, *args), jac(x, *args))  # noqa: E731
    return minimize(loss, x0, _box(bounds, len(x0)), callback=callback and _as_scipy_calls(callback), **options)


def _as_scipy_calls(callback: Callable) -> Callable:
    """SciPy's convention: a callback with a parameter `intermediate_result` gets the result, any other gets x."""
    if "intermediate_result" in inspect.signature(callback).parameters:
        return lambda result: callback(intermediate_result=result)
    return lambda result: callback(result.x)


def _box(bounds: Any, size: int) -> Box | None:
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        lower, upper = bounds.lb, bounds.ub
    else:
        pairs = [(low, high) for low, high in bounds]
        lower = [-np.inf if low is None else low for low, _ in pairs]
        upper = [np.inf if high is None else high for _, high in pairs]
    try:
        return Box(np.broadcast_to(lower, size), np.broadcast_to(upper, size))
    except ValueError as error:
        raise ValueError(f"'bounds' must hold {size} pairs (lower, upper) with lower <= upper: {error}") from None
