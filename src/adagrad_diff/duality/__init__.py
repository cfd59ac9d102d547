r"""How good is an answer: duality gaps, upper bounds on F(x) - F_star.

`minimize(..., stop="gap", tol=1e-4)` stops on them; `duality_gap` evaluates one for any x.

- Smooth losses: the slopes of the scalar losses at x are a dual point; scaled into the dual set it gives a bound that closes
  as x converges.
- Nonsmooth losses (hinge, absolute, quantile): averages of the slopes over late iterations, refined on the samples that are at
  their nonsmooth points.
- An intercept is an equality in the dual, met by a shift of all slopes.
- Where scaling a dual point would cost much, because of one raw column, it is moved instead by a small change of the slopes that
  have slack. Neither the units of a column nor, with an intercept, its mean matter.
- `prove` is for the answer of an exact solver: products in extended precision, a gap of a few units in the last place of the
  terms of F.
- Quadratic functions, the dual of a kernel SVM among them: the gradient at x.

Bounds are below F_star whatever rounding has done: everything that it may have added is subtracted, and where that is not known
there is no bound. A gap is never smaller than what the precision of F(x), as it was computed, allows. (A point outside of a
penalty's set by 1e-9 relative counts as inside.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from ..losses import LinearModel, Loss, Multinomial, Quadratic, as_loss
from ..penalties import Penalty, as_penalty
from ._conditioning import has_no_minimizer as has_no_minimizer
from ._conditioning import least_curvature as least_curvature
from ._correction import corrected_bound
from ._linear import Dual
from ._linear import LinearDual as LinearDual
from ._multinomial import MultinomialDual
from ._objective import NEGLIGIBLE_SHARE as NEGLIGIBLE_SHARE
from ._objective import Certificate as Certificate
from ._objective import objective as objective
from ._objective import unit as unit
from ._quadratic import QuadraticDual
from ._refinement import refined, samples_nearest_kinks
from .certifier import Certifier as Certifier
from .certifier import Proof as Proof
from .certifier import prove as prove
from .critical import at_fraction, critical_lam

POINT_ROUNDS, POINT_EVALUATIONS = 8, 300  # of the refinement, for a single x that has no history

__all__ = ["Certificate", "at_fraction", "critical_lam", "duality_gap"]


def dual_of(loss: Loss, penalty: Penalty) -> Dual | str:
    """The dual function, or a phrase that says why there is none."""
    if isinstance(loss, Quadratic):
        kind: type[Any] = QuadraticDual
    elif isinstance(loss, Multinomial):
        kind = MultinomialDual
    elif isinstance(loss, LinearModel) and loss.conjugate is not None:
        kind = LinearDual
    else:
        return f"the conjugate of {type(loss).__name__} is not known"
    assert loss.shape is not None
    size = int(np.prod(loss.shape)) * (loss.shape[0] - loss.intercept) // loss.shape[0]
    penalty.check_size(size)
    if not getattr(loss, "l2", 0.0):
        try:
            penalty.conjugate(np.zeros(size))
        except ValueError as error:
            return str(error).rstrip(".")
    dual: Dual = kind(loss, penalty)
    return dual


def certificate_at(loss: Any, penalty: Penalty, x: np.ndarray, value: float) -> Certificate:
    """Return what a lower bound on F_star, found elsewhere, proves about x."""
    dual = dual_of(loss, penalty)
    if isinstance(dual, str):
        part = (x[:-1] if loss.intercept else x).reshape(-1)
        return Certificate(
            float(loss.oracle(x)(x, np.empty_like(x))) + float(penalty.value(part)),
            -np.inf,
            np.inf,
            None,
        )
    return Certificate.at(objective(dual, x), value)


@np.errstate(all="ignore")  # what overflows proves nothing
def duality_gap(loss: Any, penalty: Any, x: Any, *, refine: bool = True) -> Certificate:
    r"""An upper bound on F(x) - F_star.

    .. math:: F(x) - F_\star \le F(x) - D(u), \qquad D(u) = -\sum_j w_j\, l^*(u_j) - \psi^*(-A^\top (w u))

    with psi = phi + l2/2 ||x||^2 and a dual point u made from the slopes of the losses at x.

    Parameters
    ----------
    loss : Loss
        A linear model whose scalar loss has a conjugate, or a quadratic function.
    penalty : Penalty
        With a known conjugate or polar, unless the loss has l2 > 0.
    x : array
        Any point, an intercept included if the loss has one.
    refine : bool
        For a loss with kinks: whether to solve for the slopes of the samples nearest to theirs.

    Returns
    -------
    Certificate
        With fun, bound, gap, dual_point and message. The gap is infinite where no dual feasible point was found, and the
        message says why.

    Examples
    --------
    >>> from adagrad_diff import L1, Squared, minimize
    >>> from adagrad_diff.duality import duality_gap
    >>> loss, penalty = Squared([[1.0, 0.0], [0.0, 2.0]], [3.0, 1.0]), L1(0.5)
    >>> x = minimize(loss, penalty=penalty, eta=1.0, max_iter=300).x
    >>> certificate = duality_gap(loss, penalty, x)
    >>> certificate.gap < 1e-6, duality_gap(loss, penalty, [0.0, 0.0]).gap > 0.1
    (True, True)
    """
    loss, penalty = as_loss(loss), as_penalty(penalty)
    dual = dual_of(loss, penalty)
    given = _check.finite(_check.real_array(x, "x"), "x")
    x = np.ascontiguousarray(given, dtype=loss.dtype)
    if loss.shape is not None and x.shape != loss.shape:
        raise ValueError(f"x must have shape {loss.shape}. Got shape {x.shape} instead.")
    certifier = Certifier(dual)
    oracle, g = loss.oracle(x), np.empty_like(x)
    computed = float(oracle(x, g))
    if isinstance(dual, str):
        fun = computed + float(penalty.value((x[:-1] if loss.intercept else x).reshape(-1)))
        return Certificate(fun, -np.inf, np.inf, None, certifier.message(fun))
    r = dual.residuals(oracle, None)
    certifier.update(dual.bound(x, g, r))
    if r is not None and dual.lost > 0 and isinstance(dual, LinearDual):
        certifier.update(corrected_bound(dual, dual.multipliers(r)))
    if refine and dual.nonsmooth and isinstance(dual, LinearDual):
        u = dual.multipliers(r)  # type: ignore[arg-type]
        samples = samples_nearest_kinks(dual, x, len(u))
        for better in refined(
            dual, x, u, dual.product(u), samples, rounds=POINT_ROUNDS, evaluations=POINT_EVALUATIONS
        ):
            certifier.update(dual.value(better.u, better.v))
        certifier.update(corrected_bound(dual, u))  # which the refinement has written to
    return certifier.certificate(given)
