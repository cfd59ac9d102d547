"""Fingerprints: what a problem consists of, as plain data, to check that two problems are the same.

Data are identified by their content, and code by its name, because functions cannot be compared.
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

T = TypeVar("T")
WRITTEN_OUT = 8  # entries up to which an array is written out,
READABLE_DTYPES = (np.float64, np.int64, np.bool_)  # if it has one of these dtypes
BUFFER_ENTRIES = 1 << 14  # of an array that are hashed together
PACKAGE_NAME = __name__.partition(".")[0]
DATA = ("A", "Q", "center", "predictions", "function")  # attributes of losses left out
NAME = "_adagrad_diff_name"  # the attribute that holds the name given by `named`


def named(name: str, thing: T) -> T:
    """Name a function or an object of another package, so that checkpoints can identify it.

    After a change of what the function computes, use another name or another checkpoint.

    Parameters
    ----------
    name : str
        Any text.
    thing : function or object
        A loss, a penalty, an operator or a schedule. It is returned with the name attached.

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
            f"{type(thing).__name__} cannot keep a name: put it into a function, such as "
            "lambda x: it(x), and name that."
        )
    vars(thing)[NAME] = name
    return thing


def describe(value: Any, leave_out: tuple[str, ...] = ()) -> Any:
    """Return numbers, strings, lists and dicts, for JSON, that say what `value` is.

    - Arrays: dtype, shape and SHA-256; small ones are written out.
    - Objects of classes of this package, and of their subclasses: the class and the public
      attributes, except for those to `leave_out`.
    - Other objects, and functions: {"named": the name that `named` gave them}, or the name by which
      a module knows them, or else {"unnamed": their kind}.

    Examples
    --------
    >>> from adagrad_diff import L1
    >>> from .fingerprint import describe
    >>> describe(L1(0.5))
    {'class': 'L1', 'l1': [0.5], 'l2': [0.0]}
    >>> describe([print, lambda x: x])
    ['builtins.print', {'unnamed': 'lambda'}]
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)  # JSON has finite numbers only
    if isinstance(value, bytes | np.dtype | range | slice | complex | os.PathLike):
        return str(value)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        written = 0 < value.size <= WRITTEN_OUT and value.dtype in READABLE_DTYPES
        return describe(value.tolist()) if written else _digest(value)
    if isinstance(value, Mapping):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [describe(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((describe(item) for item in value), key=repr)
    if isinstance(value, MethodType):
        return {"method": value.__name__, "of": describe(value.__self__)}
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):  # a sparse matrix
        rows = value.tocsr()
        return {k: describe(getattr(rows, k)) for k in ("shape", "data", "indices", "indptr")}
    if any(kind.__module__.partition(".")[0] == PACKAGE_NAME for kind in type(value).__mro__):
        public = {k: v for k, v in sorted(vars(value).items()) if not k.startswith("_")}
        kept = {k: describe(v, leave_out) for k, v in public.items() if k not in leave_out}
        return {"class": _name(value, type(value))} | kept
    return _name(value, value)


def _name(value: Any, known: Any) -> Any:
    """Return the name that `value` was given, or else the one by which a module knows `known`."""
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
    return name if home.partition(".")[0] == PACKAGE_NAME else f"{home}.{name}"


def _digest(array: np.ndarray) -> dict[str, Any]:
    digest, flags = hashlib.sha256(), ["external_loop", "buffered", "zerosize_ok"]
    parts: Any = np.nditer(array, flags, order="C", buffersize=BUFFER_ENTRIES)  # type: ignore[call-overload]
    for part in parts:  # without a copy of the whole array, whatever its strides
        digest.update(part.tobytes())
    return {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": digest.hexdigest()}


def known_by_name(description: Any, path: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield where a description has functions or foreign objects, and their name or None.

    Places are paths such as loss.function.
    """
    if isinstance(description, dict):
        if description.keys() in ({"named"}, {"unnamed"}):
            yield path, description.get("named")
            return
        for key, item in description.items():
            yield from known_by_name(item, f"{path}.{key}" if path else key)
    elif isinstance(description, list):
        for k, item in enumerate(description):
            yield from known_by_name(item, f"{path}[{k}]")


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Return where two descriptions first differ, as a path such as loss.A.sha256, or None."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one, other = dict(enumerate(one)), dict(enumerate(other))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return None if one == other else path
    for key in one | other:
        inner = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        if key not in one or key not in other:
            return inner
        if found := difference(one[key], other[key], inner):
            return found
    return None


def describe_problem(loss: Any, penalty: Any, rule: Any) -> dict[str, Any]:
    """Return the description of a problem and a rule; of the data, only sums over A x.

    x is pseudo-random, and the sums are written to two thirds of their digits.
    """
    described = {"loss": describe(loss, leave_out=DATA), "penalty": describe(penalty)}
    matrix, sums = loss.whole.matrix, None
    if matrix is not None:
        samples, features = matrix.shape
        rng, z = np.random.default_rng(0), np.empty(samples, matrix.dtype)
        with np.errstate(all="ignore"):  # overflows show in the sums
            matrix.dot(rng.standard_normal(features).astype(matrix.dtype), z)
            values = rng.standard_normal(samples) @ z, np.linalg.norm(z.astype(np.float64))
        sums = [f"{value:.{2 * np.finfo(matrix.dtype).precision // 3}g}" for value in values]
    return described | {"rule": describe(rule), "data": sums}
