"""Which problem a state belongs to: enough to tell it from another one, and cheap to write down.

What is small is written down: the loss's kind and parameters, hashes of its targets and weights, the penalty, the rule. The
data matrix is not read for this: `recognise` compares the value and the gradient at x, which no other data have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.describe import difference
from ..losses import Loss

LAST_PLACES = (
    1e4  # in the last place, by which values may differ: another machine adds in another order
)
SMOOTH_NEAR, KINKED_NEAR = (
    1e-8,
    1e-3,
)  # part of itself by which a gradient may differ, and the same if there may be kinks
OTHER_PROBLEM = "'state' belongs to another problem: {}. Give what the state was made with, or start anew from its iterate with x0=state.x."


def check_same(kept: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise if a state of the one problem is to be continued on the other."""
    if kept and (where := difference(kept, now)):
        raise ValueError(OTHER_PROBLEM.format(f"{where} is not the same"))


def recognise(loss: Loss, state: Any, phi: Any) -> None:
    """Raise if f, its gradient or phi are not at the state's x what the state says: then data or penalty are others.

    With kinks the gradient need agree to a few digits only, and samples at theirs may have any slope: rounding decides.
    """
    g = np.empty_like(state.x)
    with np.errstate(all="ignore"):
        f = loss.oracle(state.x)(state.x, out=g)
        exact = LAST_PLACES * float(np.finfo(state.x.dtype).eps)
        size = np.maximum(np.abs(state.f), np.abs(state.f_first))
        change, gradient = (
            np.abs(state.flat(array)).max(axis=0) for array in (g - state.g, state.g)
        )
        smooth = (
            getattr(loss, "differentiable", False) or getattr(loss, "smoothness", None) is not None
        )
        near = max(SMOOTH_NEAR, exact) if smooth else KINKED_NEAR
        like = change <= near * np.maximum(gradient, state.g_first)
        if not np.all(like) and getattr(loss.whole, "jump", None) is not None:
            like = change <= near * np.maximum(gradient, state.g_first) + _open(loss.whole, state.x)
        same_data = (np.abs(f - state.f) <= exact * size) & like
        same_penalty = (np.abs(phi - state.phi) <= exact * (size + np.abs(state.phi))) | (
            phi == state.phi
        )
        parts = {"the data of the loss are": same_data, "the penalty is": same_penalty}
    for what, same in parts.items():
        if not np.all(same | np.asarray(state.failed)):
            raise ValueError(
                OTHER_PROBLEM.format(
                    f"{what} not the same, for at the state's x there is another value or gradient"
                )
            )


def _open(loss: Any, x: np.ndarray) -> Any:
    """By how much gradients at the columns of x can differ at most, if samples at their kinks take another slope."""
    columns = x.reshape(len(x), -1)
    z = loss.predict(columns) - (loss.center @ columns[:-1] if loss.center.size else 0.0)
    most = np.zeros(columns.shape[1])
    for k, predicted in enumerate(z.T):
        kinks, free = loss.at_kinks(predicted), np.zeros_like(loss.weight)
        left, right = loss.jump(loss.b[kinks], loss.theta)
        free[kinks] = loss.weight[kinks] * (right - left)
        sizes = loss.A.column_sizes(free) + free.sum() * (
            np.abs(loss.center) if loss.center.size else 0.0
        )
        most[k] = max(sizes.max(), free.sum() if loss.intercept else 0.0)
    return most if x.ndim > 1 else most[0]
