"""The bridge to scipy.optimize.minimize(method=adagrad_diff.scipy_method)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import shown
from ..penalties import Box
from .minimize import minimize
from .result import BUDGETS, ConvergenceError, Interrupted

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

UNUSED = ("hess", "hessp", "disp")


def scipy_method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    jac: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    **options: Any,
) -> OptimizeResult:
    """AdaGrad-Diff as a method of `scipy.optimize.minimize`.

    Parameters are those SciPy passes. `options` are the arguments of `adagrad_diff.minimize` (and
    maxiter for max_iter), among them `penalty`. The result follows SciPy's conventions: nfev and
    njev count the calls made, and a run that only used its budget is no success. With a step
    size and without `tol`, every run ends that way.

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
        raise ValueError(
            "'jac' is needed: pass jac=True with fun returning (value, gradient), or a function "
            "for the gradient."
        )
    if constraints is not None and len(np.atleast_1d(constraints)):
        raise ValueError(
            "scipy_method handles bounds but no other constraints. Use adagrad_diff.minimize with "
            "a penalty."
        )
    x0, calls = np.atleast_1d(x0), 0
    options = {name: value for name, value in options.items() if name not in UNUSED}
    if "maxiter" in options:
        options["max_iter"] = options.pop("maxiter")
    if bounds is not None:
        if options.get("penalty") is not None:
            raise ValueError(
                "'bounds' and a 'penalty' cannot be combined: give one of them (Box is the penalty "
                "for bounds)."
            )
        options["penalty"] = _box(bounds, len(x0))

    def loss(x: np.ndarray) -> tuple[Any, np.ndarray]:
        nonlocal calls
        calls += 1
        return fun(x.copy(), *args), np.copy(jac(x.copy(), *args))

    def with_conventions(result: OptimizeResult) -> OptimizeResult:
        success = bool(result.success and result.status not in BUDGETS)
        result.update(nfev=calls, njev=calls, success=success)
        return result

    try:
        return with_conventions(
            minimize(loss, x0, callback=callback and _adapted(callback), **options)
        )
    except (Interrupted, ConvergenceError) as ended:
        if ended.result is not None:  # there is one, unless Ctrl-C came before the first iteration
            with_conventions(ended.result)
        raise


def _adapted(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callback for `minimize` that passes the result by name, as SciPy does, or x."""
    try:
        parameters = set(inspect.signature(callback).parameters)
    except ValueError:  # some built-in functions have no signature
        parameters = set()
    if "intermediate_result" in parameters:
        return lambda result: callback(intermediate_result=result)
    return lambda result: callback(result.x)


def _box(bounds: Any, size: int) -> Box:
    """Return the penalty for bounds in one of SciPy's forms."""
    wanted = f"'bounds' must hold {size} pairs (lower, upper) with lower <= upper"
    try:
        if hasattr(bounds, "lb"):
            pair = np.broadcast_arrays(np.atleast_1d(bounds.lb), bounds.ub)
            lower, upper = (np.repeat(a, size) if a.size == 1 else a for a in pair)
        else:
            limits = [
                (-np.inf if low is None else low, np.inf if high is None else high)
                for low, high in bounds
            ]
            lower, upper = np.reshape(limits, (-1, 2)).T
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}. Got {shown(bounds)} instead.") from None
    if len(lower) != size:
        raise ValueError(f"{wanted}. Got {len(lower)} instead.")
    try:
        return Box(lower, upper)
    except ValueError as error:
        raise ValueError(f"{wanted}: {error}") from None
