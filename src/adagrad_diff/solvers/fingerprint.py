"""What a problem consists of, as plain data: to write down with results, and to tell one problem from another.

Data are known by what is in them, and code by its name: nobody can tell two functions apart by looking into them.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Iterator, Mapping
from types import MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np

from ..losses import Loss

T = TypeVar("T")
WRITTEN_OUT = 8  # entries up to which an array is written out,
TELLING = (np.float64, np.int64, np.bool_)  # if it is of a dtype that its entries tell
OURS = __name__.partition(".")[0]
SEEN_IN_VALUES = (
    "A",
    "Q",
    "center",
    "predictions",
    "function",
)  # the data of a loss, and what is derived from them
NAME = "_adagrad_diff_name"  # where an object keeps the name that `named` gave it


def named(name: str, thing: T) -> T:
    """Give a name to a function or an object that is none of this package's, so that a checkpoint can know it again.

    Whoever changes what the function computes gives it another name, or takes another checkpoint.

    Parameters
    ----------
    name : str
        A name of your own.
    thing : function or object
        A loss, a penalty, an operator or a schedule. It is returned, and knows its name from now on.

    Examples
    --------
    >>> from adagrad_diff import AdaGradDiff, named
    >>> rule = AdaGradDiff(eta=named("1 / sqrt(n)", lambda n: n**-0.5))
    """
    if not isinstance(name, str) or not name:
        raise ValueError(
            f"The 'name' parameter of named must be a text that is not empty. Got {name!r} instead."
        )
    if isinstance(thing, MethodType) or not isinstance(getattr(thing, "__dict__", None), dict):
        raise TypeError(
            f"{type(thing).__name__} cannot keep a name: put it into a function, such as lambda x: it(x), and name that."
        )
    vars(thing)[NAME] = name
    return thing


def describe(value: Any, leave_out: tuple[str, ...] = ()) -> Any:
    """Numbers, strings, lists and dicts that say what `value` is: JSON can hold it.

    - Arrays: dtype, shape and sha256; small ones are written out.
    - Objects of this package's classes, and of classes derived from them: the class and the public attributes, but for those
      to `leave_out`.
    - Other objects, and functions: {"named": the name that `named` gave them}; those that a module knows, module.name;
      {"unnamed": what they look like} else.

    Examples
    --------
    >>> from adagrad_diff import L1
    >>> from .fingerprint import describe
    >>> describe(L1(0.5))
    {'class': 'L1', 'l1': [0.5], 'l2': [0.0]}
    >>> describe([print, lambda x: x])
    ['builtins.print', {'unnamed': 'lambda'}]
    """
    return _describe(value, (), leave_out)


def describe_problem(loss: Any, penalty: Any, rule: Any) -> dict[str, Any]:
    """A problem and a rule, but for the data: whether these are the same is seen in values and gradients."""
    return {
        "loss": describe(loss, leave_out=SEEN_IN_VALUES),
        "penalty": describe(penalty),
        "rule": describe(rule),
    }


def _describe(value: Any, above: tuple[int, ...], leave_out: tuple[str, ...] = ()) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)  # JSON has finite numbers only
    if isinstance(value, np.dtype | range | slice | complex | os.PathLike):
        return str(value)
    if isinstance(value, np.generic | bytes | bytearray):
        value = (
            np.asarray(value) if isinstance(value, np.generic) else np.frombuffer(value, np.uint8)
        )
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        written = 0 < value.size <= WRITTEN_OUT and value.dtype in TELLING
        return _describe(value.tolist(), above) if written else _digest(value)
    if id(value) in above:
        return "..."  # it contains itself
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {str(key): _describe(item, above) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_describe(item, above) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_describe(item, above) for item in value), key=repr)
    if isinstance(value, MethodType):
        return {"method": value.__name__, "of": _describe(value.__self__, above)}
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):  # a sparse matrix
        rows = value.tocsr()
        return {
            name: _describe(getattr(rows, name), above)
            for name in ("shape", "data", "indices", "indptr")
        }
    if any(kind.__module__.partition(".")[0] == OURS for kind in type(value).__mro__):
        public = {
            name: item for name, item in sorted(vars(value).items()) if not name.startswith("_")
        }
        kept = {
            name: _describe(item, above, leave_out)
            for name, item in public.items()
            if name not in leave_out
        }
        return {"class": _name(value, type(value)), **kept}
    return _name(value, value)


def _name(value: Any, known: Any) -> Any:
    """The name that `value` was given, or else the one by which a module knows `known`."""
    if NAME in getattr(value, "__dict__", {}):
        return {"named": vars(value)[NAME]}
    if isinstance(known, ModuleType):
        return known.__name__
    home, name = str(getattr(known, "__module__", None)), str(getattr(known, "__qualname__", ""))
    found: Any = sys.modules.get(home)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or found is not known:
        return {"unnamed": name.rpartition(".")[2].strip("<>") or type(known).__qualname__}
    return name if home.partition(".")[0] == OURS else f"{home}.{name}"


def _digest(array: np.ndarray) -> dict[str, Any]:
    digest = hashlib.sha256()
    pieces: Any = np.nditer(
        array, ["external_loop", "buffered", "zerosize_ok"], order="C", buffersize=1 << 14
    )
    for piece in pieces:  # without a copy of the whole, whatever its strides
        digest.update(piece.tobytes())
    return {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": digest.hexdigest()}


def known_by_name(description: Any, path: str = "") -> Iterator[tuple[str, str | None]]:
    """Where a description has functions or foreign objects, as a path such as loss.function, and their name or None."""
    if isinstance(description, dict):
        if description.keys() in ({"named"}, {"unnamed"}):
            yield path, description.get("named")
        else:
            for key, item in description.items():
                yield from known_by_name(item, f"{path}.{key}" if path else key)
    elif isinstance(description, list):
        for k, item in enumerate(description):
            yield from known_by_name(item, f"{path}[{k}]")


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Where two descriptions first differ, as a path such as loss.A.sha256; None if they are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            inner = f"{path}.{key}" if path else key
            if key not in one or key not in other:
                return inner
            if found := difference(one[key], other[key], inner):
                return found
        return None
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return next(
            (
                found
                for i, (a, b) in enumerate(pairs)
                if (found := difference(a, b, f"{path}[{i}]"))
            ),
            None,
        )
    return None if one == other else path


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
