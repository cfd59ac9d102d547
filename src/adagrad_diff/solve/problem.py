"""Which problem a state belongs to: enough to tell it from another one, and cheap to write down.

What is small is written down: the loss's kind and parameters, hashes of its targets and weights, the penalty, the rule. The
data matrix is not read for this: `recognise` compares the value and the gradient at x, which no other data have.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ..common.describe import difference
from ..losses import Loss
from ..losses.base import FunctionLoss
from ..penalties import Penalty
from .state import State

WRITTEN = 8  # numbers up to which an array is written out
DATA = ("A", "Q", "center", "predictions", "function")  # of a loss: seen in its values, or derived from them
UNITS = 1e4  # in the last place, by which values may differ: another machine adds in another order
SMOOTH, KINKS = 1e-8, 1e-3  # part of itself by which a gradient may differ, and the same if there may be kinks
OTHER = (
    "'state' belongs to another problem: {}. Give what the state was made with, or start anew from its iterate with x0=state.x."
)


def identity(loss: Loss, penalty: Penalty, rule: Any) -> dict[str, Any]:
    """The problem and the rule, as what JSON can hold."""
    return {"loss": _plain(loss), "penalty": _plain(penalty), "rule": _plain(rule)}


def _plain(value: Any) -> Any:
    """Numbers, strings, lists and dicts that say what `value` is. Functions and foreign objects are known by their names."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.generic):
        return repr(value.item() if isinstance(value, np.generic) else value)  # repr: JSON has finite numbers only
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, np.ndarray):
        if value.size <= WRITTEN:
            return _plain(value.tolist())
        digest = hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()
        return {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, slice):
        return str(value)
    if isinstance(value, FunctionLoss):
        return "function"
    kind = type(value)
    if kind.__module__.partition(".")[0] != "adagrad_diff":
        return getattr(value, "__name__", kind.__name__)
    hidden = DATA if isinstance(value, Loss) else ()
    public = {name: item for name, item in vars(value).items() if not name.startswith("_") and name not in hidden}
    return {"class": kind.__name__, **{name: _plain(item) for name, item in sorted(public.items())}}


def check_same(kept: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise if a state of the one problem is to be continued on the other."""
    if kept and (where := difference(kept, now)):
        raise ValueError(OTHER.format(f"{where} is not the same"))


def recognise(loss: Loss, state: State, phi: Any) -> None:
    """Raise if f, its gradient or phi are not at the state's x what the state says: then data or penalty are others.

    With kinks the gradient need agree to a few digits only: there rounding decides about it.
    """
    g = np.empty_like(state.x)
    with np.errstate(all="ignore"):
        f = loss.oracle(state.x)(state.x, out=g)
        exact = UNITS * float(np.finfo(state.x.dtype).eps)
        size = np.maximum(np.abs(state.f), np.abs(state.f_first))
        change, gradient = (np.abs(state.flat(array)).max(axis=0) for array in (g - state.g, state.g))
        smooth = getattr(loss, "differentiable", False) or getattr(loss, "smoothness", None) is not None
        near = max(SMOOTH, exact) if smooth else KINKS
        same_data = (np.abs(f - state.f) <= exact * size) & (change <= near * np.maximum(gradient, state.g_first))
        same_penalty = (np.abs(phi - state.phi) <= exact * (size + np.abs(state.phi))) | (phi == state.phi)
        parts = {"the data of the loss are": same_data, "the penalty is": same_penalty}
    for what, same in parts.items():
        if not np.all(same | np.asarray(state.failed)):
            raise ValueError(OTHER.format(f"{what} not the same, for at the state's x there is another value or gradient"))
